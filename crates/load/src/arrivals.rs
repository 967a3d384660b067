//! When requests arrive: a Poisson process whose rate is piecewise constant.
//!
//! An inhomogeneous Poisson process is a homogeneous one of rate 1 on the axis of expected arrivals, `A(t) = integral of rate
//! dt`. So each gap is an exponential of mean 1, walked along the steps until it equals the area passed. That is exact also
//! where the rate jumps; if each gap were drawn at the rate of its start, it would be wrong for a gap across a jump, and would
//! never leave a step of rate zero.

use crate::Random;
use std::time::Duration;

/// One step of a schedule: its length, and its rate in arrivals per second.
pub type Step = (Duration, f64);

/// The arrival times of a schedule, in order, as times from its start.
#[derive(Clone, Debug)]
pub(crate) struct PoissonArrivals {
    steps: Vec<Step>,
    step: usize,
    /// The part of the present step that has passed (s).
    into_step: f64,
    before_step: Duration,
    random: Random,
}

impl PoissonArrivals {
    /// Arrivals over `steps`, drawn from `random`. A rate that is negative or not finite counts as zero.
    pub(crate) fn new(steps: Vec<Step>, random: Random) -> Self {
        Self { steps, step: 0, into_step: 0.0, before_step: Duration::ZERO, random }
    }
}

impl Iterator for PoissonArrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let mut area = self.random.exponential(1.0);
        loop {
            let &(length, rate) = self.steps.get(self.step)?;
            let left = length.as_secs_f64() - self.into_step;
            let step_area = if rate.is_finite() && rate > 0.0 { rate * left } else { 0.0 };
            if area < step_area {
                self.into_step += area / rate;
                return Some(self.before_step + Duration::from_secs_f64(self.into_step));
            }
            area -= step_area;
            self.before_step += length;
            self.into_step = 0.0;
            self.step += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn rate_and_dispersion_are_poisson() {
        let rate = 1000.0;
        let arrivals = PoissonArrivals::new(vec![(seconds(200), rate)], Random::new(11));
        let mut bins = vec![0_u32; 2000];
        let mut last = Duration::ZERO;
        for at in arrivals {
            assert!(at >= last);
            last = at;
            bins[(at.as_secs_f64() * 10.0) as usize] += 1;
        }
        let n = bins.len() as f64;
        let mean = bins.iter().map(|&b| f64::from(b)).sum::<f64>() / n;
        let variance = bins.iter().map(|&b| (f64::from(b) - mean).powi(2)).sum::<f64>() / n;
        // Standard errors: of the mean 0.22 %, of the index of dispersion sqrt(2 / 2000) = 3.2 %.
        assert!((mean / 100.0 - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance / mean - 1.0).abs() < 0.13, "index of dispersion {}", variance / mean);
    }

    #[test]
    fn each_step_has_its_own_rate_and_a_zero_step_is_silent() {
        let steps = vec![(seconds(50), 100.0), (seconds(50), 0.0), (seconds(50), 400.0), (seconds(5), -1.0)];
        let mut counts = [0_u32; 4];
        for at in PoissonArrivals::new(steps, Random::new(5)) {
            counts[(at.as_secs() / 50) as usize] += 1;
        }
        // Four standard deviations.
        assert!(counts[0].abs_diff(5_000) < 283, "{counts:?}");
        assert!(counts[2].abs_diff(20_000) < 566, "{counts:?}");
        assert_eq!((counts[1], counts[3]), (0, 0));
    }

    #[test]
    fn an_empty_schedule_ends() {
        assert_eq!(PoissonArrivals::new(Vec::new(), Random::new(1)).next(), None);
    }
}
