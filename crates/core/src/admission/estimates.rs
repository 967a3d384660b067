//! The expected cost of the requests of a site, by type and level, in words that threads share.
//!
//! An arrival reads an estimate, a release adds the time that the request took, and `tick` learns from the sums
//! ([`ServiceTime`]). An estimate is one word, so its mean and its deviation are always of one moment. Requests with an
//! announced cost have estimates of their own: the true cost of an announced second.
//!
//! Each whole block of a request's body adds the slope of the [`SizeLaw`](crate::model::SizeLaw) to the estimate.

use crate::admission::deadline::MARGIN;
use crate::model::ServiceTime;
use crate::request::work::{Cost, CostFeatures, DeadlineTerms};
use crate::time::Duration;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use libm::sqrt;

/// The estimates of a site.
pub(crate) struct Estimates {
    types: usize,
    levels: usize,
    rows: Vec<TypeEstimate>,
    /// The longest mean and the largest deviation among the types that were seen.
    costliest: Word,
    /// The largest cost that was announced lately (us), among costs that fit into a deadline.
    announced: AtomicU32,
    /// The part of the headroom for the costliest request that is kept, in millionths.
    headroom: AtomicU32,
}

/// A cost in one word: the mean above, the deviation below.
#[derive(Default)]
struct Word(AtomicU64);

impl Word {
    fn get(&self) -> Cost {
        let word = self.0.load(Ordering::Relaxed);
        Cost { mean_us: (word >> 32) as u32, deviation_us: word as u32 }
    }

    fn set(&self, cost: Cost) {
        self.0.store(u64::from(cost.mean_us) << 32 | u64::from(cost.deviation_us), Ordering::Relaxed);
    }
}

/// The estimate and the sums of one type at one level.
#[derive(Default)]
pub(crate) struct TypeEstimate {
    estimate: Word,
    /// The cost of each block of a body (ns).
    block_ns: AtomicU64,
    /// Sums of blocks, of their squares, and of their products with the time that the request took (us).
    blocks: [AtomicU64; 3],
    requests: AtomicU64,
    sum_us: AtomicU64,
    squares_us2: AtomicU64,
    /// Requests that were refused, and those that were refused because they take too long even alone.
    refused: AtomicU32,
    too_long: AtomicU32,
    /// Set when the next request that takes too long is to be admitted all the same.
    invited: AtomicU32,
}

/// The time that is kept free before a deadline, so that cheap requests do not fill the queue and leave no room for
/// costly ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headroom {
    /// The cost of the costliest request, as far as headroom is kept for it.
    pub(crate) costliest: Cost,
    /// The most time that is ever kept free (us).
    pub(crate) most_us: f64,
}

impl Cost {
    /// A time that is almost certainly enough.
    fn needs_us(self) -> f64 {
        f64::from(self.mean_us) + MARGIN * f64::from(self.deviation_us)
    }

    /// A cost that covers both, since one may have the longer mean and the other the larger deviation.
    pub(crate) fn max(self, other: Cost) -> Cost {
        Cost {
            mean_us: self.mean_us.max(other.mean_us),
            deviation_us: self.deviation_us.max(other.deviation_us),
        }
    }

    /// Adds the time that a body takes, which varies as AC found for files.
    fn and_sized(self, sized_us: u64) -> Cost {
        let sized = sized_us.min(u64::from(u32::MAX / 2)) as u32;
        let deviation = SIZED_VARIES * f64::from(sized) + f64::from(self.deviation_us);
        Cost { mean_us: self.mean_us.saturating_add(sized), deviation_us: deviation as u32 }
    }

    /// The part of the cost that needs no more than this.
    fn within(self, most_us: f64) -> Cost {
        let mean = f64::from(self.mean_us).min(most_us);
        let deviation = f64::from(self.deviation_us).min((most_us - mean) / MARGIN);
        Cost { mean_us: mean as u32, deviation_us: deviation as u32 }
    }
}

/// The part of a deadline for which work may always wait before one worker, whatever headroom the costliest request would
/// need. With s workers it is divided by the square root of s, because the queue before many workers varies less. On the
/// trace of a language model one worker then serves 0.85 of its capacity, and the largest requests are admitted half as
/// often as all requests are; with a longer queue the figures are 0.90 and a third.
const LEAST_QUEUE: f64 = 0.5;
/// The coefficient of variation of a service time of known size (AC 2).
const SIZED_VARIES: f64 = 0.1;
/// [`Estimates::fade`] takes one part in so many off the largest announced cost.
const FADE: u32 = 20;

/// The estimates of announced costs are in millionths of the announcement.
const ANNOUNCED: u64 = 1_000_000;

impl Estimates {
    pub(crate) fn new(types: usize, levels: usize) -> Self {
        let mut rows = Vec::new();
        rows.resize_with(2 * types * levels, TypeEstimate::default);
        let (costliest, announced, headroom) = (Word::default(), AtomicU32::new(0), AtomicU32::new(0));
        Estimates { types, levels, rows, costliest, announced, headroom }
    }

    pub(crate) fn rows(&self) -> &[TypeEstimate] {
        &self.rows
    }

    /// The headroom before this many workers.
    pub(crate) fn headroom(&self, terms: &DeadlineTerms, workers: u32) -> Headroom {
        let known = self.costliest.get();
        let announced = Cost { mean_us: self.announced.load(Ordering::Relaxed), deviation_us: 0 };
        let costliest = if announced.needs_us() > known.needs_us() { announced } else { known };
        let deadline_us = terms.deadline.map_or(0.0, |deadline| deadline.as_nanos() as f64 / 1e3);
        let most_us = (1.0 - LEAST_QUEUE / sqrt(f64::from(workers.max(1)))) * deadline_us;
        let part = f64::from(self.headroom.load(Ordering::Relaxed)) * 1e-6;
        Headroom { costliest: costliest.within(part * most_us), most_us }
    }

    /// Sets which part of the costliest cost's headroom is kept, from 0 to 1.
    pub(crate) fn set_headroom(&self, part: f64) {
        self.headroom.store((part * 1e6) as u32, Ordering::Relaxed);
    }

    /// Notes an announced cost, if it fits into the deadline.
    pub(crate) fn saw(&self, cost: Cost, terms: &DeadlineTerms) {
        if terms.deadline.is_some_and(|deadline| Duration::from_micros(cost.mean_us.into()) <= deadline) {
            self.announced.fetch_max(cost.mean_us, Ordering::Relaxed);
        }
    }

    /// Lets the largest announced cost fade with time.
    pub(crate) fn fade(&self) {
        let seen = self.announced.load(Ordering::Relaxed);
        // A larger cost that is announced at this moment may be lost, but others like it follow.
        self.announced.store(seen - seen.div_ceil(FADE), Ordering::Relaxed);
    }

    pub(crate) fn set_costliest(&self, cost: Cost) {
        self.costliest.set(cost);
    }

    /// The estimate of a type at a level, 1..=M. After a reload there may be fewer of both than the permit knew.
    fn row(&self, features: CostFeatures, level: u8) -> &TypeEstimate {
        let announced = features.announced_us > 0;
        let request_type = usize::from(features.request_type).min(self.types - 1);
        let level = usize::from(level.max(1)).min(self.levels) - 1;
        &self.rows[(usize::from(announced) * self.types + request_type) * self.levels + level]
    }

    pub(crate) fn cost(&self, features: CostFeatures, level: u8) -> Cost {
        let row = self.row(features, level);
        let known = row.get();
        let announced_us = features.announced_us;
        if announced_us == 0 {
            return if features.blocks > 0 { known.and_sized(row.sized_us(features.blocks)) } else { known };
        }
        let of = |part: u32| {
            u32::try_from(u64::from(announced_us) * u64::from(part) / ANNOUNCED).unwrap_or(u32::MAX)
        };
        Cost { mean_us: of(known.mean_us), deviation_us: of(known.deviation_us) }
    }

    /// Adds the time that a request took.
    pub(crate) fn note(&self, features: CostFeatures, level: u8, took_ns: u64) {
        let row = self.row(features, level);
        match u64::from(features.announced_us) {
            0 if features.blocks > 0 => row.note_sized(took_ns / 1000, features.blocks),
            0 => _ = row.note(took_ns / 1000),
            announced => _ = row.note((took_ns / 1000).saturating_mul(ANNOUNCED) / announced),
        }
    }

    /// Counts a refusal; `too_long` if the request takes too long even alone.
    pub(crate) fn refuse(&self, features: CostFeatures, level: u8, too_long: bool) {
        let row = self.row(features, level);
        row.refused.fetch_add(1, Ordering::Relaxed);
        row.too_long.fetch_add(too_long.into(), Ordering::Relaxed);
    }

    /// Whether a request that takes too long is admitted, to see whether such requests still do: true once after each
    /// [`TypeEstimate::invite`].
    pub(crate) fn is_invited(&self, features: CostFeatures, level: u8) -> bool {
        let invited = &self.row(features, level).invited;
        invited.load(Ordering::Relaxed) > 0 && invited.swap(0, Ordering::Relaxed) > 0
    }
}

/// The sums of one type since they were last taken.
pub(crate) struct TypeSums {
    pub(crate) requests: u64,
    pub(crate) sum_us: u64,
    pub(crate) squares_us2: u64,
    /// Sums of blocks, of their squares, and of their products with the time that the request took (us).
    pub(crate) blocks: [u64; 3],
    pub(crate) refused: u64,
    pub(crate) too_long: bool,
}

impl TypeEstimate {
    pub(crate) fn get(&self) -> Cost {
        self.estimate.get()
    }

    pub(crate) fn set(&self, cost: Cost) {
        self.estimate.set(cost);
    }

    /// Has the next request admitted that takes too long.
    pub(crate) fn invite(&self) {
        self.invited.store(1, Ordering::Relaxed);
    }

    /// Sets the cost of each block.
    pub(crate) fn set_block(&self, us: f64) {
        self.block_ns.store((us * 1e3) as u64, Ordering::Relaxed);
    }

    fn sized_us(&self, blocks: u16) -> u64 {
        u64::from(blocks).saturating_mul(self.block_ns.load(Ordering::Relaxed)) / 1000
    }

    /// Adds the time of a request with a body; the cost of its blocks is subtracted before the type learns from it.
    fn note_sized(&self, took: u64, blocks: u16) {
        let sized = self.sized_us(blocks);
        let took = sized + self.note(took.saturating_sub(sized));
        let blocks = u64::from(blocks);
        for (sum, value) in self.blocks.iter().zip([blocks, blocks * blocks, blocks.saturating_mul(took)]) {
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Adds a time, cut to the outlier bound; returns the time that was added.
    fn note(&self, took: u64) -> u64 {
        let Cost { mean_us, deviation_us } = self.get();
        let clip = ServiceTime::clip(mean_us.into(), deviation_us.into()) as u64;
        let took = took.min(clip.max(1));
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took, Ordering::Relaxed);
        self.squares_us2.fetch_add(took.saturating_mul(took), Ordering::Relaxed);
        took
    }

    /// Takes the sums since the last call.
    pub(crate) fn take(&self) -> TypeSums {
        let take = |word: &AtomicU64| word.swap(0, Ordering::Relaxed);
        TypeSums {
            requests: take(&self.requests),
            sum_us: take(&self.sum_us),
            squares_us2: take(&self.squares_us2),
            blocks: self.blocks.each_ref().map(take),
            refused: self.refused.swap(0, Ordering::Relaxed).into(),
            too_long: self.too_long.swap(0, Ordering::Relaxed) > 0,
        }
    }
}
