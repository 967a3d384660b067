//! How an exchange progresses, and until when the side that it waits for may take.
//!
//! The side that is waited for has the deadline: a client that owes body bytes, a client that does not read, or an
//! upstream that owes a response. A client that the upstream waits for must also keep a [`Pace`].

use crate::settings::Timeouts;
use plimsoll_core::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    ClientReads,
    ClientSends,
    Upstream,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// For the client to take its response.
    pub client_reads: bool,
    /// For the client to send more of its body.
    pub client_sends: bool,
    pub upstream: bool,
    /// Whether the client must keep its pace as it takes the response: the upstream waits for it, or room in files is scarce.
    pub must_keep_up: bool,
    /// Whether the client is being sent the final response.
    pub committed: bool,
}

/// When each side last moved, and how the client keeps its pace.
#[derive(Debug)]
pub(crate) struct Progress {
    client_moved: Instant,
    upstream_moved: Instant,
    /// How the client sends the request.
    sends: Pace,
    /// How the client takes the response.
    takes: Pace,
}

impl Progress {
    /// `streams`: the request's body streams on purpose.
    pub(crate) fn start(now: Instant, timeouts: &Timeouts, streams: bool) -> Self {
        let slow = Pace::start(now, timeouts.body_idle);
        let sends = if streams { slow } else { Pace::floor(now, timeouts.body_idle) };
        let takes = Pace::floor(now, timeouts.send);
        Progress { client_moved: now, upstream_moved: now, sends, takes }
    }

    /// The exchange begins on a connection, which took time to make.
    pub(super) fn attached(&mut self, now: Instant) {
        (self.client_moved, self.upstream_moved) = (now, now);
        self.sends.excuse(now);
    }

    /// The response is a stream of events, which its client may take slowly.
    pub(super) fn streams(&mut self, now: Instant, timeouts: &Timeouts) {
        self.takes = Pace::start(now, timeouts.send);
    }

    pub(super) fn client_took(&mut self, now: Instant, bytes: u64) {
        self.client_moved = now;
        self.takes.earn(now, bytes);
    }

    /// Nobody waits for the client to take its response.
    pub(super) fn excuse_taking(&mut self, now: Instant) {
        self.takes.excuse(now);
    }

    /// The client sent bytes of its body; `owed`: the exchange waited for them.
    pub(super) fn client_sent(&mut self, now: Instant, bytes: u64, owed: bool) {
        if !owed {
            self.sends.excuse(now);
        }
        self.sends.earn(now, bytes);
    }

    pub(super) fn upstream_took(&mut self, now: Instant) {
        self.upstream_moved = now;
        self.sends.excuse(now);
    }

    /// The upstream sent bytes of its response. `client_had_all`: the client had taken all bytes before these.
    /// `client_owed`: the exchange waited for the client's body.
    pub(super) fn upstream_sent(&mut self, now: Instant, client_had_all: bool, client_owed: bool) {
        self.upstream_moved = now;
        if client_had_all {
            self.client_moved = now;
            self.takes.excuse(now);
        }
        if !client_owed {
            self.sends.excuse(now);
        }
    }

    /// The earliest deadline, and the side that it is for.
    pub(super) fn deadline(&self, waits: Waits, timeouts: &Timeouts) -> Option<(Instant, Overdue)> {
        // A slow reader that nobody waits for costs only its own connection.
        let taken_by =
            if waits.must_keep_up { self.takes.deadline() } else { self.client_moved + timeouts.send };
        let limit = if waits.committed { timeouts.upstream_idle } else { timeouts.first_byte };
        [
            (waits.client_reads, taken_by, Overdue::ClientReads),
            (waits.client_sends, self.sends.deadline(), Overdue::ClientSends),
            (waits.upstream, self.upstream_moved + limit, Overdue::Upstream),
        ]
        .into_iter()
        .filter_map(|(waits, at, overdue)| waits.then_some((at, overdue)))
        .min_by_key(|(at, _)| *at)
    }
}

/// How many bytes a second a client must send of a body on average over its time limit, before its request arrives or
/// where it streams on purpose.
const MIN_RATE: u64 = 1024;

/// How many bytes a second a client must move while the upstream waits for it, or while room in files is scarce.
const FLOOR_RATE: u64 = 16 * 1024;
/// How long it may be slower than that. A client's kernel tells of what it took in steps of 64 KiB, which are four seconds.
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
    limit: Duration,
    rate: u64,
    deadline: Instant,
    /// Until when the time is accounted for.
    since: Instant,
}

impl Pace {
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        Pace { limit, rate: MIN_RATE, deadline: now + limit, since: now }
    }

    /// The account of a client that others wait for.
    pub(crate) fn floor(now: Instant, limit: Duration) -> Self {
        Pace { rate: FLOOR_RATE, ..Pace::start(now, limit.min(FLOOR_TIME)) }
    }

    /// The client moved bytes, which earn time.
    pub(crate) fn earn(&mut self, now: Instant, bytes: u64) {
        let earned = Duration::from_nanos(bytes.saturating_mul(1_000_000_000 / self.rate));
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
