//! What all classes of a plant show together: when a slow server recovers, all costs fall by one factor. It shows in their sum
//! before it does in any of them, and until it is known the server is taken for full and requests are rejected for nothing.
//!
//! The work of a period is counted in what each request was expected to cost, so that all requests carry the same evidence. As
//! in a [`CostEstimate`], the latest periods below the expected are a run, and one that is four standard errors below it is a
//! fall. A rise is left to each class: it degrades or rejects requests, and must be sure of the class.

use super::level_cost::{evidence, is_step};
use super::{CostEstimate, Served};

/// Finds it.
#[derive(Debug)]
pub(crate) struct CommonFall {
    /// The latest periods below what was expected; work is in expected costs.
    run: Served,
    /// The variance of one request's work.
    variance: f64,
    period: Served,
}

/// What a period adds to the variance: slower than for one class, since a plant has more requests than a class.
const FOLLOWS: f64 = 1.0 / 32.0;
/// The farthest that a period's deviation counts, in variances: beyond it the server has changed, which is no noise.
const FARTHEST: f64 = 4.0;

impl CommonFall {
    /// Services are taken as exponential at first.
    pub(crate) fn new() -> Self {
        CommonFall { run: Served::default(), variance: 1.0, period: Served::default() }
    }

    /// Adds what was served in a period of one class and level, from which its cost has learned already.
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
        // As of one class, the standard error is at least 1 % of the mean.
        self.variance = self.variance.max(1e-4 * period.requests);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Eight classes of a dozen requests a second, exponential. Returns the costs at the end of each period, of one when
    /// the server is fast; it is slow in periods 20 to 39. `alone` is of each class without the others.
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
        assert!(together >= 70 && alone <= 10, "of 100 known after two periods: {together}; {alone}");
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
        assert!(falls <= 3, "{falls} in 2,000 periods");
    }
}
