//! A mean that is followed: slowly through noise, at once through a step.
//!
//! `mean += gain (sample - mean)`, unless the sample lies more than 4.5 standard deviations off: then the load has
//! changed, and averaging with what was before would only delay the answer by several periods. The variance of the
//! innovations is learned, floored by what Poisson arrivals would show, so that bursty traffic is not taken for a
//! step at every burst.
//!
//! Why not a plain moving average: it is either noisy (clients change level for nothing) or late (CA 4.2.2's loop needs
//! eight periods for a step that is plain to see in one).

use libm::sqrt;

/// Follows a rate [1/s], sampled [`SAMPLES_PER_PERIOD`](Self::SAMPLES_PER_PERIOD) times a period.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    mean: f64,
    variance: f64,
    samples: u32,
    rose: bool,
}

/// Of a sample of at least [`AMPLE`] requests; with fewer, less, since what a client sees of the noise is the change of
/// m, and at the lowest rates one request more or less must not look like half as much load again.
const GAIN: f64 = 0.06;
const SMALLEST_GAIN: f64 = 0.005;
const AMPLE: f64 = 900.0;
const VARIANCE_GAIN: f64 = 1.0 / 64.0;
const STEP_DEVIATIONS: f64 = 4.5;

impl Tracker {
    /// How often a period is sampled: a load that came, or a burst that went, in the middle of a period is then known
    /// by its own rate, not by its mean with what was before or after.
    pub const SAMPLES_PER_PERIOD: u32 = 4;

    /// Takes a count over `seconds`; returns whether the rate stepped.
    pub fn count(&mut self, count: u64, seconds: f64) -> bool {
        let rate = count as f64 / seconds;
        // Of the prediction's own expectation; one request more than expected is never a step.
        let poisson = (self.mean.max(rate) / seconds).max(1.0 / (seconds * seconds));
        let innovation = rate - self.mean;
        let variance = self.variance.max(poisson);
        let step =
            innovation * innovation > STEP_DEVIATIONS * STEP_DEVIATIONS * variance || self.samples == 0;
        let learned = (innovation * innovation).min(STEP_DEVIATIONS * STEP_DEVIATIONS * variance);
        self.variance += VARIANCE_GAIN * (learned - self.variance);
        self.samples = self.samples.saturating_add(1);
        let gain = (GAIN * sqrt(self.mean * seconds / AMPLE)).clamp(SMALLEST_GAIN, GAIN);
        self.mean += if step { innovation } else { gain * innovation };
        self.rose = step && innovation > 0.0;
        step
    }

    /// The rate rose by a step in the last sample: no second one has confirmed it.
    pub fn rose(&self) -> bool {
        self.rose
    }

    /// The rate now [1/s].
    pub fn mean(&self) -> f64 {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_taken_at_once_and_noise_is_not() {
        let mut tracker = Tracker::default();
        assert!(tracker.count(1000, 1.0));
        for i in 0..50 {
            assert!(
                !tracker.count(if i % 2 == 0 { 1030 } else { 970 }, 1.0),
                "one sigma of Poisson is no step"
            );
        }
        assert!((tracker.mean() - 1000.0).abs() < 10.0);
        assert!(tracker.count(3000, 1.0));
        assert_eq!(tracker.mean(), 3000.0);
        assert!(tracker.count(0, 1.0));
    }

    #[test]
    fn bursts_that_are_usual_are_no_steps() {
        let mut tracker = Tracker::default();
        let mut late_steps = 0;
        for i in 0..400 {
            let step = tracker.count(if i % 3 == 0 { 1300 } else { 850 }, 1.0);
            late_steps += u32::from(step && i > 200);
        }
        assert_eq!(late_steps, 0);
    }
}
