//! An exchange in which no byte can move: which side it waits for and until when ([`progress`](super::progress)), and the
//! memory that it holds.

use super::moves::{End, Exchange};
use super::progress::{Overdue, Waits};
use crate::client::pace::SCARCITY_LOOK;
use crate::client::wire::Wire;
use crate::http1::Refusal;
use plimsoll_core::request::Outcome;
use std::task::Poll;

impl<W: Wire> Exchange<'_, W> {
    /// Sets the deadline for the wait, and acts on a deadline that has passed.
    pub(super) fn check_deadline(&mut self) -> Poll<End> {
        let waits = self.waits();
        if waits.client_reads {
            let (now, client) = (self.worker.coarse(), &*self.client);
            self.progress.client_reads(now, waits.must_keep_up, || client.io.unacknowledged());
        }
        self.progress.goes_both_ways |= waits.client_sends && waits.committed;
        let may_wait = self.lease.is_some() && (!waits.upstream || waits.client_sends);
        self.waited_since = may_wait.then(|| self.worker.now());
        let deadline = self.progress.deadline(waits, &self.worker.tables().settings.timeouts);
        if (waits.client_reads || waits.client_sends) && self.awaited.is_given_up() {
            let overdue = if waits.client_reads { Overdue::ClientReads } else { Overdue::ClientSends };
            return Poll::Ready(self.overdue(overdue));
        }
        if self.client.slot.expired()
            && let Some((at, overdue)) = deadline
            && at <= self.worker.coarse()
        {
            return Poll::Ready(self.overdue(overdue));
        }
        let scarce = (self.client.outbox.stored() > 0).then(|| self.worker.after(SCARCITY_LOOK));
        let looks = [scarce, self.progress.next_look(waits)];
        let first_look = looks.into_iter().flatten().min();
        self.client.slot.arm(deadline.map(|(at, _)| first_look.map_or(at, |look| at.min(look))));
        self.stand(waits);
        Poll::Pending
    }

    /// Counts a waiting client with all others. If memory is short, bytes that can be stored go to the file.
    fn stand(&mut self, waits: Waits) {
        if !waits.client_reads && !waits.client_sends {
            return self.awaited.end();
        }
        if self.is_memory_short() || self.is_standing_memory_short() {
            if self.may_store() {
                let limits = self.worker.tables().settings.limits;
                let stored = self.client.outbox.put_away(&self.worker.shared.storage, &limits);
                self.storage_failed = stored.is_err();
            }
            self.client.pack();
        }
        let held = self.client.held() + self.response.held();
        self.awaited.hold(&self.worker.slow, &self.client.slot, held, self.worker.standing_memory());
        if self.client.outbox.stored() > 0 {
            self.awaited.hold_file(&self.worker.filed, &self.client.slot);
        }
    }

    fn overdue(&mut self, overdue: Overdue) -> End {
        match overdue {
            Overdue::ClientReads => self.give_up(End::Broken(Outcome::Abandoned)),
            Overdue::ClientSends => self.fail(Refusal::with(408, "the request body did not come in time")),
            Overdue::Upstream => {
                // With the first event the server has answered.
                if let Some(lease) = self.lease.as_ref().filter(|_| !self.streams_events) {
                    lease.erred(self.worker.coarse());
                }
                self.fail(Refusal::with(504, "the upstream did not answer in time"))
            }
        }
    }

    fn waits(&self) -> Waits {
        let holds_place = self.lease.is_some();
        let committed = self.response.is_committed();
        let client_sends = holds_place && self.client_owes();
        Waits {
            client_reads: !self.client.has_all(),
            client_sends,
            upstream: holds_place && self.has_room() && (!client_sends || committed),
            must_keep_up: (holds_place && !self.has_room()) || self.holds_scarce_room(),
            committed,
        }
    }

    fn holds_scarce_room(&self) -> bool {
        self.client.outbox.stored() > 0 && self.worker.are_files_scarce()
    }

    /// Whether clients that are waited for hold half of their memory or more: further bytes then go to files, before a client
    /// is given up for memory.
    fn is_standing_memory_short(&self) -> bool {
        let held = self.client.held() + self.response.held();
        2 * (self.worker.slow.borrow().bytes() + held) > self.worker.standing_memory()
    }
}
