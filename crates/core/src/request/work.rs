//! The work that a request brings, as admission by deadline expects it.

use crate::time::{Duration, Instant};

/// What the cost of a request is estimated from, before its service. Packed, since each waiting request keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed(2))]
pub(crate) struct CostFeatures {
    /// The number of its type among the types of its site.
    pub(crate) request_type: u16,
    /// The request's cost as the application announced it (us); 0 without an announcement.
    pub(crate) announced_us: u32,
    /// Whole blocks of 64 KB in its body, by its `Content-Length`.
    pub(crate) blocks: u16,
    /// The handle of its shape, where types are found; else zero.
    pub(crate) shape: u16,
}

/// A cost in microseconds of service, with its standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) mean_us: u32,
    pub(crate) deviation_us: u32,
}

/// The work that was reserved for a request, as it was expected at its arrival.
///
/// The permit keeps it, so that exactly as much is given back as was reserved, whatever was learned meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// The slot of its rank in the plant's unfinished work.
    pub(crate) slot: u16,
    /// The tag under which the admission law has reserved it.
    pub(crate) tag: u16,
    /// The lowest bits of the number of deadlines ever promised at the plant before its start. Its start counts for those of
    /// them that were still promised then (`HeldWorkers`).
    pub(crate) deadlines_before: u16,
    /// The part of the ring of waiting work by arrival in which it counts (`WaitingByAge`).
    pub(crate) ring_part: u8,
    /// For how long it was expected to wait in the server when it started there (us).
    pub(crate) queued_us: u32,
    /// The mean time of such requests without the cut at the longest deadline, relative to that with it, in sixteenths; 16 or
    /// less means as long.
    pub(crate) stretch: u16,
    pub(crate) features: CostFeatures,
    pub(crate) cost: Cost,
}

/// What was promised about deadlines to a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadlineTerms {
    /// The relative deadline; without one the request's work is only counted.
    pub(crate) deadline: Option<Duration>,
    /// The part of admitted requests that is promised to be in time.
    pub(crate) in_time: f64,
    /// The quantile of the standard normal distribution for that part.
    pub(crate) deviations: f64,
    /// The index of the promise, a deadline, its share and a priority, among those of its site.
    pub(crate) promise_index: u8,
    /// Short waits are preferred to busy workers.
    pub(crate) prefers_delay: bool,
}

/// A request is late once a service time of this many deviations below its mean would still end after the deadline.
const LUCK: f64 = 2.0;

/// The nanoseconds of a deadline that a microsecond of an expected time outlasts: 5 % more, because the learned mean of
/// times that are cut at the deadline stays a little below it.
const LONG_NS: u64 = 1050;

/// The most that one request adds to a sum of variances (us^2), the square of seventeen seconds: as many as a gate admits
/// (2^16) fit into 64 bits.
const MOST_VARIANCE: u64 = 1 << 48;

impl Work {
    /// A stretch of 1.
    pub(crate) const ONCE: u16 = 16;

    #[cfg(test)]
    pub(crate) fn of(cost: Cost) -> Self {
        let (stretch, features) = (Self::ONCE, CostFeatures::default());
        Work {
            slot: 0,
            tag: 0,
            deadlines_before: 0,
            ring_part: u8::MAX,
            queued_us: 0,
            stretch,
            features,
            cost,
        }
    }

    /// The latest start with which the request may still be in time.
    pub(crate) fn latest_start(&self, arrived: Instant, terms: &DeadlineTerms) -> Instant {
        let Some(deadline) = terms.deadline else { return Instant::FAR };
        let Cost { mean_us, deviation_us } = self.cost;
        let least_us = f64::from(mean_us) - LUCK * f64::from(deviation_us);
        let least = Duration::from_micros(least_us.max(0.0) as u64);
        arrived + deadline.saturating_sub(least)
    }

    /// Whether the request is expected to be in service for as long as this (ns).
    pub(crate) fn outlasts_ns(&self, deadline_ns: u64) -> bool {
        u64::from(self.cost.mean_us).saturating_mul(LONG_NS) >= deadline_ns
    }

    /// The work with the whole time that it takes.
    pub(crate) fn whole(&self) -> Work {
        let mean_us =
            u64::from(self.cost.mean_us) * u64::from(self.stretch.max(Self::ONCE)) / u64::from(Self::ONCE);
        Work { cost: Cost { mean_us: mean_us.min(u32::MAX.into()) as u32, ..self.cost }, ..*self }
    }

    /// Mean (us) and variance (us^2).
    pub(crate) fn mean_and_variance(&self) -> (u64, u64) {
        (self.cost.mean_us.into(), u64::from(self.cost.deviation_us) * u64::from(self.cost.deviation_us))
    }

    /// Mean (us) and variance (us^2) to add to sums. The variance is bounded, so that the sum does not wrap.
    pub(crate) fn summand(&self) -> (u64, u64) {
        let (mean, variance) = self.mean_and_variance();
        (mean, variance.min(MOST_VARIANCE))
    }

    /// Mean (us) and mean square (us^2).
    pub(crate) fn mean_and_square(&self) -> (u64, u64) {
        let (mean, variance) = self.mean_and_variance();
        (mean, (mean * mean).saturating_add(variance))
    }
}
