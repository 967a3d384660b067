//! Whether two groups of requests cost differently, and which feature explains most of the difference: one step of a regression
//! tree.
//!
//! Costs are compared as ratios, so the variable is the logarithm of the service time, whose errors are near normal for
//! exponential, lognormal and Pareto times alike. With the times themselves, one long request in a thousand would decide. The
//! unit is the eighth of an octave ([`log_time`]). A site serves at several levels; the difference is taken within each level
//! and pooled:
//!
//! ```text
//! d = sum of w (mean A - mean B) / sum of w      w = n_A n_B / (n_A + n_B), by level
//! z = d sqrt(sum of w) / sigma                   sigma: within the groups
//! ```
//!
//! The split explains `(sum of w) d^2` of the sum of squares (as in CART: Breiman and others, 1984). A split must be both
//! significant and worth making. Many features are tried again and again, so z must be at least [`SIGNIFICANT`]. A split that
//! was made is kept down to lower bounds, so that it does not come and go.

use alloc::vec::Vec;
use libm::{exp, fabs, sqrt};

/// The number, the sum and the sum of squares of logarithms of times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    /// n, the number of requests.
    pub n: f64,
    /// The sum of [`log_time`].
    pub sum: f64,
    /// The sum of the squares of [`log_time`].
    pub squares: f64,
}

/// How two groups differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostDifference {
    /// The mean of the first less that of the second, in eighths of an octave.
    pub eighths: f64,
    /// The size of the difference, in standard errors.
    pub z: f64,
    /// The amount by which the sum of squares falls if each group has a mean of its own.
    pub explained: f64,
    /// The requests of the smaller group.
    pub fewest: f64,
}

/// A feature of some requests: its kind, and a hash of its value, which is 0 if a request has no feature of the kind.
pub(super) type FeatureToken = (u8, u32);

/// One group of requests that are alike in all their features.
pub(crate) struct Alike<'a> {
    /// The value of the feature of each kind, as a hash; 0 if the requests have no feature of the kind.
    pub tokens: &'a [u32],
    /// The moments of the requests served at each level.
    pub moments: &'a [Moments],
}

/// The difference in standard errors from which a split is made: if a hundred features are tested a thousand times, chance
/// makes no split in a hundred days.
const SIGNIFICANT: f64 = 5.0;
/// The least difference of the means for a split, half an octave: for smaller ones a common mean serves both groups well.
const WORTH: f64 = 4.0;
/// The least requests of a group: a smaller group is no evidence.
const FEWEST: f64 = 8.0;
/// The bounds below which a split is given up again.
const STILL_SIGNIFICANT: f64 = 2.5;
const STILL_WORTH: f64 = 2.0;
/// The variance that rounding to whole eighths adds.
const ROUNDING: f64 = 1.0 / 12.0;
/// Rounding makes sums of the same numbers in another order differ by less than this part.
const ROUNDED: f64 = 1e-9;
/// The logarithm of the mean less the mean of the logarithms, for an exponential law.
const EULER: f64 = 0.5772;
/// The natural logarithm of an eighth of an octave.
const EIGHTH: f64 = core::f64::consts::LN_2 / 8.0;

/// The logarithm of a time in microseconds, in eighths of an octave, up to 255: 71 minutes. Between powers of two it is
/// linear.
#[inline]
pub(crate) fn log_time(us: u64) -> u64 {
    let us = us.clamp(1, u64::from(u32::MAX));
    let octave = us.ilog2();
    (u64::from(octave) << 3) | (((us << 3) >> octave) & 7)
}

impl Moments {
    /// Adds the moments of other requests.
    pub(crate) fn add(&mut self, other: &Moments) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn without(&self, other: &Moments) -> Moments {
        Moments { n: self.n - other.n, sum: self.sum - other.sum, squares: self.squares - other.squares }
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// The sum of squares about the mean.
    fn within(&self) -> f64 {
        if self.n > 0.0 { (self.squares - self.sum * self.mean()).max(0.0) } else { 0.0 }
    }

    /// The mean of the times themselves (us), and their coefficient of variation, by the formulas of lognormal times. Both are
    /// bounded by those of exponential times, whose logarithms have a longer lower tail.
    pub(crate) fn time(&self) -> Option<(f64, f64)> {
        if self.n < 1.0 {
            return None;
        }
        let variance = (self.within() / self.n + ROUNDING) * EIGHTH * EIGHTH;
        // Times are rounded down by half an eighth on average.
        let mean = exp((self.mean() + 0.5) * EIGHTH + (variance / 2.0).min(EULER));
        Some((mean, sqrt(exp(variance) - 1.0).min(1.0)))
    }
}

impl CostDifference {
    /// The difference between two groups, each by level.
    pub(crate) fn between(first: &[Moments], second: &[Moments]) -> CostDifference {
        let (mut weight, mut difference, mut within) = (0.0, 0.0, 0.0);
        let mut n = [0.0; 2];
        for (a, b) in first.iter().zip(second) {
            within += a.within() + b.within();
            (n[0], n[1]) = (n[0] + a.n, n[1] + b.n);
            if a.n > 0.0 && b.n > 0.0 {
                let w = a.n * b.n / (a.n + b.n);
                weight += w;
                difference += w * (a.mean() - b.mean());
            }
        }
        if weight <= 0.0 {
            return CostDifference { eighths: 0.0, z: 0.0, explained: 0.0, fewest: 0.0 };
        }
        let eighths = difference / weight;
        let sigma = sqrt(within / (n[0] + n[1]) + ROUNDING);
        let z = fabs(eighths) * sqrt(weight) / sigma;
        CostDifference { eighths, z, explained: weight * eighths * eighths, fewest: n[0].min(n[1]) }
    }

    /// Whether two types are worth distinguishing.
    pub(crate) fn is_clear(&self) -> bool {
        self.z >= SIGNIFICANT && fabs(self.eighths) >= WORTH && self.fewest >= FEWEST
    }

    /// Whether two types that are distinguished cost the same.
    pub(crate) fn is_gone(&self) -> bool {
        self.fewest >= FEWEST && (self.z < STILL_SIGNIFICANT || fabs(self.eighths) < STILL_WORTH)
    }
}

/// The feature by which these requests fall into two groups whose costs differ most, if those of any feature differ clearly. If
/// several features explain the same, the feature of the fewest requests is taken, then the first kind.
pub(crate) fn best_split(groups: &[Alike<'_>], levels: usize) -> Option<(FeatureToken, CostDifference)> {
    let sum = |moments: &mut Vec<Moments>, more: &[Moments]| {
        moments.iter_mut().zip(more).for_each(|(sum, one)| sum.add(one));
    };
    let mut all = alloc::vec![Moments::default(); levels];
    groups.iter().for_each(|group| sum(&mut all, group.moments));
    let mut tokens: Vec<(FeatureToken, usize)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let own = group.tokens.iter().enumerate().filter(|(_, token)| **token != 0);
        tokens.extend(own.map(|(kind, token)| ((kind as u8, *token), number)));
    }
    tokens.sort_unstable();
    let mut best: Option<(FeatureToken, CostDifference, f64)> = None;
    for own in tokens.chunk_by(|a, b| a.0 == b.0) {
        let mut first = alloc::vec![Moments::default(); levels];
        own.iter().for_each(|(_, number)| sum(&mut first, groups[*number].moments));
        let second: Vec<Moments> = all.iter().zip(&first).map(|(all, own)| all.without(own)).collect();
        let difference = CostDifference::between(&first, &second);
        let n: f64 = first.iter().map(|moments| moments.n).sum();
        let is_better = best.as_ref().is_none_or(|(_, known, fewest)| {
            let ratio = difference.explained / known.explained;
            ratio > 1.0 + ROUNDED || (ratio > 1.0 - ROUNDED && n < *fewest)
        });
        if difference.is_clear() && is_better {
            best = Some((own[0].0, difference, n));
        }
    }
    best.map(|(token, difference, _)| (token, difference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn moments(times: impl Iterator<Item = f64>) -> Moments {
        let mut all = Moments::default();
        for time in times {
            let log = log_time(time as u64) as f64;
            all.add(&Moments { n: 1.0, sum: log, squares: log * log });
        }
        all
    }

    fn exponential(mean: f64, n: usize, random: &mut Random) -> Moments {
        moments((0..n).map(|_| random.exponential(mean)))
    }

    #[test]
    fn logarithms_are_in_eighths_of_an_octave() {
        assert_eq!([0, 1, 2, 3, 4, 1000, 1024, 1024 + 128].map(log_time), [0, 0, 8, 12, 16, 79, 80, 81]);
        assert_eq!(log_time(u64::MAX), 255);
        assert!((1..100_000).all(|us| log_time(us) <= log_time(us + 1)));
    }

    #[test]
    fn the_mean_comes_back() {
        let mut random = Random::new(1);
        let (mean, variation) = moments((0..1000).map(|_| 40_000.0)).time().expect("there are some");
        assert!((mean / 40_000.0 - 1.0).abs() < 0.1 && variation < 0.1, "{mean} {variation}");
        let (mean, _) = exponential(40_000.0, 20_000, &mut random).time().expect("there are some");
        assert!((0.9..1.1).contains(&(mean / 40_000.0)), "{mean}");
    }

    #[test]
    fn the_dear_ones_are_found_and_by_the_plainest_feature() {
        let mut random = Random::new(2);
        // The kinds are a method, a path, and a path below it. Only reports have a path of the third kind.
        let groups = [
            ([1, 10, 0], exponential(40e3, 120, &mut random)),
            ([1, 11, 0], exponential(40e3, 60, &mut random)),
            ([1, 12, 20], exponential(400e3, 24, &mut random)),
        ];
        let alike: Vec<Alike<'_>> = groups
            .iter()
            .map(|(tokens, moments)| Alike { tokens, moments: core::slice::from_ref(moments) })
            .collect();
        let (token, difference) = best_split(&alike, 1).expect("they differ");
        assert_eq!(token, (1, 12));
        assert!((16.0..40.0).contains(&difference.eighths), "{difference:?}");
    }

    #[test]
    fn levels_that_cost_differently_are_no_reason_to_split() {
        let mut random = Random::new(3);
        // One path is mostly served light, the other mostly full.
        let first = [exponential(4e3, 500, &mut random), exponential(40e3, 20, &mut random)];
        let second = [exponential(4e3, 20, &mut random), exponential(40e3, 500, &mut random)];
        let groups = [Alike { tokens: &[1], moments: &first }, Alike { tokens: &[2], moments: &second }];
        assert_eq!(best_split(&groups, 2), None);
        assert!(CostDifference::between(&first, &second).is_gone());
    }

    /// Twenty paths cost the same, whatever the law of their service times, and are tested two thousand times.
    #[test]
    fn chance_splits_nothing() {
        let mut random = Random::new(4);
        let laws: [fn(&mut Random) -> f64; 3] = [
            |random| random.exponential(40e3),
            |random| 20e3 * libm::pow(1.0 - random.uniform(), -1.0 / 1.3),
            |_| 40e3,
        ];
        for law in laws {
            let mut paths = [Moments::default(); 20];
            for look in 0..2000 {
                for _ in 0..8 {
                    let log = log_time(law(&mut random) as u64) as f64;
                    // Some paths are much more popular than others.
                    let path = (random.uniform() * random.uniform() * 20.0) as usize;
                    paths[path].add(&Moments { n: 1.0, sum: log, squares: log * log });
                }
                let tokens: Vec<[u32; 2]> = (0..20).map(|path| [path / 5 + 1, path + 1]).collect();
                let alike = tokens
                    .iter()
                    .zip(&paths)
                    .map(|(tokens, moments)| Alike { tokens, moments: core::slice::from_ref(moments) });
                let found = best_split(&alike.collect::<Vec<_>>(), 1);
                assert_eq!(found, None, "look {look}");
            }
        }
    }
}
