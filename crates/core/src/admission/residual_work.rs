//! The residual work of the requests in service.
//!
//! A request that has been in service for a time t is expected to need further
//!
//! ```text
//! E[S] - beta t    with    beta = (1 - c^2) / (1 + c^2)
//! ```
//!
//! where c is the coefficient of variation of S. At the start that is `E[S]`. At the mean age it equals the mean residual
//! life `E[S] (1 + c^2) / 2`, and it is linear in t. For a known service time (c = 0) it is exactly what remains; for an
//! exponential one (c = 1) it is the mean at any age. Times that vary more are treated as exponential.
//!
//! The sum over all requests in service is `sum of (E[S] + beta start) - now sum of beta`. Both sums are in one word, because a
//! reader between two writes would be wrong by the time since the process began. The first sum is kept modulo 2^40 us, thirteen
//! days. What is left is at most the sum of `E[S]`, which is at most twice the residual work at the mean age, so of all
//! differences that are equal modulo 2^40 us the largest one up to that bound is taken. If so much is in service that even this
//! one is not unique, each request is taken to be at the mean age.
//!
//! The formula is negative for a request that is in service for much longer than expected, which would hide the work of the
//! others. So if the sum is negative, each request is taken to be at the mean age instead.

use crate::admission::rank_work::Sum;
use crate::request::work::Work;
use crate::time::Instant;
use core::sync::atomic::{AtomicU64, Ordering};

/// All requests of a plant that are in service with reserved work.
#[derive(Default)]
pub(crate) struct ResidualWork {
    /// The sum of all expected service times (us).
    whole_us: AtomicU64,
    /// In sixteenths: the lower 20 bits hold the sum of beta, at most 1 for each of 65,535 requests (the gate's most);
    /// the upper bits hold the other sum (us), which wraps.
    sums: AtomicU64,
    /// The residual work at the mean age, and the variance.
    residual: Sum,
}

const UNIT: u64 = 16;
const BETA_BITS: u32 = 20;
const BETA: u64 = (1 << BETA_BITS) - 1;

impl ResidualWork {
    pub(crate) fn start(&self, started: Instant, work: &Work) {
        self.sums.fetch_add(summands(started, work), Ordering::Relaxed);
        self.residual.add(residual(work));
        self.whole_us.fetch_add(work.mean_and_variance().0, Ordering::Relaxed);
    }

    pub(crate) fn finish(&self, started: Instant, work: &Work) {
        self.sums.fetch_sub(summands(started, work), Ordering::Relaxed);
        self.residual.subtract(residual(work));
        self.whole_us.fetch_sub(work.mean_and_variance().0, Ordering::Relaxed);
    }

    /// The work (us) and its variance of the requests that workers serve, and of the others, which wait in the server. If some
    /// wait, it is not known which, so the served ones are taken to be at the mean age. Without a clock all are.
    pub(crate) fn of(&self, now: Option<Instant>, (in_service, workers): (u32, u32)) -> [(f64, f64); 2] {
        if in_service <= workers {
            return [self.at(now), (0.0, 0.0)];
        }
        let (residual, variance) = self.about();
        let served = f64::from(workers) / f64::from(in_service);
        let (waiting, whole_us) = (1.0 - served, self.whole_us.load(Ordering::Relaxed) as f64);
        [(served * residual, served * variance), (waiting * whole_us, waiting * variance)]
    }

    /// The residual work (us) if each request is at its mean age, and its variance.
    pub(crate) fn about(&self) -> (f64, f64) {
        let (residual, variance) = self.residual.get();
        (residual as f64, variance as f64)
    }

    /// The residual work (us), and its variance; without a clock, at the mean age.
    pub(crate) fn at(&self, now: Option<Instant>) -> (f64, f64) {
        now.map_or_else(|| self.about(), |now| self.left(now))
    }

    /// The residual work now (us), and its variance.
    pub(crate) fn left(&self, now: Instant) -> (f64, f64) {
        let (residual, variance) = self.about();
        let sums = self.sums.load(Ordering::Relaxed);
        let run = ((sums & BETA).wrapping_mul(microseconds(now)) << BETA_BITS) as i64;
        let most = 2.0 * residual * UNIT as f64;
        let range = (1_u64 << (64 - BETA_BITS)) as f64;
        let mut left = (((sums & !BETA) as i64).wrapping_sub(run) >> BETA_BITS) as f64;
        if left < most - range / 2.0 && left + range <= most {
            left += range;
        }
        (if left < 0.0 || most >= range { residual } else { left / UNIT as f64 }, variance)
    }
}

fn microseconds(instant: Instant) -> u64 {
    instant.as_nanos() / 1000
}

/// beta, in sixteenths.
fn beta(work: &Work) -> u64 {
    let (mean, variance) = work.mean_and_variance();
    let square = (mean * mean).max(1);
    (UNIT * square.saturating_sub(variance) + (square + variance) / 2) / (square + variance)
}

/// What a request adds to the two sums.
fn summands(started: Instant, work: &Work) -> u64 {
    let beta = beta(work);
    let sum = beta.wrapping_mul(microseconds(started)).wrapping_add(UNIT * work.mean_and_variance().0);
    (sum << BETA_BITS) | beta
}

/// The residual work at the mean age, `E[S] (1 + c^2) / 2`, and the variance.
fn residual(work: &Work) -> (u64, u64) {
    let (mean, variance) = work.mean_and_variance();
    ((mean + variance / mean.max(1)) / 2, work.summand().1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::work::Cost;
    use crate::time::Duration;

    fn work(mean_us: u32, deviation_us: u32) -> Work {
        Work::of(Cost { mean_us, deviation_us })
    }

    /// An instant years after the origin, where the sum has wrapped.
    fn at(microseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_micros((1 << 46) + (1 << 39) + microseconds)
    }

    #[test]
    fn a_known_time_runs_down() {
        let residual = ResidualWork::default();
        residual.start(at(0), &work(1000, 0));
        residual.start(at(400), &work(3000, 0));
        assert_eq!(residual.left(at(400)), (3600.0, 0.0));
        assert_eq!(residual.left(at(900)), (2600.0, 0.0));
        residual.finish(at(0), &work(1000, 0));
        assert_eq!(residual.left(at(1000)), (2400.0, 0.0));
        residual.finish(at(400), &work(3000, 0));
        assert_eq!(residual.left(at(5000)), (0.0, 0.0));
        assert_eq!(residual.sums.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn of_an_exponential_one_the_mean_is_always_left() {
        for deviation in [1000, 3000] {
            let residual = ResidualWork::default();
            residual.start(at(0), &work(1000, deviation));
            assert_eq!(residual.left(at(0)).0, 1000.0);
            assert_eq!(residual.left(at(9000)).0, 1000.0);
        }
    }

    #[test]
    fn in_between_it_is_the_mean_residual_life_at_the_mean_age() {
        let residual = ResidualWork::default();
        // c^2 = 1/3, as for a uniform distribution: beta is a half, the mean age and the residual are two thirds of E[S].
        residual.start(at(0), &work(3000, 1732));
        assert!((residual.left(at(2000)).0 - 2000.0).abs() < 2.0, "{:?}", residual.left(at(2000)));
        assert!((residual.about().0 - 2000.0).abs() < 2.0);
    }

    #[test]
    fn one_that_is_stuck_does_not_hide_the_others() {
        let residual = ResidualWork::default();
        residual.start(at(0), &work(1000, 0));
        residual.start(at(60_000_000), &work(3000, 0));
        assert_eq!(residual.left(at(60_000_000)), (2000.0, 0.0));
    }

    /// Sixty seconds each, ten thousand of them: seven days, more than half of the range.
    #[test]
    fn days_of_work_are_counted_and_run_down() {
        let residual = ResidualWork::default();
        let minute = 60_000_000;
        for _ in 0..10_000 {
            residual.start(at(0), &work(minute, 0));
        }
        for (age, left) in [(0, 6e11), (10_000_000, 5e11), (59_000_000, 1e10)] {
            assert_eq!(residual.left(at(age)).0, left, "at an age of {age} us");
        }
        let many = ResidualWork::default();
        for _ in 0..65_535 {
            many.start(at(0), &work(minute, minute));
        }
        let (left, variance) = many.left(at(1000));
        assert!((left / (65_535.0 * 6e7) - 1.0).abs() < 1e-9, "{left}");
        assert!(variance >= 65_535.0 * 1e14, "it does not wrap: {variance}");
        for _ in 0..65_535 {
            many.finish(at(0), &work(minute, minute));
        }
        assert_eq!(many.left(at(2000)), (0.0, 0.0));
    }

    #[test]
    fn as_many_as_a_gate_admits_are_counted() {
        let residual = ResidualWork::default();
        for _ in 0..65_535 {
            residual.start(at(0), &work(1000, 0));
        }
        assert_eq!(residual.left(at(250)).0, 65_535.0 * 750.0);
        for _ in 0..65_535 {
            residual.finish(at(0), &work(1000, 0));
        }
        assert_eq!((residual.left(at(250)).0, residual.sums.load(Ordering::Relaxed)), (0.0, 0));
    }
}
