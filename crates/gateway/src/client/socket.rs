//! A client's socket and the bytes in flight on it.

use super::buffers;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::pace::Taking;
use super::permit_guard::PermitGuard;
use super::standing::Standing;
use crate::http1::body::{Decoder, Framing};
use crate::runtime::slots::Slot;
use crate::runtime::worker::Worker;
use std::future::poll_fn;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// An unread body up to this size is read and thrown away, to keep the connection.
const DISCARD_LIMIT: usize = 64 * 1024;
/// How long a client may still send after its last response.
const LINGER: Duration = Duration::from_secs(1);

pub(crate) struct Client {
    pub io: TcpStream,
    pub inbox: Inbox,
    pub outbox: Outbox,
    pub slot: Rc<Slot>,
    /// What its connection holds besides, in bytes.
    pub besides: usize,
}

impl Client {
    /// How much memory its connection holds.
    pub(crate) fn held(&self) -> usize {
        self.inbox.held() + self.outbox.held() + self.besides
    }

    /// How much of what the socket accepted the client's kernel has not acknowledged; nothing where the system does not say.
    pub(crate) fn unacknowledged(&self) -> u64 {
        let mut count: libc::c_int = 0;
        #[cfg(target_os = "linux")]
        #[expect(unsafe_code, reason = "no library wraps it; the system writes this one number")]
        unsafe {
            libc::ioctl(self.io.as_raw_fd(), libc::TIOCOUTQ, &raw mut count);
        }
        u64::try_from(count).unwrap_or(0)
    }

    /// Gives back what memory it can for the time of a wait.
    pub(crate) fn pack(&mut self) {
        self.inbox.pack();
        self.outbox.pack();
    }

    /// Sends the outbox, and counts its body bytes for `permit`. False if the client left or does not read.
    pub(crate) async fn flush(&mut self, worker: &Worker, permit: Option<&PermitGuard>) -> bool {
        let mut standing = Standing::default();
        let mut taking = Taking::start(worker.coarse(), worker.tables().settings.timeouts.send);
        poll_fn(|context| {
            while !self.outbox.is_empty() {
                match self.outbox.poll_write(&mut self.io, context) {
                    Poll::Ready(Ok(written)) => {
                        if let Some(permit) = permit {
                            permit.sent(written.body);
                        }
                        taking.accepted(written.bytes);
                        standing.moved(written.bytes);
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Pending => {
                        let now = worker.coarse();
                        taking.look(now, false, || self.unacknowledged());
                        if standing.is_given_up() || taking.deadline(false) <= now {
                            return Poll::Ready(false);
                        }
                        self.slot.arm(Some(taking.deadline(false).min(taking.next_look(false))));
                        if buffers::exceed(worker.buffer_memory()) {
                            self.pack();
                        }
                        standing.hold(&worker.slow, &self.slot, self.held(), worker.standing_memory());
                        return Poll::Pending;
                    }
                }
            }
            self.slot.arm(None);
            Poll::Ready(true)
        })
        .await
    }

    /// Reads the rest of a body and throws it away, to keep the connection. False if the body is too large.
    pub(crate) async fn discard(&mut self, worker: &Worker, framing: Framing) -> bool {
        let mut body = Decoder::new(framing);
        let mut total = 0;
        self.slot.arm(Some(worker.after(worker.tables().settings.timeouts.body_idle)));
        let done = poll_fn(|context| {
            loop {
                let Ok(taken) = body.advance(self.inbox.bytes()) else { return Poll::Ready(false) };
                self.inbox.consume(taken.bytes);
                total += taken.bytes;
                if body.is_done() || total > DISCARD_LIMIT {
                    return Poll::Ready(body.is_done());
                }
                match self.poll_read(context) {
                    Poll::Ready(0) => return Poll::Ready(false),
                    Poll::Ready(_) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        self.slot.arm(None);
        done
    }

    /// Closes the sending side, then reads for a moment: unread bytes would cause a reset, which may overtake the
    /// response.
    pub(crate) async fn linger(&mut self, worker: &Worker) {
        let _ = poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await;
        self.inbox.consume(usize::MAX);
        self.slot.arm(Some(worker.after(LINGER)));
        let mut total = 0;
        poll_fn(|context| {
            while total < 4 * DISCARD_LIMIT {
                match self.poll_read(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(0) => return Poll::Ready(()),
                    Poll::Ready(count) => total += count,
                }
                self.inbox.consume(usize::MAX);
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Reads once. Zero bytes mean that the client is done or that its deadline has passed.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        match self.inbox.poll_fill(&mut self.io, context, false) {
            Poll::Ready(result) => Poll::Ready(result.unwrap_or(0)),
            Poll::Pending if self.slot.expired() => Poll::Ready(0),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Ready when the waiting request's verdict has come, when the client has left, or when its deadline has passed.
    /// Where many requests wait, each gives its read buffer back.
    pub(crate) fn poll_verdict(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.slot.has_verdict() || self.slot.expired() {
            return Poll::Ready(());
        }
        let left = self.poll_left(context);
        if left.is_pending() && buffers::are_many() {
            self.inbox.pack();
        }
        left
    }

    /// Ready when the client has left. Bytes that it sends meanwhile are kept, up to a buffer.
    pub(crate) fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.inbox.has_room() {
            match self.inbox.poll_fill(&mut self.io, context, false) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Pending
    }
}
