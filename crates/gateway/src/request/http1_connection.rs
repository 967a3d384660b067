//! A client's HTTP/1.1 connection: one request after another, until one side ends it.
//!
//! All of it is one task. Requests that a client sends early stay in the inbox and are served in order. Buffers exist only
//! while they hold bytes. A connection that has been idle for a moment *rests*: the memory for serving requests is freed, and
//! the task keeps a socket and a slot. The same holds while the connection *lingers* after its last response.

use super::entrance::SlotGuard;
use super::lifecycle::{Next, Way};
use super::peer::ConnectionSource;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers::{self, SMALL};
use crate::client::inbox::Inbox;
use crate::client::outbox::Outbox;
use crate::client::socket::Client;
use crate::http1::Refusal;
use crate::http1::scan::HeadScan;
use crate::http2::frames::PREFACE;
use crate::transport::plain::PlainSocket;
use crate::transport::proxy_header;
use crate::transport::socket::Socket;
use crate::worker::Worker;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;

/// How long a connection stays ready for its next request before it rests. A client that sends one request after another finds
/// the connection ready; to get ready again costs less than a new connection.
const READY: Duration = Duration::from_secs(1);
/// How long a connection lingers after the client's last bytes.
const LINGER: Duration = Duration::from_secs(1);

/// What a load balancer gets that is not configured.
const UNKNOWN_PROXY: Refusal = Refusal::bad(proxy_header::UNEXPECTED);

#[derive(Debug, Default)]
struct PartialHead {
    scan: HeadScan,
    has_begun: bool,
    /// Whether an empty line before the head was skipped.
    skipped: bool,
    /// The head's place among the thread's unfinished heads, if it had to wait for its next bytes.
    awaited: AwaitedClient,
}

/// The result of the wait for a head.
enum Awaited {
    Head,
    /// No head comes: the client or the gateway ends the connection.
    End,
    /// No byte has come for [`READY`].
    Idle,
}

/// Why a connection serves no more requests for now.
enum Left {
    /// No request has come for a moment.
    Rest(Socket),
    /// The client may still be sending, so the connection lingers.
    Linger(Socket),
    End,
}

/// Serves HTTP/1 on a socket until one side ends it. If the client turns out to speak HTTP/2, the socket is returned with the
/// bytes that came.
pub(super) async fn run(
    guard: &SlotGuard,
    io: Socket,
    source: &ConnectionSource,
) -> Option<(Socket, Vec<u8>)> {
    guard.slot.idle_from(guard.worker.coarse());
    let mut resting = Some(io);
    let mut may_be_http2 = guard.worker.tables().settings.h2c && !source.is_secure;
    while let Some(mut io) = resting.take() {
        let mut inbox = Inbox::default();
        if !guard.rest(&mut io, &mut inbox).await {
            return None;
        }
        if std::mem::take(&mut may_be_http2) && guard.is_preface(&mut io, &mut inbox).await {
            return Some((io, inbox.bytes().to_vec()));
        }
        let ready = &guard.worker.ready;
        ready.set(ready.get() + 1);
        let left = serve_until_idle(guard, io, inbox, source).await;
        ready.set(ready.get() - 1);
        match left {
            Left::Rest(io) => resting = Some(io),
            // On the heap, where it takes memory only while it lasts.
            Left::Linger(io) => Box::pin(guard.linger(io)).await,
            Left::End => {}
        }
    }
    None
}

/// Serves requests in a future on the heap, which takes memory only until the connection rests or lingers. It is made outside
/// of the connection's task, which would otherwise have room for it.
fn serve_until_idle(
    guard: &SlotGuard,
    io: Socket,
    inbox: Inbox,
    source: &ConnectionSource,
) -> Pin<Box<impl Future<Output = Left>>> {
    let client = Client { io, inbox, outbox: Outbox::default(), slot: guard.slot.clone(), besides: 0 };
    let mut way = Way::new(guard.worker.clone(), client, source);
    // The future borrows `way`: if it were moved into the awaited future, it would take its memory twice.
    Box::pin(async move {
        match way.serve().await {
            Next::Rest => Left::Rest(way.client.io),
            last if last == Next::Linger || !way.client.inbox.is_empty() => Left::Linger(way.client.io),
            _ => Left::End,
        }
    })
}

impl SlotGuard {
    /// Waits for the first bytes of a request. False if the connection ends: the client has left or has sent nothing for too
    /// long, the connection's place is needed, or the gateway stops.
    async fn rest(&self, io: &mut Socket, inbox: &mut Inbox) -> bool {
        let (worker, slot) = (&self.worker, &self.slot);
        let Some(since) = slot.idle_since() else { return false };
        let deadline = since + worker.tables().settings.timeouts.keep_alive;
        if worker.coarse() >= deadline {
            return false;
        }
        slot.arm(Some(deadline));
        // The place is on the heap, since most connections that rest need none.
        let mut awaited = None::<Box<AwaitedClient>>;
        let has_come = poll_fn(|context| match inbox.poll_fill(io, context, false) {
            Poll::Ready(count) => Poll::Ready(count.is_ok_and(|count| count > 0)),
            Poll::Pending if worker.ends_idle() || slot.expired() => Poll::Ready(false),
            Poll::Pending => {
                // An unfinished TLS record is treated like an unfinished head.
                if io.held() > 0 {
                    let awaited = awaited.get_or_insert_with(|| {
                        slot.busy();
                        slot.arm(Some(worker.after(worker.tables().settings.timeouts.head)));
                        Box::default()
                    });
                    awaited.hold(&worker.heads, slot, io.held(), worker.head_memory());
                }
                Poll::Pending
            }
        })
        .await;
        slot.busy();
        has_come
    }
}

impl SlotGuard {
    /// Answers a client without reading a request, and ends the connection. The proxy that made the connection may have sent
    /// more bytes already.
    pub(super) async fn turn_away(&self, mut io: PlainSocket, answer: Vec<u8>) {
        if answer.is_empty() {
            return;
        }
        // The answer goes into the socket's empty buffer; nobody waits until it arrives.
        poll_fn(|context| {
            let _ = Pin::new(&mut io).poll_write(context, &answer);
            Poll::Ready(())
        })
        .await;
        self.linger(Socket::Plain(io)).await;
    }

    /// Closes the sending side, then reads for a moment: unread bytes would cause a reset, which throws away what is on its
    /// way. A client that takes that more slowly, and says so as one of HTTP/2 does, has `timeouts.send` for it. A client that
    /// sends the whole body of a refused request before it reads has `timeouts.body_idle`.
    pub(super) async fn linger(&self, mut io: Socket) {
        let timeouts = self.worker.tables().settings.timeouts;
        let (taken_by, sent_by) = (self.worker.after(timeouts.send), self.worker.after(timeouts.body_idle));
        self.slot.arm(Some(self.worker.after(LINGER)));
        poll_fn(|context| match Pin::new(&mut io).poll_shutdown(context) {
            // To a client that takes nothing TLS does not say that no more comes.
            Poll::Pending if !self.slot.expired() => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        let mut inbox = Inbox::default();
        poll_fn(|context| {
            loop {
                let now = self.worker.coarse();
                match inbox.poll_fill(&mut io, context, false) {
                    Poll::Pending if !self.slot.expired() => return Poll::Pending,
                    Poll::Pending if io.unacknowledged() > 0 && now < taken_by => {
                        self.slot.arm(Some(self.worker.after(LINGER)));
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(1..)) if now < sent_by => self.slot.arm(Some(self.worker.after(LINGER))),
                    _ => return Poll::Ready(()),
                }
                inbox.consume(usize::MAX);
            }
        })
        .await;
    }
}

impl SlotGuard {
    /// Whether an HTTP/2 connection begins. If the bytes are a beginning of its preface, the rest is waited for: no HTTP/1
    /// request begins with the whole preface.
    async fn is_preface(&self, io: &mut Socket, inbox: &mut Inbox) -> bool {
        self.slot.arm(Some(self.worker.after(self.worker.tables().settings.timeouts.head)));
        poll_fn(|context| {
            while inbox.bytes().len() < PREFACE.len() && PREFACE.starts_with(inbox.bytes()) {
                match inbox.poll_fill(io, context, false) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending if self.worker.ends_idle() || self.slot.expired() => {
                        return Poll::Ready(());
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        })
        .await;
        inbox.bytes().starts_with(PREFACE)
    }
}

impl Way<Socket> {
    /// Serves one request after another until none comes for a moment; returns what follows.
    async fn serve(&mut self) -> Next {
        loop {
            let next = match self.next_head().await {
                Ok(Awaited::Head) => self.request().await,
                Ok(Awaited::Idle) => Next::Rest,
                Ok(Awaited::End) => Next::Close,
                Err(refusal) => {
                    let is_proxied = proxy_header::is_begun(self.client.inbox.bytes());
                    self.refuse(if is_proxied { UNKNOWN_PROXY } else { refusal }).await
                }
            };
            if next != Next::Request {
                return next;
            }
        }
    }

    /// Receives the next request's head.
    async fn next_head(&mut self) -> Result<Awaited, Refusal> {
        self.begin();
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
        Ok(Awaited::Head)
    }

    /// Reads until a head is complete, and returns its length; `None` at the end of the connection, or if the deadline passes
    /// before any byte has come.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        partial: &mut PartialHead,
    ) -> Poll<Result<Option<usize>, Refusal>> {
        let tables = self.worker.tables();
        let settings = &tables.settings;
        let limit = settings.limits.head();
        let client = &mut self.client;
        loop {
            if client.inbox.is_empty() {
                if self.worker.ends_idle() {
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
            match client.poll_fill(context, false) {
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
                Poll::Pending if self.worker.ends_idle() => return Poll::Ready(Ok(None)),
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
    /// The next bytes have not come. The bytes so far move to memory of their size, and count with all other unfinished heads.
    fn wait(&mut self, worker: &Worker, client: &mut Client<Socket>) {
        if buffers::are_many() || client.inbox.held() > SMALL {
            client.inbox.pack();
        }
        self.awaited.hold(&worker.heads, &client.slot, client.held(), worker.head_memory());
    }
}
