//! The part of a plant that higher ranks take.

use super::accepted_lateness::{LatenessLaw, SeenRank};
use crate::admission::held_workers::HeldWorkers;
use crate::admission::rank_work::{HigherRanks, OwnLoad, RankWork};
use crate::admission::slot_key::SlotKey;
use crate::admission::unfinished_work::{SlotOf, UnfinishedWork};
use crate::scheduling::quota::WORKER;
use crate::time::Instant;
use alloc::{sync::Arc, vec::Vec};
use libm::sqrt;

/// The rates at which ranks bring work to a plant.
#[derive(Default)]
pub(crate) struct PlantRates {
    slots: Vec<SlotRates>,
    held: Vec<HeldRates>,
}

/// The service of requests beyond a quarter of the deadline, after which their workers count as held
/// (`admission/held_workers.rs`).
#[derive(Default)]
struct HeldRates {
    /// The number of the deadline.
    number: u32,
    last: [u64; 2],
    last_due: u64,
    /// The recent sum of this service (us), and that of its squares.
    sums: [f64; 2],
    /// For how long old requests have been in service, until the first of them ends (us).
    running: f64,
    /// For requests with a deadline: the recent service of old ones beyond that age, and the recent work that was started (us).
    lately: [f64; 2],
}

/// The load of some ranks on a plant, as a part of its workers.
#[derive(Clone, Copy, Default)]
struct Taken {
    /// The load as a short and as a long mean.
    fast: f64,
    slow: f64,
    /// The variance of the work that the ranks bring in a unit of time (us), by both means.
    noise: [f64; 2],
    /// The part since the previous sample alone, not smoothed.
    latest: f64,
    /// The time between two looks.
    seconds: f64,
}

/// How much the work that higher ranks bring varies from one pair of looks to another.
#[derive(Clone, Copy, Default)]
struct Dispersion {
    last: f64,
    variance: f64,
}

/// The rates of one rank.
#[derive(Clone)]
struct SlotRates {
    of: SlotKey,
    /// Started work (us), the sum of its squares (us^2), and the number of its requests at the last step.
    last: [u64; 3],
    /// The rates of these three (1/s), as a short and as a long mean.
    fast: [f64; 3],
    slow: [f64; 3],
    /// The refused work (us) at the last step, and the part of the work that is refused.
    last_refused: u64,
    refused: f64,
    /// The work that was started since the last look (us).
    started: f64,
    higher: Dispersion,
    lateness: LatenessLaw,
}

/// The gains of the short and the long mean.
const FAST: f64 = 0.5;
const SLOW: f64 = 0.1;
/// The short mean counts once it is this many deviations above the long one.
const RISEN: f64 = 2.5;
/// The part of the sums of old requests that is forgotten whenever one ended, and the gain of the means of their service and of
/// started work.
const HELD: f64 = 1.0 / 64.0;
/// The gain of the variance between looks.
const VARIED: f64 = 0.02;
/// With Poisson arrivals, the variance that is found is above the true one by up to this factor, by chance.
const BY_CHANCE: f64 = 1.3;
/// The gain of the mean of refusals.
const REFUSED: f64 = 0.2;

impl PlantRates {
    /// Takes the work started in the last `seconds`, and publishes to each rank the part that higher ranks take. If the short
    /// mean exceeds the long one by more than chance, it replaces the long one, so that a rising load shows at once; its larger
    /// uncertainty is published with it.
    pub(crate) fn follow(
        &mut self,
        unfinished: &UnfinishedWork,
        (now, seconds): (Instant, f64),
        workers: u32,
    ) {
        let slots = unfinished.slots();
        self.follow_slots(slots);
        for (of, own) in slots.iter().zip(&mut self.slots) {
            let started = of.slot.started();
            own.follow_refusals(&of.slot, started[0]);
            for (index, now) in started.into_iter().enumerate() {
                let rate = now.wrapping_sub(own.last[index]) as f64 / seconds;
                own.fast[index] += FAST * (rate - own.fast[index]);
                own.slow[index] += SLOW * (rate - own.slow[index]);
                own.last[index] = now;
            }
            let [work, squares, starts] = own.slow;
            of.slot.set_service(squares / work.max(1.0) / 2.0, work / starts.max(f64::MIN_POSITIVE));
        }
        let due = slots.iter().zip(&self.slots).filter(|(of, _)| of.key.rank.deadline_ns < u64::MAX);
        let started = due.map(|(_, own)| own.slow[0]).sum::<f64>() * seconds;
        self.follow_held(unfinished, (now, seconds), started);
        let s = f64::from(workers.max(1));
        let load: f64 = self.slots.iter().map(|own| own.fast[0].max(own.slow[0]) * 1e-6).sum();
        unfinished.set_unused_workers((s - load).max(0.0));
        let taken: Vec<Taken> =
            slots.iter().zip(&self.slots).map(|(of, own)| own.taken(of, s, seconds)).collect();
        for ((of, own), rates) in slots.iter().zip(&taken).zip(&mut self.slots) {
            let mut higher = Taken { seconds, ..Taken::default() };
            let (mut before, mut after) = (own.most(), 0.0);
            for (other, its) in slots.iter().zip(&taken).filter(|(other, _)| !core::ptr::eq(*other, of)) {
                if other.is_before(of) {
                    higher.add(its);
                }
                if other.is_before(of) || other.is_beside(of) {
                    before += its.most();
                } else {
                    after += its.part();
                }
            }
            let part = higher.part();
            let noise_us = higher.noise_us().max(rates.higher.step(&higher));
            let unsure = higher.unsure(if higher.has_risen() { FAST } else { SLOW });
            of.slot.set_higher_ranks(&HigherRanks { part: part.min(1.0), noise_us, unsure });
            let unused = (1.0 - before).max(0.0);
            let seen = SeenRank {
                seconds,
                started_us: rates.started,
                refused_us: of.slot.headroom.refused_us(),
                room: unused.min(after),
                is_served: of.slot.is_served(),
            };
            rates.lateness.step(&of.slot.lateness, &seen);
            of.slot.set_load(&OwnLoad {
                part: own.part(),
                noise_us: own.noise_us(),
                unused,
                refused: rates.refused,
            });
        }
    }

    /// A slot that a reload gave to another rank begins anew.
    fn follow_slots(&mut self, slots: &[SlotOf]) {
        for (index, of) in slots.iter().enumerate() {
            match self.slots.get_mut(index) {
                Some(known) if known.of == of.key => {}
                Some(other) => *other = SlotRates::since_now(of),
                None => self.slots.push(SlotRates::new(of)),
            }
        }
    }

    /// Keeps the sums of deadlines that stay, which are known by their numbers.
    fn follow_deadlines(&mut self, held: &[Arc<HeldWorkers>]) {
        let numbers = held.iter().map(|held| held.number);
        if !self.held.iter().map(|own| own.number).eq(numbers.clone()) {
            let mut before = core::mem::take(&mut self.held);
            let own = |number: u32| match before.iter().position(|known| known.number == number) {
                Some(index) => before.swap_remove(index),
                None => HeldRates { number, ..HeldRates::default() },
            };
            self.held = numbers.map(own).collect();
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn lengths(&self) -> [(&'static str, usize); 2] {
        [("rates", self.slots.len()), ("held rates", self.held.len())]
    }

    /// Learns the residual service of requests that have been in service for long.
    fn follow_held(&mut self, unfinished: &UnfinishedWork, time: (Instant, f64), started: f64) {
        let held = unfinished.held().all();
        self.follow_deadlines(held);
        held.iter().zip(&mut self.held).for_each(|(held, own)| own.follow(held, time, started));
    }
}

impl HeldRates {
    fn follow(&mut self, held: &HeldWorkers, (now, seconds): (Instant, f64), started: f64) {
        let deadline_us = held.deadline_ns as f64 / 1e3;
        let (sum, squares) = held.beyond();
        let last = core::mem::replace(&mut self.last, [sum, squares]);
        let came = [sum.wrapping_sub(last[0]), squares.wrapping_sub(last[1])];
        let due = held.beyond_due();
        let came_due = due.wrapping_sub(core::mem::replace(&mut self.last_due, due));
        for (known, came) in self.lately.iter_mut().zip([came_due as f64, started]) {
            *known += HELD * (came - *known);
        }
        let has_ended = sum != last[0];
        if self.sums[0] <= 0.0 {
            if !has_ended {
                // Until an old request has ended, the residual life counts as unknown while old requests have been in service
                // for less than a deadline, and is then taken as the time for which they have been in service.
                self.running += if held.has_old(now) { seconds * 1e6 } else { 0.0 };
                held.set_life(if self.running < deadline_us { 0.0 } else { self.running });
                return;
            }
            // The first old request that ends is weighed against one imagined request, which alone gives a mean residual life
            // of one deadline.
            self.sums = [deadline_us, 2.0 * deadline_us * deadline_us];
        }
        if has_ended {
            for (known, came) in self.sums.iter_mut().zip(came) {
                *known += came as f64 - HELD * *known;
            }
        }
        let life_us = self.sums[1] / self.sums[0] / 2.0;
        held.set_life(life_us);
        held.set_per_work(self.lately[0] / self.lately[1].max(1.0) / life_us.max(1.0));
    }
}

impl Dispersion {
    /// The variance of the work that was brought in a unit of time (us), by the work itself: arrivals in bursts bring work more
    /// unevenly than Poisson arrivals of the same requests do.
    fn step(&mut self, brought: &Taken) -> f64 {
        let beyond = 0.5 * (self.last + brought.latest) - brought.slow;
        self.last = brought.latest;
        self.variance += VARIED * (beyond * beyond * 2.0 * brought.seconds - self.variance);
        self.variance / BY_CHANCE * 1e6
    }
}

impl Taken {
    /// Whether the short mean exceeds the long one by more than chance, so that it replaces the long one.
    fn has_risen(&self) -> bool {
        self.fast - self.slow > RISEN * self.unsure(FAST)
    }

    fn part(&self) -> f64 {
        if self.has_risen() { self.fast } else { self.slow }
    }

    fn most(&self) -> f64 {
        self.fast.max(self.slow)
    }

    fn noise_us(&self) -> f64 {
        self.noise[0].max(self.noise[1])
    }

    fn unsure(&self, gain: f64) -> f64 {
        sqrt(self.noise_us() * 1e-6 / self.seconds * gain / (2.0 - gain))
    }

    fn add(&mut self, other: &Taken) {
        self.seconds = other.seconds;
        (self.fast, self.slow) = (self.fast + other.fast, self.slow + other.slow);
        self.latest += other.latest;
        self.noise = [self.noise[0] + other.noise[0], self.noise[1] + other.noise[1]];
    }
}

impl SlotRates {
    fn new(of: &SlotOf) -> Self {
        SlotRates {
            of: of.key,
            last: [0; 3],
            fast: [0.0; 3],
            slow: [0.0; 3],
            last_refused: 0,
            refused: 0.0,
            started: 0.0,
            higher: Dispersion::default(),
            lateness: LatenessLaw::default(),
        }
    }

    /// The rates of a rank that begins now: the counts of another rank in the slot are left out.
    fn since_now(of: &SlotOf) -> Self {
        let refused = of.slot.headroom.refused_us();
        let lateness = LatenessLaw::since_now(&of.slot.lateness, refused);
        SlotRates { last: of.slot.started(), last_refused: refused, lateness, ..SlotRates::new(of) }
    }

    /// The load of the rank as a part of this number of workers. A class with a quota takes no more than its quota before
    /// others.
    fn taken(&self, of: &SlotOf, workers: f64, seconds: f64) -> Taken {
        let quota = of.quota.as_ref().map_or(f64::INFINITY, |quota| {
            let (whole, part) = quota.workers();
            f64::from(whole) + f64::from(part) / f64::from(WORKER)
        });
        let used = self.fast[0].max(self.slow[0]) * 1e-6;
        let within = if used > quota { quota / used } else { 1.0 };
        let part = |rate: f64| within * rate * 1e-6 / workers;
        // With compound Poisson arrivals the variance of the work in a time w is w times the rate of squares, and s workers
        // share it.
        let noise = |rate: f64| part(rate) / workers;
        Taken {
            fast: part(self.fast[0]),
            slow: part(self.slow[0]),
            latest: part(self.started / seconds),
            noise: [noise(self.fast[1]), noise(self.slow[1])],
            seconds,
        }
    }

    /// Learns which part of the rank's work is refused.
    fn follow_refusals(&mut self, slot: &RankWork, started: u64) {
        let all = slot.headroom.refused_us();
        let refused = all.wrapping_sub(self.last_refused) as f64;
        let admitted = started.wrapping_sub(self.last[0]) as f64;
        self.started = admitted;
        self.last_refused = all;
        if refused + admitted > 0.0 {
            self.refused += REFUSED * (refused / (refused + admitted) - self.refused);
        }
        slot.headroom.follow(self.refused);
    }
}
