//! The cost of one request at one level, from its own service times.
//!
//! Each period gives n requests, their work (service time, where no more requests are in service than there are workers) and
//! their bytes. Sums decay with a time constant of about five periods of traffic, so a cost is the mean of many requests. A
//! period whose mean differs by more than four standard errors replaces it, because the server or the content has changed.
//!
//! A line `a + b x` would not do, because costs differ for other reasons than size: a script costs more than a file of the
//! same size. The line ([`LinearModel`](super::LinearModel)) is for the costs of contracts and of sizes that were not seen.

use core::ops::Add;

/// Mean work and size of a request.
#[derive(Clone, Debug, Default)]
pub struct CostEstimate {
    weight: f64,
    seconds: f64,
    bytes: f64,
    /// The variance of one request's work.
    variance: f64,
}

/// What one period showed: requests released, their work, their body bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Served {
    /// n.
    pub requests: f64,
    /// Sum of work [server seconds].
    pub work_seconds: f64,
    /// Sum of body bytes.
    pub bytes: f64,
}

impl Add for Served {
    type Output = Served;
    fn add(self, other: Served) -> Served {
        Served {
            requests: self.requests + other.requests,
            work_seconds: self.work_seconds + other.work_seconds,
            bytes: self.bytes + other.bytes,
        }
    }
}

const REMEMBER: f64 = 0.8;
const STEP_DEVIATIONS: f64 = 4.0;
/// Below this many requests a period's mean is no evidence of a step.
pub(crate) const EVIDENCE: f64 = 8.0;

impl CostEstimate {
    /// Learns from a period's sums; returns whether the cost stepped.
    pub fn learn(&mut self, served: Served) -> bool {
        let n = served.requests;
        if n <= 0.0 {
            return false;
        }
        let (seconds, bytes) = (served.work_seconds / n, served.bytes / n);
        if self.weight == 0.0 {
            // Until more is known, service times are taken as exponential.
            *self = CostEstimate { weight: n, seconds, bytes, variance: seconds * seconds };
            return true;
        }
        let innovation = seconds - self.seconds;
        let error_variance = self.variance * (1.0 / n + 1.0 / self.weight);
        let step =
            n >= EVIDENCE && innovation * innovation > STEP_DEVIATIONS * STEP_DEVIATIONS * error_variance;
        self.variance += 0.125 * (n * innovation * innovation - self.variance);
        // The standard error is at least 1 % of the mean, because the next period's mix differs by that much.
        self.variance = self.variance.max(1e-4 * self.seconds * self.seconds * n);
        self.weight = if step { n } else { REMEMBER * self.weight + n };
        self.seconds += n / self.weight * innovation;
        self.bytes += n / self.weight * (bytes - self.bytes);
        step
    }

    /// Lowers a cost that keeps requests out of an idle plant. Otherwise one slow episode could make the cost so large
    /// that no request is admitted to correct it.
    pub fn doubt(&mut self) {
        self.seconds *= REMEMBER;
        self.weight *= REMEMBER;
    }

    /// Work of one request [server seconds], if any was seen.
    pub fn seconds(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.seconds)
    }

    /// Body bytes of one request, if any was seen.
    pub fn bytes(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(requests: f64, each: f64) -> Served {
        Served { requests, work_seconds: requests * each, bytes: requests * 100.0 }
    }

    #[test]
    fn averages_noise_and_takes_a_step() {
        let mut cost = CostEstimate::default();
        assert_eq!(cost.seconds(), None);
        for i in 0..40 {
            cost.learn(served(100.0, if i % 2 == 0 { 0.011 } else { 0.009 }));
        }
        assert!((cost.seconds().expect("learned") - 0.010).abs() < 0.000_3);
        assert!(cost.learn(served(100.0, 0.020)), "the server has slowed to half");
        assert!((cost.seconds().expect("learned") - 0.020).abs() < 1e-9);
        assert_eq!(cost.bytes(), Some(100.0));
    }
}
