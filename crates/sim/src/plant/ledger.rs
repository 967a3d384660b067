//! Busy time, in whole nanoseconds: the integral of min(n, s) over real time.

use plimsoll_core::time::{Duration, Instant};

/// The busy time of s servers together.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    busy_ns: u64,
    last: Instant,
}

impl Ledger {
    /// Accounts for the time since the last call, in which `at_work` servers were at work.
    pub(super) fn add(&mut self, now: Instant, at_work: usize) {
        self.busy_ns += at_work as u64 * now.nanos_since(self.last);
        self.last = now;
    }

    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_ns)
    }
}
