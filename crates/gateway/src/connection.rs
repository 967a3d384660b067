//! A client's connection: request after request, until one side has enough.
//!
//! ```text
//! idle -> head -> classify -> arrive -> (wait) -> upstream | files -> idle ...
//!           |                   |
//!           refused, close      rejected, stays
//! ```
//!
//! All of it is one task. Requests that a client sends ahead stay in its inbox and are served in order. Buffers exist
//! only while they hold something, so an idle connection costs its task alone.

use crate::answer;
use crate::forward::{Asked, Peer};
use crate::held::Held;
use crate::http1::Refusal;
use crate::http1::body::{Decoder, Framing};
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::http1::scan::HeadScan;
use crate::inbox::Inbox;
use crate::outbox::Outbox;
use crate::slot::Slot;
use crate::upstream::heads::Heads;
use crate::worker::Worker;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// A body that nobody wants is read and thrown away up to this size, to keep the connection.
const DISCARD_LIMIT: usize = 64 * 1024;
/// How long a refused client may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// The socket and what is in flight on it.
pub(crate) struct Client {
    pub io: TcpStream,
    pub inbox: Inbox,
    pub outbox: Outbox,
    pub slot: Rc<Slot>,
}

/// What follows a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next request.
    Request,
    /// The end; all was said.
    Close,
    /// The end, but the client may still be sending: it must not lose the answer to a reset.
    Linger,
}

/// A head on its way.
#[derive(Debug, Default)]
struct Coming {
    scan: HeadScan,
    /// Some byte of it came.
    has_begun: bool,
    /// An empty line before it was skipped.
    skipped: bool,
}

pub(crate) struct Connection {
    pub worker: Rc<Worker>,
    pub client: Client,
    pub peer: Peer,
    pub head: RequestHead,
    pub reply: ResponseHead,
    /// The upstream's copy of the head; kept for a second try.
    pub outgoing: Heads,
    /// For building heads.
    pub scratch: Vec<u8>,
    /// The last to go: counted as free once its socket is closed.
    _place: Place,
}

/// A connection's place among those of its thread; given back on drop.
struct Place {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.worker.slots.borrow_mut().remove(&self.slot);
        self.worker.shared.mailboxes[self.worker.index].connections.fetch_sub(1, Relaxed);
    }
}

/// Serves a connection to its end.
pub(crate) async fn run(worker: Rc<Worker>, io: TcpStream, peer: IpAddr) {
    let slot = worker.slots.borrow_mut().add();
    poll_fn(|context| {
        slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let peer = Peer::new(peer, &worker.tables().settings.trusted_proxies);
    let mut connection = Connection {
        _place: Place { worker: worker.clone(), slot: slot.clone() },
        client: Client { io, inbox: Inbox::default(), outbox: Outbox::default(), slot },
        worker,
        peer,
        head: RequestHead::default(),
        reply: ResponseHead::default(),
        outgoing: Heads::default(),
        scratch: Vec::new(),
    };
    let next = connection.serve().await;
    connection.close(next).await;
}

impl Connection {
    async fn serve(&mut self) -> Next {
        loop {
            let length = match self.next_head().await {
                Ok(Some(length)) => length,
                Ok(None) => return Next::Close,
                Err(refusal) => return self.refuse(refusal).await,
            };
            if let Err(refusal) = self.head.parse(&self.client.inbox.bytes()[..length]) {
                return self.refuse(refusal).await;
            }
            if matches!(self.head.framing, Framing::Length(length) if length > self.limit()) {
                return self.refuse(Refusal::with(413, "the request body is too large")).await;
            }
            match self.request().await {
                Next::Request => {}
                next => return next,
            }
        }
    }

    /// The longest request body.
    pub(crate) fn limit(&self) -> u64 {
        self.worker.tables().settings.limits.body_bytes
    }

    /// The next request's head; `None` if the client is done, or has been idle for too long.
    async fn next_head(&mut self) -> Result<Option<usize>, Refusal> {
        // One large request must not make its connection large for good.
        self.outgoing.shrink(4096);
        if self.scratch.capacity() > 4096 {
            self.scratch = Vec::new();
        }
        let timeouts = self.worker.tables().settings.timeouts;
        let timeout = if self.client.inbox.is_empty() { timeouts.keep_alive } else { timeouts.head };
        self.client.slot.arm(Some(self.worker.after(timeout)));
        let mut coming = Coming { has_begun: !self.client.inbox.is_empty(), ..Coming::default() };
        if !coming.has_begun {
            self.client.slot.idle_from(self.worker.coarse());
        }
        let length = poll_fn(|context| self.poll_head(context, &mut coming)).await;
        self.client.slot.arm(None);
        self.client.slot.busy();
        length
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        coming: &mut Coming,
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
                match coming.scan.advance(client.inbox.bytes(), limit)? {
                    // A client may end its last body with an empty line too many (RFC 9112 2.2). One, not one after
                    // the other.
                    Some(2) if coming.skipped => {
                        return Poll::Ready(Err(Refusal::bad("empty lines come before the request")));
                    }
                    Some(2) => {
                        client.inbox.consume(2);
                        (coming.scan, coming.skipped) = (HeadScan::default(), true);
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
                // Once for a head: an empty line before it buys no time.
                Poll::Ready(Ok(_)) if !coming.has_begun => {
                    coming.has_begun = true;
                    client.slot.busy();
                    client.slot.arm(Some(self.worker.after(settings.timeouts.head)));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Pending if client.slot.expired() => {
                    let late = Refusal::with(408, "the request head did not come in time");
                    return Poll::Ready(if was_idle { Ok(None) } else { Err(late) });
                }
                // Nothing of it is under way: what has come is not even known to be a request.
                Poll::Pending if self.worker.is_draining() => return Poll::Ready(Ok(None)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Answers a request that cannot be read. What follows it cannot be read either.
    async fn refuse(&mut self, refusal: Refusal) -> Next {
        let asked = Asked { keep_alive: false, ..Asked::default() };
        self.answer(refusal, asked).await;
        Next::Linger
    }

    /// Sends an error answer.
    pub(crate) async fn answer(&mut self, refusal: Refusal, asked: Asked) -> bool {
        self.scratch.clear();
        answer::write_error(&mut self.scratch, refusal, asked, &self.worker.date.borrow());
        self.client.outbox.push_head(&self.scratch);
        self.flush(None).await
    }

    /// Sends what is in the outbox, counting body bytes. False if the client left or does not read.
    pub(crate) async fn flush(&mut self, held: Option<&Held>) -> bool {
        let timeout = self.worker.tables().settings.timeouts.send;
        let (client, worker) = (&mut self.client, &self.worker);
        client.slot.arm(None);
        poll_fn(|context| {
            while !client.outbox.is_empty() {
                match client.outbox.poll_write(&mut client.io, context) {
                    Poll::Ready(Ok(written)) => {
                        if let Some(held) = held {
                            held.sent(written.body);
                        }
                        client.slot.arm(Some(worker.after(timeout)));
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Pending if client.slot.expired() => return Poll::Ready(false),
                    Poll::Pending => {
                        if !client.slot.is_armed() {
                            client.slot.arm(Some(worker.after(timeout)));
                        }
                        return Poll::Pending;
                    }
                }
            }
            client.slot.arm(None);
            Poll::Ready(true)
        })
        .await
    }

    /// Reads and throws away the rest of a body, to keep the connection. False if it is too much.
    pub(crate) async fn discard(&mut self, framing: Framing) -> bool {
        let mut body = Decoder::new(framing);
        let timeout = self.worker.tables().settings.timeouts.body_idle;
        let mut total = 0;
        self.client.slot.arm(Some(self.worker.after(timeout)));
        let client = &mut self.client;
        let done = poll_fn(|context| {
            loop {
                let Ok(taken) = body.advance(client.inbox.bytes()) else { return Poll::Ready(false) };
                client.inbox.consume(taken.bytes);
                total += taken.bytes;
                if body.is_done() || total > DISCARD_LIMIT {
                    return Poll::Ready(body.is_done());
                }
                match client.inbox.poll_fill(&mut client.io, context, false) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(false),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending if client.slot.expired() => return Poll::Ready(false),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        self.client.slot.arm(None);
        done
    }

    /// Closes. A client that may still be sending is read from for a moment: closing a socket with unread bytes
    /// resets it, and the reset may overtake the answer.
    async fn close(mut self, next: Next) {
        if next == Next::Close && self.client.inbox.is_empty() {
            return;
        }
        let client = &mut self.client;
        let _ = poll_fn(|context| Pin::new(&mut client.io).poll_shutdown(context)).await;
        client.inbox.consume(usize::MAX);
        client.slot.arm(Some(self.worker.after(LINGER)));
        let mut total = 0;
        poll_fn(|context| {
            while total < 4 * DISCARD_LIMIT {
                match ready_or_expired(client, context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(0) => return Poll::Ready(()),
                    Poll::Ready(count) => total += count,
                }
                client.inbox.consume(usize::MAX);
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// Bytes read; zero when the client is done or its time is over.
fn ready_or_expired(client: &mut Client, context: &mut Context<'_>) -> Poll<usize> {
    match client.inbox.poll_fill(&mut client.io, context, false) {
        Poll::Ready(result) => Poll::Ready(result.unwrap_or(0)),
        Poll::Pending if client.slot.expired() => Poll::Ready(0),
        Poll::Pending => Poll::Pending,
    }
}
