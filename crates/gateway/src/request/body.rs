//! A request's body, read before the request arrives at the engine.
//!
//! A place at the server is held for as long as the server works, and not for as long as a client sends: a few clients that
//! send a byte now and then would otherwise hold all places. So the first `limits.request_buffer` bytes of a body are read
//! before: into the client's inbox, and the bytes that do not fit there into a temporary file
//! ([`spill_files`](crate::client::spill_files)). A longer body streams from there on while its request holds a place.
//!
//! A client that waits for `100 Continue` gets it from the gateway, since the server is asked only once the body is there.

use super::lifecycle::Way;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers;
use crate::client::early_body::EarlyBody;
use crate::client::inbox::Inbox;
use crate::client::pace::{Pace, SCARCITY_LOOK};
use crate::client::socket::Client;
use crate::client::spill_files::{StorageFault, Store};
use crate::client::wire::Wire;
use crate::exchange::request::BODY_TOO_LARGE;
use crate::http1::Refusal;
use crate::http1::body::{Decoder, Framing};
use crate::worker::Worker;
use plimsoll_core::time::Instant;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// While memory is short, bodies up to this size are not worth a file.
const LEAST_STORED: usize = 4096;

/// The beginning of gRPC's media types.
const GRPC: &[u8] = b"application/grpc";

/// Why the request does not arrive after its body was read.
#[derive(Debug)]
pub(super) enum NoBody {
    ClientLeft,
    Refused(Refusal),
}

impl From<Refusal> for NoBody {
    fn from(refusal: Refusal) -> Self {
        NoBody::Refused(refusal)
    }
}

/// A body that is being read.
struct Reading {
    body: Decoder<'static>,
    /// Where the body begins in the inbox: behind the head.
    start: usize,
    /// How many bytes of the body in the inbox are checked, and how many bytes of payload have come in all.
    checked: usize,
    payload: u64,
    stored: Option<Store>,
    pace: Pace,
    /// The pace that the client must keep while this body holds scarce room in files.
    floor: Pace,
    /// The client's place among the clients that are waited for.
    awaited: AwaitedClient,
}

impl<W: Wire> Way<W> {
    /// Reads the request's body: all of it, or the part that is read before an arrival.
    pub(super) async fn read_body(&mut self) -> Result<(), NoBody> {
        if self.streams() {
            // A short body, such as a single message of gRPC, may have come with its head: then nothing streams.
            if !self.take_what_came().await {
                return Err(NoBody::ClientLeft);
            }
            let mut body = Decoder::new(self.head.framing);
            let taken = body.advance(&self.client.inbox.bytes()[self.head.length..])?;
            let in_inbox = if body.is_done() { taken.bytes } else { 0 };
            self.early = EarlyBody { is_whole: body.is_done(), in_inbox, ..EarlyBody::default() };
            return Ok(());
        }
        if self.head.expects_continue {
            self.client.outbox.push_head(b"HTTP/1.1 100 Continue\r\n\r\n");
            if !self.client.flush(&self.worker, None).await {
                return Err(NoBody::ClientLeft);
            }
            self.head.expects_continue = false;
        }
        let (now, idle) = (self.worker.coarse(), self.worker.tables().settings.timeouts.body_idle);
        let (pace, floor) = (Pace::start(now, idle), Pace::floor(now, idle));
        let body = Decoder::new(self.head.framing).of_request(&[]);
        let mut reading = Reading {
            body,
            start: self.head.length,
            checked: 0,
            payload: 0,
            stored: None,
            pace,
            floor,
            awaited: AwaitedClient::default(),
        };
        let result = poll_fn(|context| reading.poll(&self.worker, &mut self.client, context)).await;
        self.client.slot.arm(None);
        let Reading { body, checked, payload, stored, .. } = reading;
        let is_whole = body.is_done();
        let is_to_be_unwrapped = is_whole && self.head.framing == Framing::Chunked && !body.has_trailers();
        if is_to_be_unwrapped {
            self.head.framing = Framing::Length(payload);
        }
        self.early = EarlyBody { is_whole, in_inbox: checked, stored, is_to_be_unwrapped };
        result
    }
}

impl<W: Wire> Way<W> {
    /// Takes the bytes that the client has sent, as far as there is room, without waiting. False if the client has left.
    async fn take_what_came(&mut self) -> bool {
        poll_fn(|context| {
            while self.client.inbox.has_room() {
                match self.client.poll_fill(context, false) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(false),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => break,
                }
            }
            Poll::Ready(true)
        })
        .await
    }

    /// Whether the body passes to the server while it comes, because its path is configured so, or because gRPC may answer
    /// before the body's end.
    pub(super) fn streams(&self) -> bool {
        let (bytes, tables) = (self.client.inbox.bytes(), self.worker.tables());
        let path = self.head.rule_path(bytes);
        let by_type = || {
            let value = self.head.field(bytes, "content-type").unwrap_or_default();
            value.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
        };
        tables.settings.stream_paths.iter().any(|pattern| pattern.matches(path)) || by_type()
    }
}

impl Reading {
    fn poll<W: Wire>(
        &mut self,
        worker: &Worker,
        client: &mut Client<W>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), NoBody>> {
        let limits = worker.tables().settings.limits;
        loop {
            let came = &client.inbox.bytes()[self.start + self.checked..];
            let taken = self.body.advance(came)?;
            self.checked += taken.bytes;
            self.payload += taken.payload;
            if self.payload > limits.body_bytes {
                return Poll::Ready(Err(BODY_TOO_LARGE.into()));
            }
            if self.body.is_done() || self.payload >= limits.request_buffer {
                if buffers::exceed(worker.buffer_memory()) && self.checked > LEAST_STORED {
                    // The request may wait for long. Bytes that find no file stay in memory.
                    drop(self.store(worker, &mut client.inbox));
                }
                return Poll::Ready(Ok(()));
            }
            if !client.inbox.has_room() {
                let may_grow = self.checked == 0 || !buffers::exceed(worker.buffer_memory());
                if may_grow && client.inbox.can_grow() {
                    client.inbox.make_room();
                } else if !self.store(worker, &mut client.inbox)? {
                    return Poll::Ready(Ok(()));
                }
            }
            match client.poll_fill(context, false) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(NoBody::ClientLeft)),
                Poll::Ready(Ok(count)) => {
                    self.pace.earn(worker.coarse(), count as u64);
                    self.floor.earn(worker.coarse(), count as u64);
                    self.awaited.moved(count as u64);
                }
                Poll::Pending if client.slot.expired() && self.is_late(worker) => {
                    let late = Refusal::with(408, "the request body did not come in time");
                    return Poll::Ready(Err(late.into()));
                }
                Poll::Pending => {
                    self.spare(worker, &mut client.inbox)?;
                    let look = self.stored.as_ref().map(|_| worker.after(SCARCITY_LOOK));
                    let deadline = self.deadline(worker);
                    client.slot.arm(Some(look.map_or(deadline, |look| deadline.min(look))));
                    self.awaited.hold(&worker.slow, &client.slot, client.held(), worker.standing_memory());
                    if self.stored.is_some() {
                        self.awaited.hold_file(&worker.filed, &client.slot);
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Frees memory for a wait: if memory is short, the bytes that have come go to the file. Bytes for which the files have no
    /// room stay in memory.
    fn spare(&mut self, worker: &Worker, inbox: &mut Inbox) -> Result<(), NoBody> {
        let is_short = buffers::exceed(worker.buffer_memory());
        if is_short && self.checked > LEAST_STORED {
            self.store(worker, inbox)?;
        }
        if is_short || buffers::are_many() {
            inbox.pack();
        }
        Ok(())
    }

    /// Whether the client's time is over, or its memory is needed.
    fn is_late(&mut self, worker: &Worker) -> bool {
        self.awaited.is_given_up() || self.deadline(worker) <= worker.coarse()
    }

    /// The time by which more of the body must come.
    fn deadline(&mut self, worker: &Worker) -> Instant {
        if self.stored.is_some() && worker.are_files_scarce() {
            return self.pace.deadline().min(self.floor.deadline());
        }
        self.floor.excuse(worker.coarse());
        self.pace.deadline()
    }

    /// Moves the body's bytes from the inbox to the file. False if all files are full: the rest of the body then streams.
    fn store(&mut self, worker: &Worker, inbox: &mut Inbox) -> Result<bool, NoBody> {
        let limits = worker.tables().settings.limits;
        worker.spare_files();
        let bytes = &inbox.bytes()[self.start..self.start + self.checked];
        let store = match &mut self.stored {
            Some(store) => Ok(store),
            none => Store::create(&worker.shared.storage, limits.connections).map(|store| none.insert(store)),
        };
        match store.and_then(|store| store.append(bytes, limits.buffer_files)) {
            Ok(()) => {
                inbox.remove(self.start, self.checked);
                self.checked = 0;
                Ok(true)
            }
            Err(StorageFault::Full) => Ok(false),
            Err(fault) if fault.is_full_disk() => {
                Err(Refusal::with(507, "the disk has no room for the request body").into())
            }
            Err(_) => Err(Refusal::with(503, "no temporary file can be made for the request body").into()),
        }
    }
}
