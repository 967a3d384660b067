//! The arrival of a request: level, admission, place, account.

use super::place::Placed;
use super::start::{Start, reason, start};
use super::{Lane, forget};
use crate::actuator::service_level::FRACTION_ONE;
use crate::admission::token_bucket::TokenBucket;
use crate::engine::state::PublishedState;
use crate::promises::{Choice, Mode};
use crate::random::Random;
use crate::request::work::CostFeatures;
use crate::request::{Arrival, Permit, Reason, Stage, Target, Token, Verdicts};
use crate::scheduling::rank::Standing;
use crate::telemetry::counters::RECENT;
use crate::time::{Duration, Instant};
use core::sync::atomic::Ordering;

/// What the level of a request depends on.
#[derive(Clone, Copy)]
pub(super) struct LevelQuery {
    pub(super) class: u16,
    pub(super) client: u64,
    pub(super) standing: Standing,
}

/// The level that a request was given, and its standing.
#[derive(Clone, Copy)]
struct GivenLevel {
    query: LevelQuery,
    level: u8,
}

/// Why a request is turned away, and when it may come again.
struct Refusal {
    reason: Reason,
    retry_after: Duration,
}

impl Lane {
    /// Decides on a request: serve, wait, or reject. `token` comes back in the verdict if it waits.
    ///
    /// `target` must come from this engine's [`classify`](Lane::classify), however many reloads ago.
    pub fn arrive(&mut self, now: Instant, target: Target, token: Token, verdicts: &mut Verdicts) -> Arrival {
        self.follow();
        self.count_arrival(&target);
        let given = self.level(now, &target);
        let mut permit = permit(&self.shared, now, given.query, given.level);
        if let Err(refusal) = self.admit(&target, given, &mut permit) {
            return self.reject(&target, refusal);
        }
        match self.place(now, (&target, token, given.query.standing), &mut permit, verdicts) {
            Placed::Entered(change) => {
                let started = Start { now, decided: given.level, change };
                start(&self.shared, &self.counters, &mut permit, started);
                if target.exempt { Arrival::Exempt(permit) } else { Arrival::Serve(permit) }
            }
            Placed::Waiting => Arrival::Wait(permit),
            Placed::Overflow => self.reject(&target, self.refusal(Reason::QueueFull)),
        }
    }

    /// Counts an arrival. Every 2^k-th client is noted, so that clients which are too heavy are found.
    fn count_arrival(&self, target: &Target) {
        let counters = &self.counters.classes[usize::from(target.class)];
        let arrivals = counters.arrivals.get();
        let shift = self.shared.classes[usize::from(target.class)].words.note_shift.load(Ordering::Relaxed);
        if arrivals & ((1 << shift) - 1) == 0 {
            let place = (arrivals >> shift) as usize % RECENT;
            counters.recent[place].store(target.client, Ordering::Relaxed);
        }
        counters.arrivals.add(1);
    }

    /// The level of an arriving request.
    fn level(&mut self, now: Instant, target: &Target) -> GivenLevel {
        let standing = standing(&self.shared, now, target);
        let query = LevelQuery { class: target.class, client: target.client, standing };
        let mut level = level(&self.shared, query, &mut self.random);
        // In a class with a deadline the unfinished work decides whether a request is served; the level only how well.
        if level == 0 && self.shared.classes[usize::from(target.class)].terms.deadline.is_some() {
            level = 1;
        }
        if standing != Standing::Guaranteed {
            self.counters.classes[usize::from(target.class)].decided[usize::from(level)].add(1);
        }
        GivenLevel { query, level }
    }

    /// Admits a request of this level, or refuses it: for its level, or because it would miss its deadline.
    fn admit(&self, target: &Target, given: GivenLevel, permit: &mut Permit) -> Result<(), Refusal> {
        if given.level == 0 && self.shared.mode == Mode::Control {
            return Err(self.refusal(Reason::Overload));
        }
        if self.shared.plants[permit.plant()].has_deadlines {
            self.admit_in_time(target, given.query.standing, permit)?;
        }
        Ok(())
    }

    /// Reserves the work of a request, and refuses a request that would be late. In observe mode a refusal is only
    /// written down.
    #[inline(never)]
    fn admit_in_time(&self, target: &Target, standing: Standing, permit: &mut Permit) -> Result<(), Refusal> {
        let shared: &PublishedState = &self.shared;
        let class = &shared.classes[usize::from(target.class)];
        let plant = &shared.plants[permit.plant()];
        let (Some(estimates), true) = (&class.estimates, shared.mode != Mode::Off) else { return Ok(()) };
        let Target { request_type, announced_us, blocks, .. } = *target;
        let features = CostFeatures { request_type, announced_us, blocks };
        let workers = plant.workers(Some(permit.arrived));
        let cost = estimates.cost(features, permit.level);
        if announced_us > 0 || blocks > 0 {
            estimates.saw(cost, &class.terms);
        }
        let work = plant.unfinished.reserve(permit.arrived, class.rank(standing), features, cost);
        permit.work = Some(work);
        let headroom = estimates.headroom(&class.terms, workers.all);
        let wait = match plant.unfinished.admits(&work, headroom, workers, &class.terms) {
            Err(wait) if !target.exempt => wait,
            _ => return Ok(()),
        };
        // A request of a type that is refused for its cost alone is let in now and then, to learn whether it still costs that.
        if wait.is_none() && estimates.is_invited(features, permit.level) {
            return Ok(());
        }
        estimates.refuse(features, permit.level, wait.is_none());
        if shared.mode == Mode::Observe {
            permit.reason = Reason::Deadline;
            return Ok(());
        }
        forget(plant, permit.work);
        Err(Refusal { reason: Reason::Deadline, retry_after: wait.unwrap_or(shared.retry_after) })
    }

    fn refusal(&self, reason: Reason) -> Refusal {
        Refusal { reason, retry_after: self.shared.retry_after }
    }

    /// Accounts a request that is turned away.
    fn reject(&self, target: &Target, Refusal { reason, retry_after }: Refusal) -> Arrival {
        let counters = &self.counters.classes[usize::from(target.class)];
        counters.reasons[reason as usize].add(1);
        counters.unserved.add(1);
        Arrival::Reject { reason, retry_after }
    }
}

/// The standing of an arriving request. A request inside its site's contract is served at the highest level, whatever
/// the loop says.
#[inline]
fn standing(shared: &PublishedState, now: Instant, target: &Target) -> Standing {
    match &shared.classes[usize::from(target.class)].contract {
        _ if target.exempt => Standing::Exempt,
        None => Standing::Ordinary,
        Some(contract) => contracted(contract, shared.mode, now),
    }
}

/// A function of its own, so that the path of requests without a contract stays short.
#[inline(never)]
fn contracted(contract: &TokenBucket, mode: Mode, now: Instant) -> Standing {
    if mode != Mode::Off && contract.arrive(now) { Standing::Guaranteed } else { Standing::Ordinary }
}

/// The level, 0..=M, that the service level of its class gives a request now.
pub(super) fn level(shared: &PublishedState, query: LevelQuery, random: &mut Random) -> u8 {
    let class = &shared.classes[usize::from(query.class)];
    if query.standing != Standing::Ordinary || shared.mode == Mode::Off {
        return class.top_level;
    }
    let by_chance = class.choice == Choice::Random || class.words.is_heavy(query.client);
    let place = if by_chance { random.bits() & (FRACTION_ONE - 1) } else { query.client };
    class.words.level.get().level_of(place).min(class.top_level)
}

/// A permit at the level that was decided; at the highest one where the mode is not to control.
pub(super) fn permit(shared: &PublishedState, arrived: Instant, query: LevelQuery, decided: u8) -> Permit {
    let class = &shared.classes[usize::from(query.class)];
    let level = if shared.mode == Mode::Control { decided } else { class.top_level };
    Permit {
        class: query.class,
        plant: class.plant_of_level[usize::from(level)],
        level,
        reason: reason(decided, class.top_level, query.standing),
        stage: Stage::InService,
        metered: class.contract.is_some() && query.standing != Standing::Exempt,
        counted: class.quota.is_some() && query.standing != Standing::Exempt,
        work: None,
        generation: shared.generation,
        in_service_at_start: 0,
        arrived,
        started: arrived,
    }
}
