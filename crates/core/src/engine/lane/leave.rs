//! Requests whose client left: those that wait are taken out of the queue, and those in service go on until the plant is done.
//! A request that its gateway turns away while it waits leaves the queue in the same way.

use super::{Lane, unreserve};
use crate::request::{Permit, Reason, Stage};
use crate::time::Instant;

impl Lane {
    /// Notes that the client of a request in service has left. The plant works on, and only the end of that work frees the
    /// place. The request is released and departs as any other, as [`Abandoned`](crate::request::Outcome::Abandoned).
    ///
    /// A departure at once would show the plant as free while it is not. If all clients left before their answers, nothing
    /// would be learned and no request rejected, however deep the plant is in work.
    pub fn abandon(&mut self, now: Instant, permit: &mut Permit) {
        if permit.stage == Stage::InService && !permit.abandoned {
            self.follow_permit(permit);
            self.count_leave(now, permit);
            self.count_late(now, permit);
            permit.abandoned = true;
        }
    }

    /// Takes a waiting request out of its queue, because its gateway turns it away and answers it. If its verdict is on the
    /// way, the permit is spent, and nothing happens.
    #[cold]
    pub fn turn_away(&mut self, now: Instant, mut permit: Permit, reason: Reason) {
        self.follow_permit(&permit);
        if let Stage::Waiting { ticket } = permit.stage {
            self.leave_queue(now, &mut permit, (ticket, reason));
        }
    }

    /// Accounts a request that leaves the queue for this reason.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_queue(&self, now: Instant, permit: &mut Permit, (ticket, reason): (u64, Reason)) {
        let plant = &self.published.plants[permit.plant()];
        let is_here = plant.gate.cancel(ticket);
        if is_here || self.leave_lower_queue(permit, ticket) {
            unreserve(&self.published.plants[permit.plant()], permit.work);
            self.end_stream(permit);
            let counters = &self.counters.classes[usize::from(permit.class)];
            counters.end_unserved(reason);
            match reason {
                Reason::ClientLeft => self.count_leave(now, permit),
                _ => counters.timing.dropped.add(1),
            }
        }
    }

    /// Takes a request out of the queue to which it was passed down, and gives its permit that plant; false if no queue has it.
    fn leave_lower_queue(&self, permit: &mut Permit, ticket: u64) -> bool {
        let class = &self.published.classes[usize::from(permit.class)];
        let plants = &class.plant_of_level[1..=usize::from(class.base)];
        let found = plants.iter().rev().find_map(|plant| {
            Some((
                *plant,
                self.published.plants[usize::from(*plant)].gate.cancel_passed_down((permit.plant, ticket))?,
            ))
        });
        let Some((plant, waiting)) = found else { return false };
        (permit.plant, permit.work, permit.streams) = (plant, waiting.work, waiting.streams);
        true
    }

    /// If a class was promised a delay or a ratio, counts how long a client waited that hung up: the response time would have
    /// been longer.
    pub(super) fn count_leave(&self, now: Instant, permit: &Permit) {
        if let (true, Some(quota)) =
            (permit.has_quota, &self.published.classes[usize::from(permit.class)].quota)
        {
            let timing = &self.counters.classes[usize::from(permit.class)].timing;
            // The time for which the client let the plant wait is not charged to the plant.
            let waited_ns = now.nanos_since(permit.arrived).saturating_sub(permit.excused_ns);
            timing.leave(waited_ns, quota.target_ns);
        }
    }
}
