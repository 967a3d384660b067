//! The second and the minute in which most requests arrived.

use plimsoll_core::time::Instant;
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;
/// The shortest stretch (s) whose mean rate counts for the busiest minute, and the longest that must be tried: any longer
/// stretch has a part that is as busy or busier.
const MINUTE: usize = 60;
const LONGEST: usize = 2 * MINUTE;

/// The most requests that arrived within one of the run's seconds, and the highest rate per minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalPeaks {
    /// Requests in the busiest second.
    pub second: u64,
    /// The highest mean rate of any stretch of a minute or more, in requests per minute, so that it is never below the mean
    /// rate of the run. Zero if the run is shorter than a minute.
    pub minute: u64,
}

/// Counts arrivals by the run's seconds.
#[derive(Debug)]
pub(super) struct ArrivalCounter {
    /// The number of the present second.
    number: u64,
    all: u64,
    /// How many requests arrived before the present second, and before each of the seconds before it.
    before: VecDeque<u64>,
    busiest_second: u64,
    /// The highest rate in requests per minute so far, over stretches of whole seconds.
    busiest: f64,
    pub(super) last: Instant,
}

impl Default for ArrivalCounter {
    fn default() -> Self {
        let (before, last) = (VecDeque::from([0]), Instant::default());
        ArrivalCounter { number: 0, all: 0, before, busiest_second: 0, busiest: 0.0, last }
    }
}

impl ArrivalCounter {
    pub(super) fn count(&mut self, now: Instant) {
        self.advance(now);
        self.all += 1;
        self.busiest_second = self.busiest_second.max(self.all - self.before[0]);
        self.last = now;
    }

    /// The peaks of a run that offered requests until `end`.
    pub(super) fn peaks(&mut self, end: Instant) -> ArrivalPeaks {
        self.advance(end);
        let busiest = self.busiest.max(self.busiest_until((end.as_nanos() % SECOND) as f64 / SECOND as f64));
        ArrivalPeaks { second: self.busiest_second, minute: busiest.ceil() as u64 }
    }

    fn advance(&mut self, now: Instant) {
        let number = now.as_nanos() / SECOND;
        // After such a long silence, no earlier second is in any stretch that is tried.
        let passed = number.saturating_sub(self.number).min(LONGEST as u64 + 1);
        for _ in 0..passed {
            self.before.push_front(self.all);
            self.before.truncate(LONGEST + 1);
            self.busiest = self.busiest.max(self.busiest_until(0.0));
        }
        self.number = self.number.max(number);
    }

    /// The highest rate in requests per minute among the stretches that end `part` of a second into the present second.
    fn busiest_until(&self, part: f64) -> f64 {
        let stretches = self.before.iter().enumerate().skip(MINUTE);
        let rate = |(seconds, before): (usize, &u64)| {
            (self.all - before) as f64 * MINUTE as f64 / (seconds as f64 + part)
        };
        stretches.map(rate).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_need_not_be_in_the_busiest_minute() {
        let mut counter = ArrivalCounter::default();
        // One request a second comes for a minute, then nine come at once.
        (0..60).for_each(|second| counter.count(Instant::from_nanos(second * 1_000_000_000)));
        (0..9).for_each(|_| counter.count(Instant::from_nanos(75_500_000_000)));
        assert_eq!(counter.peaks(counter.last), ArrivalPeaks { second: 9, minute: 60 });
    }

    /// Requests in the seconds of `busy`, `each` in a second of them, over a run that ends at `end` (milliseconds).
    fn peaks(busy: impl Fn(u64) -> bool, each: u64, end: u64) -> (ArrivalPeaks, u64) {
        let mut counter = ArrivalCounter::default();
        let at = |milliseconds: u64| Instant::from_nanos(milliseconds * 1_000_000);
        let times = (0..end.div_ceil(1000)).filter(|second| busy(*second));
        let times = times.flat_map(|second| (0..each).map(move |nth| second * 1000 + nth * 1000 / each));
        times.filter(|time| *time < end).for_each(|time| counter.count(at(time)));
        let all = counter.all;
        (counter.peaks(at(end)), all)
    }

    #[test]
    fn the_busiest_minute_may_begin_at_any_second() {
        assert_eq!(peaks(|second| second >= 25, 130, 100_000).0.minute, 60 * 130);
        assert_eq!(peaks(|second| (30..90).contains(&second), 5, 120_000).0.minute, 300);
        assert_eq!(peaks(|second| (30..60).contains(&second), 5, 10_000_000).0.minute, 150);
        assert_eq!(peaks(|second| second < 1000, 5, 59_900).0.minute, 0);
        // A silence of hours, and then a burst.
        assert_eq!(peaks(|second| [3, 9000].contains(&second), 100, 9_030_000).0.minute, 100);
    }

    #[test]
    fn the_busiest_minute_is_never_below_the_mean() {
        for end in [60_000, 60_400, 75_500, 100_000, 119_999, 121_000, 179_300, 400_000] {
            for (from, until) in [(0, 40), (40, 60), (10, 61), (59, 120), (100, 101)] {
                let busy = |second| (from..until).contains(&(second % 60)) || second * 1000 > end - 40_000;
                let (peaks, all) = peaks(busy, 7, end);
                let mean = all as f64 * 60_000.0 / end as f64;
                assert!(peaks.minute as f64 >= mean, "{end} ms, {from} to {until}: {peaks:?}, mean {mean}");
            }
        }
    }
}
