//! One request and its response on one upstream connection, driven within the client connection's task.
//!
//! Four moves are repeated until none is possible: request to the upstream, client's bytes in, response in, response to
//! the client. Each move reads or writes once, so that a plain request costs one read and one write on each side.
//!
//! **Back-pressure.** What follows of a request's body is read only into the client's one buffer. The response is read as fast
//! as the upstream gives it, so that the upstream is free again as early as that allows: its place is released at the
//! response's last byte, before the client has that byte. [`read_ahead`](super::read_ahead) says how far the response is read
//! ahead of a slow client.
//!
//! **The client is watched** for its end until the upstream is done. A half-close counts as leaving: `exchange/abandoned.rs`.
//!
//! **Deadlines** are set only when nothing moves ([`standstill`](super::standstill)).

use super::progress::Progress;
use super::request::RequestSide;
use super::response::{Fault, NOT_SWITCHED, ResponseSide, TOO_MANY_OPEN};
use super::retry;
use crate::accounting::permit_guard::PermitGuard;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::socket::Client;
use crate::client::wire::Wire;
use crate::http1::Refusal;
use crate::upstream::pool::Lease;
use crate::upstream::servers::Upstream;
use crate::worker::Worker;
use plimsoll_core::request::{Outcome, Service};
use plimsoll_core::time::Instant;
use std::task::{Context, Poll, ready};

#[derive(Debug)]
pub(crate) enum End {
    /// The client has the whole response.
    Done,
    /// The protocol was switched: the rest is a tunnel.
    Switched(Lease),
    /// The kept connection was dead: the request may be sent again on a new one.
    Retry,
    /// The upstream has nothing at this level: the request may be sent at the next level. It still holds its place.
    Absent,
    /// The exchange failed before the client got any byte of a final response.
    Failed(Refusal),
    /// The response cannot be finished, so the client's connection must close.
    Broken(Outcome),
}

pub(crate) struct Exchange<'a, W: Wire> {
    pub worker: &'a Worker,
    pub client: &'a mut Client<W>,
    pub request: RequestSide<'a>,
    pub response: ResponseSide<'a>,
    pub permit: &'a mut PermitGuard,
    pub upstream: &'a Upstream,
    /// The connection to the upstream, until the upstream is done.
    pub lease: Option<Lease>,
    pub progress: Progress,
    /// The response was cut short: the bytes that came are sent, and then the connection closes.
    pub cut_short: bool,
    /// Whether the response can no longer be stored in a file.
    pub storage_failed: bool,
    /// Whether the response is known to be a stream of events.
    pub streams_events: bool,
    /// Whether the upstream stops working on a request when its connection closes.
    pub stops_when_abandoned: bool,
    /// Whether the client has left while the upstream goes on to finish its request.
    pub is_abandoned: bool,
    /// Since when the upstream waits, or may wait, for the client alone.
    pub waited_since: Option<Instant>,
    /// The client's place among the clients that are waited for.
    pub awaited: AwaitedClient,
}

impl<W: Wire> Exchange<'_, W> {
    /// Begins the exchange, or begins it again, on a connection. Body bytes that came meanwhile are checked here, since all
    /// other checks follow a read.
    pub(crate) fn attach(&mut self, lease: Lease) -> Result<(), Refusal> {
        self.request.rewind();
        self.permit.tried(&lease.server().address);
        self.progress.attached(self.worker.coarse());
        self.request.check(&mut self.client.inbox)?;
        self.lease = Some(lease);
        Ok(())
    }

    /// Moves bytes until no move is possible. `Ready` when the exchange has ended.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        let end = ready!(self.move_bytes(context));
        // If the client has left, the request is neither sent again nor answered.
        Poll::Ready(if self.is_abandoned { End::Broken(Outcome::Abandoned) } else { end })
    }

    fn move_bytes(&mut self, context: &mut Context<'_>) -> Poll<End> {
        if let Some(since) = self.waited_since.take() {
            self.permit.excuse(self.worker.now().since(since));
        }
        loop {
            if self.request.is_stored() {
                if let Err(refusal) = self.request.refill(&mut self.client.inbox) {
                    return Poll::Ready(self.fail(refusal));
                }
                // The rest of the body may have come before the stored beginning was sent.
                if self.request.is_complete() {
                    self.permit.end_stream();
                }
            }
            let mut moved = self.send(context);
            if self.lease.is_some()
                && !self.is_abandoned
                && let Some(end) = self.watch(context, &mut moved)
            {
                return Poll::Ready(end);
            }
            if let Some(end) = self.receive(context, &mut moved) {
                return Poll::Ready(end);
            }
            if self.is_abandoned {
                if let Some(end) = self.throw_away() {
                    return Poll::Ready(end);
                }
                if !moved {
                    break;
                }
                continue;
            }
            match self.client.poll_write(context) {
                Poll::Ready(Ok(written)) => {
                    self.permit.sent(written.body);
                    if self.lease.is_none() && self.client.has_all() {
                        let end = if self.cut_short { End::Broken(Outcome::Failed) } else { End::Done };
                        return Poll::Ready(end);
                    }
                    if written.bytes > 0 {
                        self.progress.client_accepted(written.bytes);
                        self.awaited.moved(written.bytes);
                        moved = true;
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(self.give_up(End::Broken(Outcome::Abandoned))),
                Poll::Pending => {}
            }
            if !moved {
                break;
            }
        }
        self.check_deadline()
    }

    fn send(&mut self, context: &mut Context<'_>) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        let moved = self.request.poll_send(&mut self.client.inbox, &mut lease.io, context).is_ready();
        if moved {
            self.progress.upstream_took(self.worker.coarse());
        }
        moved
    }

    /// Reads the client's bytes: its body, the next request, and the end of the connection, which only a read shows.
    fn watch(&mut self, context: &mut Context<'_>, moved: &mut bool) -> Option<End> {
        let complete = self.request.is_complete();
        // A full buffer waits for the upstream, or holds a next request that is too long for it.
        if !self.client.inbox.has_room() {
            let has_left = self.client.io.poll_gone(context).is_ready();
            return if has_left { self.abandon() } else { None };
        }
        match self.client.poll_fill(context, !complete) {
            Poll::Pending => None,
            Poll::Ready(Err(_) | Ok(0)) => self.abandon(),
            Poll::Ready(Ok(count)) => {
                *moved = true;
                if !complete {
                    let owed = self.client_owes();
                    self.progress.client_sent(self.worker.coarse(), count as u64, owed);
                    self.awaited.moved(count as u64);
                    if let Err(refusal) = self.request.check(&mut self.client.inbox) {
                        return Some(self.fail(refusal));
                    }
                    if self.request.is_complete() {
                        self.permit.end_stream();
                    }
                }
                None
            }
        }
    }

    fn receive(&mut self, context: &mut Context<'_>, moved: &mut bool) -> Option<End> {
        if !self.has_room() {
            return None;
        }
        let client_owed = self.client_owes();
        let lease = self.lease.as_mut()?;
        let was_empty = self.client.outbox.is_empty();
        // A part of an interim head may be on its way, and nothing may follow it but its rest.
        let replaced_by = |why| if was_empty { End::Failed(why) } else { End::Broken(Outcome::Failed) };
        let (io, outbox) = (&mut lease.io, &mut self.client.outbox);
        let may_go_on = self.request.is_sent() && !self.worker.is_draining();
        let Poll::Ready(result) = self.response.poll_receive(io, outbox, may_go_on, context) else {
            return None;
        };
        *moved = true;
        lease.heard(self.worker.coarse());
        if self.response.is_progress() {
            self.progress.upstream_sent(self.worker.coarse(), was_empty, client_owed);
        }
        if self.is_abandoned && (self.response.is_event_stream() || self.response.is_switched()) {
            return Some(self.give_up(End::Broken(Outcome::Abandoned)));
        }
        let is_too_many = (self.response.is_event_stream() && !self.may_send_events())
            || (result.is_ok() && self.response.is_switched() && !self.permit.stay_open());
        if is_too_many || self.response.is_mistakable() {
            return Some(self.give_up(replaced_by(if is_too_many { TOO_MANY_OPEN } else { NOT_SWITCHED })));
        }
        if let Some(status) = self.response.status().filter(|_| !self.is_abandoned) {
            self.permit.answered(status);
        }
        self.store();
        match result {
            Ok(()) if self.response.is_switched() => {
                let lease = self.lease.take()?;
                lease.answered(self.worker.coarse(), self.response.head.status);
                Some(End::Switched(lease))
            }
            Ok(()) if self.response.is_done() => {
                self.finish();
                None
            }
            Ok(()) => None,
            Err(fault) => self.fault(fault),
        }
    }

    /// Takes the right to send a stream of events, which the exchange keeps until its end.
    fn may_send_events(&mut self) -> bool {
        if !self.streams_events {
            self.streams_events = self.permit.stay_open();
            let holds_place = self.permit.holds_place();
            if let Some(lease) = self.lease.as_mut().filter(|_| self.streams_events) {
                // The server has answered now, since events may have no end.
                lease.answered(self.worker.coarse(), self.response.head.status);
                if !holds_place {
                    lease.stop_counting();
                }
            }
            self.progress.streams();
        }
        self.streams_events
    }

    /// Ends the upstream's part after the last byte was read. The connection goes back before the place, so that the next
    /// request finds it.
    fn finish(&mut self) {
        let Some(mut lease) = self.lease.take() else { return };
        lease.is_doubtful = self.response.has_no_body();
        if !self.streams_events {
            lease.answered(self.worker.coarse(), self.response.head.status);
        }
        if self.response.is_clean() && self.request.is_sent() {
            self.upstream.pool.put_idle(self.worker.index, self.worker.coarse(), lease);
        } else {
            drop(lease);
        }
        if self.response.head.status == 503 {
            self.permit.refused();
        }
        // The duration of a stream of events says nothing about the cost of a request.
        let is_answered = Outcome::of_answer(self.response.head.status) == Outcome::Completed;
        let representative = is_answered && !self.response.is_event_stream() && !self.progress.goes_both_ways;
        let (response_bytes, cost) = (self.response.bytes, self.response.cost);
        self.permit.release(Service { response_bytes, representative, cost });
    }

    /// Releases the place of a response that says nothing about what requests cost.
    fn release_unfinished(&mut self) {
        let response_bytes = self.response.bytes;
        self.permit.release(Service { response_bytes, representative: false, cost: None });
    }

    /// Closes the upstream's connection and releases the place. Nothing more is sent to the client.
    pub(super) fn give_up(&mut self, end: End) -> End {
        self.client.outbox.clear();
        self.let_go(end)
    }

    fn let_go(&mut self, end: End) -> End {
        self.lease = None;
        self.release_unfinished();
        end
    }

    pub(super) fn fail(&mut self, refusal: Refusal) -> End {
        if self.response.is_committed() {
            return self.give_up(End::Broken(Outcome::Failed));
        }
        // The outbox has whole interim heads only. A part of the first may be on its way, and the error follows the last.
        self.let_go(End::Failed(refusal))
    }

    /// Handles the end of the response's bytes. `None` if the exchange goes on to send the bytes that came.
    fn fault(&mut self, fault: Fault) -> Option<End> {
        let mut lease = self.lease.take()?;
        if fault == Fault::Absent {
            lease.is_doubtful = self.response.has_no_body();
            lease.answered(self.worker.coarse(), self.response.head.status);
            if self.response.is_whole() && self.request.is_sent() {
                self.upstream.pool.put_idle(self.worker.index, self.worker.coarse(), lease);
            }
            return Some(End::Absent);
        }
        let may_retry = || self.upstream.pool.roster().may_retry(self.worker.shared.clock.now());
        if fault == Fault::Silent && retry::is_worth_another_connection(&lease, &self.request, may_retry) {
            return Some(End::Retry);
        }
        // The silent end of a kept connection is no failure of the server. A server that sends events has already answered.
        if (fault != Fault::Silent || !lease.reused) && !self.streams_events {
            lease.erred(self.worker.coarse());
        }
        drop(lease);
        if self.response.is_committed() {
            self.release_unfinished();
            self.cut_short = true;
            return None;
        }
        let speaks_configured_http2 = self.upstream.http2 && self.upstream.secured.is_none();
        let why = match fault {
            Fault::Malformed(why) => why,
            // So does a server of HTTP/1.1 to which HTTP/2 is spoken.
            Fault::Silent if speaks_configured_http2 => {
                "the upstream ended the connection without an answer of HTTP/2: if it speaks HTTP/1.1 there, `http2` must go"
            }
            Fault::Silent | Fault::CutShort | Fault::Absent => {
                "the upstream closed the connection before it answered"
            }
        };
        Some(self.fail(Refusal::with(502, why)))
    }

    /// Whether only bytes of the client's body bring the request on. A client that waits for `100 Continue` owes no bytes.
    pub(super) fn client_owes(&self) -> bool {
        self.request.is_starved()
            && !self.request.is_refused()
            && (self.response.has_begun() || !self.request.awaits_continue)
    }
}
