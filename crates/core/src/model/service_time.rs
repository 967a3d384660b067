//! The service time of one type of requests: mean and variance, learned (AC 3.2).
//!
//! A mean of many requests is slow and a mean of few is noisy, so three are kept: over about the last [`LONG`] requests, the
//! last [`MIDDLE`], and the last [`SHORT`]. The long mean is the estimate until a shorter mean differs from it by more than
//! chance; then the type's cost has changed, and the shorter mean takes its place with its own small weight. If one request has
//! the standard deviation d, an exponential mean over M requests has `d / sqrt(2 M)`. So the middle mean must be [`MIDDLE_OFF`]
//! d off (4 of its deviations) and the short mean [`SHORT_OFF`] d (8 of its deviations, since one outlier, clipped at [`CLIP`]
//! d, moves it by 2.5 d).
//!
//! Before any request was seen, the estimate is the prior, with the variance of an exponential distribution if no other is
//! given. While few requests were seen, the variance is a weighted mean of the prior's and the measured one, and includes the
//! uncertainty of the mean.
//!
//! The time that a request's body takes is learned by [`SizeLaw`](super::SizeLaw).

use libm::{fabs, pow, sqrt};

/// The requests of one type since the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    /// The number of requests released.
    pub requests: f64,
    /// The sum of their times, each clipped at [`ServiceTime::clip`].
    pub sum: f64,
    /// The sum of the squares of these times.
    pub squares: f64,
}

/// The estimate, in any unit of time that is the same throughout.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceTime {
    mean: f64,
    /// The variance of one request about the mean.
    variance: f64,
    /// The number of requests behind the mean.
    weight: f64,
    /// The squared coefficient of variation of the prior.
    expected: f64,
    middle: f64,
    short: f64,
}

/// The numbers of requests that the means remember.
const LONG: f64 = 400.0;
const MIDDLE: f64 = 32.0;
const SHORT: f64 = 4.0;
/// The number of deviations of one request by which a shorter mean must differ to replace the long mean.
const MIDDLE_OFF: f64 = 0.5;
const SHORT_OFF: f64 = 3.0;
/// A batch whose variance exceeds this multiple of the known one shows a change, not chance.
const FAR_LARGER: f64 = 4.0;
/// A request's time is clipped at this many deviations above the mean.
const CLIP: f64 = 10.0;
/// The factor by which each request reduces the weight of the prior variance. The weight falls quickly, because a few
/// exponential service times are seldom alike by chance. With a prior worth a few requests, a type that took half of its
/// deadline and varied little was refused for hundreds of requests.
const PRIOR: f64 = 0.5;
/// The deviation is at least this part of the mean.
const LEAST_DEVIATION: f64 = 0.002;

impl ServiceTime {
    /// The estimate before any request was seen.
    pub(crate) fn expected(mean: f64) -> Self {
        ServiceTime::varying(mean, 1.0)
    }

    /// The estimate before any request was seen, with a deviation of this part of the mean.
    pub(crate) fn varying(mean: f64, variation: f64) -> Self {
        let expected = variation * variation;
        ServiceTime {
            mean,
            variance: expected * mean * mean,
            weight: 0.0,
            expected,
            middle: mean,
            short: mean,
        }
    }

    /// An estimate from `requests` requests that were seen elsewhere. They count as few, so that the estimate follows new
    /// requests.
    pub(crate) fn found(mean: f64, variation: f64, requests: f64) -> Self {
        let one = ServiceTime::varying(mean, variation);
        ServiceTime { weight: requests.min(2.0 * SHORT), expected: 1.0, ..one }
    }

    /// The mean, the variance of one request about it, and the number of requests behind it.
    pub(crate) fn parts(&self) -> (f64, f64, f64) {
        (self.mean, self.variance, self.weight)
    }

    /// The estimate with a mean, a variance and a weight that were learned elsewhere.
    #[must_use]
    pub(crate) fn restored(&self, mean: f64, variance: f64, weight: f64) -> Self {
        ServiceTime { mean, variance, weight, middle: mean, short: mean, ..*self }
    }

    /// Whether any request was seen.
    pub(crate) fn is_known(&self) -> bool {
        self.weight > 0.0
    }

    /// The number of requests behind the mean.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// The mean time of one request.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of the next request's time, including the uncertainty of the mean.
    pub(crate) fn deviation(&self) -> f64 {
        let expected = self.expected * self.mean * self.mean;
        // After as many requests as the long mean remembers, nothing of the prior is left beside the least deviation.
        let prior = if self.weight < LONG { pow(PRIOR, self.weight) } else { 0.0 };
        let own = self.variance + prior * (expected - self.variance);
        sqrt(own * (1.0 + if self.is_known() { 1.0 / self.weight } else { 0.0 }))
            .max(LEAST_DEVIATION * self.mean)
    }

    /// The longest time that a request counts for.
    pub(crate) fn clip(mean: f64, deviation: f64) -> f64 {
        mean + CLIP * deviation
    }

    /// Learns from a batch; returns whether the cost stepped.
    pub(crate) fn learn(&mut self, batch: &Batch) -> bool {
        let n = batch.requests;
        if n <= 0.0 {
            return false;
        }
        let mean = batch.sum / n;
        if !self.is_known() {
            let variance = (batch.squares / n - mean * mean).max(0.0);
            *self = ServiceTime { mean, variance, weight: n, middle: mean, short: mean, ..*self };
            return true;
        }
        // Squares are taken about the short mean, so that a change of the mean is not taken for variance.
        let about = self.short;
        let squared = (batch.squares / n - 2.0 * about * mean + about * about).max(0.0);
        let deviation = self.deviation();
        let follow =
            |known: &mut f64, memory: f64| *known += (1.0 - pow(1.0 - 1.0 / memory, n)) * (mean - *known);
        follow(&mut self.middle, MIDDLE);
        follow(&mut self.short, SHORT);
        let off = |shorter: f64| fabs(shorter - self.mean) / deviation;
        // A mean over fewer requests than its memory has not settled.
        let enough = |memory: f64| self.weight + n >= 2.0 * memory;
        let step = if enough(SHORT) && off(self.short) > SHORT_OFF {
            Some((self.short, SHORT))
        } else if enough(MIDDLE) && off(self.middle) > MIDDLE_OFF {
            Some((self.middle, MIDDLE))
        } else {
            None
        };
        if let Some((to, weight)) = step {
            // The coefficient of variation stays, unless the batch shows a far larger one: a type that begins to vary steps
            // too.
            let known = self.mean * self.mean;
            let relative = if known > 0.0 { self.variance / known } else { self.expected };
            let (kept, shown) = (relative * to * to, batch.squares / n - mean * mean);
            let begins_to_vary = n >= 2.0 * SHORT && shown > FAR_LARGER * kept;
            self.variance = if begins_to_vary { shown } else { kept };
            (self.mean, self.weight) = (to, weight);
            (self.middle, self.short) = (to, to);
            return true;
        }
        self.weight = (self.weight + n).min(LONG);
        let gain = (n / self.weight).min(1.0);
        self.mean += gain * (mean - self.mean);
        self.variance += gain * (squared - self.variance);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use alloc::vec::Vec;

    /// Learns in batches of `together` requests, each clipped as at its release; returns the mean after each batch.
    fn learn(one: &mut ServiceTime, times: impl Iterator<Item = f64>, together: usize) -> Vec<f64> {
        let times: Vec<f64> = times.collect();
        let each = |some: &[f64]| {
            let clip = ServiceTime::clip(one.mean(), one.deviation());
            let clipped = || some.iter().map(|time| time.min(clip));
            let squares = clipped().map(|time| time * time).sum();
            one.learn(&Batch { requests: some.len() as f64, sum: clipped().sum(), squares });
            one.mean()
        };
        times.chunks(together).map(each).collect()
    }

    fn exponential(mean: f64, seed: u64, count: usize) -> impl Iterator<Item = f64> {
        let mut random = Random::new(seed);
        (0..count).map(move |_| -mean * libm::log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64))
    }

    #[test]
    fn it_finds_mean_and_deviation_from_a_prior_far_off() {
        for (prior, together) in [(0.001, 1), (10.0, 7), (10.0, 60)] {
            let mut one = ServiceTime::expected(prior);
            learn(&mut one, exponential(0.1, 7, 4000), together);
            assert!((0.085..0.115).contains(&one.mean()), "{one:?}");
            assert!((0.08..0.12).contains(&one.deviation()), "{}", one.deviation());
        }
    }

    #[test]
    fn one_stuck_request_moves_little_and_a_change_is_taken_within_few() {
        for together in [1, 5] {
            let mut one = ServiceTime::expected(0.01);
            let even = |mean: f64, count: u32| {
                (0..count).map(move |i| if i % 2 == 0 { 0.9 * mean } else { 1.1 * mean })
            };
            learn(&mut one, even(0.01, 400), together);
            learn(&mut one, core::iter::once(60.0), 1);
            assert!((0.0098..0.0105).contains(&one.mean()), "{one:?}");
            learn(&mut one, even(0.01, 60), together);
            let means = learn(&mut one, even(0.03, 20), together);
            assert!(means[means.len() - 1] > 0.027, "{means:?}");
        }
    }

    #[test]
    fn half_as_dear_is_seen_through_the_noise_of_an_exponential() {
        let mut one = ServiceTime::expected(0.1);
        learn(&mut one, exponential(0.1, 3, 1000), 10);
        let means = learn(&mut one, exponential(0.2, 4, 100), 10);
        assert!((0.15..0.28).contains(&means[9]), "{means:?}");
    }

    /// With many requests in a batch, each batch after the change is a step. If a step kept the old variation, the clip would
    /// stay as for constant times, and cut the mean.
    #[test]
    fn requests_that_begin_to_vary_are_seen_to_vary_whatever_the_size_of_a_batch() {
        for (together, alike, seed) in [
            (250, 2000, 1),
            (250, 2000, 2),
            (250, 1, 3),
            (250, 1, 4),
            (1000, 4000, 5),
            (50, 400, 6),
            (5, 400, 7),
        ] {
            let mut one = ServiceTime::expected(0.003);
            learn(&mut one, core::iter::repeat_n(0.005, alike), together);
            learn(&mut one, exponential(0.005, seed, 20_000), together);
            let variation = one.deviation() / one.mean();
            assert!((0.0044..0.0056).contains(&one.mean()), "{together} after {alike}: {one:?}");
            assert!((0.8..1.2).contains(&variation), "{together} after {alike}: {variation}, {one:?}");
        }
    }

    #[test]
    fn a_type_that_took_nothing_at_first_has_a_deviation() {
        let mut one = ServiceTime::expected(0.1);
        one.learn(&Batch { requests: 40.0, sum: 0.0, squares: 0.0 });
        one.learn(&Batch { requests: 4.0, sum: 0.4, squares: 0.08 });
        assert!((0.01..1.0).contains(&one.deviation()), "{one:?}");
    }

    #[test]
    fn steps_of_mere_noise_are_rare() {
        let mut one = ServiceTime::expected(0.1);
        let means = learn(&mut one, exponential(0.1, 11, 40_000), 5);
        let off = means[100..].iter().filter(|mean| (**mean - 0.1).abs() > 0.04).count();
        assert!(off < means.len() / 50, "{off}");
    }

    #[test]
    fn a_few_that_are_alike_are_believed_to_be() {
        for (count, most) in [(1, 0.8), (2, 0.65), (4, 0.3), (8, 0.1)] {
            let mut one = ServiceTime::expected(7.0);
            learn(&mut one, (0..count).map(|i| if i % 2 == 0 { 1.98 } else { 2.02 }), 1);
            let variation = one.deviation() / one.mean();
            assert!(
                variation > 0.01 && variation < most * (1.0 + 1.0 / f64::from(count)),
                "{count}: {one:?}"
            );
        }
        // Requests of an exponential law are not taken for alike.
        let mut one = ServiceTime::expected(7.0);
        learn(&mut one, exponential(2.0, 5, 20), 1);
        assert!((0.6..1.5).contains(&(one.deviation() / one.mean())), "{one:?}");
    }
}
