//! A client's connection: one request after another, until one side ends it.
//!
//! All of it is one task. Requests that a client sends early stay in the inbox and are served in order. Buffers exist
//! only while they hold bytes, so that an idle connection costs its task alone.

use super::body::{EarlyBody, NoBody};
use super::client::Client;
use super::decision::NotStarted;
use super::head::Requested;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::peer::Peer;
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::http1::scan::HeadScan;
use crate::runtime::slots::Slot;
use crate::runtime::worker::Worker;
use crate::upstream::request::HeaderVariants;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tokio::net::TcpStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The connection's next request.
    Request,
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
    /// Dropped last: the connection counts until its socket is closed.
    _guard: SlotGuard,
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
    let slot = worker.slots.borrow_mut().add();
    poll_fn(|context| {
        slot.set_waker(context.waker());
        Poll::Ready(())
    })
    .await;
    let peer = Peer::new(peer, &worker.tables().settings.trusted_proxies);
    let mut connection = Connection {
        _guard: SlotGuard { worker: worker.clone(), slot: slot.clone() },
        client: Client { io, inbox: Inbox::default(), outbox: Outbox::default(), slot },
        worker,
        peer,
        head: RequestHead::default(),
        reply: ResponseHead::default(),
        variants: HeaderVariants::default(),
        scratch: Vec::new(),
        early: EarlyBody::default(),
    };
    let last = connection.serve().await;
    if last == Next::Linger || !connection.client.inbox.is_empty() {
        connection.client.linger(&connection.worker).await;
    }
}

impl Connection {
    /// Serves one request after another; returns how the connection ends.
    async fn serve(&mut self) -> Next {
        loop {
            let next = match self.next_head().await {
                Ok(true) => self.request().await,
                Ok(false) => Next::Close,
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
        let Some(mut target) = self.classify() else {
            let refusal = Refusal::with(421, "no site of this gateway has this host");
            return self.turn_away(refusal, requested).await;
        };
        if self.head.framing != Framing::None {
            // On the heap, so that a connection's task stays as small as requests without a body need.
            match Box::pin(self.read_body()).await {
                Ok(()) => {}
                Err(NoBody::ClientLeft) => return Next::Close,
                Err(NoBody::Refused(refusal)) => return self.refuse(refusal).await,
            }
        }
        target.streams = self.head.framing != Framing::None && !self.early.is_whole;
        match self.admit(target).await {
            Ok(permit) => self.forward(target, permit, requested).await,
            Err(NotStarted::Rejected { reason, retry_after }) => {
                self.reject(reason, retry_after, requested).await
            }
            Err(NotStarted::TooLate) => {
                let late = Refusal::with(504, "no place at the upstream became free in time");
                self.turn_away(late, requested).await
            }
            Err(NotStarted::ClientLeft) => Next::Close,
        }
    }

    pub(crate) fn body_limit(&self) -> u64 {
        self.worker.tables().settings.limits.body_bytes
    }

    /// Receives the next request's head. False if the client is done, or has been idle for too long.
    async fn next_head(&mut self) -> Result<bool, Refusal> {
        // The memory of one large request is given back, so that it does not stay with the connection.
        self.variants.shrink(4096);
        self.early = EarlyBody::default();
        if self.scratch.capacity() > 4096 {
            self.scratch = Vec::new();
        }
        let timeouts = self.worker.tables().settings.timeouts;
        let timeout = if self.client.inbox.is_empty() { timeouts.keep_alive } else { timeouts.head };
        self.client.slot.arm(Some(self.worker.after(timeout)));
        let mut partial = PartialHead { has_begun: !self.client.inbox.is_empty(), ..PartialHead::default() };
        if !partial.has_begun {
            self.client.slot.idle_from(self.worker.coarse());
        }
        let length = poll_fn(|context| self.poll_head(context, &mut partial)).await;
        self.client.slot.arm(None);
        self.client.slot.busy();
        let Some(length) = length? else { return Ok(false) };
        self.head.parse(&self.client.inbox.bytes()[..length])?;
        match self.head.framing {
            Framing::Length(length) if length > self.body_limit() => {
                Err(Refusal::with(413, "the request body is too large"))
            }
            _ => Ok(true),
        }
    }

    /// Reads until a head is complete, and returns its length; `None` at the connection's end.
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
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
