//! A client's bytes outside of an exchange: whole answers, responses that end early, and bodies that nobody reads.

use crate::accounting::permit_guard::PermitGuard;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers;
use crate::client::inbox::Inbox;
use crate::client::pace::Taking;
use crate::client::socket::Client;
use crate::client::wire::Wire;
use crate::http1::body::{Decoder, Framing};
use crate::worker::Worker;
use plimsoll_core::request::Outcome;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// An unread body up to this size is read and dropped, so that the connection can go on.
const DISCARD_LIMIT: usize = 64 * 1024;
/// The time limit for the last frame of an aborted stream to leave.
const LAST_FRAME: Duration = Duration::from_secs(1);

impl<W: Wire> Client<W> {
    /// Sends the outbox, and counts its body bytes for `permit`. False if the client left or does not read; its stream is then
    /// aborted. If memory is short, a waiting client of a folder's file holds none: so it is not given up for memory, but reads
    /// on in small steps.
    pub(super) async fn flush(&mut self, worker: &Worker, permit: Option<&PermitGuard>) -> bool {
        let mut awaited = AwaitedClient::default();
        let mut taking = Taking::start(worker.coarse(), worker.tables().settings.timeouts.send);
        let has_all = poll_fn(|context| {
            while !self.has_all() {
                match self.poll_write(context) {
                    Poll::Ready(Ok(written)) => {
                        if let Some(permit) = permit {
                            permit.sent(written.body);
                        }
                        taking.accepted(written.bytes);
                        awaited.moved(written.bytes);
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Pending => {
                        let now = worker.coarse();
                        taking.look(now, false, || self.io.unacknowledged());
                        let is_needed = awaited.is_given_up();
                        let is_short = is_needed || buffers::exceed(worker.buffer_memory());
                        let has_given_back = is_short && self.put_back();
                        if (is_needed && !has_given_back) || taking.deadline(false) <= now {
                            return Poll::Ready(false);
                        }
                        self.slot.arm(Some(taking.deadline(false).min(taking.next_look(false))));
                        if has_given_back {
                            awaited.end();
                            return Poll::Pending;
                        }
                        if is_short {
                            self.pack();
                        }
                        awaited.hold(&worker.slow, &self.slot, self.held(), worker.standing_memory());
                        return Poll::Pending;
                    }
                }
            }
            self.slot.arm(None);
            Poll::Ready(true)
        })
        .await;
        if !has_all && !W::IN_ORDER {
            self.io.abort();
        }
        has_all
    }

    /// Ends a response that its client does not take, or that cannot be finished; returns its outcome, since its last bytes may
    /// still arrive. Bytes that the client sent behind the request are dropped: otherwise the connection would linger, which
    /// begins with a plain end.
    pub(super) async fn abort(&mut self, worker: &Worker, outcome: Outcome) -> Outcome {
        self.io.abort();
        self.outbox.clear();
        self.inbox = Inbox::default();
        self.slot.arm(Some(worker.after(LAST_FRAME)));
        let is_whole = poll_fn(|context| match self.io.poll_aborted(context) {
            Poll::Pending if self.slot.expired() => Poll::Ready(false),
            whether => whether,
        })
        .await;
        self.slot.arm(None);
        if is_whole { Outcome::Completed } else { outcome }
    }

    /// Reads the rest of a body and drops it, so that the connection can go on. False if the body is too large.
    pub(super) async fn discard(&mut self, worker: &Worker, framing: Framing) -> bool {
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

    /// Reads once. Zero bytes mean that the client is done or that its deadline has passed.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        match self.poll_fill(context, false) {
            Poll::Ready(result) => Poll::Ready(result.unwrap_or(0)),
            Poll::Pending if self.slot.expired() => Poll::Ready(0),
            Poll::Pending => Poll::Pending,
        }
    }
}
