//! Unfinished work: what a plant has taken on and not yet done, by which `deadline.rs` admits requests.
//!
//! Waiting work is summed by *slot*, one for each rank (priority and relative deadline). Work in service is one sum
//! ([`ResidualWork`]). The wait that follows from them is in `expected_wait.rs`. Within a priority the earlier deadline goes
//! first. So of the work with a longer deadline only the part that is older than the difference of the two deadlines is
//! ahead of a request.
//!
//! A request in service that is expected to take longer than the whole deadline of a slot holds its worker for as long as
//! requests of that slot can wait. For them there is one worker less, and its residual work is not in the sum: a download
//! of ten seconds delays a page by no more than the worker that it holds. Its start tells the slots that it matters to.
//!
//! Every sum has a sum of variances beside it, because actual service times, not expected ones, keep a promise. The work
//! of a request is reserved once, moves into service once, and is finished once. Its permit keeps the amounts that were
//! added, so that the sums return to zero whatever was learned meanwhile.

use crate::admission::aces::budget::Budget;
use crate::admission::expected_wait::{Wait, until_free};
use crate::admission::headroom::Headroom;
use crate::admission::residual_work::ResidualWork;
use crate::admission::rule::AdmissionRule;
use crate::promises::Control;
use crate::request::work::{Cost, CostFeatures, Work};
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The unfinished work of a plant, and the rule that admits by it.
#[derive(Clone, Default)]
pub(crate) struct UnfinishedWork {
    /// By slot number, for life.
    slots: Vec<(Rank, Arc<Slot>)>,
    residual: Arc<ResidualWork>,
    /// The workers that no request uses, on average of late, in thousandths.
    unused: Arc<AtomicU32>,
    pub(super) rule: AdmissionRule,
    /// The shortest deadline of the slots (us).
    shortest_us: u64,
}

/// Work (us) and its variance (us^2).
#[derive(Default)]
pub(crate) struct Sum {
    work_us: AtomicU64,
    variance_us2: AtomicU64,
}

/// The work of one rank.
#[derive(Default)]
pub(crate) struct Slot {
    waiting: Sum,
    /// The requests in service that take longer than the deadline of this slot, and their work.
    long: AtomicU32,
    long_work: ResidualWork,
    pub(crate) headroom: Headroom,
    /// All work that was ever started (us), and, instead of the variance, its sum of squares.
    started: Sum,
    /// The part of the plant that higher ranks take, in millionths, and the variance of the work that they bring in a unit of
    /// time (us).
    taken: AtomicU32,
    noise_us: AtomicU32,
    /// The standard error of that part, in millionths.
    unsure: AtomicU32,
    /// The mean residual life of this rank's requests in service (us): `E[S^2] / (2 E[S])`.
    life_us: AtomicU32,
}

/// What higher ranks take of a plant.
pub(crate) struct HigherRanks {
    /// The part of the plant's workers.
    pub(crate) part: f64,
    /// The variance of the work that they bring in a unit of time (us).
    pub(crate) noise_us: f64,
    /// The standard error of the part.
    pub(crate) unsure: f64,
}

/// The workers of a plant at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    /// s, the number of workers.
    pub(crate) all: u32,
    /// Whether a worker is free and no request waits.
    pub(crate) idle: bool,
    /// The residual work of the requests in service (us), and its variance.
    pub(crate) left: (f64, f64),
    /// The moment, if it is known, and whether no request was in service or waiting.
    pub(crate) at: Option<Instant>,
    pub(crate) empty: bool,
}

impl Sum {
    pub(crate) fn add(&self, (work_us, variance_us2): (u64, u64)) {
        self.work_us.fetch_add(work_us, Ordering::Relaxed);
        self.variance_us2.fetch_add(variance_us2, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, (work_us, variance_us2): (u64, u64)) {
        self.work_us.fetch_sub(work_us, Ordering::Relaxed);
        self.variance_us2.fetch_sub(variance_us2, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> (u64, u64) {
        (self.work_us.load(Ordering::Relaxed), self.variance_us2.load(Ordering::Relaxed))
    }
}

impl UnfinishedWork {
    /// Adds a slot for each new rank, and changes to the admission law that the promises choose.
    pub(crate) fn follow(&mut self, control: &Control, ranks: impl Iterator<Item = Rank>) {
        let ranks: Vec<Rank> = ranks.collect();
        let mut shortest_ns = u64::MAX;
        for rank in ranks.iter().copied() {
            shortest_ns = shortest_ns.min(rank.deadline_ns);
            if self.slots.iter().all(|(known, _)| *known != rank) {
                self.slots.push((rank, Arc::default()));
            }
        }
        self.shortest_us = shortest_ns / 1000;
        let slots = self.slots.iter().map(|(rank, _)| *rank);
        self.rule.follow(control, slots, &ranks, Duration::from_nanos(shortest_ns));
    }

    /// The budget, if admission goes by it.
    pub(crate) fn budget(&self) -> Option<&Budget> {
        if let AdmissionRule::Budget(budget) = &self.rule { Some(budget) } else { None }
    }

    /// By how many workers fewer than this part of them were used of late.
    pub(super) fn used_below(&self, part: f64, workers: &Workers) -> f64 {
        f64::from(self.unused.load(Ordering::Relaxed)) * 1e-3 - (1.0 - part) * f64::from(workers.all)
    }

    pub(crate) fn set_unused_workers(&self, workers: f64) {
        self.unused.store((workers * 1e3) as u32, Ordering::Relaxed);
    }

    /// The waiting work of one band of ranks (us).
    pub(crate) fn waiting_us(&self, band: u16) -> u64 {
        let own = self.slots.iter().filter(|(rank, _)| rank.band == band);
        own.map(|(_, slot)| slot.waiting.get().0).sum()
    }

    /// The slots of all ranks that ever were, by number.
    pub(crate) fn slots(&self) -> &[(Rank, Arc<Slot>)] {
        &self.slots
    }

    /// The residual work of the requests in service (us), and its variance; without a clock, at the mean age.
    pub(crate) fn in_service(&self, now: Option<Instant>) -> (f64, f64) {
        self.residual.at(now)
    }

    /// Reserves a request's work.
    pub(crate) fn reserve(&self, now: Instant, rank: Rank, features: CostFeatures, cost: Cost) -> Work {
        let slot = self.slots.iter().position(|(known, _)| *known == rank).unwrap_or(0);
        let tag = self.rule.reserve(slot, now, cost.mean_us.into());
        let reserved = Work { slot: slot as u16, tag, told: 0, features, cost };
        self.slots[slot].1.waiting.add(reserved.summand());
        reserved
    }

    /// Gives back the work of a request that will not start.
    pub(crate) fn unreserve(&self, work: &Work) {
        self.slots[usize::from(work.slot)].1.waiting.subtract(work.summand());
        self.rule.unreserve(work.slot.into(), work.tag, work.cost.mean_us.into());
    }

    /// The headroom of the rank of a request whose work is reserved.
    pub(super) fn headroom(&self, work: &Work) -> &Headroom {
        &self.slots[usize::from(work.slot)].1.headroom
    }

    /// Moves the work of a request into service.
    pub(crate) fn start(&self, now: Instant, work: &mut Work) {
        let slot = &self.slots[usize::from(work.slot)].1;
        slot.waiting.subtract(work.summand());
        slot.started.add(work.mean_and_square());
        self.residual.start(now, work);
        if work.outlasts_ns(self.shortest_us.saturating_mul(1000)) {
            work.told = self.slots.len() as u16;
            self.outlasted_by(work).for_each(|slot| {
                slot.long.fetch_add(1, Ordering::Relaxed);
                slot.long_work.start(now, work);
            });
        }
    }

    /// Ends the work of a request that started at `started` and took `took_us` of a worker.
    pub(crate) fn finish(&self, started: Instant, work: &Work, took_us: u64) {
        self.residual.finish(started, work);
        self.outlasted_by(work).for_each(|slot| {
            slot.long.fetch_sub(1, Ordering::Relaxed);
            slot.long_work.finish(started, work);
        });
        self.rule.finish(work.slot.into(), work.tag, (work.cost.mean_us.into(), took_us));
    }

    /// The slots that were told of a long request, whose deadlines it outlasts.
    fn outlasted_by<'a>(&'a self, work: &'a Work) -> impl Iterator<Item = &'a Slot> {
        let told = &self.slots[..usize::from(work.told).min(self.slots.len())];
        told.iter().filter(|(rank, _)| work.outlasts_ns(rank.deadline_ns)).map(|(_, slot)| &**slot)
    }

    /// The workers that are free for a rank within its deadline, at least one, and the residual work at them (us) with its
    /// variance. If long requests hold all workers, their work is waited for as well.
    fn free_workers(&self, own: &Slot, workers: &Workers) -> (f64, (f64, f64)) {
        let (all, long) = (workers.all.max(1), own.long.load(Ordering::Relaxed));
        if long == 0 || long >= all {
            return (f64::from(all), workers.left);
        }
        let held = own.long_work.at(workers.at);
        (f64::from(all - long), ((workers.left.0 - held.0).max(0.0), (workers.left.1 - held.1).max(0.0)))
    }

    /// The wait of a request whose work is reserved (us), its own work not counted.
    pub(super) fn wait(&self, work: &Work, workers: &Workers) -> Wait {
        let (rank, own) = &self.slots[usize::from(work.slot)];
        let (s, serving) = self.free_workers(own, workers);
        let left = 1.0 - f64::from(own.taken.load(Ordering::Relaxed)) * 1e-6;
        let (mut ahead, mut variance, mut lives) = (0.0, 0.0, 0.0);
        for (other, slot) in self.slots.iter().filter(|(other, _)| other.band <= rank.band) {
            let (waiting, its_variance) = slot.waiting.get();
            // Work with a longer deadline that arrived less than the difference of the deadlines ago is served after this
            // request; at most so much time of all workers is of that age.
            let more_ns = other.deadline_ns.saturating_sub(rank.deadline_ns);
            let after = if other.band == rank.band { s * more_ns as f64 / 1e3 } else { 0.0 };
            let before = (waiting as f64 - after).max(0.0);
            ahead += before;
            lives += before * f64::from(slot.life_us.load(Ordering::Relaxed));
            variance += its_variance as f64 * before / waiting.max(1) as f64;
        }
        let (own_us, own_variance) = work.mean_and_variance();
        let life = lives / ahead.max(1.0);
        let ahead = (ahead - own_us as f64).max(0.0);
        let free = until_free(ahead, serving.0, life, s);
        let varies = (variance - own_variance as f64).max(0.0);
        let variance = (varies + free.serving * serving.1) / (s * s) + free.spread * free.spread;
        let third = 2.0 * varies * varies / ahead.max(1.0) / (s * s * s);
        let noise_us = f64::from(own.noise_us.load(Ordering::Relaxed));
        let unsure = f64::from(own.unsure.load(Ordering::Relaxed)) * 1e-6;
        Wait { ahead: free.after, variance, third, left, noise_us, unsure }
    }

    /// The expected wait of a request of this rank now.
    pub(crate) fn wait_of(&self, rank: Rank, workers: Workers) -> Duration {
        let Some(slot) = self.slots.iter().position(|(known, _)| *known == rank) else {
            return Duration::ZERO;
        };
        if workers.idle {
            return Duration::ZERO;
        }
        let nothing = Work {
            slot: slot as u16,
            tag: 0,
            told: 0,
            features: CostFeatures::default(),
            cost: Cost::default(),
        };
        Duration::from_micros(self.wait(&nothing, &workers).expected() as u64)
    }

    /// All work that waits or is in service, in seconds of one worker.
    pub(crate) fn unfinished_seconds(&self) -> f64 {
        let waiting: u64 = self.slots.iter().map(|(_, slot)| slot.waiting.get().0).sum();
        (waiting as f64 + self.residual.about().0) * 1e-6
    }
}

impl Slot {
    /// All that was ever started: work (us) and the sum of squares (us^2).
    pub(crate) fn started(&self) -> (u64, u64) {
        self.started.get()
    }

    pub(crate) fn set_life(&self, us: f64) {
        self.life_us.store(us as u32, Ordering::Relaxed);
    }

    pub(crate) fn set_higher_ranks(&self, higher: &HigherRanks) {
        self.taken.store((higher.part * 1e6) as u32, Ordering::Relaxed);
        self.noise_us.store(higher.noise_us as u32, Ordering::Relaxed);
        self.unsure.store((higher.unsure * 1e6) as u32, Ordering::Relaxed);
    }
}
