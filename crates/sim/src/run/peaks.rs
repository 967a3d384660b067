//! The seconds and minutes in which most requests arrived, from the beginning of the run on.

use plimsoll_core::time::Instant;

/// The most requests that arrived within one of a run's seconds, and within one of its minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalPeaks {
    /// In the busiest second.
    pub second: u64,
    /// In the busiest minute.
    pub minute: u64,
}

/// Counts arrivals by stretches of time.
#[derive(Debug, Default)]
pub(super) struct ArrivalCounter {
    second: CountedStretch<1>,
    minute: CountedStretch<60>,
    pub(super) last: Instant,
}

impl ArrivalCounter {
    pub(super) fn count(&mut self, now: Instant) {
        self.second.count(now);
        self.minute.count(now);
        self.last = now;
    }

    pub(super) fn peaks(&self) -> ArrivalPeaks {
        ArrivalPeaks { second: self.second.most, minute: self.minute.most }
    }
}

/// The arrivals of the stretch of so many seconds under way, and the most of any.
#[derive(Debug, Default)]
struct CountedStretch<const SECONDS: u64> {
    number: u64,
    count: u64,
    most: u64,
}

impl<const SECONDS: u64> CountedStretch<SECONDS> {
    fn count(&mut self, now: Instant) {
        let number = now.as_nanos() / (SECONDS * 1_000_000_000);
        self.count = if number == self.number { self.count + 1 } else { 1 };
        self.number = number;
        self.most = self.most.max(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_need_not_be_in_the_busiest_minute() {
        let mut counter = ArrivalCounter::default();
        // One a second for a minute, then nine at once.
        (0..60).for_each(|second| counter.count(Instant::from_nanos(second * 1_000_000_000)));
        (0..9).for_each(|_| counter.count(Instant::from_nanos(75_500_000_000)));
        assert_eq!(counter.peaks(), ArrivalPeaks { second: 9, minute: 60 });
    }
}
