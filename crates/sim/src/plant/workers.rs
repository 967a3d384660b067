//! s workers, one request each (the process pool of UC 6.1).

use super::operational::OperationalTime;
use super::schedule::{Job, Schedule};
use plimsoll_core::time::{Duration, Instant};

/// Services under way at s workers. The server decides which request starts.
///
/// Slow-downs are known beforehand, so the end of a service is known when it starts; the keys are real times.
#[derive(Debug, Default)]
pub(super) struct Workers {
    in_service: Schedule,
    ledger: Ledger,
}

impl Workers {
    pub(super) fn len(&self) -> usize {
        self.in_service.len()
    }

    pub(super) fn enter(&mut self, now: Instant, time: &OperationalTime, work_ns: f64, job: Job) {
        self.ledger.add(now, self.in_service.len());
        self.in_service.push(time.after(now, work_ns).as_nanos(), job);
    }

    pub(super) fn due(&self) -> Instant {
        self.in_service.first().map_or(Instant::FAR, Instant::from_nanos)
    }

    pub(super) fn leave(&mut self, now: Instant) -> Option<Job> {
        self.ledger.add(now, self.in_service.len());
        self.in_service.pop()
    }

    pub(super) fn busy(&mut self, now: Instant) -> Duration {
        self.ledger.add(now, self.in_service.len());
        self.ledger.busy()
    }
}

/// The busy time of s servers together, in whole nanoseconds: the integral of min(n, s) over real time.
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
