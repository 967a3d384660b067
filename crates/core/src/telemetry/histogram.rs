//! A histogram of durations with a bounded relative error.
//!
//! Buckets are 32 to an octave, so a quantile is at most 1/32 (3.1 %) above the value it stands for; below 32 ns they
//! are exact. A quantile is reported as the upper edge of its bucket (never flattering), capped by the largest value
//! seen, which is kept exactly. This is the layout of HdrHistogram at two digits, in a hundred lines. Only the octaves
//! from the smallest to the largest value are stored, so that thousands of histograms (one per period) stay small.

use crate::time::Duration;
use alloc::vec::Vec;

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;

/// Counts of durations by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The bucket that `counts` begins with.
    first: usize,
    counts: Vec<u64>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Histogram {
    /// Counts one duration (ns).
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        let bucket = bucket(value_ns);
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => {
                self.reach(bucket, bucket);
                self.counts[bucket - self.first] += 1;
            }
        }
        self.count += 1;
        self.sum_ns += u128::from(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        self.reach(other.first, other.first + other.counts.len() - 1);
        let mine = &mut self.counts[other.first - self.first..];
        for (mine, theirs) in mine.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The number of durations counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact mean; zero if empty.
    pub fn mean(&self) -> Duration {
        let mean = self.sum_ns.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The exact maximum; zero if empty.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max_ns)
    }

    /// The smallest bucket edge that at least the share `q` (0..=1) of the values do not exceed; zero if empty.
    pub fn quantile(&self, q: f64) -> Duration {
        let wanted = (libm::ceil(q.clamp(0.0, 1.0) * self.count as f64) as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper_edge(self.first + index).min(self.max_ns));
            }
        }
        Duration::ZERO
    }

    /// Makes room for the octaves of the buckets from `low` to `high`: a bucket at a time would move all others as often.
    fn reach(&mut self, low: usize, high: usize) {
        let (low, high) = (low - low % SUB, high | (SUB - 1));
        if self.counts.is_empty() {
            self.first = low;
        }
        if low < self.first {
            let more = self.first - low;
            self.counts.splice(0..0, core::iter::repeat_n(0, more));
            self.first = low;
        }
        let length = self.counts.len().max(high - self.first + 1);
        self.counts.resize(length, 0);
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let octave = value.ilog2() - SUB_BITS;
    (octave as usize + 1) * SUB + ((value >> octave) as usize - SUB)
}

/// The largest value that falls in bucket `index`.
fn upper_edge(index: usize) -> u64 {
    if index < SUB {
        return index as u64;
    }
    let octave = index / SUB - 1;
    let start = ((SUB + index % SUB) as u64) << octave;
    start + ((1_u64 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_within_a_thirtysecond() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1_u64 << shift) - 1, (1_u64 << shift) + (1_u64 << shift) / 3] {
                let edge = upper_edge(bucket(value));
                assert!(edge >= value, "{value} above its edge {edge}");
                assert!(edge - value <= value / 32, "{value} too far below its edge {edge}");
            }
        }
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut histogram = Histogram::default();
        // From the middle outwards, so that it grows on both sides.
        (1..=500_u64).for_each(|ms| {
            histogram.record_ns((501 - ms) * 1_000_000);
            histogram.record_ns((500 + ms) * 1_000_000);
        });
        for (q, ms) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
            let found = histogram.quantile(q).as_secs_f64() * 1e3;
            assert!(found >= ms && found <= ms * 1.032, "q {q}: {found}");
        }
        assert_eq!(histogram.quantile(1.0), Duration::from_secs(1));
        assert_eq!(histogram.mean(), Duration::from_micros(500_500));
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.quantile(0.5)), (2000, histogram.quantile(0.5)));
    }

    #[test]
    fn merged_is_recorded_together() {
        let (mut low, mut high, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in [3, 40, 1_000] {
            low.record_ns(value);
            both.record_ns(value);
        }
        for value in [700, 5_000_000] {
            high.record_ns(value);
            both.record_ns(value);
        }
        let mut merged = high.clone();
        merged.merge(&low);
        low.merge(&high);
        assert_eq!((&merged, &low), (&both, &both));
        merged.merge(&Histogram::default());
        assert_eq!(merged, both);
    }

    #[test]
    fn empty_is_zero() {
        let histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.99), histogram.mean()), (Duration::ZERO, Duration::ZERO));
    }
}
