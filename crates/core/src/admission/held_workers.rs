//! The workers that requests hold for longer than a request with some deadline can wait.
//!
//! Some requests are known to take long when they start. Others show it by their age only: of a type whose requests take 20 ms,
//! and one in a hundred of them five seconds, most requests in service are long ones, though the mean says nothing of them. So
//! requests in service are counted by the time of their start. The ones that have been in service for [`OLD`] of the deadline
//! are *old*. What is left of an old request is learned from those that ended; if that is at least a deadline, an old request
//! holds its worker as a long one does. Until an old request has ended, the first one counts as long, and the others only once
//! there have been old ones for a whole deadline: if a server stands still for a moment, all its requests become old at once.
//!
//! A waiting request may find all workers held by requests before it. So the number of requests that will hold a worker is
//! learned too, for each unit of work with a deadline.
//!
//! A request counts at its start for each deadline that is promised then, and at its end for each of these deadlines that still
//! is. The deadlines of a plant are numbered in the order in which they were promised, and a request keeps how many there were.
//! So a reload may take away a deadline at any time, whatever is in service.
//!
//! The counts are in a ring of words by start time, each with the number of its part of time. A word that is used again
//! gives what it held to the count of old requests, so no timer is needed, and a request that ends knows by its start where
//! it was counted.

use crate::admission::expected_wait::{Free, until_free};
use crate::admission::rank_work::Sum;
use crate::admission::residual_work::ResidualWork;
use crate::admission::unfinished_work::Workers;
use crate::request::work::Work;
use crate::time::Instant;
use alloc::{sync::Arc, vec::Vec};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The held workers of a plant, by deadline.
#[derive(Clone, Default)]
pub(crate) struct HeldByDeadline {
    /// In the order of their numbers.
    by_deadline: Vec<Arc<HeldWorkers>>,
    /// How many deadlines were ever promised.
    ever: u32,
}

/// The requests in service at a plant, as requests with one relative deadline see them.
pub(crate) struct HeldWorkers {
    pub(crate) deadline_ns: u64,
    /// How many deadlines were promised before this one. The number is unique, whatever is promised and withdrawn.
    pub(crate) number: u32,
    /// The length of a part of time, and the age at which a request is old.
    width_ns: u64,
    old_us: u64,
    /// The requests that are known to outlast the deadline: their number, their residual work cut as the plant counts it, and
    /// their whole residual work.
    long: AtomicU32,
    long_work: ResidualWork,
    long_whole: ResidualWork,
    /// The other requests by their start: in each word the number of a part of time above, and their count below.
    by_start: [AtomicU64; PARTS],
    /// The requests that started before the parts of the ring.
    old: AtomicU32,
    /// What old requests took beyond [`OLD`] of the deadline until they ended (us), and its square.
    beyond: Sum,
    /// The time beyond (us) of those old requests that have a deadline themselves.
    beyond_due: AtomicU64,
    /// The mean residual life of an old request (us). 0: it is not known.
    life_us: AtomicU32,
    /// How many requests with a deadline become old for each microsecond of work that starts (f32 bits).
    per_work: AtomicU32,
}

/// The requests in service at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Holding {
    /// The workers that long and old requests hold.
    pub(super) workers: u32,
    /// The residual work (us) of the requests that are known to be long, and its variance: as the plant counts it; and with
    /// their whole times.
    pub(super) counted: (f64, f64),
    pub(super) known: (f64, f64),
    /// The old requests among those that are not known to be long, and the number of all those.
    pub(super) old: u32,
    pub(super) others: u32,
    /// The mean residual life of an old request (us).
    pub(super) life_us: f64,
    /// The number of requests that will hold their workers in each microsecond of work.
    pub(super) per_work: f64,
}

/// Workers, and the residual work at them (us) with its variance.
type Serving = (f64, (f64, f64));

/// The workers that a request waits for, when the first of them is free, and the variance of the residual work at them.
pub(super) struct FreeWorkers {
    pub(super) free: Free,
    pub(super) workers: f64,
    pub(super) serving_variance: f64,
}

const PARTS: usize = 8;
/// The part of a deadline after which a request in service is old.
const OLD: f64 = 0.25;
/// The longest time beyond that age that counts (us), so that squares do not wrap.
const MOST_BEYOND_US: u64 = 1 << 30;

impl HeldByDeadline {
    /// Keeps these deadlines, and no others.
    pub(super) fn follow(&mut self, deadlines: impl Iterator<Item = u64> + Clone) {
        self.by_deadline.retain(|held| deadlines.clone().any(|kept| kept == held.deadline_ns));
        for deadline_ns in deadlines {
            if self.index_of(deadline_ns).is_none() {
                self.by_deadline.push(Arc::new(HeldWorkers::new(deadline_ns, self.ever)));
                self.ever += 1;
            }
        }
    }

    pub(super) fn index_of(&self, deadline_ns: u64) -> Option<usize> {
        self.by_deadline.iter().position(|held| held.deadline_ns == deadline_ns)
    }

    pub(crate) fn all(&self) -> &[Arc<HeldWorkers>] {
        &self.by_deadline
    }

    /// Counts the start of a request.
    pub(super) fn start(&self, now: Instant, work: &mut Work) {
        work.deadlines_before = self.ever as u16;
        self.by_deadline.iter().for_each(|held| held.start(now, work));
    }

    /// Counts the end of a request; `due`: the request has a deadline.
    pub(super) fn finish(&self, started: Instant, work: &Work, (took_us, due): (u64, bool)) {
        // This thread's promises may be older or newer than those at the start, by fewer deadlines than the bits distinguish.
        let newer = (self.ever as u16).wrapping_sub(work.deadlines_before).cast_signed();
        let before = self.ever.wrapping_add_signed(-i32::from(newer));
        let counted = self.by_deadline.iter().take_while(|held| held.number < before);
        counted.for_each(|held| held.finish(started, work, (took_us, due)));
    }
}

impl HeldWorkers {
    pub(crate) fn new(deadline_ns: u64, number: u32) -> Self {
        let old_ns = deadline_ns as f64 * OLD;
        HeldWorkers {
            deadline_ns,
            number,
            width_ns: (old_ns / PARTS as f64).max(1.0) as u64,
            old_us: (old_ns / 1e3) as u64,
            long: AtomicU32::new(0),
            long_work: ResidualWork::default(),
            long_whole: ResidualWork::default(),
            by_start: Default::default(),
            old: AtomicU32::new(0),
            beyond: Sum::default(),
            beyond_due: AtomicU64::new(0),
            life_us: AtomicU32::new(0),
            per_work: AtomicU32::new(0),
        }
    }

    /// The number of the part of time that an instant is in.
    fn part(&self, at: Instant) -> u32 {
        (at.as_nanos() / self.width_ns) as u32
    }

    pub(super) fn start(&self, now: Instant, work: &Work) {
        if work.outlasts_ns(self.deadline_ns) {
            self.long.fetch_add(1, Relaxed);
            self.long_work.start(now, work);
            return self.long_whole.start(now, &work.whole());
        }
        let part = self.part(now);
        let mut gone = 0;
        let count = |word: u64| {
            let (known, count) = parts(word);
            gone = 0;
            if known == part {
                return Some(word + 1);
            }
            // If the thread was held up, its part of time may be older than the ring.
            let is_late = known.wrapping_sub(part) < u32::MAX / 2 && count > 0;
            gone = if is_late { 1 } else { count };
            (!is_late).then_some(u64::from(part) << 32 | 1)
        };
        _ = self.by_start[part as usize % PARTS].fetch_update(Relaxed, Relaxed, count);
        if gone > 0 {
            self.old.fetch_add(gone, Relaxed);
        }
    }

    /// Ends a request; `due`: it has a deadline.
    pub(super) fn finish(&self, started: Instant, work: &Work, (took_us, due): (u64, bool)) {
        if work.outlasts_ns(self.deadline_ns) {
            self.long.fetch_sub(1, Relaxed);
            self.long_work.finish(started, work);
            return self.long_whole.finish(started, &work.whole());
        }
        let part = self.part(started);
        let word = &self.by_start[part as usize % PARTS];
        let count = |word: u64| (parts(word).0 == part && parts(word).1 > 0).then(|| word - 1);
        if word.fetch_update(Relaxed, Relaxed, count).is_err() {
            self.old.fetch_sub(1, Relaxed);
        }
        let beyond_us = took_us.saturating_sub(self.old_us).min(MOST_BEYOND_US);
        if beyond_us > 0 {
            self.beyond.add((beyond_us, beyond_us.saturating_mul(beyond_us)));
            if due {
                self.beyond_due.fetch_add(beyond_us, Relaxed);
            }
        }
    }

    /// The requests in service now; without a clock, as of the last start.
    pub(super) fn holding(&self, now: Option<Instant>) -> Holding {
        let (old, young) = self.by_age(now);
        let long = self.long.load(Relaxed);
        let deadline_us = self.deadline_ns as f64 / 1e3;
        let (hold, life_us, per_work) = match f64::from(self.life_us.load(Relaxed)) {
            0.0 => (old.min(1), deadline_us, 0.0),
            life_us if life_us < deadline_us => (0, life_us, 0.0),
            life_us => (old, life_us, f32::from_bits(self.per_work.load(Relaxed)).into()),
        };
        Holding {
            workers: long + hold,
            counted: if long > 0 { self.long_work.at(now) } else { (0.0, 0.0) },
            known: if long > 0 { self.long_whole.at(now) } else { (0.0, 0.0) },
            old: hold,
            others: old + young,
            life_us,
            per_work,
        }
    }

    /// The old requests in service, and the others.
    fn by_age(&self, now: Option<Instant>) -> (u32, u32) {
        // A thread may be between the two counts of a request.
        let (mut old, mut young) = ((self.old.load(Relaxed) as i32).max(0) as u32, 0);
        let newest = now.map(|now| self.part(now));
        for word in &self.by_start {
            let (part, count) = parts(word.load(Relaxed));
            let is_old = newest.is_some_and(|newest| newest.wrapping_sub(part) as i32 >= PARTS as i32);
            *(if is_old { &mut old } else { &mut young }) += count;
        }
        (old, young)
    }

    /// Whether any request is counted here.
    #[cfg(all(test, not(loom)))]
    pub(super) fn is_used(&self) -> bool {
        let young = self.by_start.iter().map(|word| parts(word.load(Relaxed)).1 as i32);
        (self.long.load(Relaxed), self.old.load(Relaxed) as i32 + young.sum::<i32>()) != (0, 0)
    }

    /// Whether an old request is in service.
    pub(crate) fn has_old(&self, now: Instant) -> bool {
        self.by_age(Some(now)).0 > 0
    }

    /// All that old requests ever took beyond the time at which they became old (us), and the squares.
    pub(crate) fn beyond(&self) -> (u64, u64) {
        self.beyond.get()
    }

    /// The time beyond (us) of all old requests that had a deadline.
    pub(crate) fn beyond_due(&self) -> u64 {
        self.beyond_due.load(Relaxed)
    }

    /// Sets the mean residual life of an old request.
    pub(crate) fn set_life(&self, us: f64) {
        self.life_us.store(us as u32, Relaxed);
    }

    /// Sets how many requests become old for each microsecond of work.
    pub(crate) fn set_per_work(&self, requests: f64) {
        self.per_work.store((requests as f32).to_bits(), Relaxed);
    }
}

impl Holding {
    /// When a worker is free for a request with this deadline, behind work (us) whose requests have the mean residual life
    /// `life`. It is one of the workers that no request holds, or one of all workers, whichever is free sooner: if requests of
    /// a whole deadline on average hold seven of eight workers, one of the seven ends long before the eighth worker has done
    /// the work ahead.
    pub(super) fn until_free(&self, workers: &Workers, ahead: f64, life: f64) -> FreeWorkers {
        let until = |(workers, (serving, serving_variance)): Serving| FreeWorkers {
            free: until_free(ahead, serving, life, workers),
            workers,
            serving_variance,
        };
        let all = until(self.all_workers(workers));
        match self.unheld_workers(workers).map(until) {
            Some(unheld) if unheld.free.after <= all.free.after => unheld,
            _ => all,
        }
    }

    /// The workers that no long or old request holds, if some are held and some are not, and what they serve.
    fn unheld_workers(&self, workers: &Workers) -> Option<Serving> {
        let all = workers.all.max(1);
        (0 < self.workers && self.workers < all).then(|| (f64::from(all - self.workers), self.young(workers)))
    }

    /// All workers and what they serve, with the whole times of the requests that hold them.
    fn all_workers(&self, workers: &Workers) -> Serving {
        let all = f64::from(workers.all.max(1));
        if self.workers == 0 {
            return (all, workers.left);
        }
        let ((left, variance), old) = (self.young(workers), f64::from(self.old));
        let held = self.known.0 + old * self.life_us;
        let varies = self.known.1 + old * self.life_us * self.life_us;
        (all, (left + held, variance + varies))
    }

    /// The residual work of the young requests, which hold no worker: what their types take on average.
    fn young(&self, workers: &Workers) -> (f64, f64) {
        let young = (1.0 - f64::from(self.old) / f64::from(self.others.max(1))).max(0.0);
        let left = young * (workers.left.0 - self.counted.0).max(0.0);
        (left, young * (workers.left.1 - self.counted.1).max(0.0))
    }

    /// The work that waits in the server (us), and its variance. A request that is known to be long has a worker.
    pub(super) fn queued(&self, workers: &Workers) -> (f64, f64) {
        let all = workers.left.0 + workers.queued.0;
        let others = (1.0 - self.counted.0 / all.max(1.0)).max(0.0);
        (others * workers.queued.0, others * workers.queued.1)
    }
}

fn parts(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::request::work::Cost;
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(90_000 + ms)
    }

    fn counts(held: &HeldWorkers, ms: u64) -> (u32, u32) {
        let holding = held.holding(Some(at(ms)));
        (holding.workers, holding.others)
    }

    #[test]
    fn a_request_holds_its_worker_once_it_is_old() {
        let held = HeldWorkers::new(1_600_000_000, 0);
        let work = Work::of(Cost { mean_us: 20_000, deviation_us: 20_000 });
        held.start(at(0), &work);
        (1..=40).for_each(|n| held.start(at(20 * n), &work));
        assert_eq!(counts(&held, 810), (1, 41), "only one of them, while nothing is known of such requests");
        held.set_life(1_600_000.0);
        assert_eq!(counts(&held, 810), (23, 41));
        assert_eq!(counts(&held, 3000), (41, 41), "without a start they become old too");
        held.finish(at(0), &work, (3_000_000, true));
        (30..=40).for_each(|n| held.finish(at(20 * n), &work, (20_000, true)));
        assert_eq!(counts(&held, 3000), (29, 29));
        assert_eq!(held.beyond().0, 2_600_000);
        (1..30).for_each(|n| held.finish(at(20 * n), &work, (20_000, true)));
        assert_eq!(counts(&held, 3000), (0, 0));
        held.set_life(700_000.0);
        held.start(at(4000), &work);
        assert_eq!(counts(&held, 6000), (0, 1), "those that end soon hold no worker");
    }

    #[test]
    fn what_is_known_to_be_long_is_left_with_its_whole_time() {
        let held = HeldWorkers::new(500_000_000, 0);
        let work = Work { stretch: 160, ..Work::of(Cost { mean_us: 500_000, deviation_us: 0 }) };
        held.start(at(0), &work);
        let holding = held.holding(Some(at(4000)));
        assert_eq!((holding.workers, holding.others, holding.known.0), (1, 0, 1_000_000.0));
        held.finish(at(0), &work, (10_000_000, true));
        assert_eq!(held.holding(Some(at(4000))).workers, 0);
    }
}
