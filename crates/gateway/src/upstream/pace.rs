//! How slow a client may be while its request holds a place.
//!
//! With an idle limit alone, a client could hold a place at a plant by sending a byte now and then, and as many such
//! clients as there are workers would stop the service. Time is therefore an account. It holds at most the idle limit,
//! each second of waiting for the client takes one second, and each [`MIN_RATE`] bytes give one second back. A client
//! that keeps up this rate, or pauses for less than the limit between large pieces, is never late. A slower client is
//! late about one limit after it became so slow.
//!
//! Why not a limit from the beginning plus a second per [`MIN_RATE`] bytes: a few fast megabytes would buy an hour of
//! slowness.

use plimsoll_core::time::{Duration, Instant};

/// How many bytes a second a client must send of a body, or take of a response, on average over its time limit. No line
/// in use is slower.
pub(crate) const MIN_RATE: u64 = 1024;

/// A client's account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The most time that the account holds.
    limit: Duration,
    deadline: Instant,
    /// Until when the time is accounted for.
    since: Instant,
}

impl Pace {
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        Pace { limit, deadline: now + limit, since: now }
    }

    /// The client moved bytes, which earn time.
    pub(crate) fn earn(&mut self, now: Instant, bytes: u64) {
        let earned = Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / MIN_RATE));
        self.deadline = (self.deadline + earned).min(now + self.limit);
        self.since = now;
    }

    /// The exchange has not waited for the client since the last call.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.deadline = (self.deadline + now.since(self.since)).min(now + self.limit);
        self.since = now;
    }

    /// When the account is empty if the exchange waits for the client alone.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn pace() -> Pace {
        Pace::start(at(100), Duration::from_secs(30))
    }

    #[test]
    fn a_client_below_the_rate_is_late_and_one_at_the_rate_is_not() {
        let (mut dripping, mut steady, mut bursts) = (pace(), pace(), pace());
        for second in 101..1000 {
            if at(second) < dripping.deadline() {
                dripping.earn(at(second), 100);
            }
        }
        assert!((at(130)..at(140)).contains(&dripping.deadline()), "{dripping:?}");
        for second in 101..1000 {
            assert!(at(second) < steady.deadline());
            steady.earn(at(second), MIN_RATE);
        }
        for second in (125..1000).step_by(25) {
            assert!(at(second) < bursts.deadline());
            bursts.earn(at(second), 25 * MIN_RATE);
        }
    }

    #[test]
    fn a_fast_beginning_buys_no_more_than_the_limit() {
        let mut pace = pace();
        pace.earn(at(101), 1 << 40);
        assert_eq!(pace.deadline(), at(131));
        pace.earn(at(102), u64::MAX);
        assert_eq!(pace.deadline(), at(132));
    }

    #[test]
    fn time_spent_waiting_for_others_is_not_counted() {
        let mut pace = pace();
        pace.earn(at(110), 0);
        pace.excuse(at(150));
        assert_eq!(pace.deadline(), at(170), "only ten seconds were waited for the client");
    }
}
