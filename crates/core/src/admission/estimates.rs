//! The expected cost of the requests of a site, by type and level, in words that threads share.
//!
//! An arrival reads an estimate, a release adds the time that the request took, and `tick` learns from the sums
//! ([`ServiceTime`]). An estimate is one word, so its mean and its deviation are always of one moment. Requests with an
//! announced cost have estimates of their own: the true cost of an announced second.
//!
//! Each whole block of a request's body adds the slope of the [`SizeLaw`](crate::model::SizeLaw) to the estimate.

use crate::admission::headroom::{Costliest, Needs};
use crate::model::{ServiceTime, TIME_BINS, time_bin};
use crate::request::shape_table::ShapeTable;
use crate::request::work::{Cost, CostFeatures, DeadlineTerms, Work};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The estimates of a site.
pub(crate) struct Estimates {
    types: usize,
    levels: usize,
    rows: Vec<TypeEstimate>,
    /// By row and index of the promise: the time that a request's own service needs ([`OwnTime::packed`]), and whether a
    /// request came since the last look.
    needs: Vec<AtomicU32>,
    came: Vec<AtomicBool>,
    /// By index of the promise.
    costliest: Vec<Costliest>,
    /// The longest deadline beside which the site's requests stand (us). A longer service time counts as that, because a
    /// request delays another by no more than one worker for as long as the other can wait.
    longest_us: AtomicU64,
    /// The sums of the costs that the server reported and of what the same requests took (us), and the ratio of the latter to
    /// the former (f32 bits); 0 until it is known.
    reported: [AtomicU64; 2],
    per_reported: AtomicU32,
    /// The shapes of requests, by which types are found, if the site finds types.
    shapes: Option<Arc<ShapeTable>>,
}

/// The estimate and the sums of one type at one level.
pub(crate) struct TypeEstimate {
    /// The cost in one word: the mean above, the deviation below.
    estimate: AtomicU64,
    /// See [`Work::stretch`].
    stretch: AtomicU16,
    /// The cost of each block of a body (ns).
    block_ns: AtomicU64,
    /// Sums of blocks, of their squares, and of their products with the time that the request took (us).
    blocks: [AtomicU64; 3],
    requests: AtomicU64,
    sum_us: AtomicU64,
    squares_us2: AtomicU64,
    /// Requests by the time of their own ([`time_bin`]).
    times: [AtomicU32; TIME_BINS],
    /// Whether such requests are served at a lighter level where they take too long at this one.
    pub(crate) has_lighter: bool,
    /// Requests that were refused because they take too long even alone.
    too_long: AtomicU32,
    /// How many requests that take too long are admitted on trial: unconditionally, and only while a worker idles.
    invited: AtomicU32,
    invited_if_idle: AtomicU32,
}

impl Default for TypeEstimate {
    fn default() -> Self {
        TypeEstimate {
            estimate: AtomicU64::new(0),
            stretch: AtomicU16::new(Work::ONCE),
            block_ns: AtomicU64::new(0),
            blocks: Default::default(),
            requests: AtomicU64::new(0),
            sum_us: AtomicU64::new(0),
            squares_us2: AtomicU64::new(0),
            times: [const { AtomicU32::new(0) }; TIME_BINS],
            has_lighter: false,
            too_long: AtomicU32::new(0),
            invited: AtomicU32::new(0),
            invited_if_idle: AtomicU32::new(1),
        }
    }
}

impl Cost {
    /// Adds the time that a body takes, which varies as AC found for files.
    fn and_sized(self, sized_us: u64) -> Cost {
        let sized = sized_us.min(u64::from(u32::MAX / 2)) as u32;
        let deviation = SIZED_VARIES * f64::from(sized) + f64::from(self.deviation_us);
        Cost { mean_us: self.mean_us.saturating_add(sized), deviation_us: deviation as u32 }
    }
}

/// The coefficient of variation of a service time of known size (AC 2).
const SIZED_VARIES: f64 = 0.1;
/// What the blocks of a body need, as a multiple of their mean time: the mean and four deviations.
const SIZED_NEEDS: f64 = 1.0 + 4.0 * SIZED_VARIES;

/// The estimates of announced costs are in millionths of the announcement.
const ANNOUNCED: u64 = 1_000_000;

impl Estimates {
    /// Estimates for this number of types, levels, and promises; `one_plant`: one plant serves all levels.
    pub(crate) fn new(
        types: usize,
        (levels, one_plant): (usize, bool),
        promises: usize,
        shapes: Option<Arc<ShapeTable>>,
    ) -> Self {
        let (mut needs, mut came, mut costliest) = (Vec::new(), Vec::new(), Vec::new());
        let row =
            |number| TypeEstimate { has_lighter: one_plant && number % levels > 0, ..Default::default() };
        let rows: Vec<TypeEstimate> = (0..2 * types * levels).map(row).collect();
        needs.resize_with(rows.len() * promises, AtomicU32::default);
        came.resize_with(rows.len() * promises, AtomicBool::default);
        costliest.resize_with(promises, Costliest::default);
        Estimates {
            types,
            levels,
            rows,
            needs,
            came,
            costliest,
            longest_us: AtomicU64::new(u64::MAX),
            reported: Default::default(),
            per_reported: AtomicU32::new(0),
            shapes,
        }
    }

    pub(crate) fn rows(&self) -> &[TypeEstimate] {
        &self.rows
    }

    /// Sets the longest deadline beside which the site's requests stand.
    pub(crate) fn set_longest(&self, deadline_us: u64) {
        self.longest_us.store(deadline_us, Ordering::Relaxed);
    }

    /// Sets what the requests of a row need within the deadline of a promise.
    pub(crate) fn set_own(&self, row: usize, promise: usize, own: OwnTime) {
        self.needs[row * self.costliest.len() + promise].store(own.packed(), Ordering::Relaxed);
    }

    /// What the requests of a row need within the deadline of a promise.
    pub(crate) fn own(&self, row: usize, promise: usize) -> OwnTime {
        OwnTime::unpacked(self.needs[row * self.costliest.len() + promise].load(Ordering::Relaxed))
    }

    /// Whether a request of this row and promise came since the last call.
    pub(crate) fn take_came(&self, row: usize, promise: usize) -> bool {
        let came = &self.came[row * self.costliest.len() + promise];
        came.load(Ordering::Relaxed) && came.swap(false, Ordering::Relaxed)
    }

    /// Sets what the costliest types of a promise need.
    pub(crate) fn set_costliest(&self, promise: usize, needs: Needs) {
        self.costliest[promise].set(needs);
    }

    /// What the costliest requests of a promise need whose size or cost was announced.
    pub(crate) fn costliest_announced(&self, promise: usize) -> Needs {
        self.costliest[promise].announced()
    }

    /// Forgets the requests of known size or cost that came before the last call.
    pub(crate) fn turn(&self) {
        self.costliest.iter().for_each(Costliest::turn);
    }

    /// Notes a request that is likely to be in time; returns the costliest ones with the same promise.
    pub(super) fn costliest(
        &self,
        (features, level): (CostFeatures, u8),
        needs: Needs,
        terms: &DeadlineTerms,
    ) -> &Costliest {
        let promise = self.promise_index(terms);
        let costliest = &self.costliest[promise];
        if features.announced_us > 0 || features.blocks > 0 {
            costliest.note_announced(needs);
        } else {
            self.note_came(features, level, terms);
        }
        costliest
    }

    /// Notes that a request with this promise came.
    pub(super) fn note_came(&self, features: CostFeatures, level: u8, terms: &DeadlineTerms) {
        let came =
            &self.came[self.number(features, level) * self.costliest.len() + self.promise_index(terms)];
        if !came.load(Ordering::Relaxed) {
            came.store(true, Ordering::Relaxed);
        }
    }

    /// What a request with this cost needs within its deadline.
    pub(crate) fn own_time(&self, features: CostFeatures, level: u8, terms: &DeadlineTerms) -> OwnTime {
        let row = self.number(features, level);
        let own = self.own(row, self.promise_index(terms));
        if features.announced_us == 0 && features.blocks == 0 {
            return own;
        }
        let cost = self.cost(features, level);
        let sized_us = (SIZED_NEEDS * self.rows[row].sized_us(features.blocks) as f64) as u32;
        let needs_us = match features.announced_us {
            0 => own.needs_us.saturating_add(sized_us),
            announced => of_announced(announced, own.needs_us),
        };
        let deadline_us = terms.deadline.map_or(u64::MAX, |deadline| deadline.as_micros() as u64);
        let alone = if u64::from(cost.mean_us) > deadline_us {
            Alone::Late
        } else if u64::from(cost.mean_us) + u64::from(cost.deviation_us) > deadline_us {
            Alone::Even
        } else {
            own.alone
        };
        OwnTime { needs_us: needs_us.max(cost.mean_us), alone }
    }

    /// The estimate of a type at a level, 1..=M. After a reload there may be fewer of both than the permit knew.
    fn row(&self, features: CostFeatures, level: u8) -> &TypeEstimate {
        &self.rows[self.number(features, level)]
    }

    /// The index of a promise. After a reload there may be fewer than the class knew.
    fn promise_index(&self, terms: &DeadlineTerms) -> usize {
        usize::from(terms.promise_index).min(self.costliest.len() - 1)
    }

    fn number(&self, features: CostFeatures, level: u8) -> usize {
        let announced = features.announced_us > 0;
        let request_type = usize::from(features.request_type).min(self.types - 1);
        let level = usize::from(level.max(1)).min(self.levels) - 1;
        (usize::from(announced) * self.types + request_type) * self.levels + level
    }

    pub(crate) fn cost(&self, features: CostFeatures, level: u8) -> Cost {
        let row = self.row(features, level);
        let known = row.get();
        let announced_us = features.announced_us;
        if announced_us == 0 {
            return if features.blocks > 0 { known.and_sized(row.sized_us(features.blocks)) } else { known };
        }
        let of = |part| of_announced(announced_us, part);
        Cost { mean_us: of(known.mean_us), deviation_us: of(known.deviation_us) }
    }

    /// How many times as long such requests take if no time is cut, as [`Work::stretch`] has it.
    pub(super) fn stretch(&self, features: CostFeatures, level: u8) -> u16 {
        self.row(features, level).stretch.load(Ordering::Relaxed)
    }

    /// The time that a request took by the cost that the server reported in a unit of its own: the cost times the ratio of what
    /// all requests took to what was reported of them.
    pub(crate) fn of_reported(&self, cost_ns: u64, took_ns: u64) -> u64 {
        for (sum, ns) in self.reported.iter().zip([cost_ns, took_ns]) {
            sum.fetch_add(ns / 1000, Ordering::Relaxed);
        }
        let times = f32::from_bits(self.per_reported.load(Ordering::Relaxed));
        if times > 0.0 { (cost_ns as f64 * f64::from(times)) as u64 } else { took_ns }
    }

    /// Takes the sums of reported costs and of what the same requests took since the last call (us).
    pub(crate) fn take_reported(&self) -> [f64; 2] {
        self.reported.each_ref().map(|sum| sum.swap(0, Ordering::Relaxed) as f64)
    }

    /// Sets the ratio of what requests take to what was reported of them.
    pub(crate) fn set_per_reported(&self, times: f64) {
        self.per_reported.store((times as f32).to_bits(), Ordering::Relaxed);
    }

    /// Adds the time that a request took of a worker, from which the mean is learned, and the time of its own: how long it was
    /// in service beyond the expected wait in the server. The two differ only while more requests are in service than there are
    /// workers.
    pub(crate) fn note(&self, features: CostFeatures, level: u8, (took_ns, own_ns): (u64, u64)) {
        let row = self.row(features, level);
        let (took_us, own_us) = (took_ns / 1000, own_ns / 1000);
        let longest_us = self.longest_us.load(Ordering::Relaxed);
        if let Some(shapes) = self.shapes.as_ref().filter(|_| features.announced_us == 0) {
            let took_us = took_us.saturating_sub(row.sized_us(features.blocks));
            shapes.note(features.shape, level, took_us);
        }
        match u64::from(features.announced_us) {
            0 if features.blocks > 0 => row.note_sized((took_us, own_us), longest_us, features.blocks),
            0 => _ = row.note((took_us, own_us), longest_us),
            announced => {
                let of_announced = |us: u64| us.saturating_mul(ANNOUNCED) / announced;
                row.note((of_announced(took_us), of_announced(own_us)), u64::MAX);
            }
        }
    }

    /// Counts a request that was refused because it takes too long even alone.
    pub(crate) fn refuse_too_long(&self, features: CostFeatures, level: u8) {
        self.row(features, level).too_long.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a request that takes too long is admitted, to see whether such requests still do: true once for each invitation.
    /// An invitation for idle servers counts only if `idle`.
    pub(crate) fn is_invited(&self, features: CostFeatures, level: u8, idle: bool) -> bool {
        let row = self.row(features, level);
        let take = |invited: &AtomicU32| {
            let one = |left: u32| left.checked_sub(1);
            invited.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one).is_ok()
        };
        (idle && take(&row.invited_if_idle)) || take(&row.invited)
    }
}

/// A part (millionths) of an announced cost.
fn of_announced(announced_us: u32, part: u32) -> u32 {
    u32::try_from(u64::from(announced_us) * u64::from(part) / ANNOUNCED).unwrap_or(u32::MAX)
}

/// What a request's own service needs within its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnTime {
    /// The time (us) within which it is done with the chance that was promised, or as far as that is possible at all.
    pub(crate) needs_us: u32,
    pub(crate) alone: Alone,
}

/// The chance of a request that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alone {
    /// The request is likely to be in time.
    Likely,
    /// The request is more often in time than late.
    Even,
    /// The request is more often late.
    Late,
}

impl OwnTime {
    /// What the request needs: its mean, and by how much more.
    pub(crate) fn needs(self, mean_us: f64) -> Needs {
        let needs = f64::from(self.needs_us);
        let mean = mean_us.min(needs);
        Needs { mean, margin: needs - mean }
    }

    const TIME_BITS: u32 = 30;

    fn packed(self) -> u32 {
        self.needs_us.min((1 << OwnTime::TIME_BITS) - 1) | (self.alone as u32) << OwnTime::TIME_BITS
    }

    fn unpacked(word: u32) -> Self {
        let alone = [Alone::Likely, Alone::Even, Alone::Late, Alone::Late];
        let number = (word >> OwnTime::TIME_BITS) as usize;
        OwnTime { needs_us: word & ((1 << OwnTime::TIME_BITS) - 1), alone: alone[number] }
    }
}

/// The sums of one type since they were last taken.
pub(crate) struct TypeSums {
    pub(crate) requests: u64,
    pub(crate) sum_us: u64,
    pub(crate) squares_us2: u64,
    /// Sums of blocks, of their squares, and of their products with the time that the request took (us).
    pub(crate) blocks: [u64; 3],
    pub(crate) too_long: bool,
}

impl TypeEstimate {
    pub(crate) fn get(&self) -> Cost {
        let word = self.estimate.load(Ordering::Relaxed);
        Cost { mean_us: (word >> 32) as u32, deviation_us: word as u32 }
    }

    pub(crate) fn set(&self, cost: Cost) {
        let word = u64::from(cost.mean_us) << 32 | u64::from(cost.deviation_us);
        self.estimate.store(word, Ordering::Relaxed);
    }

    pub(crate) fn set_stretch(&self, stretch: u16) {
        self.stretch.store(stretch, Ordering::Relaxed);
    }

    /// Admits the next request even if it takes too long, so that its cost is learned.
    pub(crate) fn invite(&self) {
        self.invited.store(1, Ordering::Relaxed);
    }

    /// Admits this number of requests that take too long, each only if a worker would still be idle.
    pub(crate) fn invite_if_idle(&self, requests: u32) {
        self.invited_if_idle.store(requests, Ordering::Relaxed);
    }

    /// Sets the cost of each block.
    pub(crate) fn set_block(&self, us: f64) {
        self.block_ns.store((us * 1e3) as u64, Ordering::Relaxed);
    }

    fn sized_us(&self, blocks: u16) -> u64 {
        u64::from(blocks).saturating_mul(self.block_ns.load(Ordering::Relaxed)) / 1000
    }

    /// Adds the time of a request with a body; the cost of its blocks is subtracted before the type learns from it.
    fn note_sized(&self, (took, own): (u64, u64), longest: u64, blocks: u16) {
        let sized = self.sized_us(blocks);
        let took = sized + self.note((took.saturating_sub(sized), own.saturating_sub(sized)), longest);
        let blocks = u64::from(blocks);
        for (sum, value) in self.blocks.iter().zip([blocks, blocks * blocks, blocks.saturating_mul(took)]) {
            sum.fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Adds times, cut to the outlier bound and to the longest time that counts; returns the first as it was added.
    fn note(&self, (took, own): (u64, u64), longest: u64) -> u64 {
        self.times[time_bin(own)].fetch_add(1, Ordering::Relaxed);
        let Cost { mean_us, deviation_us } = self.get();
        let clip = ServiceTime::clip(mean_us.into(), deviation_us.into()) as u64;
        let [took, own] = [took, own].map(|time| time.min(clip.max(1)).min(longest));
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took, Ordering::Relaxed);
        self.squares_us2.fetch_add(own.saturating_mul(own), Ordering::Relaxed);
        took
    }

    /// Takes the numbers of requests by their time since the last call.
    pub(crate) fn take_times(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let taken = self.times.iter().map(|count| match count.load(Ordering::Relaxed) {
            0 => 0,
            _ => count.swap(0, Ordering::Relaxed),
        });
        taken.enumerate().filter(|(_, count)| *count > 0)
    }

    /// Takes the sums since the last call.
    pub(crate) fn take(&self) -> TypeSums {
        let take = |word: &AtomicU64| word.swap(0, Ordering::Relaxed);
        TypeSums {
            requests: take(&self.requests),
            sum_us: take(&self.sum_us),
            squares_us2: take(&self.squares_us2),
            blocks: self.blocks.each_ref().map(take),
            too_long: self.too_long.swap(0, Ordering::Relaxed) > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body of four gigabytes has as many blocks as are counted.
    #[test]
    fn what_the_largest_body_needs_is_the_most_that_can_be_expressed() {
        let estimates = Estimates::new(1, (1, true), 1, None);
        estimates.set_own(0, 0, OwnTime { needs_us: 1000, alone: Alone::Likely });
        estimates.rows()[0].set_block(50_000.0);
        let largest = CostFeatures { blocks: u16::MAX, ..CostFeatures::default() };
        let terms = DeadlineTerms {
            deadline: None,
            in_time: 0.95,
            deviations: 1.6,
            promise_index: 0,
            prefers_delay: false,
        };
        let own = estimates.own_time(largest, 1, &terms);
        assert_eq!(own, OwnTime { needs_us: u32::MAX, alone: Alone::Likely });
    }
}
