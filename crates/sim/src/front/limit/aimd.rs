//! AIMD as published: Netflix concurrency-limits 0.5.4, `limit/AIMDLimit.java`, with its defaults.
//!
//! When a request ends: if it failed or took longer than `timeout`, `limit = floor(0.9 limit)`; otherwise, if at least half of
//! the limit was in use when it started, `limit = limit + 1`. The limit is clamped to a least and a most. If the client left,
//! nothing changes (`onIgnore`). At the limit, requests are rejected at once (`SimpleLimiter.java`).
//!
//! The published defaults are a time-out of 5 s, which is above most clients' patience, and a least limit of 20, which is above
//! a small pool; both can be set, so that a comparison can be fair.

use super::{Ask, Limiter, Limits, RoundTrip};
use plimsoll_core::request::Outcome;
use plimsoll_core::time::{Duration, Instant};

const BACKOFF_RATIO: f64 = 0.9;

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
pub(in crate::front) struct Aimd {
    limit: u32,
    bounds: Limits,
    /// A round trip longer than this counts as lost.
    timeout: Duration,
}

impl Aimd {
    pub(in crate::front) fn new(bounds: Limits, timeout: Duration) -> Self {
        Aimd { limit: bounds.initial, bounds, timeout }
    }
}

impl Limiter for Aimd {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.limit
    }

    fn released(&mut self, now: Instant, sample: RoundTrip) {
        if sample.ended == Outcome::Abandoned {
            return;
        }
        if sample.ended == Outcome::Failed || now.since(sample.started) > self.timeout {
            self.limit = (f64::from(self.limit) * BACKOFF_RATIO) as u32;
        } else if sample.in_flight.saturating_mul(2) >= self.limit {
            self.limit += 1;
        }
        // In this order the most counts if the least lies above it, as published.
        self.limit = self.limit.max(self.bounds.least).min(self.bounds.most);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{after, ask, at};
    use super::*;

    fn limiter() -> Aimd {
        Aimd::new(Limits { initial: 20, least: 10, most: 30 }, Duration::from_secs(1))
    }

    #[test]
    fn grows_by_one_only_while_half_of_it_is_used() {
        let mut limiter = limiter();
        let quick = |in_flight| after(at(10.0), Duration::from_millis(40), in_flight);
        limiter.released(at(10.0), quick(9));
        assert_eq!(limiter.limit, 20);
        limiter.released(at(10.0), quick(10));
        assert_eq!(limiter.limit, 21);
        assert!(limiter.admit(at(10.0), ask(20)) && !limiter.admit(at(10.0), ask(21)));
        (0..100).for_each(|_| limiter.released(at(10.0), quick(30)));
        assert_eq!(limiter.limit, 30);
    }

    #[test]
    fn shrinks_by_a_tenth_with_what_is_late_or_failed_and_ignores_who_left() {
        let mut limiter = limiter();
        let late = after(at(10.0), Duration::from_millis(1001), 20);
        limiter.released(at(10.0), late);
        assert_eq!(limiter.limit, 18);
        limiter.released(at(10.0), RoundTrip { ended: Outcome::Abandoned, ..late });
        assert_eq!(limiter.limit, 18);
        let failed = RoundTrip { ended: Outcome::Failed, ..after(at(10.0), Duration::from_millis(1), 20) };
        limiter.released(at(10.0), failed);
        assert_eq!(limiter.limit, 16);
        (0..100).for_each(|_| limiter.released(at(10.0), failed));
        assert_eq!(limiter.limit, 10);
    }
}
