//! How many requests may be tried again, at another server or on another connection: a part of the requests of the last
//! seconds, so that retries cannot amplify an overload in which no server accepts connections any more, or in which servers
//! kill workers that take too long.
//!
//! ```text
//! retries <= LEAST + SHARE * requests        in a window of 10 to 20 s
//! ```
//!
//! A repeated request is no retry if its kept connection ended before a byte of it was sent, or if the server says that it has
//! not looked at it.

use super::recent_counts::RecentCounts;
use plimsoll_core::time::Instant;

/// The part of the requests that may be tried again.
const SHARE: f64 = 0.2;
/// The number of retries that is always allowed, however few requests there are.
const LEAST: u64 = 10;

#[derive(Debug, Default)]
pub(super) struct RetryBudget {
    recent: RecentCounts,
    made: u64,
    refused: u64,
}

impl RetryBudget {
    /// Takes a retry, if the budget has one; `requests` is the number of the upstream's requests so far.
    pub(super) fn take(&mut self, now: Instant, requests: u64) -> bool {
        let [requests, retries] = self.look(now, requests);
        let is_left = retries < LEAST + (SHARE * requests as f64) as u64;
        *if is_left { &mut self.made } else { &mut self.refused } += 1;
        is_left
    }

    /// The requests and retries that are recent.
    pub(super) fn look(&mut self, now: Instant, requests: u64) -> [u64; 2] {
        self.recent.of(now, [requests, self.made])
    }

    /// The number of retries that were made, and of those that were refused.
    pub(super) fn counts(&self) -> [u64; 2] {
        [self.made, self.refused]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn retries_are_a_fifth_of_the_requests_and_ten() {
        let mut budget = RetryBudget::default();
        assert_eq!((0..100).filter(|_| budget.take(at(100), 0)).count(), 10);
        // A request and a wish for a retry each millisecond, for two minutes.
        let mut requests = 0;
        for second in 100..220 {
            for _ in 0..1000 {
                requests += 1;
                budget.take(at(second), requests);
            }
        }
        let [made, refused] = budget.counts();
        assert_eq!(made + refused, 120_100);
        assert!((23_000..=24_200).contains(&made), "{made} of 120,000");
    }
}
