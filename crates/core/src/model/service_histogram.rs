//! The distribution of the service times of one type of requests: counts by length, which forget.
//!
//! A mean and a deviation say little of a request's chance to be done in time. One request in a hundred that takes a thousand
//! times as long moves both beyond every deadline, and the chance of the other requests not at all. So the chance is read from
//! the counts. Bins are sixteen to an octave, from 64 to 2^30 units: with four to an octave, a type that takes nearly its whole
//! deadline seemed to be late. The requests of a bin count as evenly spread over it. While few requests were counted, a prior
//! is a part of the distribution: a least time and an exponential rest, with the expected mean and deviation.

use crate::model::ServiceTime;
use libm::{exp, log, pow};

/// The counts, of times in microseconds or in another unit that is as small beside a service time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServiceHistogram {
    counts: [f32; TIME_BINS],
    total: f64,
}

/// The number of bins: one below 64 units, sixteen for each of 24 octaves, the last open.
pub(crate) const TIME_BINS: usize = 1 + PARTS * OCTAVES;
/// The bins of an octave, 2^k.
const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 4;
const OCTAVES: usize = 24;
const FIRST_OCTAVE: u32 = 6;
/// The number of requests that the counts remember: ten of them are the last hundredth, the share that deadlines ask about.
const MEMORY: f64 = 1000.0;
/// The number of requests from which the prior has no part in the distribution.
const KNOWN: f64 = 20.0;
/// The factor by which each request reduces the prior's part (see [`ServiceTime`]).
const PRIOR: f64 = 0.5;

/// The bin of a time.
#[inline]
pub(crate) fn time_bin(time: u64) -> usize {
    if time < 1 << FIRST_OCTAVE {
        return 0;
    }
    let octave = time.ilog2();
    let part = (time >> (octave - PART_BITS)) as usize & (PARTS - 1);
    (1 + PARTS * (octave - FIRST_OCTAVE) as usize + part).min(TIME_BINS - 1)
}

/// The least time of a bin.
fn edge(bin: usize) -> f64 {
    match bin {
        0 => 0.0,
        _ => {
            ((PARTS + (bin - 1) % PARTS) << (FIRST_OCTAVE as usize - PART_BITS as usize + (bin - 1) / PARTS))
                as f64
        }
    }
}

impl Default for ServiceHistogram {
    fn default() -> Self {
        ServiceHistogram { counts: [0.0; TIME_BINS], total: 0.0 }
    }
}

impl ServiceHistogram {
    /// A histogram of these counts; a bin beyond the last is left out.
    pub(crate) fn of(counts: &[(u16, f32)]) -> Self {
        let mut own = ServiceHistogram::default();
        for (bin, count) in counts {
            if let Some(known) = own.counts.get_mut(usize::from(*bin)) {
                *known += count;
                own.total += f64::from(*count);
            }
        }
        own
    }

    /// The bins that are not empty, with their counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u16, f32)> + '_ {
        let counts = self.counts.iter().enumerate().map(|(bin, count)| (bin as u16, *count));
        counts.filter(|(_, count)| *count > 0.0)
    }

    /// Adds the counts of a batch. The requests counted before it have a weight of at most `remember` requests.
    pub(crate) fn learn(&mut self, remember: f64, counts: impl Iterator<Item = (usize, u32)>) {
        self.scale(remember);
        for (bin, count) in counts {
            self.counts[bin] += count as f32;
            self.total += f64::from(count);
        }
        self.scale(MEMORY);
    }

    fn scale(&mut self, most: f64) {
        if self.total > most {
            let part = most / self.total;
            self.counts.iter_mut().for_each(|count| *count *= part as f32);
            self.total = most;
        }
    }

    /// The part of requests that takes no longer than `time`. While few requests were counted, `expected` has a part in it.
    pub(crate) fn within(&self, time: f64, expected: &ServiceTime) -> f64 {
        let mut below = 0.0;
        for (bin, count) in self.counts.iter().enumerate().take_while(|(bin, _)| edge(*bin) < time) {
            let (from, to) = (edge(bin), edge(bin + 1));
            below += f64::from(*count) * ((time - from) / (to - from)).min(1.0);
        }
        self.mixed(below, time, &self.prior(expected))
    }

    /// The time within which `part` of all requests is done, at most `most`. While few requests were counted, `expected` has a
    /// part in it.
    pub(crate) fn quantile(&self, part: f64, expected: &ServiceTime, most: f64) -> f64 {
        let prior = self.prior(expected);
        if self.total <= 0.0 {
            return (prior.least - prior.rest * log(1.0 - part)).min(most);
        }
        let (mut below, mut last) = (0.0, 0.0);
        for (bin, count) in self.counts.iter().enumerate() {
            let (from, to) = (edge(bin), edge(bin + 1).min(most));
            below += f64::from(*count);
            let here = self.mixed(below, to, &prior);
            if here >= part || to >= most {
                let into = if here > last { ((part - last) / (here - last)).min(1.0) } else { 1.0 };
                return from + (to - from) * into;
            }
            last = here;
        }
        most
    }

    /// The means, over all requests, of the service time T beyond `time` t and of its square: `E (T - t)^+` and `E (T^2 -
    /// t^2)^+`.
    pub(crate) fn beyond(&self, time: f64) -> (f64, f64) {
        let long = self.counts.iter().enumerate().skip(time_bin(time as u64));
        let (mut sum, mut squares) = (0.0, 0.0);
        for (bin, count) in long {
            let (middle, count) = ((edge(bin) + edge(bin + 1)) / 2.0, f64::from(*count));
            sum += count * (middle - time).max(0.0);
            squares += count * (middle * middle - time * time).max(0.0);
        }
        let total = self.total.max(1.0);
        (sum / total, squares / total)
    }

    /// The prior distribution, and its part in the answer.
    fn prior(&self, expected: &ServiceTime) -> Prior {
        let rest = expected.deviation().min(expected.mean()).max(f64::MIN_POSITIVE);
        let part = if self.total < KNOWN { pow(PRIOR, self.total) } else { 0.0 };
        Prior { part, least: expected.mean() - rest, rest }
    }

    /// The part of requests that takes no longer than `time`, if `below` of the counted requests do.
    fn mixed(&self, below: f64, time: f64, prior: &Prior) -> f64 {
        let counted = (1.0 - prior.part) * below / self.total.max(f64::MIN_POSITIVE);
        let expected =
            if prior.part > 0.0 { 1.0 - exp((prior.least - time).min(0.0) / prior.rest) } else { 0.0 };
        counted + prior.part * expected
    }
}

/// A prior: a least time and an exponential rest, with the expected mean and deviation, and its part in the answer.
struct Prior {
    part: f64,
    least: f64,
    rest: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn exponential(mean: f64, seed: u64, count: usize) -> impl Iterator<Item = u64> {
        let mut random = Random::new(seed);
        (0..count)
            .map(move |_| (-mean * log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64)) as u64)
    }

    fn learned(times: impl Iterator<Item = u64>) -> ServiceHistogram {
        let mut histogram = ServiceHistogram::default();
        times.for_each(|time| histogram.learn(f64::INFINITY, core::iter::once((time_bin(time), 1))));
        histogram
    }

    #[test]
    fn every_time_lies_in_its_bin() {
        for time in (0..2000).chain((0..40).map(|power| 1 << power)) {
            let bin = time_bin(time);
            assert!(edge(bin) <= time as f64, "{time}");
            assert!(bin == TIME_BINS - 1 || (time as f64) < edge(bin + 1), "{time}");
        }
    }

    #[test]
    fn before_any_request_it_is_exponential() {
        let (nothing, expected) = (ServiceHistogram::default(), ServiceTime::expected(1000.0));
        assert!((nothing.within(2000.0, &expected) - 0.8647).abs() < 1e-3);
        assert!((nothing.quantile(0.99, &expected, 1e9) - 4605.0).abs() < 1.0);
        assert_eq!(nothing.quantile(0.99, &expected, 3000.0), 3000.0);
        // If the prior's deviation is small, its quantiles are near its mean.
        assert!((1200.0..1400.0).contains(&nothing.quantile(
            0.99,
            &ServiceTime::varying(1000.0, 0.1),
            3000.0
        )));
    }

    #[test]
    fn quantiles_and_parts_are_those_of_what_was_counted() {
        let (known, any) = (learned(exponential(40_000.0, 3, 5000)), ServiceTime::expected(1.0));
        for (part, time) in [(0.5, 27_700.0), (0.9, 92_100.0), (0.99, 184_200.0)] {
            let (found, within) = (known.quantile(part, &any, 1e9), known.within(time, &any));
            assert!(
                (found / time - 1.0).abs() < 0.15 && (within - part).abs() < 0.02,
                "{part}: {found} {within}"
            );
        }
        // The mean of an exponential remainder is the mean.
        let (beyond, squares) = known.beyond(40_000.0);
        let (mean, share) = (40_000.0, (-1.0_f64).exp());
        assert!((beyond / mean / share - 1.0).abs() < 0.1, "{beyond}");
        assert_eq!(known.beyond(f64::INFINITY), (0.0, 0.0));
        // E[T^2 - t^2 | T > t] is 2 m^2 + 2 m t.
        assert!((squares / (4.0 * mean * mean) / share - 1.0).abs() < 0.15, "{squares}");
    }

    #[test]
    fn a_few_long_ones_leave_the_others_as_they_are() {
        let mixed =
            |every: usize| {
                learned((0..1000).map(|number| {
                    if number % every == 0 { 30_000_000 } else { 18_000 + number as u64 % 4000 }
                }))
            };
        assert!((mixed(20).within(1e6, &ServiceTime::expected(1.5e6)) - 0.95).abs() < 0.001);
        assert!((19_000.0..23_000.0).contains(&mixed(20).quantile(0.9, &ServiceTime::expected(1.5e6), 1e6)));
    }

    #[test]
    fn a_time_of_minutes_is_no_shorter_than_it_is() {
        let known = learned(core::iter::repeat_n(700_000_000, 50));
        let any = ServiceTime::expected(1.0);
        assert_eq!(known.within(600e6, &any), 0.0);
        assert!((660e6..750e6).contains(&known.quantile(0.5, &any, 1e9)));
    }

    #[test]
    fn after_a_step_new_requests_count_most() {
        let mut known = learned(exponential(1000.0, 5, 1000));
        known.learn(4.0, (0..4).map(|_| (time_bin(9000), 1)));
        assert!((known.within(5000.0, &ServiceTime::expected(9000.0)) - 0.5).abs() < 0.03);
    }
}
