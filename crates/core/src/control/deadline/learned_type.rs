//! The learned costs of the requests of one type at one level.
//!
//! If the requests of a type take longer than their deadline even alone, none would ever be admitted, and a wrong estimate
//! would never be corrected. So one of these requests is admitted now and then, the more seldom the better the cost of the type
//! is known ([`TIMES_KNOWN`]), and one after the other on a server that has a worker to spare: no type is locked out of an idle
//! server. Once most of these requests are in time, such a server takes [`MORE`] times as many: after a pause, in which all
//! requests in service were late at once, the estimate is right again within a second.

use super::types::DeadlinePromise;
use crate::admission::estimates::{Alone, OwnTime, TypeEstimate};
use crate::control::deadline::service_allowance::own_time;
use crate::model::{Batch, ServiceHistogram, ServiceTime, SizeLaw, Sized, time_bin};
use alloc::vec::Vec;
use libm::sqrt;

/// The costs of a type at one level, in microseconds; announced costs in millionths of the announcement.
#[derive(Clone, Debug)]
pub(super) struct LearnedType {
    pub(super) time: ServiceTime,
    pub(super) times: ServiceHistogram,
    pub(super) size: SizeLaw,
    pub(super) requests: u64,
    /// Whether some of its requests had a deadline.
    pub(super) has_deadline: bool,
    /// The mean service beyond the longest time that counts (us), as it was measured before the type was split off; its own
    /// histogram replaces it.
    pub(super) beyond: f64,
    /// The time (s) since a request of the type was last served.
    pub(super) silent: f64,
    /// The time (s) for which every request of the type was refused because of its cost.
    pub(super) refused: f64,
}

/// A type whose estimate exceeds its deadline in an empty queue is admitted once in this many times its own service time, times
/// the number of requests that its cost was learned from, but at least once in [`RARELY`] times, which takes one per cent of
/// a worker.
const TIMES_KNOWN: f64 = 5.0;
const RARELY: f64 = 100.0;
/// A request that takes at most this time (us) is tried after the last one, whether that was late or not, if no lighter level
/// is left.
const CHEAP_US: f64 = 60e6;
/// How many times as many requests of a type are tried on a server with workers to spare, once most of those before were in
/// time.
const MORE: u32 = 8;
/// The time (s) after which a server with a worker to spare serves another request of a type that takes too long, if the last
/// one has not been released.
const SILENT: f64 = 60.0;

/// The known cost of a type counts as learned from at most this number of requests once it may not hold any more.
const LITTLE_KNOWN: f64 = 8.0;

impl LearnedType {
    /// A type of which this time is known.
    pub(super) fn new(time: ServiceTime) -> Self {
        let (times, size) = (ServiceHistogram::default(), SizeLaw::default());
        let (beyond, silent, refused) = (0.0, 0.0, 0.0);
        LearnedType { time, times, size, requests: 0, has_deadline: false, beyond, silent, refused }
    }

    /// Learns from the requests released since the last call; returns whether there were any. `promises` are those of its
    /// site, the shortest deadline first, none for announced costs; `longest_us` is the longest time that estimates count.
    pub(super) fn learn(
        &mut self,
        row: &TypeEstimate,
        seconds: f64,
        promises: &[DeadlinePromise],
        longest_us: f64,
    ) -> bool {
        let seen = row.take();
        let requests = seen.requests as f64;
        // The count that was kept of an earlier run may be any number.
        self.requests = self.requests.saturating_add(seen.requests);
        self.has_deadline |= seen.too_long;
        let [blocks, squares, products] = seen.blocks.map(|sum| sum as f64);
        // The sum excludes the time of the blocks.
        let took = seen.sum_us as f64 + blocks * self.size.slope();
        self.size.learn(&Sized { requests, took, blocks, squares, products });
        let batch = Batch { requests, sum: seen.sum_us as f64, squares: seen.squares_us2 as f64 };
        let stepped = self.time.learn(&batch);
        self.silent += seconds;
        if requests > 0.0 || self.silent >= SILENT {
            self.silent = 0.0;
            row.invite_if_idle(1);
        }
        if requests > 0.0 {
            self.refused = 0.0;
            // After a step, the times before it weigh no more than the requests that showed the step.
            let remember = if stepped { self.time.weight() } else { f64::INFINITY };
            let counts: Vec<(usize, u32)> = row.take_times().collect();
            let in_time = |promise: &DeadlinePromise| {
                let below = time_bin(promise.deadline_us() as u64);
                counts.iter().filter(|(bin, _)| *bin < below).map(|(_, count)| count).sum::<u32>()
            };
            self.times.learn(remember, counts.iter().copied());
            let is_late = |promise: &&DeadlinePromise| {
                self.own_time(promise.deadline_us(), promise.in_time).alone == Alone::Late
            };
            let most = |in_time: u32| u64::from(in_time) * 2 >= seen.requests;
            // If the cut times are within the deadline on average, the next request follows at once after requests that were
            // mostly in time, a few of which show that the type has become cheaper, and after cheap requests that would
            // otherwise be refused.
            let is_cheap = !row.has_lighter && self.whole(longest_us).0 <= CHEAP_US;
            let follows = |promise: &DeadlinePromise| {
                batch.sum <= requests * promise.deadline_us() && (is_cheap || most(in_time(promise)))
            };
            if promises.iter().rev().find(is_late).is_some_and(follows) {
                row.invite();
            }
            let in_time = promises.last().map_or(0, in_time);
            if most(in_time) {
                row.invite_if_idle(in_time.saturating_mul(MORE));
            }
        } else if seen.too_long {
            self.refused += seconds;
            let times = (TIMES_KNOWN * self.time.weight()).min(RARELY);
            if self.refused >= times * self.whole(longest_us).0 * 1e-6 {
                self.refused = 0.0;
                row.invite();
            }
        }
        requests > 0.0
    }

    /// Lets the known cost count as that of a few requests, and admits the next request however long it takes: the times before
    /// were measured with a wrong number of workers.
    pub(super) fn lower_confidence(&mut self, row: &TypeEstimate) {
        let (mean, variance, weight) = self.time.parts();
        self.time = self.time.restored(mean, variance, weight.min(LITTLE_KNOWN));
        self.times.learn(LITTLE_KNOWN, core::iter::empty());
        row.invite();
    }

    /// The time that its requests need within a deadline that the part `in_time` of them keeps.
    pub(super) fn own_time(&self, deadline_us: f64, in_time: f64) -> OwnTime {
        own_time(&self.time, &self.times, (deadline_us, in_time))
    }

    /// The share of its requests that take no longer than a deadline; `None` if none of them had one.
    pub(super) fn in_time(&self, deadline_us: f64) -> Option<f64> {
        self.has_deadline.then(|| self.times.within(deadline_us, &self.time))
    }

    /// The mean time of its requests and its deviation, with the time that they take beyond the longest time that the estimate
    /// counts.
    pub(super) fn whole(&self, longest_us: f64) -> (f64, f64) {
        let (mean, deviation) = (self.time.mean(), self.time.deviation());
        let (beyond, squares) = match self.times.counts().next() {
            Some(_) => self.times.beyond(longest_us),
            None => (self.beyond, self.beyond * (2.0 * mean + self.beyond)),
        };
        let whole = mean + beyond;
        (whole, sqrt((deviation * deviation + mean * mean + squares - whole * whole).max(0.0)))
    }
}
