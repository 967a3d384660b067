//! Detects a fall of all costs of a plant by one factor, as when a slow server recovers. The sum over all classes shows the
//! fall before any one class does. Until the fall is known, the server seems to be full, and requests are rejected for nothing.
//!
//! The work of a period is counted in units of each request's expected cost, so that all requests carry the same evidence. As
//! in a [`CostEstimate`], the latest periods below the expected cost are a run, and a run that is four standard errors below it
//! is a fall. A rise is left to each class: a rise degrades or rejects requests, so it must be certain for the class.

use super::level_cost::{evidence, is_step};
use super::{CostEstimate, Served};

/// The detector of a common fall, for one plant.
#[derive(Debug)]
pub(crate) struct CommonFall {
    /// The latest periods below the expected cost; their work is in expected costs.
    run: Served,
    /// The variance of one request's work.
    variance: f64,
    period: Served,
}

/// The weight of a period in the variance: less than for one class, since a plant has more requests than a class.
const FOLLOWS: f64 = 1.0 / 32.0;
/// A period's squared deviation counts as at most this multiple of the variance: a larger one is a change of the server, not
/// noise.
const FARTHEST: f64 = 4.0;

impl CommonFall {
    /// Starts with the variance of exponential service times.
    pub(crate) fn new() -> Self {
        CommonFall { run: Served::default(), variance: 1.0, period: Served::default() }
    }

    /// Adds the requests of one class and level that were served in a period; `cost` has learned from them already.
    pub(crate) fn add(&mut self, served: Served, cost: &CostEstimate) {
        if served.requests > 0.0 && cost.expected > 0.0 {
            let work_seconds = served.work_seconds / cost.expected;
            self.period = self.period + Served { work_seconds, ..served };
        }
    }

    /// Ends a period. Returns the factor by which the costs have fallen, if they have.
    pub(crate) fn end_period(&mut self) -> Option<f64> {
        let period = core::mem::take(&mut self.period);
        if period.requests <= 0.0 {
            return None;
        }
        let expected = [1.0, f64::INFINITY, self.variance];
        let (off, longer) = (period.work_seconds / period.requests - 1.0, self.run + period);
        self.run = if off > 0.0 {
            Served::default()
        } else if evidence(longer, expected) < evidence(period, expected) {
            period
        } else {
            longer
        };
        if is_step(self.run, expected) {
            let Served { requests, work_seconds, .. } = core::mem::take(&mut self.run);
            return Some(work_seconds / requests);
        }
        let square = (period.requests * off * off).min(FARTHEST * self.variance);
        self.variance += FOLLOWS * (square - self.variance);
        // As for one class, the standard error is at least 1 % of the mean.
        self.variance = self.variance.max(1e-4 * period.requests);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The costs of eight classes at the end of each period; each class has 12 exponential service times a period, with the
    /// mean `changes(period, class)`. With `alone`, no common fall is applied.
    fn costs(seed: u64, alone: bool, changes: impl Fn(usize, usize) -> f64) -> [[f64; 8]; 50] {
        let (mut random, mut common) = (Random::new(seed), CommonFall::new());
        let mut classes: [CostEstimate; 8] = Default::default();
        core::array::from_fn(|period| {
            let served: [Served; 8] = core::array::from_fn(|class| {
                let mean = changes(period, class);
                let work_seconds = (0..12).map(|_| random.exponential(mean)).sum();
                Served { requests: 12.0, work_seconds, bytes: 0.0 }
            });
            for (cost, served) in classes.iter_mut().zip(served) {
                cost.learn(served);
                common.add(served, cost);
            }
            if let Some(factor) = common.end_period().filter(|_| !alone) {
                classes.iter_mut().zip(served).for_each(|(cost, served)| _ = cost.fall(factor, served));
            }
            core::array::from_fn(|class| classes[class].seconds().unwrap_or(0.0))
        })
    }

    fn mean(costs: &[f64; 8]) -> f64 {
        costs.iter().sum::<f64>() / 8.0
    }

    #[test]
    fn a_fall_of_all_costs_shows_in_their_sum_first() {
        let slow = |period, _| if (20..40).contains(&period) { 2.0 } else { 1.0 };
        let known = |alone| {
            let runs = (700..800).map(|seed| costs(seed, alone, slow));
            runs.filter(|run| mean(&run[41]) < 1.25).count()
        };
        let (together, alone) = (known(false), known(true));
        assert!(together >= 70 && alone <= 10, "known in 100 runs after two periods: {together}; {alone}");
    }

    #[test]
    fn a_class_that_becomes_cheaper_alone_takes_none_with_it() {
        let first = |period, class| if period >= 25 && class == 0 { 0.2 } else { 1.0 };
        for seed in 700..800 {
            let run = costs(seed, false, first);
            let others = run[28..].iter().map(|costs| (mean(costs) * 8.0 - costs[0]) / 7.0);
            let least = others.fold(f64::INFINITY, f64::min);
            assert!(least > 0.75, "{least} with seed {seed}");
        }
    }

    #[test]
    fn noise_is_seldom_a_fall() {
        let (mut random, mut common, mut cost) = (Random::new(8), CommonFall::new(), CostEstimate::default());
        let falls = (0..2000).filter(|_| {
            let work_seconds = (0..50).map(|_| random.exponential(0.04)).sum();
            let served = Served { requests: 50.0, work_seconds, bytes: 0.0 };
            cost.learn(served);
            common.add(served, &cost);
            common.end_period().is_some()
        });
        let falls = falls.count();
        assert!(falls <= 3, "{falls} falls in 2,000 periods");
    }
}
