//! How an exchange progresses, and until when the side that it waits for may take.
//!
//! The side that is waited for has the deadline: a client that owes body bytes, a client that does not read, or an
//! upstream that owes a response. While the request holds its place, a client must also keep a [`Pace`].

use super::pace::Pace;
use crate::settings::Timeouts;
use plimsoll_core::time::Instant;

/// The side that was waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    ClientReads,
    ClientSends,
    Upstream,
}

/// What an exchange waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// For the client to take its response.
    pub client_reads: bool,
    /// For the client to send more of its body.
    pub client_sends: bool,
    /// For the upstream.
    pub upstream: bool,
    /// Whether the request still holds its place at the upstream.
    pub holds_place: bool,
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
    pub(crate) fn start(now: Instant, timeouts: &Timeouts) -> Self {
        let (sends, takes) = (Pace::start(now, timeouts.body_idle), Pace::start(now, timeouts.send));
        Progress { client_moved: now, upstream_moved: now, sends, takes }
    }

    /// The exchange begins on a connection, which took time to make.
    pub(super) fn attached(&mut self, now: Instant) {
        (self.client_moved, self.upstream_moved) = (now, now);
        self.sends.excuse(now);
    }

    /// The client took bytes of its response.
    pub(super) fn client_took(&mut self, now: Instant, bytes: u64) {
        self.client_moved = now;
        self.takes.earn(now, bytes);
    }

    /// The client sent bytes of its body; `owed`: the exchange waited for them.
    pub(super) fn client_sent(&mut self, now: Instant, bytes: u64, owed: bool) {
        if !owed {
            self.sends.excuse(now);
        }
        self.sends.earn(now, bytes);
    }

    /// The upstream took bytes of the request.
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
        // Once the place is given back, a slow reader costs only its own connection.
        let taken_by =
            if waits.holds_place { self.takes.deadline() } else { self.client_moved + timeouts.send };
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
