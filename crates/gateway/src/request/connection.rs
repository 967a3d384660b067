//! A client's connection: one request after another, until one side ends it.
//!
//! All of it is one task. Requests that a client sends early stay in the inbox and are served in order. Buffers exist
//! only while they hold bytes. A connection that has been idle for a moment *rests*: what it takes to serve requests is
//! given back, and its task keeps a socket and a slot.

use super::body::NoBody;
use super::decision::NotStarted;
use super::loop_mark;
use super::peer::Peer;
use crate::access_log::entry::{CLIENT_LEFT, Entry};
use crate::client::buffers::{self, SMALL};
use crate::client::early_body::EarlyBody;
use crate::client::inbox::Inbox;
use crate::client::outbox::Outbox;
use crate::client::requested::Requested;
use crate::client::socket::Client;
use crate::client::standing::Standing;
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http1::field::Field;
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::http1::scan::HeadScan;
use crate::runtime::slots::Slot;
use crate::runtime::worker::Worker;
use crate::upstream::request::HeaderVariants;
use plimsoll_core::request::Reason;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a connection stays ready for its next request before it rests. A client that sends requests one upon another
/// finds it ready; to get ready costs less than a connection anew.
const READY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The connection's next request.
    Request,
    /// No request for a moment.
    Rest,
    /// The end of the connection.
    Close,
    /// The end of a connection whose client may still be sending, and must not lose its response to a reset.
    Linger,
}

#[derive(Debug, Default)]
struct PartialHead {
    scan: HeadScan,
    has_begun: bool,
    /// An empty line before the head was skipped.
    skipped: bool,
    /// Its place among the thread's unfinished heads, if it had to wait for its next bytes.
    standing: Standing,
}

/// What came of the wait for a head.
enum Awaited {
    Head,
    /// Nothing: the client is done, or the gateway is.
    End,
    /// Nothing for a moment.
    Idle,
}

pub(crate) struct Connection {
    pub worker: Rc<Worker>,
    pub client: Client,
    pub peer: Peer,
    pub head: RequestHead,
    pub reply: ResponseHead,
    /// The heads that the upstream may be sent; kept for a second try.
    pub variants: HeaderVariants,
    pub scratch: Vec<u8>,
    /// What was read of the request's body before its arrival.
    pub early: EarlyBody,
    /// The request's line of the access log, until it starts.
    pub entry: Option<Box<Entry>>,
}

/// A connection's slot in the table of its thread, given back on drop.
struct SlotGuard {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.worker.slots.borrow_mut().remove(&self.slot);
        self.worker.shared.mailboxes[self.worker.index].connections.fetch_sub(1, Relaxed);
    }
}

pub(crate) async fn run(worker: Rc<Worker>, io: TcpStream, peer: IpAddr) {
    // Declared first and therefore dropped last: the connection counts until its socket is closed.
    let slot = worker.slots.borrow_mut().add();
    let guard = SlotGuard { slot, worker };
    poll_fn(|context| {
        guard.slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    guard.slot.idle_from(guard.worker.coarse());
    let mut resting = Some(io);
    while let Some(mut io) = resting.take() {
        let mut inbox = Inbox::default();
        if !guard.rest(&mut io, &mut inbox).await {
            return;
        }
        let ready = &guard.worker.ready;
        ready.set(ready.get() + 1);
        resting = serve_until_idle(&guard, io, inbox, peer).await;
        ready.set(ready.get() - 1);
    }
}

/// On the heap, where it takes memory only until the connection rests again; made outside of the task, which would otherwise
/// have room for it.
fn serve_until_idle(
    guard: &SlotGuard,
    io: TcpStream,
    inbox: Inbox,
    peer: IpAddr,
) -> Pin<Box<impl Future<Output = Option<TcpStream>>>> {
    Box::pin(Connection::new(guard, io, inbox, peer).serve_until_idle())
}

impl SlotGuard {
    /// Waits for the first bytes of a request. False at the end of the connection: the client has left or has sent nothing
    /// for too long, its place is needed, or the gateway stops.
    async fn rest(&self, io: &mut TcpStream, inbox: &mut Inbox) -> bool {
        let (worker, slot) = (&self.worker, &self.slot);
        let Some(since) = slot.idle_since() else { return false };
        let deadline = since + worker.tables().settings.timeouts.keep_alive;
        if worker.coarse() >= deadline {
            return false;
        }
        slot.arm(Some(deadline));
        let has_come = poll_fn(|context| match inbox.poll_fill(io, context, false) {
            Poll::Ready(count) => Poll::Ready(count.is_ok_and(|count| count > 0)),
            Poll::Pending if worker.is_draining() || slot.expired() => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        })
        .await;
        slot.busy();
        has_come
    }
}

impl Connection {
    fn new(guard: &SlotGuard, io: TcpStream, inbox: Inbox, peer: IpAddr) -> Self {
        let (worker, slot) = (guard.worker.clone(), guard.slot.clone());
        Connection {
            client: Client { io, inbox, outbox: Outbox::default(), slot, besides: 0 },
            peer: Peer::new(peer, &worker.tables().settings.trusted_proxies),
            worker,
            head: RequestHead::default(),
            reply: ResponseHead::default(),
            variants: HeaderVariants::default(),
            scratch: Vec::new(),
            early: EarlyBody::default(),
            entry: None,
        }
    }

    /// Serves requests until there is none for a moment, and returns the socket then; `None` at the connection's end.
    async fn serve_until_idle(mut self) -> Option<TcpStream> {
        let last = self.serve().await;
        if last == Next::Rest {
            return Some(self.client.io);
        }
        if last == Next::Linger || !self.client.inbox.is_empty() {
            self.client.linger(&self.worker).await;
        }
        None
    }

    /// Serves one request after another; returns how that ends.
    async fn serve(&mut self) -> Next {
        loop {
            let next = match self.next_head().await {
                Ok(Awaited::Head) => self.request().await,
                Ok(Awaited::Idle) => Next::Rest,
                Ok(Awaited::End) => Next::Close,
                Err(refusal) => self.refuse(refusal).await,
            };
            if next != Next::Request {
                return next;
            }
        }
    }

    /// One request's way, from its head to its departure.
    async fn request(&mut self) -> Next {
        let mut requested = Requested::of(&self.head);
        requested.keep_alive &= !self.worker.is_draining();
        let classified = self.classify();
        self.begin_log_entry(classified);
        if self.worker.shared.mark.is_on(self.client.inbox.bytes(), &self.head.fields) {
            return self.turn_away(loop_mark::COME_BACK, requested).await;
        }
        let Some(mut target) = classified else {
            let refusal = Refusal::with(421, "no site of this gateway has this host");
            return self.turn_away(refusal, requested).await;
        };
        if self.head.expects_continue
            && let Some(rejection) = self.reject_before_body(&target)
        {
            return self.reject(rejection, requested).await;
        }
        self.note_besides();
        if self.head.framing != Framing::None {
            // On the heap, so that a connection's task stays as small as requests without a body need.
            match Box::pin(self.read_body()).await {
                Ok(()) => {}
                Err(NoBody::ClientLeft) => return self.client_left(),
                Err(NoBody::Refused(refusal)) => return self.refuse(refusal).await,
            }
        }
        target.streams = self.head.framing != Framing::None && !self.early.is_whole;
        match self.admit(target).await {
            Ok(permit) => self.forward(target, permit, requested).await,
            Err(NotStarted::Rejected(rejection)) => self.reject(rejection, requested).await,
            Err(NotStarted::TooLate) => {
                let late = Refusal::with(504, "no place at the upstream became free in time");
                self.turn_away(late, requested).await
            }
            Err(NotStarted::NoMemory) => {
                let full = Refusal::with(503, "the requests that wait hold as much memory as they may");
                self.turn_away(full, requested).await
            }
            Err(NotStarted::ClientLeft) => self.client_left(),
        }
    }

    /// The client left before its request started.
    fn client_left(&mut self) -> Next {
        self.log_turned_away(CLIENT_LEFT, Some(Reason::ClientLeft), 0);
        Next::Close
    }

    /// Notes what the connection holds besides its client's bytes.
    pub(super) fn note_besides(&mut self) {
        let fields = self.head.fields.capacity() + self.reply.fields.capacity();
        self.client.besides =
            fields * size_of::<Field>() + self.variants.capacity() + self.scratch.capacity();
    }

    pub(crate) fn body_limit(&self) -> u64 {
        self.worker.tables().settings.limits.body_bytes
    }

    /// Receives the next request's head.
    async fn next_head(&mut self) -> Result<Awaited, Refusal> {
        // The memory of one large request is given back, so that it does not stay with the connection.
        self.variants.shrink(4096);
        self.early = EarlyBody::default();
        if self.scratch.capacity() > 4096 {
            self.scratch = Vec::new();
        }
        self.note_besides();
        let timeouts = self.worker.tables().settings.timeouts;
        let timeout =
            if self.client.inbox.is_empty() { READY.min(timeouts.keep_alive) } else { timeouts.head };
        self.client.slot.arm(Some(self.worker.after(timeout)));
        let mut partial = PartialHead { has_begun: !self.client.inbox.is_empty(), ..PartialHead::default() };
        if !partial.has_begun {
            self.client.slot.idle_from(self.worker.coarse());
        }
        let length = poll_fn(|context| self.poll_head(context, &mut partial)).await;
        if matches!(length, Ok(None)) && self.client.slot.expired() {
            return Ok(Awaited::Idle);
        }
        self.client.slot.arm(None);
        self.client.slot.busy();
        let Some(length) = length? else { return Ok(Awaited::End) };
        self.head.parse(&self.client.inbox.bytes()[..length])?;
        match self.head.framing {
            Framing::Length(length) if length > self.body_limit() => {
                Err(Refusal::with(413, "the request body is too large"))
            }
            _ => Ok(Awaited::Head),
        }
    }

    /// Reads until a head is complete, and returns its length; `None` at the connection's end, and when the deadline has
    /// passed before anything came.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        partial: &mut PartialHead,
    ) -> Poll<Result<Option<usize>, Refusal>> {
        let tables = self.worker.tables();
        let settings = &tables.settings;
        let limit = settings.limits.head_bytes.clamp(1024, 64 * 1024);
        let client = &mut self.client;
        loop {
            if client.inbox.is_empty() {
                if self.worker.is_draining() {
                    return Poll::Ready(Ok(None));
                }
            } else {
                match partial.scan.advance(client.inbox.bytes(), limit)? {
                    // A client may send one empty line too many after a body (RFC 9112 2.2).
                    Some(2) if partial.skipped => {
                        return Poll::Ready(Err(Refusal::bad("empty lines come before the request")));
                    }
                    Some(2) => {
                        client.inbox.consume(2);
                        (partial.scan, partial.skipped) = (HeadScan::default(), true);
                        continue;
                    }
                    Some(length) => return Poll::Ready(Ok(Some(length))),
                    None if !client.inbox.has_room() => client.inbox.make_room(),
                    None => {}
                }
            }
            let was_idle = client.inbox.is_empty();
            match client.inbox.poll_fill(&mut client.io, context, false) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ok(None)),
                // The deadline is set once for a head, so that an empty line before the head buys no time.
                Poll::Ready(Ok(_)) if !partial.has_begun => {
                    partial.has_begun = true;
                    client.slot.busy();
                    client.slot.arm(Some(self.worker.after(settings.timeouts.head)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending if client.slot.expired() => {
                    let late = Refusal::with(408, "the request head did not come in time");
                    return Poll::Ready(if was_idle { Ok(None) } else { Err(late) });
                }
                // An incomplete head is not known to be a request: draining does not wait for it.
                Poll::Pending if self.worker.is_draining() => return Poll::Ready(Ok(None)),
                Poll::Pending => {
                    if partial.has_begun {
                        partial.wait(&self.worker, client);
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl PartialHead {
    /// The next bytes are not there yet. What has come is kept in memory of its size, and counted with all other
    /// unfinished heads.
    fn wait(&mut self, worker: &Worker, client: &mut Client) {
        if buffers::are_many() || client.inbox.held() > SMALL {
            client.inbox.pack();
        }
        self.standing.hold(&worker.heads, &client.slot, client.held(), worker.head_memory());
    }
}
