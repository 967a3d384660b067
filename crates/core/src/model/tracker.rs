//! An estimate of a rate, which follows noise slowly and a step at once.
//!
//! `mean += gain (sample - mean)`, except at a step. A run is the latest samples that all lie on one side of the mean. If a run
//! as a whole is more than 4.5 standard deviations off, the load has changed; averaging with older samples would delay the
//! answer by several periods, so the mean becomes that of the run. With a run of one sample this is a plain outlier test;
//! longer runs find steps at low rates, where one sample is little evidence. A sample far beyond the run begins another run.
//! For some periods after a step, or after the beginning, the mean is the plain average since then, because one sample of a
//! hundred requests a second is off by a fifth. The variance of the innovations is learned, and is at least that of Poisson
//! arrivals, so that usual bursts are not taken for steps.
//!
//! After very uneven arrivals this variance is large for a while, and would hide the end of a crowd. So a run that Poisson
//! arrivals would not make is judged by itself too. It is a step if the mean lies more than 4.5 deviations of its latest eight
//! samples off, and if it lasts for eight samples and four times as long as such runs usually do. So a load that goes on and
//! off every second is still averaged, and a slope is followed to its end: the samples on it are far from each other, and those
//! after it are not.
//!
//! A plain moving average is either noisy, so that clients change level for nothing, or late: CA 4.2.2's loop needs eight
//! periods for a step that one period shows.

use libm::{fabs, sqrt};

/// Follows a rate [1/s], sampled [`SAMPLES_PER_PERIOD`](Self::SAMPLES_PER_PERIOD) times a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tracker {
    mean: f64,
    variance: f64,
    samples: u32,
    /// The number of samples behind the mean: those of the step and those since it.
    since: u32,
    rose: bool,
    run: Run,
    doubt: Doubt,
}

/// The latest run of samples that all lie on one side of the mean.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    above: bool,
    samples: u32,
    requests: f64,
    seconds: f64,
}

impl Run {
    /// Whether the run as a whole is above the mean. After a slope the run and its latest sample can lie on different sides:
    /// the mean has followed the slope, and the run's older samples say nothing of the present rate.
    fn lies_above(&self, mean: f64) -> bool {
        self.requests > mean * self.seconds
    }
}

/// A run that Poisson arrivals would not make, but that is no step by the learned variance.
#[derive(Clone, Debug, Default, PartialEq)]
struct Doubt {
    /// The number of the sample before the run, which distinguishes one run from another.
    before: u32,
    samples: u32,
    /// The rates of the latest samples.
    latest: [f64; LEAST_OF_DOUBT as usize],
    /// The usual number of samples of such a run.
    usual: f64,
}

impl Doubt {
    fn add(&mut self, before: u32, rate: f64) {
        if self.before != before {
            let last = f64::from(self.samples.min(LEAST_OF_DOUBT));
            let usual = self.usual + USUAL_GAIN * (last - self.usual);
            *self = Doubt { before, usual, ..Doubt::default() };
        }
        self.latest[(self.samples % LEAST_OF_DOUBT) as usize] = rate;
        self.samples += 1;
    }

    fn lasts(&self) -> bool {
        self.samples >= LEAST_OF_DOUBT && f64::from(self.samples) >= TIMES_USUAL * self.usual
    }

    /// The mean of the latest samples, and their variance.
    fn moments(&self) -> (f64, f64) {
        let samples = f64::from(LEAST_OF_DOUBT);
        let mean = self.latest.iter().sum::<f64>() / samples;
        let squares: f64 = self.latest.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
        (mean, squares / (samples - 1.0))
    }
}

/// The gain for a sample of at least [`AMPLE`] expected requests. With fewer requests the gain is smaller, because noise in the
/// rate moves m, and at the lowest rates one more request must not raise the rate by half.
const GAIN: f64 = 0.06;
const SMALLEST_GAIN: f64 = 0.005;
const AMPLE: f64 = 900.0;
/// Below this number of expected requests the gain is the smallest.
const FEW: f64 = AMPLE * (SMALLEST_GAIN / GAIN) * (SMALLEST_GAIN / GAIN);
/// The samples of four periods after a step are averaged plainly. A longer average would lag if the load went on rising.
const FRESH: u32 = 4 * Tracker::SAMPLES_PER_PERIOD;
const VARIANCE_GAIN: f64 = 1.0 / 64.0;
/// The length from which a run is judged by itself: at least this number of samples, and this multiple of the usual length.
const LEAST_OF_DOUBT: u32 = 8;
const TIMES_USUAL: f64 = 4.0;
/// The gain of the usual length of runs in doubt. A run counts for at most [`LEAST_OF_DOUBT`] samples: a longer run shows a
/// mean that is a little off, or a step.
const USUAL_GAIN: f64 = 1.0 / 8.0;
const STEP_DEVIATIONS: f64 = 4.5;
/// A sample is far beyond the run before it if the squared distance exceeds this multiple of the variance.
const BEYOND_RUN: f64 = 9.0;
const LIMIT: f64 = STEP_DEVIATIONS * STEP_DEVIATIONS;

impl Tracker {
    /// Samples in a period. With several, a load that begins or ends within a period shows with its own rate, not averaged with
    /// the rate before or after.
    pub(crate) const SAMPLES_PER_PERIOD: u32 = 4;

    /// Takes a count over `seconds`; returns whether the rate stepped.
    #[inline]
    pub(crate) fn count(&mut self, count: u64, seconds: f64) -> bool {
        if count == 0 && self.knows_nothing() {
            self.rose = false;
            return false;
        }
        self.take(count, seconds)
    }

    /// Takes `times` counts of zero, each over `seconds`; returns whether the rate stepped.
    #[inline]
    pub(crate) fn count_nothing(&mut self, times: u64, seconds: f64) -> bool {
        times > 0 && self.take_nothing(times, seconds)
    }

    fn take_nothing(&mut self, times: u64, seconds: f64) -> bool {
        // A local copy stays in registers.
        let (mut after, mut stepped, mut left) = (self.clone(), false, times);
        while left > 0 {
            if after.knows_nothing() {
                after.rose = false;
                break;
            }
            stepped |= after.take(0, seconds);
            left -= 1;
            left -= after.sink(left, seconds);
        }
        *self = after;
        stepped
    }

    /// Takes counts of zero, up to `most`, as long as each only extends a run below the mean, and returns their number. It does
    /// for them what [`take`](Self::take) does, without the parts that cannot matter; at a low rate nearly all samples are of
    /// this sort.
    #[inline(always)]
    fn sink(&mut self, most: u64, seconds: f64) -> u64 {
        let mut taken = 0;
        if self.fresh_gain() > SMALLEST_GAIN {
            return 0;
        }
        while taken < most && !self.run.above {
            let run_seconds = self.run.seconds + seconds;
            let squared = self.mean * self.mean;
            let gains_least = self.mean * seconds < FEW && !self.run.lies_above(self.mean);
            let no_outlier = self.variance > 0.0 && squared <= LIMIT * self.variance;
            if !(gains_least && no_outlier && Self::is_near(self.run.requests, self.mean * run_seconds)) {
                break;
            }
            self.run.seconds = run_seconds;
            self.variance += VARIANCE_GAIN * (squared - self.variance);
            self.mean -= SMALLEST_GAIN * self.mean;
            taken += 1;
        }
        if taken > 0 {
            self.run.samples += taken as u32;
            self.samples = self.samples.saturating_add(taken as u32);
            self.since = self.since.saturating_add(taken as u32);
            self.rose = false;
        }
        taken
    }

    /// Whether a sample on the run's side of the mean is so far beyond the run that it begins another run. Very regular
    /// arrivals stay on one side for minutes, and a step would be averaged with all of them.
    fn is_of_another_run(&self, rate: f64, seconds: f64) -> bool {
        if self.run.samples == 0 {
            return false;
        }
        let own = self.run.requests / self.run.seconds;
        let variance = self.variance.max(own.max(rate) / seconds);
        let (beyond, off) = (rate - own, rate - self.mean);
        fabs(off) > fabs(beyond) && beyond * off > 0.0 && beyond * beyond > BEYOND_RUN * variance
    }

    /// Whether no request has come yet. If so, counts of zero change nothing.
    fn knows_nothing(&self) -> bool {
        self.mean == 0.0 && self.variance == 0.0 && self.samples > 0
    }

    #[inline(always)]
    fn take(&mut self, count: u64, seconds: f64) -> bool {
        let rate = count as f64 / seconds;
        let innovation = rate - self.mean;
        let above = innovation > 0.0;
        if above != self.run.above || self.samples == 0 || self.run.lies_above(self.mean) != above {
            self.run = Run { above, ..Run::default() };
        }
        let begins_another =
            !Self::is_near(count as f64, self.mean * seconds) && self.is_of_another_run(rate, seconds);
        self.run.samples += 1;
        self.run.requests += count as f64;
        self.run.seconds += seconds;

        let step = self.step(rate, seconds);
        let mut squared = innovation * innovation;
        if squared > LIMIT * self.variance {
            squared = squared.min(LIMIT * self.variance.max(self.mean.max(rate) / seconds));
        }
        self.variance += VARIANCE_GAIN * (squared - self.variance);
        self.samples = self.samples.saturating_add(1);
        let expected = self.mean * seconds;
        let gain = if expected < FEW { SMALLEST_GAIN } else { (GAIN * sqrt(expected / AMPLE)).min(GAIN) };
        self.since = step.map_or(self.since.saturating_add(1), |(_, samples)| samples);
        self.mean += step.map_or_else(|| gain.max(self.fresh_gain()) * innovation, |(off, _)| off);
        self.rose = step.is_some() && above && self.run.samples == 1;
        if step.is_some() {
            self.run = Run::default();
        } else if begins_another {
            self.run = Run { above, samples: 1, requests: count as f64, seconds };
        }
        step.is_some()
    }

    /// The gain that makes the mean a plain average over the first samples after a step.
    fn fresh_gain(&self) -> f64 {
        if self.since > FRESH { 0.0 } else { 1.0 / f64::from(self.since.max(1)) }
    }

    /// If the run is a step: how far its rate differs from the mean, and the number of its samples.
    fn step(&mut self, latest: f64, sample_seconds: f64) -> Option<(f64, u32)> {
        let Run { samples, requests, seconds, .. } = self.run;
        if self.samples > 0 && Self::is_near(requests, self.mean * seconds) {
            return None;
        }
        let rate = requests / seconds;
        let poisson = (self.mean.max(rate) / seconds).max(1.0 / (seconds * seconds));
        let variance = (self.variance / f64::from(samples)).max(poisson);
        let off = rate - self.mean;
        if off * off > LIMIT * variance || self.samples == 0 {
            Some((off, samples))
        } else if off * off > LIMIT * poisson {
            self.judge_run_in_doubt(latest, sample_seconds)
        } else {
            None
        }
    }

    /// Takes the latest sample of a run in doubt. If the latest samples are a step by themselves, returns how far they differ
    /// from the mean, and their number.
    #[cold]
    #[inline(never)]
    fn judge_run_in_doubt(&mut self, latest: f64, sample_seconds: f64) -> Option<(f64, u32)> {
        self.doubt.add(self.samples - (self.run.samples - 1), latest);
        if !self.doubt.lasts() {
            return None;
        }
        let (rate, variance) = self.doubt.moments();
        let off = rate - self.mean;
        let poisson = self.mean.max(latest) / sample_seconds;
        (off * off > LIMIT * variance.max(poisson)).then_some((off, LEAST_OF_DOUBT))
    }

    /// Whether a run is too near the mean to be a step. The deviation is at least that of one request, so a count this near
    /// needs no variance; at low rates nearly every sample is this near.
    fn is_near(requests: f64, expected: f64) -> bool {
        fabs(requests - expected) < STEP_DEVIATIONS - 0.1
    }

    /// Whether the rate rose by a step in the last sample, which no second sample has confirmed yet.
    pub(crate) fn rose(&self) -> bool {
        self.rose
    }

    /// The rate now [1/s].
    pub(crate) fn mean(&self) -> f64 {
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
                "one Poisson deviation is no step"
            );
        }
        assert!((tracker.mean() - 1000.0).abs() < 10.0);
        assert!(tracker.count(3000, 1.0));
        assert_eq!(tracker.mean(), 3000.0);
        assert!(tracker.count(0, 1.0));
    }

    #[test]
    fn at_low_rates_a_step_takes_a_few_samples_and_noise_is_none() {
        let mut tracker = Tracker::default();
        let mut random = crate::random::Random::new(4);
        let mut poisson = |mean: f64| {
            let (mut time, mut count) = (random.exponential(1.0), 0);
            while time < mean {
                count += 1;
                time += random.exponential(1.0);
            }
            count
        };
        let steps = (0..4000).filter(|i| tracker.count(poisson(20.0), 0.25) && *i > 0).count();
        assert!(steps <= 4, "{steps} steps in 4,000 samples of noise");
        let mean = tracker.mean();
        assert!((mean - 80.0).abs() < 6.0, "{mean}");
        let noticed = (1..20).find(|_| tracker.count(poisson(4.0), 0.25));
        assert!(
            noticed.is_some_and(|samples| samples <= 4),
            "a fall to a fifth, seen after {noticed:?} samples"
        );
        assert!(tracker.mean() < 30.0);
    }

    /// Samples have 28 requests, and the first has more: one second later the mean is over all of them.
    #[test]
    fn the_first_sample_after_a_step_is_one_of_several() {
        let mut tracker = Tracker::default();
        for count in [38, 28, 27, 29, 28] {
            tracker.count(count, 0.25);
        }
        assert!((tracker.mean() - 120.0).abs() < 1e-9, "{}", tracker.mean());
        (0..400).for_each(|_| {
            tracker.count(28, 0.25);
        });
        let steady = tracker.mean();
        tracker.count(38, 0.25);
        assert!((tracker.mean() - steady) / 40.0 < 0.02, "later samples weigh no more than ever");
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

    /// The learned deviation hides a fall to a sixth for longer than a second; the deviation of the latest samples does not.
    #[test]
    fn after_arrivals_that_were_uneven_a_clear_change_is_a_step_and_turns_are_not() {
        let mut random = crate::random::Random::new(11);
        let mut uneven = |tracker: &mut Tracker| {
            let counts = [50, 150, 1500, 3000, 4500];
            (0..80).for_each(|_| _ = tracker.count(counts[random.below(5) as usize], 0.25));
        };
        let even = |i: u32| 250 + u64::from(i % 3);
        let mut tracker = Tracker::default();
        uneven(&mut tracker);
        (0..50).for_each(|i| _ = tracker.count(6 * even(i), 0.25));
        let noticed = (1..30).find(|i| tracker.count(even(*i), 0.25));
        assert!(noticed.is_some_and(|samples| (8..=12).contains(&samples)), "after {noticed:?} samples");
        assert!((tracker.mean() - 1004.0).abs() < 4.0, "{}", tracker.mean());
        // The rate is low for a second, and eight times as high for the next.
        uneven(&mut tracker);
        let turns = |i: u32| if (i / 4).is_multiple_of(2) { even(i) } else { 8 * even(i) };
        let steps = (0..400).filter(|i| tracker.count(turns(*i), 0.25) && *i > 100).count();
        assert!(steps == 0 && (3000.0..6000.0).contains(&tracker.mean()), "{steps}, {}", tracker.mean());
    }

    #[test]
    fn the_end_of_a_slope_is_known_a_few_seconds_after_it() {
        let mut random = crate::random::Random::new(23);
        for (high, low, slope, after) in
            [(1500.0, 100.0, 12, 10), (1500.0, 100.0, 40, 16), (2000.0, 700.0, 8, 4)]
        {
            for (from, to) in [(high, low), (low, high)] {
                let mut tracker = Tracker::default();
                let mut noisy = |mean: f64| {
                    let sum: f64 = (0..12).map(|_| (random.bits() >> 11) as f64 / (1u64 << 53) as f64).sum();
                    (mean + sqrt(mean) * (sum - 6.0)).max(0.0) as u64
                };
                (0..80).for_each(|_| _ = tracker.count(noisy(from), 0.25));
                let at = |i: i32| from + (to - from) * f64::from(i) / f64::from(slope);
                (1..=slope).for_each(|i| _ = tracker.count(noisy(at(i)), 0.25));
                (0..after).for_each(|_| _ = tracker.count(noisy(to), 0.25));
                let error = tracker.mean() / (4.0 * to) - 1.0;
                assert!(error.abs() < 0.4, "from {from} to {to} in {slope}: {error:.2}");
            }
        }
    }

    /// Very regular arrivals leave the mean a little below each sample for minutes, so that all samples are one run.
    #[test]
    fn a_step_after_even_arrivals_is_not_averaged_with_them() {
        for (before, after) in [(3.988, 72.235), (11.9, 100.0), (81.2, 300.0), (300.7, 40.0), (72.235, 6.0)] {
            for seconds in [10.0, 40.0, 300.0] {
                let (mut tracker, mut counted) = (Tracker::default(), 0);
                let mut seen = None;
                for sample in 1..=(4.0 * seconds) as u32 + 8 {
                    let at = f64::from(sample) * 0.25;
                    let total = (before * at.min(seconds) + after * (at - seconds).max(0.0)) as u64;
                    if tracker.count(total - counted, 0.25) && at > seconds {
                        seen = seen.or(Some(at - seconds));
                    }
                    counted = total;
                }
                assert!(
                    seen.is_some_and(|after| after <= 1.0),
                    "{before} to {after} after {seconds} s: {seen:?}"
                );
                assert!(
                    (tracker.mean() / after - 1.0).abs() < 0.15,
                    "{before} to {after}: {}",
                    tracker.mean()
                );
            }
        }
    }

    #[test]
    fn many_counts_of_nothing_are_one_after_the_other() {
        let mut random = crate::random::Random::new(7);
        for (ordinary, burst) in [(1, 1), (3, 40), (30, 2000)] {
            let (mut together, mut single) = (Tracker::default(), Tracker::default());
            for _ in 0..3000 {
                let most = if random.below(50) == 0 { burst } else { ordinary };
                let count = random.below(most + 1);
                assert_eq!(together.count(count, 0.25), single.count(count, 0.25));
                let silence = if random.below(50) == 0 { 4000 } else { 12 };
                let nothing = random.below(silence);
                let stepped = (0..nothing).fold(false, |stepped, _| single.count(0, 0.25) || stepped);
                assert_eq!(together.count_nothing(nothing, 0.25), stepped);
                assert_eq!(together, single);
            }
        }
    }
}
