//! The work of one rank at a plant, in words that threads share.

use crate::admission::expected_wait::SamePriority;
use crate::admission::headroom::Headroom;
use crate::admission::lateness::{Invited, Lateness};
use crate::admission::unfinished_work::SlotOf;
use crate::admission::waiting_by_age::WaitingByAge;
use crate::request::work::Work;
use crate::scheduling::quota::{Quota, WORKER};
use crate::scheduling::rank::Rank;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Work (us) and its variance (us^2).
#[derive(Default)]
pub(crate) struct Sum {
    work_us: AtomicU64,
    variance_us2: AtomicU64,
}

/// The work of one rank.
#[derive(Default)]
pub(crate) struct RankWork {
    pub(super) waiting: Sum,
    pub(super) by_age: WaitingByAge,
    pub(super) in_service: AtomicU32,
    pub(crate) headroom: Headroom,
    pub(crate) lateness: Lateness,
    /// All work that was ever started (us), and, instead of the variance, its sum of squares.
    pub(super) started: Sum,
    /// The part of the plant that this rank took recently, in millionths, and the variance of the work that it brings in a unit
    /// of time (us).
    pub(super) load: AtomicU32,
    pub(super) load_noise_us: AtomicU32,
    /// The part of its work that is refused, in millionths.
    pub(super) refused: AtomicU32,
    /// The part of the plant that this rank and those before it leave, in millionths.
    pub(super) unused: AtomicU32,
    /// The part of the plant that higher ranks take, in millionths, and the variance of the work that they bring in a unit of
    /// time (us).
    pub(super) taken: AtomicU32,
    pub(super) noise_us: AtomicU32,
    /// The standard error of `taken`, in millionths.
    pub(super) unsure: AtomicU32,
    /// The mean residual life of this rank's requests in service (us): `E[S^2] / (2 E[S])`.
    pub(super) life_us: AtomicU32,
    /// How many requests were ever started, and the mean of recent ones (us); 0 until it is known.
    starts: AtomicU64,
    pub(super) mean_us: AtomicU32,
}

/// What higher ranks take of a plant.
#[derive(Default)]
pub(crate) struct HigherRanks {
    /// The part of the plant's workers.
    pub(crate) part: f64,
    /// The variance of the work that they bring in a unit of time (us).
    pub(crate) noise_us: f64,
    /// The standard error of the part.
    pub(crate) unsure: f64,
}

/// If at least this part of a rank's work is refused, the rank brings only what admission lets it bring.
const BOUNDED: f64 = 0.2;
/// At least this part of what a rank offers is taken to be admitted.
const LEAST_ADMITTED: f64 = 0.02;

/// What one rank takes of a plant, as parts of its workers.
#[derive(Default)]
pub(crate) struct OwnLoad {
    pub(crate) part: f64,
    pub(crate) noise_us: f64,
    /// The part that this rank and those before it leave.
    pub(crate) unused: f64,
    /// The part of its work that is refused.
    pub(crate) refused: f64,
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

impl RankWork {
    /// All that was ever started: work (us), the sum of squares (us^2), and the number of requests.
    pub(crate) fn started(&self) -> [u64; 3] {
        let (work, squares) = self.started.get();
        [work, squares, self.starts.load(Ordering::Relaxed)]
    }

    /// Whether requests of this rank are in service.
    pub(crate) fn is_served(&self) -> bool {
        self.in_service.load(Ordering::Relaxed) > 0
    }

    /// Whether no request of this rank waits or is in service.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_served() && self.waiting.get() == (0, 0)
    }

    /// Forgets what was learned of this rank's requests, before another rank has the slot. Counts go on, since a thread that
    /// has not seen the reload yet may count a request here.
    pub(super) fn forget(&self) {
        self.headroom.follow(0.0);
        self.lateness.accept(None);
        self.lateness.invite(Invited::None);
        self.set_load(&OwnLoad::default());
        self.set_higher_ranks(&HigherRanks::default());
        self.set_service(0.0, 0.0);
    }

    pub(crate) fn set_service(&self, life_us: f64, mean_us: f64) {
        self.life_us.store(life_us as u32, Ordering::Relaxed);
        self.mean_us.store(mean_us as u32, Ordering::Relaxed);
    }

    /// Counts a request whose work starts.
    pub(super) fn start(&self, work: &Work) {
        self.in_service.fetch_add(1, Ordering::Relaxed);
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.started.add(work.mean_and_square());
    }

    /// The part of this waiting work for which the quota has room. It is served before the ranks below the quota.
    pub(super) fn within(&self, quota: &Quota, waiting_us: f64) -> f64 {
        let (whole, part) = quota.workers();
        let room = f64::from(whole.saturating_sub(quota.in_service())) + f64::from(part) / f64::from(WORKER);
        waiting_us.min(room * f64::from(self.life_us.load(Ordering::Relaxed)))
    }

    /// Takes away waiting work that starts, or will not.
    pub(super) fn no_longer_waits(&self, work: &Work) {
        self.waiting.subtract(work.summand());
        self.by_age.subtract(work.ring_part, work.cost.mean_us.into());
    }

    /// Adds the work that another rank of the same priority, with a shorter deadline, will still bring before requests of this
    /// one. If the other rank takes less of the plant than this one, all of that work counts, as that of a higher priority
    /// would. The more the other rank takes, the shorter is the time for which its arrivals count, down to the difference of
    /// the two deadlines; and the more of them are refused, the less they count. Its refused work counts as taken, up to what
    /// this rank takes: otherwise this rank, which has the longer deadline and finds room first, would leave the other nothing.
    pub(super) fn is_passed_by(&self, other: &SlotOf, rank: Rank, same: &mut SamePriority) {
        let sooner_us = rank.deadline_ns.saturating_sub(other.key.rank.deadline_ns) as f64 / 1e3;
        if sooner_us > 0.0 {
            let part = |word: &AtomicU32| f64::from(word.load(Ordering::Relaxed)) * 1e-6;
            let (own, its, refused) = (part(&self.load), part(&other.slot.load), part(&other.slot.refused));
            let its = its.max(own.min(its / (1.0 - refused).max(LEAST_ADMITTED)));
            let takes_more = (its / own.max(1e-6) - 1.0).clamp(0.0, 1.0);
            let counts = 1.0 - takes_more * (refused / BOUNDED).min(1.0);
            let noise_us = f64::from(other.slot.load_noise_us.load(Ordering::Relaxed));
            same.add(counts * its, counts * noise_us, sooner_us / takes_more.max(1e-3));
        }
    }

    pub(crate) fn set_load(&self, own: &OwnLoad) {
        let millionths = |part: f64| (part * 1e6) as u32;
        self.load.store(millionths(own.part), Ordering::Relaxed);
        self.load_noise_us.store(own.noise_us as u32, Ordering::Relaxed);
        self.unused.store(millionths(own.unused), Ordering::Relaxed);
        self.refused.store(millionths(own.refused), Ordering::Relaxed);
    }

    pub(crate) fn set_higher_ranks(&self, higher: &HigherRanks) {
        self.taken.store((higher.part * 1e6) as u32, Ordering::Relaxed);
        self.noise_us.store(higher.noise_us as u32, Ordering::Relaxed);
        self.unsure.store((higher.unsure * 1e6) as u32, Ordering::Relaxed);
    }
}
