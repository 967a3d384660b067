//! A client's HTTP/2 connection: many requests at once, each on a stream, with a task, a slot and a way of its own.
//!
//! The connection's task moves frames and accepts streams. What a request is put to, how it is answered and how slow its
//! client may be is the [`way`](super::way)'s affair, as it is on a socket of HTTP/1.1. The connection has the deadlines that
//! no stream has: to begin, to finish a head, to be idle, and to leave once it was told to.
//!
//! | it ends | how |
//! |---|---|
//! | idle for `timeouts.keep_alive`, or the gateway drains | `GOAWAY`; streams under way are finished, new ones refused |
//! | its place is needed, or a head has no end in time | `GOAWAY` at once |
//! | it floods ([`floods`](crate::http2::floods)) | `GOAWAY` with `ENHANCE_YOUR_CALM` at once |

use super::entrance::SlotGuard;
use super::peer::Origin;
use super::way::Way;
use crate::client::buffers::LARGE;
use crate::client::inbox::Inbox;
use crate::client::outbox::Outbox;
use crate::client::socket::Client;
use crate::client::standing::Standing;
use crate::client::stream::{Chunk, Stream};
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http2::floods::Flood;
use crate::http2::head::{self, StreamStart};
use crate::http2::metered::{Meter, Metered};
use crate::runtime::slots::Slot;
use crate::runtime::worker::Worker;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Request, request};
use plimsoll_core::time::Instant;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a client may send of a body before it is taken, on a stream and on all of them together.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What of a stream's response may be on its way to the socket.
const SEND_BUFFER: usize = 2 * LARGE;
/// How long a connection that was told to end has for its last frames.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// It was told to end: streams under way are finished.
    Leaving,
    /// It ends, whatever is under way.
    Closing,
}

struct Streams<'a, T> {
    guard: &'a SlotGuard,
    origin: &'a Origin,
    h2: Connection<Metered<T>, Chunk>,
    meter: Rc<Meter>,
    state: State,
    /// How many streams are under way.
    open: Rc<Cell<usize>>,
    /// Since when there is none.
    idle_since: Option<Instant>,
    /// The number of the frame or the head that is unfinished, and since when.
    unfinished: Option<(u64, Instant)>,
    armed: Option<Instant>,
    /// Its place among the connections with unfinished heads.
    standing: Standing,
    looked: Instant,
}

/// Serves HTTP/2 on a socket, whose `first` bytes were read already, until one side ends it.
pub(super) async fn run<T: AsyncRead + AsyncWrite + Unpin>(
    guard: &SlotGuard,
    io: T,
    first: Vec<u8>,
    origin: &Origin,
) {
    let (worker, slot) = (&guard.worker, &guard.slot);
    let tables = worker.tables();
    let (limits, timeouts) = (tables.settings.limits, tables.settings.timeouts);
    drop(tables);
    let meter = Rc::<Meter>::default();
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head_bytes.clamp(1024, 64 * 1024) as u32)
        .max_send_buffer_size(SEND_BUFFER)
        .enable_connect_protocol();
    slot.busy();
    slot.arm(Some(worker.after(timeouts.head)));
    let begun = {
        let mut handshake = pin!(builder.handshake(Metered::new(io, first, meter.clone())));
        poll_fn(|context| match handshake.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result.ok()),
            Poll::Pending if slot.expired() || worker.ends_idle() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    };
    let Some(h2) = begun else { return };
    let mut streams = Streams {
        guard,
        origin,
        h2,
        meter,
        state: State::Open,
        open: Rc::default(),
        idle_since: None,
        unfinished: None,
        armed: None,
        standing: Standing::default(),
        looked: worker.coarse(),
    };
    poll_fn(|context| streams.poll(context)).await;
}

impl<T: AsyncRead + AsyncWrite + Unpin> Streams<'_, T> {
    /// Ready at the connection's end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let now = self.guard.worker.coarse();
        self.meter.account(|account| account.wait(now.since(self.looked)));
        self.looked = now;
        loop {
            match self.h2.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => self.accept(request, respond),
                Poll::Ready(Some(Err(error))) => {
                    // What `h2` finds excessive itself. A client's own GOAWAY is no flood.
                    if error.reason() == Some(Reason::ENHANCE_YOUR_CALM) && !error.is_remote() {
                        self.guard.worker.shared.floods.count(Flood::Codec);
                    }
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => match self.look(now) {
                    Look::Again => {}
                    Look::Wait => return Poll::Pending,
                    Look::End => return Poll::Ready(()),
                },
            }
        }
    }

    fn accept(&mut self, request: Request<RecvStream>, respond: SendResponse<Chunk>) {
        let (worker, open) = (&self.guard.worker, self.open.clone());
        self.standing.end();
        self.idle_since = None;
        self.guard.slot.busy();
        open.set(open.get() + 1);
        worker.ready.set(worker.ready.get() + 1);
        let slot = worker.slots.borrow_mut().add();
        let (parts, receive) = request.into_parts();
        let io = Stream::new(receive, respond);
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let client = Client { io, inbox, outbox, slot: slot.clone(), besides: 0 };
        let way = Way::new(worker.clone(), client, self.origin);
        let (worker, connection, meter) = (worker.clone(), self.guard.slot.clone(), self.meter.clone());
        tokio::task::spawn_local(serve(StreamGuard { worker, slot, connection, open }, way, parts, meter));
    }

    /// What is to be done while no frame comes.
    fn look(&mut self, now: Instant) -> Look {
        let (worker, slot) = (&self.guard.worker, &self.guard.slot);
        if self.state == State::Closing {
            return if slot.expired() { Look::End } else { Look::Wait };
        }
        if let Some(flood) = self.meter.flood() {
            worker.shared.floods.count(flood);
            return self.close(Reason::ENHANCE_YOUR_CALM);
        }
        if self.state == State::Open && worker.is_draining() {
            return self.leave();
        }
        let timeouts = worker.tables().settings.timeouts;
        let (number, unfinished) = self.meter.unfinished();
        let known = self.unfinished.filter(|(before, _)| *before == number);
        self.unfinished = (unfinished > 0).then(|| known.unwrap_or((number, now)));
        if self.open.get() > 0 {
            self.idle_since = None;
            slot.busy();
            self.arm(None);
            return Look::Wait;
        }
        let since = *self.idle_since.get_or_insert(now);
        if self.state == State::Leaving {
            // Where the gateway drains, a request that is on its way still is waited for as long as on HTTP/1.1.
            let may_wait = worker.is_draining() && !worker.ends_idle();
            self.arm((!may_wait).then(|| since + LINGER));
            return if self.guard.slot.expired() { Look::End } else { Look::Wait };
        }
        let unfinished_until = self.unfinished.map(|(_, since)| since + timeouts.head);
        if slot.expired() {
            let is_idle = slot.idle_since().is_some() && unfinished_until.is_none_or(|until| now < until);
            return if is_idle { self.leave() } else { self.close(Reason::NO_ERROR) };
        }
        match unfinished_until {
            Some(_) => slot.busy(),
            None => slot.idle_from(since),
        }
        if unfinished > 0 {
            self.standing.hold(&worker.heads, slot, unfinished, worker.head_memory());
        } else {
            self.standing.end();
        }
        let until = since + timeouts.keep_alive;
        self.arm(Some(unfinished_until.map_or(until, |head| head.min(until))));
        Look::Wait
    }

    /// Sets the deadline, once for as long as it stays the same: to set it anew would forget that it has passed.
    fn arm(&mut self, deadline: Option<Instant>) {
        if self.armed != deadline {
            self.armed = deadline;
            self.guard.slot.arm(deadline);
        }
    }

    /// Tells the client to send no more requests.
    fn leave(&mut self) -> Look {
        self.state = State::Leaving;
        self.idle_since = None;
        self.standing.end();
        self.arm(None);
        self.h2.graceful_shutdown();
        Look::Again
    }

    fn close(&mut self, reason: Reason) -> Look {
        self.state = State::Closing;
        self.standing.end();
        let worker = &self.guard.worker;
        self.guard.slot.busy();
        self.arm(Some(worker.after(LINGER)));
        self.h2.abrupt_shutdown(reason);
        Look::Again
    }
}

/// What a look at the connection says.
enum Look {
    /// There is more to do.
    Again,
    Wait,
    End,
}

/// A stream's slot, and its part in the connection's count, given back on drop.
struct StreamGuard {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    connection: Rc<Slot>,
    open: Rc<Cell<usize>>,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.worker.slots.borrow_mut().remove(&self.slot);
        self.worker.ready.set(self.worker.ready.get() - 1);
        self.open.set(self.open.get() - 1);
        if self.open.get() == 0 {
            self.connection.wake();
        }
    }
}

/// One request's way, from its head to its departure.
async fn serve(guard: StreamGuard, mut way: Way<Stream>, parts: request::Parts, meter: Rc<Meter>) {
    poll_fn(|context| {
        guard.slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let _ = match way.take_head(&parts) {
        Ok(()) => way.request().await,
        Err(refusal) => way.refuse(refusal).await,
    };
    if way.client.io.is_answered() {
        meter.account(|account| account.answered());
    }
}

impl Way<Stream> {
    /// Puts the stream's head where the way looks for it: at the beginning of the inbox.
    fn take_head(&mut self, parts: &request::Parts) -> Result<(), Refusal> {
        let mut random = self.worker.random.borrow_mut();
        let nonce = u128::from(random.bits()) << 64 | u128::from(random.bits());
        drop(random);
        let start = StreamStart { goes_on: !self.client.io.is_end(), nonce };
        self.client.io.begin(Framing::None, parts.method == Method::HEAD);
        head::request(parts, start, &mut self.scratch, &mut self.head)?;
        if self.client.inbox.put(&self.scratch, false) < self.scratch.len() {
            return Err(Refusal::with(431, "the request head is too large"));
        }
        self.client.io.begin(self.head.framing, self.head.is_head);
        if self.head.upgrade {
            self.client.io.may_switch();
        }
        self.check_length()
    }
}
