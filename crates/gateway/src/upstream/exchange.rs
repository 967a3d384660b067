//! One request and its response on one upstream connection, driven within the client connection's task.
//!
//! Four moves, repeated until none is possible: request to the upstream, client's bytes in, response in, response to
//! the client. Each move reads or writes once, so that a plain request costs one read and one write on each side.
//!
//! **Back-pressure.** The request's body is read only into the client's one buffer. The response is read ahead of a slow
//! client by at most [`READ_AHEAD`] buffers, so that the upstream is free again as early as that allows: it is released
//! at its last byte, before the client has it.
//!
//! **The client is watched** for its end until the upstream is done. A half-close counts as leaving.
//!
//! **Deadlines.** Who is waited for decides: a client that owes body bytes, a client that does not read, an upstream
//! that owes a response. They are written down only when nothing moves. While the request holds its place, a client
//! must also keep a [`Pace`].

use super::pool::{Lease, Upstream};
use super::request::RequestSide;
use super::response::{Fault, ResponseSide};
use crate::connection::Client;
use crate::held::Held;
use crate::http1::Refusal;
use crate::pace::Pace;
use crate::worker::Worker;
use plimsoll_core::request::{Outcome, Service};
use plimsoll_core::time::Instant;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Buffers of response that may wait for the client.
const READ_AHEAD: usize = 4;

/// How an exchange ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has the whole response.
    Done,
    /// The protocol was switched: the rest is a tunnel.
    Switched(Lease),
    /// The reused connection was dead: the request may go to a new one.
    Retry,
    /// There is nothing at this level: the next may be asked. The place at the upstream is still held.
    Absent,
    /// It failed before the client got anything final.
    Failed(Refusal),
    /// It cannot be finished: the client's connection must close.
    Broken(Outcome),
}

/// Who is waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overdue {
    ClientReads,
    ClientSends,
    Upstream,
}

/// What an exchange works on.
pub(crate) struct Exchange<'a> {
    pub worker: &'a Rc<Worker>,
    pub client: &'a mut Client,
    pub held: &'a mut Held,
    pub pool: &'a Arc<Upstream>,
    pub request: RequestSide<'a>,
    pub response: ResponseSide<'a>,
    pub idempotent: bool,
    lease: Option<Lease>,
    /// When the client last took anything, and when the upstream last moved.
    client_moved: Instant,
    upstream_moved: Instant,
    /// How the client sends the request, and how it takes the response.
    sends: Pace,
    takes: Pace,
    /// The response was cut short: what came of it is still sent, then the connection closes.
    cut_short: bool,
}

/// What [`Exchange::new`] needs, by name.
pub(crate) struct Parts<'a> {
    pub worker: &'a Rc<Worker>,
    pub client: &'a mut Client,
    pub held: &'a mut Held,
    pub pool: &'a Arc<Upstream>,
    pub request: RequestSide<'a>,
    pub response: ResponseSide<'a>,
    pub idempotent: bool,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(parts: Parts<'a>) -> Self {
        let now = parts.worker.coarse();
        let timeouts = parts.worker.tables().settings.timeouts;
        let (sends, takes) = (Pace::start(now, timeouts.body_idle), Pace::start(now, timeouts.send));
        Exchange {
            worker: parts.worker,
            client: parts.client,
            held: parts.held,
            pool: parts.pool,
            request: parts.request,
            response: parts.response,
            idempotent: parts.idempotent,
            lease: None,
            client_moved: now,
            upstream_moved: now,
            sends,
            takes,
            cut_short: false,
        }
    }

    /// Begins, or begins again, on a connection. What the client sent while it was made is checked here: nobody
    /// else looks at it before there are newer bytes.
    pub(crate) fn attach(&mut self, lease: Lease) -> Result<(), Refusal> {
        self.request.rewind();
        let now = self.worker.coarse();
        (self.client_moved, self.upstream_moved) = (now, now);
        self.sends.excuse(now);
        self.request.check(&self.client.inbox)?;
        self.lease = Some(lease);
        Ok(())
    }

    /// Moves what can be moved. `Ready` when the exchange has ended.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            let mut moved = self.send(context);
            if self.lease.is_some()
                && let Some(end) = self.watch(context, &mut moved)
            {
                return Poll::Ready(end);
            }
            if let Some(end) = self.receive(context, &mut moved) {
                return Poll::Ready(end);
            }
            match self.client.outbox.poll_write(&mut self.client.io, context) {
                Poll::Ready(Ok(written)) => {
                    self.held.sent(written.body);
                    if self.lease.is_none() && self.client.outbox.is_empty() {
                        let end = if self.cut_short { End::Broken(Outcome::Failed) } else { End::Done };
                        return Poll::Ready(end);
                    }
                    if written.bytes > 0 {
                        self.client_moved = self.worker.coarse();
                        self.takes.earn(self.client_moved, written.bytes);
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

    /// Request to the upstream.
    fn send(&mut self, context: &mut Context<'_>) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        let moved = self.request.poll_send(&mut self.client.inbox, &mut lease.io, context).is_ready();
        if moved {
            self.upstream_moved = self.worker.coarse();
            self.sends.excuse(self.upstream_moved);
        }
        moved
    }

    /// The client's bytes: its body, then whatever follows, and above all its end.
    fn watch(&mut self, context: &mut Context<'_>, moved: &mut bool) -> Option<End> {
        let complete = self.request.is_complete();
        // A full buffer waits for the upstream, or is a next request that is too long to look behind.
        if !self.client.inbox.has_room() {
            return None;
        }
        match self.client.inbox.poll_fill(&mut self.client.io, context, !complete) {
            Poll::Pending => None,
            Poll::Ready(Err(_) | Ok(0)) => Some(self.give_up(End::Broken(Outcome::Abandoned))),
            Poll::Ready(Ok(count)) => {
                if !complete {
                    *moved = true;
                    let now = self.worker.coarse();
                    if !self.client_owes() {
                        self.sends.excuse(now);
                    }
                    self.sends.earn(now, count as u64);
                    if let Err(refusal) = self.request.check(&self.client.inbox) {
                        return Some(self.fail(refusal));
                    }
                }
                None
            }
        }
    }

    /// The upstream's bytes.
    fn receive(&mut self, context: &mut Context<'_>, moved: &mut bool) -> Option<End> {
        if self.client.outbox.len() >= READ_AHEAD {
            return None;
        }
        let client_owed = self.client_owes();
        let lease = self.lease.as_mut()?;
        let was_empty = self.client.outbox.is_empty();
        let all_sent = self.request.is_sent();
        let (io, outbox) = (&mut lease.io, &mut self.client.outbox);
        let Poll::Ready(result) = self.response.poll_receive(io, outbox, all_sent, context) else {
            return None;
        };
        *moved = true;
        self.upstream_moved = self.worker.coarse();
        if was_empty {
            self.client_moved = self.upstream_moved;
            self.takes.excuse(self.upstream_moved);
        }
        if !client_owed {
            self.sends.excuse(self.upstream_moved);
        }
        match result {
            Ok(()) if self.response.is_switched() => self.lease.take().map(End::Switched),
            Ok(()) if self.response.is_done() => {
                self.finish();
                None
            }
            Ok(()) => None,
            Err(fault) => self.fault(fault),
        }
    }

    /// The response's last byte was read: the connection goes back, then the plant is free. In this order, so that
    /// whoever is started in its place finds the connection.
    fn finish(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        lease.praise();
        if self.response.is_clean() && self.request.is_sent() {
            self.pool.put_idle(self.worker.index, self.worker.coarse(), lease);
        } else {
            drop(lease);
        }
        let representative = self.response.head.status < 500;
        let (response_bytes, cost) = (self.response.bytes, self.response.cost);
        self.held.release(Service { response_bytes, representative, cost });
    }

    /// Closes the upstream's connection and frees the plant.
    fn give_up(&mut self, end: End) -> End {
        self.lease = None;
        self.client.outbox.clear();
        self.held.release(Service { response_bytes: self.response.bytes, representative: false, cost: None });
        end
    }

    fn fail(&mut self, refusal: Refusal) -> End {
        let committed = self.response.is_committed();
        self.give_up(if committed { End::Broken(Outcome::Failed) } else { End::Failed(refusal) })
    }

    fn fault(&mut self, fault: Fault) -> Option<End> {
        let lease = self.lease.take()?;
        if fault == Fault::Absent {
            lease.praise();
            if self.response.is_whole() && self.request.is_sent() {
                self.pool.put_idle(self.worker.index, self.worker.coarse(), lease);
            }
            return Some(End::Absent);
        }
        if fault == Fault::Silent && lease.reused && self.request.may_repeat(self.idempotent) {
            return Some(End::Retry);
        }
        if self.response.is_committed() {
            drop(lease);
            self.held.release(Service {
                response_bytes: self.response.bytes,
                representative: false,
                cost: None,
            });
            self.cut_short = true;
            return None;
        }
        // A server may close an idle connection at any time: that it did so now says nothing about it.
        if fault != Fault::Silent || !lease.reused {
            lease.blame(self.worker.coarse());
        }
        drop(lease);
        let why = match fault {
            Fault::Malformed(why) => why,
            Fault::Silent | Fault::CutShort | Fault::Absent => {
                "the upstream closed the connection before it answered"
            }
        };
        Some(self.fail(Refusal::with(502, why)))
    }

    /// Only the client's body bytes bring the request on. Not while it waits for leave to send them.
    fn client_owes(&self) -> bool {
        self.request.is_starved()
            && !self.request.is_refused()
            && (self.response.has_begun() || !self.request.awaits_continue())
    }

    /// Who is waited for, and until when.
    fn deadline(&self) -> Option<(Instant, Overdue)> {
        let timeouts = self.worker.tables().settings.timeouts;
        // Once the place is free, a slow reader costs only its own connection.
        let by = if self.lease.is_some() { self.takes.deadline() } else { self.client_moved + timeouts.send };
        let reads = (!self.client.outbox.is_empty()).then_some((by, Overdue::ClientReads));
        let client_owes = self.lease.is_some() && self.client_owes();
        let sends = client_owes.then(|| (self.sends.deadline(), Overdue::ClientSends));
        let owes = self.lease.is_some()
            && self.client.outbox.len() < READ_AHEAD
            && (!client_owes || self.response.is_committed());
        let limit = if self.response.is_committed() { timeouts.upstream_idle } else { timeouts.first_byte };
        let upstream = owes.then(|| (self.upstream_moved + limit, Overdue::Upstream));
        [reads, sends, upstream].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Arms the deadline for the time that nothing moves; acts on one that has passed.
    fn check_deadline(&mut self) -> Poll<End> {
        let deadline = self.deadline();
        if self.client.slot.expired()
            && let Some((at, overdue)) = deadline
            && at <= self.worker.coarse()
        {
            return Poll::Ready(self.overdue(overdue));
        }
        self.client.slot.arm(deadline.map(|(at, _)| at));
        Poll::Pending
    }

    fn overdue(&mut self, overdue: Overdue) -> End {
        match overdue {
            Overdue::ClientReads => self.give_up(End::Broken(Outcome::Abandoned)),
            Overdue::ClientSends => self.fail(Refusal::with(408, "the request body did not come in time")),
            Overdue::Upstream => {
                if let Some(lease) = &self.lease {
                    lease.blame(self.worker.coarse());
                }
                self.fail(Refusal::with(504, "the upstream did not answer in time"))
            }
        }
    }
}
