//! Busy time: the time integral of `min(n, s)`, n requests inside and s workers.
//!
//! `U = (1/T) integral of min(n, s) / s dt` is the utilization of a server of s workers (UC 4.3 generalized). The integral is
//! kept in whole worker-nanoseconds, so it is exact, and any two readings may be subtracted. Time is an argument; an instant
//! that comes slightly out of order counts as already passed and adds nothing.

use std::time::Duration;

/// The integral of busy workers over time.
#[derive(Clone, Debug)]
pub(crate) struct BusyLedger {
    workers: u64,
    inside: u64,
    last_ns: u64,
    busy_worker_ns: u64,
}

/// The reading of a [`BusyLedger`] at one instant. Subtract two with [`BusyReading::utilization_since`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyReading {
    /// The time of the reading, from the origin's start.
    pub at: Duration,
    /// Nanoseconds that workers were busy, summed over the workers.
    pub busy_worker_ns: u64,
    /// The number of workers, s.
    pub workers: u32,
    /// Requests inside, waiting or served, n.
    pub inside: u64,
}

impl BusyReading {
    /// Mean utilization in `[0, 1]` from `earlier` to this reading; 0 if no time has passed.
    pub fn utilization_since(&self, earlier: &BusyReading) -> f64 {
        let period_ns = self.at.saturating_sub(earlier.at).as_nanos() as f64;
        let busy_ns = (self.busy_worker_ns - earlier.busy_worker_ns) as f64 / f64::from(self.workers);
        if period_ns == 0.0 { 0.0 } else { busy_ns / period_ns }
    }
}

impl BusyLedger {
    /// An idle server of `workers` workers at time zero.
    pub(crate) fn new(workers: u32) -> Self {
        Self { workers: u64::from(workers), inside: 0, last_ns: 0, busy_worker_ns: 0 }
    }

    /// Counts a request as inside from now on.
    pub(crate) fn enter(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.inside += 1;
    }

    /// Counts a request as gone from now on.
    pub(crate) fn leave(&mut self, now_ns: u64) {
        self.account(now_ns);
        debug_assert!(self.inside > 0, "a request left that never entered");
        self.inside = self.inside.saturating_sub(1);
    }

    /// The integral up to now.
    pub(crate) fn read(&mut self, now_ns: u64) -> BusyReading {
        self.account(now_ns);
        BusyReading {
            at: Duration::from_nanos(self.last_ns),
            busy_worker_ns: self.busy_worker_ns,
            workers: self.workers as u32,
            inside: self.inside,
        }
    }

    fn account(&mut self, now_ns: u64) {
        let passed = now_ns.saturating_sub(self.last_ns);
        self.busy_worker_ns += self.inside.min(self.workers) * passed;
        self.last_ns = self.last_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_of_min_n_s_is_exact() {
        let mut ledger = BusyLedger::new(2);
        ledger.enter(100); // one busy for 50
        ledger.enter(150); // two busy for 50
        ledger.enter(200); // three inside, two busy, for 100
        let middle = ledger.read(300);
        assert_eq!((middle.busy_worker_ns, middle.inside), (50 + 100 + 200, 3));
        ledger.leave(300); // still two busy for 100
        ledger.leave(400); // one busy for 100
        ledger.leave(500);
        let end = ledger.read(1000);
        assert_eq!(end.busy_worker_ns, 350 + 200 + 100);
        assert_eq!(end.utilization_since(&middle), 300.0 / 2.0 / 700.0);
        assert_eq!(end.utilization_since(&end), 0.0);
    }

    #[test]
    fn an_instant_from_the_past_adds_nothing() {
        let mut ledger = BusyLedger::new(1);
        ledger.enter(100);
        ledger.read(200);
        ledger.leave(150);
        assert_eq!(ledger.read(300).busy_worker_ns, 100);
    }
}
