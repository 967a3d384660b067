//! Work that a plant has taken on and not done: what admission by deadline looks at (AC 3.1; design.md, *Deadlines*).
//!
//! Waiting work is summed by *slot*: one per rank (priority and relative deadline). What is in service is one sum. With s
//! workers, all of them busy until a request starts, its wait is at most
//!
//! ```text
//! (waiting work of equal and higher ranks + what is left of those in service) / s
//! ```
//!
//! which is the bound of AC's theorem with the residual of what cannot be preempted. What is expected lies below it
//! ([`until_free`]), and that is what decides, with the spread beside it. Higher ranks go on arriving while it
//! waits: they take a share of the workers that `tick` measures, with noise, and the chance that they take so much that it
//! would be late must be small ([`Wait::outlasts`]). Within a priority the earlier deadline goes first, so of a longer
//! deadline only that part is ahead which is older than the difference.
//!
//! What is left of those in service is told by `serving.rs`.
//!
//! Every sum comes with the sum of variances, since a promise is kept by what work turns out to be. A request is reserved
//! once, moves into service once, and leaves once; the numbers that move are kept in its permit, so that the sums return
//! to zero whatever was learned meanwhile. Reserving comes before looking: of two threads at least one sees the other.

use crate::admission::aces::budget::Budget;
use crate::admission::estimates::Headroom;
use crate::admission::law::AdmissionLaw;
use crate::admission::residual_work::ResidualWork;
use crate::promises::Control;
pub(crate) use crate::request::work::Terms;
use crate::request::work::{Cost, CostFeatures, Work};
use crate::scheduling::queue::Rank;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::f64::consts::FRAC_1_SQRT_2;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use libm::{erfc, exp, sqrt};

/// A plant's.
#[derive(Clone, Default)]
pub(crate) struct UnfinishedWork {
    /// By number, for life.
    slots: Vec<(Rank, Arc<Slot>)>,
    residual: Arc<ResidualWork>,
    law: AdmissionLaw,
}

/// Work (us) and its variance (us^2).
#[derive(Default)]
pub(crate) struct Sum {
    work_us: AtomicU64,
    variance_us2: AtomicU64,
}

/// Of one rank.
#[derive(Default)]
pub(crate) struct Slot {
    waiting: Sum,
    /// All that was ever started: work, and in the place of the variance the sum of squares.
    started: Sum,
    /// The part of the plant that higher ranks take, in millionths; and the variance of what they bring, per time (us).
    taken: AtomicU32,
    noise_us: AtomicU32,
    /// How far off that part may be, one deviation, in millionths.
    unsure: AtomicU32,
}

/// What higher ranks take of a plant.
pub(crate) struct Taken {
    /// Their part of it.
    pub(crate) part: f64,
    /// The variance of what they bring, per time (us).
    pub(crate) noise_us: f64,
    /// The deviation of the part as it is known.
    pub(crate) unsure: f64,
}

/// A plant as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    /// s.
    pub(crate) all: u32,
    /// One of them is free, and nobody waits.
    pub(crate) idle: bool,
    /// What is left of those in service (us), and its variance.
    pub(crate) left: (f64, f64),
    /// When it was so, and whether nobody was in service or waiting.
    pub(crate) at: Instant,
    pub(crate) empty: bool,
}

/// Deviations that are kept free before a deadline. Of sums that are skewed, as of gamma laws, the part beyond is as small
/// as a normal one's if `(SURE^2 - 1) / 6` times the third central moment over the variance is added (Cornish and Fisher).
pub(crate) const SURE: f64 = 4.0;
/// The deviation of a wait that estimates themselves are wrong by.
const DOUBT: f64 = 0.05;
/// The deviation of when the first of many workers is free, over its mean: half, as of what is spread evenly.
const SPREAD: f64 = 0.5;
/// The part of a deadline that is waited where short waits are preferred.
const SHORT_WAIT: f64 = 0.2;
/// Higher ranks leave at least this.
const LEAST_LEFT: f64 = 0.05;
/// The chance of being late that what higher ranks bring may leave.
const RISK: f64 = 0.003;
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
    /// Has a slot for each of these ranks too, and decides as is asked for.
    pub(crate) fn follow(&mut self, control: &Control, ranks: impl Iterator<Item = Rank>) {
        let mut shortest_ns = u64::MAX;
        for rank in ranks {
            shortest_ns = shortest_ns.min(rank.deadline_ns);
            if self.slots.iter().all(|(known, _)| *known != rank) {
                self.slots.push((rank, Arc::default()));
            }
        }
        let slots = self.slots.iter().map(|(rank, _)| *rank);
        self.law.follow(control, slots, Duration::from_nanos(shortest_ns));
    }

    /// The budget, if that decides.
    pub(crate) fn budget(&self) -> Option<&Budget> {
        if let AdmissionLaw::Budget(budget) = &self.law { Some(budget) } else { None }
    }

    /// What waits of a band of ranks (us).
    pub(crate) fn waiting_us(&self, band: u16) -> u64 {
        let own = self.slots.iter().filter(|(rank, _)| rank.band == band);
        own.map(|(_, slot)| slot.waiting.get().0).sum()
    }

    /// The slots of all ranks ever, by number.
    pub(crate) fn slots(&self) -> &[(Rank, Arc<Slot>)] {
        &self.slots
    }

    /// What is left of those in service (us), and its variance; without a clock, about.
    pub(crate) fn in_service(&self, now: Option<Instant>) -> (f64, f64) {
        now.map_or_else(|| self.residual.about(), |now| self.residual.left(now))
    }

    /// Reserves a request's work.
    pub(crate) fn reserve(&self, now: Instant, rank: Rank, features: CostFeatures, cost: Cost) -> Work {
        let slot = self.slots.iter().position(|(known, _)| *known == rank).unwrap_or(0);
        let tag = self.law.reserve(slot, now, cost.mean_us.into());
        let reserved = Work { slot: slot as u16, tag, features, cost };
        self.slots[slot].1.waiting.add(reserved.mean_and_variance());
        reserved
    }

    /// One that is reserved waits no more, and is not started.
    pub(crate) fn forget(&self, work: &Work) {
        self.slots[usize::from(work.slot)].1.waiting.subtract(work.mean_and_variance());
        self.law.forget(work.slot.into(), work.tag, work.cost.mean_us.into());
    }

    /// One that is reserved starts.
    pub(crate) fn start(&self, now: Instant, work: &Work) {
        let slot = &self.slots[usize::from(work.slot)].1;
        slot.waiting.subtract(work.mean_and_variance());
        slot.started.add(work.mean_and_square());
        self.residual.start(now, work);
    }

    /// One that was started then is done, and took so much of a worker.
    pub(crate) fn finish(&self, started: Instant, work: &Work, took_us: u64) {
        self.residual.finish(started, work);
        self.law.finish(work.slot.into(), work.tag, (work.cost.mean_us.into(), took_us));
    }

    /// Whether one that is reserved will be done in time; if not, how long until it might be, if ever.
    ///
    /// Everybody is given the time that the dearest takes, as far as there is `room`: else cheap requests would fill the
    /// queue to the brim, and a dear one would never find what it needs.
    pub(crate) fn admits(
        &self,
        work: &Work,
        room: Headroom,
        workers: Workers,
        terms: &Terms,
    ) -> Result<(), Option<Duration>> {
        let Some(deadline) = terms.deadline else { return Ok(()) };
        let deadline_us = deadline.as_nanos() as f64 / 1e3;
        let own = work.cost;
        // Alone it must be likely to be in time.
        if f64::from(own.mean_us) + f64::from(own.deviation_us) > deadline_us {
            return Err(None);
        }
        if let Some(decided) = self.law.admits(work.slot.into(), own.mean_us.into(), &workers) {
            return decided;
        }
        if workers.idle {
            return Ok(());
        }
        let mean = f64::from(own.mean_us.max(room.dearest.mean_us));
        let own_deviation = f64::from(own.deviation_us);
        // Who asks to be surer than the room would find it free only when nobody waits.
        let sure = (SURE * own_deviation).min((room.most_us - mean).max(own_deviation));
        let deviation = sure.max(SURE * f64::from(room.dearest.deviation_us));
        let wait = self.wait(work, &workers);
        let variance = wait.variance + DOUBT * DOUBT * wait.ahead * wait.ahead;
        let skew = (SURE * SURE - 1.0) / 6.0 * wait.third / variance.max(1.0);
        let margin = sqrt(SURE * SURE * variance + deviation * deviation) + skew;
        let over = wait.ahead + mean + margin - deadline_us;
        let short = if terms.prefers_delay { wait.expected() - SHORT_WAIT * deadline_us } else { over };
        let most = deadline_us - mean - own_deviation;
        let outrun = if wait.outlasts(most) > RISK { wait.expected() } else { over };
        let over = over.max(short).max(outrun);
        if over <= 0.0 { Ok(()) } else { Err(Some(Duration::from_micros(over as u64 + 1))) }
    }

    /// The wait of one that is reserved (us), itself not counted, and its variance.
    fn wait(&self, work: &Work, workers: &Workers) -> Wait {
        let (rank, own) = &self.slots[usize::from(work.slot)];
        let s = f64::from(workers.all.max(1));
        let left = 1.0 - f64::from(own.taken.load(Ordering::Relaxed)) * 1e-6;
        let (mut ahead, mut variance) = (0.0, 0.0);
        for (other, slot) in self.slots.iter().filter(|(other, _)| other.band <= rank.band) {
            let (waiting, its_variance) = slot.waiting.get();
            // Of those with more time, what is younger than the difference comes after.
            let more_ns = other.deadline_ns.saturating_sub(rank.deadline_ns);
            let after = if other.band == rank.band { s * more_ns as f64 / 1e3 } else { 0.0 };
            let before = (waiting as f64 - after).max(0.0);
            ahead += before;
            variance += its_variance as f64 * before / waiting.max(1) as f64;
        }
        let (own_us, own_variance) = work.mean_and_variance();
        let serving = workers.left;
        let ahead = (ahead - own_us as f64).max(0.0);
        let free = until_free(ahead, serving.0, s);
        let varies = (variance - own_variance as f64).max(0.0);
        let variance = (varies + free.serving * serving.1) / (s * s) + free.spread * free.spread;
        let third = 2.0 * varies * varies / ahead.max(1.0) / (s * s * s);
        let noise_us = f64::from(own.noise_us.load(Ordering::Relaxed));
        let unsure = f64::from(own.unsure.load(Ordering::Relaxed)) * 1e-6;
        Wait { ahead: free.after, variance, third, left, noise_us, unsure }
    }

    /// What one of this rank would wait now.
    pub(crate) fn wait_of(&self, rank: Rank, workers: Workers) -> Duration {
        let Some(slot) = self.slots.iter().position(|(known, _)| *known == rank) else {
            return Duration::ZERO;
        };
        if workers.idle {
            return Duration::ZERO;
        }
        let nothing =
            Work { slot: slot as u16, tag: 0, features: CostFeatures::default(), cost: Cost::default() };
        Duration::from_micros(self.wait(&nothing, &workers).expected() as u64)
    }

    /// All that is reserved or in service, in seconds of one worker.
    pub(crate) fn unfinished_seconds(&self) -> f64 {
        let waiting: u64 = self.slots.iter().map(|(_, slot)| slot.waiting.get().0).sum();
        (waiting as f64 + self.residual.about().0) * 1e-6
    }
}

/// What one waits for (us).
struct Wait {
    /// What is ahead, if nobody came before it any more; the variance, and the third central moment.
    ahead: f64,
    variance: f64,
    /// As of sums of gamma laws, which of one with mean m and variance v is 2 v^2 / m.
    third: f64,
    /// The part of the workers that higher ranks leave, how unsure that is, and the variance of what they bring per time.
    left: f64,
    unsure: f64,
    noise_us: f64,
}

impl Wait {
    /// How long it is expected to take.
    fn expected(&self) -> f64 {
        self.ahead / self.left.max(LEAST_LEFT)
    }

    /// The chance that it takes longer than this: that a Brownian motion from `ahead`, which falls by what is left of the
    /// workers and has the noise of what higher ranks bring, has not come down to nothing (the inverse Gaussian law).
    /// Near its mean that has nothing of a normal law: of two who wait alike one has luck, and the other meets a
    /// rush that takes all of the workers for a second.
    fn outlasts(&self, time: f64) -> f64 {
        if self.noise_us <= 0.0 || self.ahead <= 0.0 {
            return 0.0;
        }
        if time <= 0.0 {
            return 1.0;
        }
        let deviation = sqrt(self.noise_us * time);
        let fall = (self.left - self.unsure).max(LEAST_LEFT);
        let beyond = |x: f64| 0.5 * erfc(x / deviation * FRAC_1_SQRT_2);
        // Of the two terms the second is the smaller; where it is not a number it is of no account.
        let turned = exp(2.0 * fall * self.ahead / self.noise_us) * beyond(fall * time + self.ahead);
        let turned = if turned.is_finite() { turned } else { 0.0 };
        beyond(fall * time - self.ahead) - turned
    }
}

/// When workers are free.
struct Free {
    after: f64,
    /// How far it follows what is left of those in service: 1 as one worker does.
    serving: f64,
    /// Its deviation where the sum alone is known, of many workers.
    spread: f64,
}

/// When s workers have done `ahead`, each after what is left of what it serves, together `serving`.
///
/// With one worker that is the sum. With many some are free sooner than others: if what is left is spread evenly from 0 to
/// 2 r, they have done w each after `2 sqrt(r w)`, or `w + r` where w is above r. In between, the nearer to the sum the
/// fewer they are. The bound of the theorem is the sum divided by s; with a few long requests in service it is so far off
/// that a higher class would be refused for what it never waits for.
fn until_free(ahead: f64, serving: f64, s: f64) -> Free {
    let (w, r) = (ahead / s, serving / s);
    let many = if w < r { 2.0 * sqrt(r * w) } else { w + r };
    let follows = if w < r { w / r } else { 1.0 };
    let spread = SPREAD * (1.0 - follows) * (1.0 - 1.0 / s) * r / s;
    Free { after: many + (w + r - many) / s, serving: follows + (1.0 - follows) / s, spread }
}

impl Slot {
    /// All that was ever started: work (us) and the sum of squares (us^2).
    pub(crate) fn started(&self) -> (u64, u64) {
        self.started.get()
    }

    pub(crate) fn set_taken(&self, taken: &Taken) {
        self.taken.store((taken.part * 1e6) as u32, Ordering::Relaxed);
        self.noise_us.store(taken.noise_us as u32, Ordering::Relaxed);
        self.unsure.store((taken.unsure * 1e6) as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn wait(ahead: f64, left: f64, noise_us: f64) -> Wait {
        Wait { ahead, variance: 0.0, third: 0.0, left, unsure: 0.0, noise_us }
    }

    /// How often work of so much, to which small pieces come by chance, is not done within `time`.
    fn simulated(wait: &Wait, time: f64) -> f64 {
        const RUNS: u32 = 4000;
        const PIECE: f64 = 4000.0;
        let mut random = Random::new(7);
        // Exponential pieces: the rate of their squares is the noise.
        let every = 2.0 * PIECE * PIECE / wait.noise_us;
        let brought = PIECE / every;
        let late = (0..RUNS).filter(|_| {
            let (mut now, mut work) = (0.0, wait.ahead);
            loop {
                let step = -every * libm::log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64);
                let speed = wait.left + brought;
                if work <= step * speed || now > time {
                    return now + work / speed > time;
                }
                (now, work) = (now + step, work - step * speed);
                work -= PIECE * libm::log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64);
            }
        });
        late.count() as f64 / f64::from(RUNS)
    }

    #[test]
    fn the_chance_to_be_outrun_is_that_of_a_first_passage() {
        for (ahead, left, noise) in
            [(40e3, 0.2, 10e3), (150e3, 0.2, 10e3), (300e3, 0.4, 8e3), (200e3, 0.6, 5e3), (20e3, 0.05, 12e3)]
        {
            let one = wait(ahead, left, noise);
            let (told, found) = (one.outlasts(900e3), simulated(&one, 900e3));
            assert!((told - found).abs() < 0.02 + 0.15 * found, "{ahead} {left} {noise}: {told} for {found}");
        }
    }

    #[test]
    fn without_higher_ranks_no_request_is_outrun() {
        assert_eq!(wait(500e3, 1.0, 0.0).outlasts(900e3), 0.0);
        // The second term would be infinite times nothing.
        let sure = wait(800e3, 1.0, 1e-3).outlasts(900e3);
        assert!((0.0..1e-9).contains(&sure), "{sure}");
        assert_eq!(wait(100.0, 0.5, 10.0).outlasts(-1.0), 1.0);
    }
}
