//! What is left to do of the requests in service.
//!
//! One that has run for a time t is expected to have
//!
//! ```text
//! E[S] - beta t    with    beta = (1 - c^2) / (1 + c^2)
//! ```
//!
//! before it: all of it at the start; the mean residual life `E[S] (1 + c^2) / 2` at the mean age, which is as much; in
//! between the straight line. For a known time (c = 0) that is just what is left, for an exponential one (c = 1) it is
//! the mean whatever the age. What varies more is taken for exponential.
//!
//! The sum over all in service is `sum of (E[S] + beta start) - now sum of beta`. Both sums stand in one word, or a
//! reader between two writes would be off by the time since the process began. The first is kept modulo 2^40 us: a
//! difference is right while it is shorter than half of that, six days.
//!
//! A request that is long overdue would count below nothing, and hide the others. So a sum below nothing is not believed:
//! each is then taken to be at the mean age.

use crate::admission::unfinished_work::Sum;
use crate::request::work::Work;
use crate::time::Instant;
use core::sync::atomic::{AtomicU64, Ordering};

/// All requests of a plant that are in service and were reserved.
#[derive(Default)]
pub(crate) struct ResidualWork {
    /// In sixteenths: below, in 20 bits, the sum of beta, at most 1 for each of 65,535 requests (the gate's most); above the
    /// other sum (us), which goes round.
    line: AtomicU64,
    /// What is left at the mean age, and the variance.
    residual: Sum,
}

const UNIT: u64 = 16;
const BETA_BITS: u32 = 20;
const BETA: u64 = (1 << BETA_BITS) - 1;

impl ResidualWork {
    pub(crate) fn start(&self, started: Instant, work: &Work) {
        self.line.fetch_add(line(started, work), Ordering::Relaxed);
        self.residual.add(residual(work));
    }

    pub(crate) fn finish(&self, started: Instant, work: &Work) {
        self.line.fetch_sub(line(started, work), Ordering::Relaxed);
        self.residual.subtract(residual(work));
    }

    /// What is left to do (us), and its variance, if each is at the mean age.
    pub(crate) fn about(&self) -> (f64, f64) {
        let (residual, variance) = self.residual.get();
        (residual as f64, variance as f64)
    }

    /// What is left to do now (us), and its variance.
    pub(crate) fn left(&self, now: Instant) -> (f64, f64) {
        let (residual, variance) = self.about();
        let line = self.line.load(Ordering::Relaxed);
        let run = ((line & BETA).wrapping_mul(microseconds(now)) << BETA_BITS) as i64;
        let left = ((line & !BETA) as i64).wrapping_sub(run) >> BETA_BITS;
        (if left < 0 { residual } else { left as f64 / UNIT as f64 }, variance)
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

fn line(started: Instant, work: &Work) -> u64 {
    let beta = beta(work);
    let sum = beta.wrapping_mul(microseconds(started)).wrapping_add(UNIT * work.mean_and_variance().0);
    (sum << BETA_BITS) | beta
}

/// At the mean age, `E[S] (1 + c^2) / 2`, and the variance.
fn residual(work: &Work) -> (u64, u64) {
    let (mean, variance) = work.mean_and_variance();
    ((mean + variance / mean.max(1)) / 2, variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::work::Cost;
    use crate::time::Duration;

    fn work(mean_us: u32, deviation_us: u32) -> Work {
        Work::of(Cost { mean_us, deviation_us })
    }

    /// A moment years after the origin, where the sum has gone round.
    fn at(microseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_micros((1 << 46) + (1 << 39) + microseconds)
    }

    #[test]
    fn a_known_time_runs_down() {
        let serving = ResidualWork::default();
        serving.start(at(0), &work(1000, 0));
        serving.start(at(400), &work(3000, 0));
        assert_eq!(serving.left(at(400)), (3600.0, 0.0));
        assert_eq!(serving.left(at(900)), (2600.0, 0.0));
        serving.finish(at(0), &work(1000, 0));
        assert_eq!(serving.left(at(1000)), (2400.0, 0.0));
        serving.finish(at(400), &work(3000, 0));
        assert_eq!(serving.left(at(5000)), (0.0, 0.0));
        assert_eq!(serving.line.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn of_an_exponential_one_the_mean_is_always_left() {
        for deviation in [1000, 3000] {
            let serving = ResidualWork::default();
            serving.start(at(0), &work(1000, deviation));
            assert_eq!(serving.left(at(0)).0, 1000.0);
            assert_eq!(serving.left(at(9000)).0, 1000.0);
        }
    }

    #[test]
    fn in_between_it_is_the_mean_residual_life_at_the_mean_age() {
        let serving = ResidualWork::default();
        // c^2 = 1/3, as of a uniform law: beta is a half, the mean age and the residual are two thirds.
        serving.start(at(0), &work(3000, 1732));
        assert!((serving.left(at(2000)).0 - 2000.0).abs() < 2.0, "{:?}", serving.left(at(2000)));
        assert!((serving.about().0 - 2000.0).abs() < 2.0);
    }

    #[test]
    fn one_that_is_stuck_does_not_hide_the_others() {
        let serving = ResidualWork::default();
        serving.start(at(0), &work(1000, 0));
        serving.start(at(60_000_000), &work(3000, 0));
        assert_eq!(serving.left(at(60_000_000)), (2000.0, 0.0));
    }

    #[test]
    fn as_many_as_a_gate_admits_are_counted() {
        let serving = ResidualWork::default();
        for _ in 0..65_535 {
            serving.start(at(0), &work(1000, 0));
        }
        assert_eq!(serving.left(at(250)).0, 65_535.0 * 750.0);
        for _ in 0..65_535 {
            serving.finish(at(0), &work(1000, 0));
        }
        assert_eq!((serving.left(at(250)).0, serving.line.load(Ordering::Relaxed)), (0.0, 0));
    }
}
