//! s workers, one request each (the process pool of UC 6.1).

use super::ledger::Ledger;
use super::operational::OperationalTime;
use super::schedule::{Job, Schedule};
use plimsoll_core::time::{Duration, Instant};

/// Services under way at s workers. The server decides which request starts.
///
/// Slow-downs are known beforehand, so the end of a service is known when it starts; keys are real times.
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
