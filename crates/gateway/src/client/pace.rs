//! How slow a client may be.

use plimsoll_core::time::{Duration, Instant};

/// How many bytes a second a client must move of a body or a response on average over its time limit.
const MIN_RATE: u64 = 1024;

/// How many bytes a second it must move while others wait for its place at the upstream, or for room in files that is scarce.
const FLOOR_RATE: u64 = 16 * 1024;
/// How long it may be slower than that. A client's kernel reports what it took in steps of 64 KiB, which are four seconds.
const FLOOR_TIME: Duration = Duration::from_secs(10);

/// How often a client whose bytes are in a file is looked at: whether room in files has become scarce.
pub(crate) const SCARCITY_LOOK: Duration = Duration::from_secs(5);

/// A client's account of time: how slow it may be.
///
/// With an idle limit alone, a client could hold a place at a plant by sending a byte now and then, and as many such
/// clients as there are workers would stop the service. Time is therefore an account. It holds at most the idle limit,
/// each second of waiting for the client takes one second, and each `rate` bytes give one second back. A client
/// that keeps up this rate, or pauses for less than the limit between large pieces, is never late. A slower client is
/// late about one limit after it became so slow.
///
/// A limit from the beginning plus earned seconds would not do: a few fast megabytes would buy an hour of slowness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    limit_ns: u64,
    rate: u64,
    deadline: Instant,
    /// Until when the time is accounted for.
    since: Instant,
}

impl Pace {
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        Pace { limit_ns: limit.as_nanos() as u64, rate: MIN_RATE, deadline: now + limit, since: now }
    }

    fn limit(&self) -> Duration {
        Duration::from_nanos(self.limit_ns)
    }

    /// The account of a client while others wait for its place or its room in files.
    pub(crate) fn floor(now: Instant, limit: Duration) -> Self {
        Pace { rate: FLOOR_RATE, ..Pace::start(now, limit.min(FLOOR_TIME)) }
    }

    /// The client moved bytes, which earn time.
    pub(crate) fn earn(&mut self, now: Instant, bytes: u64) {
        let earned = Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / self.rate));
        self.deadline = (self.deadline + earned).min(now + self.limit());
        self.since = now;
    }

    /// Notes that the exchange did not wait for the client since the last call.
    pub(crate) fn excuse(&mut self, now: Instant) {
        self.deadline = (self.deadline + now.since(self.since)).min(now + self.limit());
        self.since = now;
    }

    /// From now on the exchange waits for the client alone, whose account is full.
    fn refill(&mut self, now: Instant) {
        (self.deadline, self.since) = (now + self.limit(), now);
    }

    /// When the account is empty if the exchange waits for the client alone.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// How a client takes a response, by what its kernel has acknowledged.
///
/// What its socket accepts would say too little: the system accepts the next bytes once tens of kilobytes are gone, so that
/// a client of 2 KB a second would seem to stand still for longer than it may. A look at the socket costs a system call: it is
/// made four times within the time limit, and only of a client that is waited for.
#[derive(Debug)]
pub(crate) struct Taking {
    accepted: u64,
    acknowledged: u64,
    looked: Instant,
    pace: Pace,
    /// The pace while others wait for what the client holds.
    floor: Pace,
}

impl Taking {
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        let (pace, floor) = (Pace::start(now, limit), Pace::floor(now, limit));
        Taking { accepted: 0, acknowledged: 0, looked: now, pace, floor }
    }

    /// Begins the account: nobody has waited for the client yet.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.looked = now;
        self.pace.refill(now);
        self.floor.refill(now);
    }

    /// Marks the response as one that the client may take slowly, even if others wait.
    pub(crate) fn has_no_floor(&mut self) {
        self.floor = self.pace;
    }

    /// The client's socket accepted bytes.
    pub(crate) fn accepted(&mut self, bytes: u64) {
        self.accepted += bytes;
    }

    /// Credits the bytes that were acknowledged since the last look at the socket, if a look is due.
    pub(crate) fn look(&mut self, now: Instant, must_keep_up: bool, unacknowledged: impl FnOnce() -> u64) {
        if !must_keep_up {
            self.floor.refill(now);
        }
        if now < self.next_look(must_keep_up) {
            return;
        }
        let acknowledged = self.accepted.saturating_sub(unacknowledged()).max(self.acknowledged);
        let bytes = acknowledged - self.acknowledged;
        (self.acknowledged, self.looked) = (acknowledged, now);
        self.pace.earn(now, bytes);
        self.floor.earn(now, bytes);
    }

    pub(crate) fn next_look(&self, must_keep_up: bool) -> Instant {
        self.looked + if must_keep_up { self.floor.limit() } else { self.pace.limit() } / 4
    }

    /// Until when the client may be waited for.
    pub(crate) fn deadline(&self, must_keep_up: bool) -> Instant {
        let pace = self.pace.deadline();
        if must_keep_up { pace.min(self.floor.deadline()) } else { pace }
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

    /// Whether a client is given up if, after each second, `unacknowledged` bytes are left of the 96 KiB that its socket
    /// accepted.
    fn is_given_up(must_keep_up: bool, unacknowledged: impl Fn(u64) -> u64) -> bool {
        let mut taking = Taking::start(at(100), Duration::from_secs(40));
        taking.accepted(96 * 1024);
        (1..=48).any(|second| {
            taking.look(at(100 + second), must_keep_up, || unacknowledged(second));
            taking.deadline(must_keep_up) <= at(100 + second)
        })
    }

    #[test]
    fn a_slow_reader_is_seen_between_two_writes_and_one_that_stands_is_given_up() {
        let slowly = |second| 96 * 1024 - 2048 * second;
        assert!(!is_given_up(false, slowly));
        assert!(is_given_up(true, slowly), "too slow for those who wait");
        assert!(is_given_up(false, |_| 96 * 1024));
        assert!(is_given_up(false, |second| 96 * 1024 - 100 * second));
    }
}
