//! How an exchange progresses, and until when it waits for either side.
//!
//! The deadline belongs to the side that the exchange waits for: a client that owes body bytes, a client that does not read, or
//! an upstream that owes a response. If the upstream waits for the client, the client must also keep a [`Pace`].

use crate::client::pace::{Pace, Taking};
use crate::settings::Timeouts;
use plimsoll_core::time::Instant;

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

/// When the upstream last moved, and how the client keeps its pace.
#[derive(Debug)]
pub(crate) struct Progress {
    upstream_moved: Instant,
    /// How the client sends the request.
    sends: Pace,
    /// How the client takes the response.
    takes: Taking,
    /// The client owed bytes after the response had begun: it cannot be known which side waited for which.
    pub(super) goes_both_ways: bool,
}

impl Progress {
    /// `streams`: the body passes to the server while it comes, as configured or as in gRPC.
    pub(crate) fn start(now: Instant, timeouts: &Timeouts, streams: bool) -> Self {
        let slow = Pace::start(now, timeouts.body_idle);
        let sends = if streams { slow } else { Pace::floor(now, timeouts.body_idle) };
        let takes = Taking::start(now, timeouts.send);
        Progress { upstream_moved: now, sends, takes, goes_both_ways: false }
    }

    /// Notes that the exchange begins on a connection, which took time to make.
    pub(super) fn attached(&mut self, now: Instant) {
        self.upstream_moved = now;
        self.takes.begin(now);
        self.sends.excuse(now);
    }

    /// Notes that the response is a stream of events, which its client may take slowly.
    pub(super) fn streams(&mut self) {
        self.takes.has_no_floor();
    }

    /// Notes that the client's socket accepted bytes.
    pub(super) fn client_accepted(&mut self, bytes: u64) {
        self.takes.accepted(bytes);
    }

    /// The client is waited for; `unacknowledged` is how much of what its socket accepted its kernel has not acknowledged.
    pub(super) fn client_reads(
        &mut self,
        now: Instant,
        must_keep_up: bool,
        unacknowledged: impl FnOnce() -> u64,
    ) {
        self.takes.look(now, must_keep_up, unacknowledged);
    }

    /// Notes that the client sent bytes of its body; `owed`: the exchange waited for them.
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

    /// Notes that the upstream sent bytes of its response. `client_had_all`: the client had taken all earlier bytes.
    /// `client_owed`: the exchange waited for the client's body.
    pub(super) fn upstream_sent(&mut self, now: Instant, client_had_all: bool, client_owed: bool) {
        self.upstream_moved = now;
        if client_had_all {
            self.takes.begin(now);
        }
        if !client_owed || self.goes_both_ways {
            self.sends.excuse(now);
        }
    }

    /// When the client's socket is to be looked at again.
    pub(super) fn next_look(&self, waits: Waits) -> Option<Instant> {
        waits.client_reads.then(|| self.takes.next_look(waits.must_keep_up))
    }

    /// The earliest deadline, and the side that must meet it.
    pub(super) fn deadline(&self, waits: Waits, timeouts: &Timeouts) -> Option<(Instant, Overdue)> {
        let taken_by = self.takes.deadline(waits.must_keep_up);
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
