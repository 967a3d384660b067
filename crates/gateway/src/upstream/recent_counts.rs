//! How much counters have grown lately: within at least the last ten seconds, and at most twenty if this is asked that often.

use plimsoll_core::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentCounts {
    began: Instant,
    /// The counters at the beginning of this window, and of the one before it.
    at_begin: [u64; 2],
    before: [u64; 2],
}

impl RecentCounts {
    /// How much two counters that now stand at `counted` have grown.
    pub(super) fn of(&mut self, now: Instant, counted: [u64; 2]) -> [u64; 2] {
        if now.since(self.began) >= WINDOW {
            (self.began, self.before, self.at_begin) = (now, self.at_begin, counted);
        }
        // A server that has left takes its counts with it.
        [0, 1].map(|counter| counted[counter].saturating_sub(self.before[counter]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_two_windows_is_forgotten() {
        let mut recent = RecentCounts::default();
        let mut grown = |second: u64, counted: u64| {
            recent.of(Instant::from_nanos(second * 1_000_000_000), [counted, 0])[0]
        };
        assert_eq!([grown(100, 50), grown(105, 60), grown(110, 70)], [50, 60, 20]);
        assert_eq!([grown(119, 75), grown(120, 80), grown(130, 80), grown(140, 80)], [25, 10, 0, 0]);
    }
}
