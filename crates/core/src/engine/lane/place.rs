//! Placing an admitted request: in service at once, else in the queue, else nowhere because the queue is full.

use super::expire::drop_waiting;
use super::start::places;
use super::{Lane, unreserve};
use crate::request::{Permit, Reason, Stage, Target, Token, Verdicts};
use crate::scheduling::gate::{Entry, GateChange};
use crate::scheduling::queue::Waiting;
use crate::scheduling::rank::Standing;
use crate::time::Instant;

/// Where an admitted request was placed.
pub(super) enum Placed {
    /// In service, by this change of the gate.
    Entered(GateChange),
    /// In the plant's queue.
    Waiting,
    /// Nowhere: the queue is full, and nothing in it ranks lower.
    Overflow,
}

/// An admitted request.
#[derive(Clone, Copy)]
pub(super) struct Admitted<'a> {
    pub(super) target: &'a Target,
    pub(super) token: Token,
    pub(super) standing: Standing,
    /// The level that it was given. Its permit has the level at which it was admitted, which may be lower.
    pub(super) given: u8,
}

impl Lane {
    /// Places a request at the plant of its permit: into service if the gate has room and nothing waits, else into the
    /// queue.
    pub(super) fn place(
        &mut self,
        now: Instant,
        request: Admitted<'_>,
        permit: &mut Permit,
        verdicts: &mut Verdicts,
    ) -> Placed {
        let limit = self.limit_at_arrival(request.target, permit.plant());
        let placed = match self.published.plants[permit.plant()].gate.enter(now, limit) {
            Some(change) => Placed::Entered(change),
            None => self.place_in_queue((now, limit), request, permit, verdicts),
        };
        if permit.has_quota && !matches!(placed, Placed::Overflow) {
            self.count_gap(now, request.target);
        }
        placed
    }

    /// Counts the arrival of an admitted request in a class that was promised a delay or a ratio.
    #[inline(never)]
    fn count_gap(&self, now: Instant, target: &Target) {
        let class = usize::from(target.class);
        let Some(quota) = &self.published.classes[class].quota else { return };
        let gap = quota.gaps.arrive(now, quota.in_service() == 0);
        self.counters.classes[class].timing.arrive(gap);
    }

    /// The number of requests in service below which an arriving request may start at once. It is 0 for a class whose requests
    /// a strict ratio holds, since none of them starts before it has waited, and for an exempt request while exempt requests
    /// hold their share of the places.
    fn limit_at_arrival(&self, target: &Target, plant: usize) -> u32 {
        let (limit, shared) = places(&self.published, plant);
        if target.exempt {
            return if self.published.plants[plant].gate.may_start_exempt(shared) { limit } else { 0 };
        }
        let Some(quota) = &self.published.classes[usize::from(target.class)].quota else { return limit };
        if quota.hold_ns() > 0 { 0 } else { limit }
    }

    /// Puts a request into the queue, from which it may displace one that ranks lower.
    fn place_in_queue(
        &mut self,
        (now, limit): (Instant, u32),
        request: Admitted<'_>,
        permit: &mut Permit,
        verdicts: &mut Verdicts,
    ) -> Placed {
        let Admitted { target, token, standing, given } = request;
        let most_level = if permit.level < given { permit.level } else { u8::MAX };
        let class = &self.published.classes[usize::from(target.class)];
        let plant = &self.published.plants[permit.plant()];
        let (rank, work, streams) = (class.rank(standing), permit.work, permit.streams);
        let pace_ns = class.contract.as_ref().map_or(0, |contract| contract.pace_ns());
        let latest_start = work.map_or(Instant::FAR, |work| work.latest_start(now, &class.terms));
        let Target { site, class, client, exempt, .. } = *target;
        let limit = if exempt { 0 } else { limit };
        if exempt {
            // Its work is reserved at its start, so that an exempt request that is held delays no other. Until then `waiting`
            // holds its features and its cost only, and no work is given back: an exempt request is neither late nor expired,
            // displaced or passed down, and its permit, by which it is cancelled, has no work any more.
            unreserve(plant, permit.work.take());
        }
        let waiting = Waiting {
            token,
            site,
            class,
            client,
            standing,
            rank,
            pace_ns,
            arrived: now,
            features: target.features(),
            work,
            streams,
            most_level,
            latest_start,
            home: permit.plant,
            ticket: 0,
        };
        match plant.gate.enter_or_wait(now, limit, plant.queue.max_waiting, waiting) {
            Entry::Entered(change) => Placed::Entered(change),
            Entry::Waits { ticket, displaced } => {
                permit.stage = Stage::Waiting { ticket };
                if let Some(displaced) = displaced {
                    self.drop_displaced(&displaced, permit.plant(), verdicts);
                }
                // A departure after the gate was read may have left room.
                self.dispatch(now, permit.plant(), verdicts);
                Placed::Waiting
            }
            Entry::Overflow => {
                unreserve(plant, permit.work);
                Placed::Overflow
            }
        }
    }

    /// Answers a request that another one displaced. It may be of a class that is newer than this lane's generation.
    #[cold]
    pub(super) fn drop_displaced(&mut self, displaced: &Waiting, plant: usize, verdicts: &mut Verdicts) {
        self.follow();
        let verdict = drop_waiting(&self.published, &self.counters, displaced, plant, Reason::QueueFull);
        verdicts.push(verdict);
    }
}
