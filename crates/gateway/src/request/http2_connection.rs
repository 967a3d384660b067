//! A client's HTTP/2 connection: many requests at once, each on a stream, with a task, a slot and a way of its own.
//!
//! The connection's task moves frames and accepts streams. What a request is put to, how it is answered and how slow its
//! client may be is the [`lifecycle`](super::lifecycle)'s affair, as it is on a socket of HTTP/1.1. The connection has the
//! deadlines that no stream has: to begin, to finish a head, to be idle, and to leave once it was told to.
//!
//! | it ends | how |
//! |---|---|
//! | idle for `timeouts.keep_alive`, or the gateway drains | `GOAWAY`; streams under way are finished, new ones refused |
//! | its place is needed, or a head has no end in time | `GOAWAY` at once |
//! | all connections of HTTP/2 hold more than they may, and its client moved nothing for the longest | `GOAWAY` at once |
//! | it floods ([`floods`](crate::http2::floods)) | `GOAWAY` with `ENHANCE_YOUR_CALM` at once |
//!
//! **Memory.** A stream costs kilobytes before it holds a byte of its client. `h2` keeps memory for the most streams that were
//! ever open at once until the connection ends, and a client may open [`streams`](crate::settings::Limits::streams) streams on
//! each connection. This memory is counted by measured sizes.

use super::entrance::SlotGuard;
use super::http2_stream::{self, StreamGuard};
use super::lifecycle::Way;
use super::peer::ConnectionSource;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers::{LARGE, SMALL};
use crate::client::inbox::Inbox;
use crate::client::outbox::Outbox;
use crate::client::slots::EndedStreams;
use crate::client::socket::Client;
use crate::client::stream::{Chunk, Stream, Turns};
use crate::http2::coalesced_writes::GatheringSocket;
use crate::http2::floods::Flood;
use crate::http2::metered::{Meter, Metered};
use crate::http2::windows::{CONNECTION_WINDOW, LATE_FRAMES, RESET_STREAMS, SMALL_FRAMES, STREAM_WINDOW};
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use plimsoll_core::time::Instant;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// The most bytes of a stream's response on their way to the socket.
const SEND_BUFFER: usize = 2 * LARGE;
/// How long a connection that was asked to end has for its last frames.
const LINGER: Duration = Duration::from_secs(1);

/// The approximate memory of a connection, the additional memory of one over TLS, and that of each open stream: its task, its
/// way, and what `h2` keeps for it.
const A_CONNECTION: usize = 18 * 1024;
const ITS_TLS: usize = 12 * 1024;
const A_STREAM: usize = 10 * 1024;
/// The memory of `h2` for a stream that has not begun, since `h2` reads all heads that have come.
const A_STREAM_AHEAD: usize = 2 * 1024;
/// The memory that `h2` keeps for a past stream, up to the most streams that were ever open at once.
const A_PAST_STREAM: usize = 1024;
/// Beyond this number of streams a connection begins one stream a turn, and other connections have turns in between:
/// connections that are given up to make room are then gone before this one holds much more.
const AT_ONCE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// The connection was asked to end: streams under way are finished.
    Leaving,
    /// The connection ends, whether or not streams are under way.
    Closing,
}

struct Streams<'a, T> {
    guard: &'a SlotGuard,
    source: &'a ConnectionSource,
    h2: Connection<Metered<T>, Chunk>,
    /// The underlying socket, which is flushed once a turn.
    wire: Rc<RefCell<GatheringSocket<T>>>,
    meter: Rc<Meter>,
    turns: Rc<Turns>,
    state: State,
    /// Whether the connection has ended, and only written bytes remain to be sent.
    has_ended: bool,
    /// Whether it ended after all its streams, so that the client may not have taken all bytes yet.
    lingers: bool,
    /// How many streams are under way, and how many were at most.
    open: Rc<Cell<usize>>,
    ended: Rc<EndedStreams>,
    most_open: usize,
    /// How many streams were begun of the heads that came.
    begun: usize,
    /// Since when no stream is open.
    idle_since: Option<Instant>,
    /// The number of the unfinished frame or head, and since when it is unfinished.
    unfinished: Option<(u64, Instant)>,
    armed: Option<Instant>,
    /// The connection's place among those with unfinished heads.
    awaited: AwaitedClient,
    /// The connection's place among all HTTP/2 connections, and the memory that it counts for there.
    place: AwaitedClient,
    held: usize,
    looked: Instant,
}

/// Serves HTTP/2 on a socket, whose `first` bytes were read already, until one side ends it. The socket is returned if the
/// client may not have taken all bytes yet.
pub(super) async fn run<T: AsyncRead + AsyncWrite + Unpin>(
    guard: &SlotGuard,
    io: T,
    first: Vec<u8>,
    source: &ConnectionSource,
) -> Option<T> {
    let (worker, slot) = (&guard.worker, &guard.slot);
    let tables = worker.tables();
    let (limits, timeouts) = (tables.settings.limits, tables.settings.timeouts);
    drop(tables);
    let meter = Rc::<Meter>::default();
    let wire = Rc::new(RefCell::new(GatheringSocket::new(io)));
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .data_frame_budget(SMALL_FRAMES)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.head() as u32)
        .max_send_buffer_size(SEND_BUFFER)
        .max_concurrent_reset_streams(RESET_STREAMS)
        .max_local_error_reset_streams(Some(LATE_FRAMES))
        .enable_connect_protocol();
    slot.busy();
    slot.arm(Some(worker.after(timeouts.head)));
    let mut place = AwaitedClient::default();
    place.hold(&worker.http2, slot, A_CONNECTION, worker.http2_memory());
    let begun = {
        let mut handshake = pin!(builder.handshake(Metered::new(&wire, first, meter.clone())));
        poll_fn(|context| match handshake.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result.ok()),
            Poll::Pending if slot.expired() || worker.ends_idle() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    };
    let h2 = begun?;
    let mut streams = Streams {
        guard,
        source,
        h2,
        wire,
        meter,
        turns: Rc::default(),
        state: State::Open,
        has_ended: false,
        lingers: false,
        open: Rc::default(),
        ended: Rc::default(),
        most_open: 0,
        begun: 0,
        idle_since: None,
        unfinished: None,
        armed: None,
        awaited: AwaitedClient::default(),
        place,
        held: 0,
        looked: worker.coarse(),
    };
    streams.wire.borrow_mut().is_held = true;
    poll_fn(|context| streams.poll(context)).await;
    let Streams { h2, wire, lingers, .. } = streams;
    drop(h2);
    Rc::into_inner(wire).filter(|_| lingers).map(|wire| wire.into_inner().into_below())
}

impl<T: AsyncRead + AsyncWrite + Unpin> Streams<'_, T> {
    /// Takes one turn; ready at the connection's end. Frames that streams and `h2` wrote during the turn are sent at once.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_ended {
            match self.turn(context) {
                Look::Again => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Look::Wait => {}
                Look::End => self.has_ended = true,
            }
        }
        match self.wire.borrow_mut().poll_flush(context) {
            Poll::Ready(Ok(())) if !self.has_ended => return Poll::Pending,
            Poll::Pending => {}
            Poll::Ready(_) => return Poll::Ready(()),
        }
        if !self.has_ended {
            return Poll::Pending;
        }
        // If the connection was not closed, its last frames are waited for a moment.
        if self.state != State::Closing {
            self.state = State::Closing;
            self.arm(Some(self.guard.worker.after(LINGER)));
        }
        if self.guard.slot.expired() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Moves frames and begins streams.
    fn turn(&mut self, context: &mut Context<'_>) -> Look {
        let now = self.guard.worker.coarse();
        self.meter.account(|account| account.wait(now.since(self.looked)));
        self.looked = now;
        if self.state != State::Closing && self.is_given_up() {
            self.close(Reason::NO_ERROR);
        }
        loop {
            match self.h2.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.accept(request, respond);
                    if self.open.get() > AT_ONCE {
                        return Look::Again;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    // `h2` itself has found the client's behaviour excessive. A GOAWAY of the client is no flood, and a
                    // connection that is being closed was already counted.
                    let is_excess = error.reason() == Some(Reason::ENHANCE_YOUR_CALM) && !error.is_remote();
                    if is_excess && self.state != State::Closing {
                        self.guard.worker.shared.floods.count(Flood::Codec);
                    }
                    return Look::End;
                }
                Poll::Ready(None) => {
                    self.lingers = self.state != State::Closing;
                    return Look::End;
                }
                Poll::Pending => {
                    self.meter.forget_heads();
                    self.begun = 0;
                    match self.look(now) {
                        Look::Again => {}
                        end => return end,
                    }
                }
            }
        }
    }

    fn accept(&mut self, request: Request<RecvStream>, respond: SendResponse<Chunk>) {
        let (guard, open, ended) = (self.guard, self.open.clone(), self.ended.clone());
        let worker = &guard.worker;
        self.awaited.end();
        self.idle_since = None;
        guard.slot.busy();
        open.set(open.get() + 1);
        self.begun += 1;
        self.most_open = self.most_open.max(open.get());
        self.hold();
        worker.ready.set(worker.ready.get() + 1);
        let slot = worker.slots.borrow_mut().add();
        ended.begin(&slot);
        let (parts, receive) = request.into_parts();
        let io = Stream::new(receive, respond, (self.meter.clone(), self.turns.clone()));
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let client = Client { io, inbox, outbox, slot: slot.clone(), besides: 0 };
        let way = Way::new(worker.clone(), client, self.source);
        let (worker, connection, meter) = (worker.clone(), guard.slot.clone(), self.meter.clone());
        let guard = StreamGuard { worker, slot, connection, open, ended };
        tokio::task::spawn_local(http2_stream::serve(guard, way, parts, meter));
    }

    /// Counts the connection's memory, if that has changed or the client has moved bytes.
    fn hold(&mut self) {
        let (worker, open) = (&self.guard.worker, self.open.get());
        let ahead = self.meter.heads().saturating_sub(self.begun);
        let past = self.most_open.saturating_sub(open);
        let itself = if self.source.is_secure { A_CONNECTION + ITS_TLS } else { A_CONNECTION };
        let itself = itself + self.wire.borrow().held();
        let on_its_way = if self.turns.is_taken() { SMALL } else { 0 };
        let held = itself + on_its_way + open * A_STREAM + ahead * A_STREAM_AHEAD + past * A_PAST_STREAM;
        let moved = self.meter.take_moved();
        if moved > 0 || held != self.held {
            self.held = held;
            self.place.moved(moved);
            self.place.hold(&worker.http2, &self.guard.slot, held, worker.http2_memory());
        }
    }

    /// Whether the connection must make room for others.
    fn is_given_up(&self) -> bool {
        self.guard.slot.expired() && self.place.is_given_up()
    }

    /// Checks the connection's deadlines and bounds while no frame comes.
    fn look(&mut self, now: Instant) -> Look {
        let guard = self.guard;
        let (worker, slot) = (&guard.worker, &guard.slot);
        if self.state == State::Closing {
            return if slot.expired() { Look::End } else { Look::Wait };
        }
        if let Some(flood) = self.meter.flood() {
            worker.shared.floods.count(flood);
            return self.close(Reason::ENHANCE_YOUR_CALM);
        }
        self.hold();
        if self.is_given_up() {
            return self.close(Reason::NO_ERROR);
        }
        if self.state == State::Open && worker.is_draining() {
            return self.leave();
        }
        let timeouts = worker.tables().settings.timeouts;
        let (number, unfinished) = self.meter.unfinished();
        let known = self.unfinished.filter(|(before, _)| *before == number);
        self.unfinished = (unfinished > 0).then(|| known.unwrap_or((number, now)));
        let unfinished_until = self.unfinished.map(|(_, since)| since + timeouts.head);
        if self.open.get() > 0 {
            return self.look_beside_streams(now, unfinished, unfinished_until);
        }
        let since = *self.idle_since.get_or_insert(now);
        if self.state == State::Leaving {
            // If the gateway drains, a request that is still on its way is waited for as long as on HTTP/1.1.
            let may_wait = worker.is_draining() && !worker.ends_idle();
            // Written bytes that are not sent yet may be the end of an answer.
            let patience = if self.wire.borrow().held() > 0 { timeouts.send } else { LINGER };
            self.arm((!may_wait).then(|| since + patience));
            return if self.guard.slot.expired() { Look::End } else { Look::Wait };
        }
        if slot.expired() {
            let is_idle = slot.idle_since().is_some() && unfinished_until.is_none_or(|until| now < until);
            return if is_idle { self.leave() } else { self.close(Reason::NO_ERROR) };
        }
        match unfinished_until {
            Some(_) => slot.busy(),
            None => slot.idle_from(since),
        }
        self.hold_head(unfinished);
        let until = since + timeouts.keep_alive;
        self.arm(Some(unfinished_until.map_or(until, |head| head.min(until))));
        Look::Wait
    }

    /// The same while streams are open: only an unfinished head has a deadline and counts here, since all other frames are the
    /// streams' affair.
    fn look_beside_streams(&mut self, now: Instant, unfinished: usize, until: Option<Instant>) -> Look {
        self.idle_since = None;
        self.guard.slot.busy();
        let (unfinished, until) = if self.meter.is_in_head() { (unfinished, until) } else { (0, None) };
        let is_over = self.awaited.is_given_up() || until.is_some_and(|until| until <= now);
        if is_over && self.guard.slot.expired() {
            return self.close(Reason::NO_ERROR);
        }
        self.hold_head(unfinished);
        self.arm(until);
        Look::Wait
    }

    /// Counts the unfinished bytes together with those of all other connections.
    fn hold_head(&mut self, unfinished: usize) {
        let worker = &self.guard.worker;
        if unfinished > 0 {
            self.awaited.hold(&worker.heads, &self.guard.slot, unfinished, worker.head_memory());
        } else {
            self.awaited.end();
        }
    }

    /// Sets the deadline if it has changed: to set the same deadline again would forget that it has passed.
    fn arm(&mut self, deadline: Option<Instant>) {
        if self.armed != deadline {
            self.armed = deadline;
            self.guard.slot.arm(deadline);
        }
    }

    /// Asks the client to send no more requests.
    fn leave(&mut self) -> Look {
        self.state = State::Leaving;
        self.idle_since = None;
        self.awaited.end();
        self.arm(None);
        self.h2.graceful_shutdown();
        Look::Again
    }

    fn close(&mut self, reason: Reason) -> Look {
        self.state = State::Closing;
        self.awaited.end();
        self.place.end();
        let worker = &self.guard.worker;
        self.guard.slot.busy();
        self.arm(Some(worker.after(LINGER)));
        self.h2.abrupt_shutdown(reason);
        Look::Again
    }
}

/// The result of a look at the connection.
enum Look {
    /// There is more to do.
    Again,
    Wait,
    End,
}
