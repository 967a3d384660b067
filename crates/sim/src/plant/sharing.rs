//! Processor sharing: n jobs on s servers get min(1, s / n) each (an event loop, more processes than cores; a link).
//!
//! Exact, by virtual time: V grows by what each job gets, dV = min(1, s / n) dtau. A job that enters at V with work x ends when
//! V reaches V + x, whatever else comes or goes meanwhile. So one heap of these ends suffices: O(log n) a job, instead of O(n)
//! for counting down the remaining work of every job.
//!
//! V is a float (ns), reset to 0 when the last job leaves and moved down when it has grown large, so that a step rounds by some
//! 2^-13 ns at most. Ends come at whole nanoseconds of real time, rounded up; until then the job keeps its share, so no work is
//! lost, and each job may take up to a nanosecond more than its due.
//!
//! For M/G/1 the mean response time is S / (1 - rho), whatever the distribution (Kleinrock, Queueing Systems II, 4.4). If the
//! offered load exceeds the capacity and nothing limits n, the server finishes less than its capacity, because it works at many
//! jobs and finishes few (Jean-Marie and Robert 1994).

use super::operational::OperationalTime;
use super::schedule::{Job, Schedule};
use super::workers::Ledger;
use plimsoll_core::time::{Duration, Instant};

/// When V is moved down (ns): 18 minutes without a rest.
const LARGE: f64 = (1_u64 << 40) as f64;

/// Servers shared evenly by all jobs in service.
#[derive(Debug)]
pub(super) struct Sharing {
    servers: usize,
    /// Each key is the bits of V at the job's end; the bits of floats that are not negative order as their values do.
    in_service: Schedule,
    virtual_now: f64,
    last: Instant,
    due: Instant,
    ledger: Ledger,
}

impl Sharing {
    pub(super) fn new(servers: usize) -> Self {
        Sharing {
            servers,
            in_service: Schedule::default(),
            virtual_now: 0.0,
            last: Instant::ZERO,
            due: Instant::FAR,
            ledger: Ledger::default(),
        }
    }

    pub(super) fn enter(&mut self, now: Instant, time: &OperationalTime, work_ns: f64, job: Job) {
        self.advance(now, time);
        self.in_service.push((self.virtual_now + work_ns).to_bits(), job);
        self.aim(time);
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    pub(super) fn leave(&mut self, now: Instant, time: &OperationalTime) -> Option<Job> {
        self.advance(now, time);
        let job = self.in_service.pop();
        if self.virtual_now > LARGE {
            let base = self.virtual_now;
            self.in_service.change_keys(|end| (f64::from_bits(end) - base).max(0.0).to_bits());
            self.virtual_now = 0.0;
        }
        self.aim(time);
        job
    }

    /// V is left as it is, because the number of calls must not change how V rounds.
    pub(super) fn busy(&mut self, now: Instant) -> Duration {
        self.ledger.add(now, self.at_work());
        self.ledger.busy()
    }

    fn at_work(&self) -> usize {
        self.in_service.len().min(self.servers)
    }

    /// The share of a server that each job gets.
    fn share(&self) -> f64 {
        if self.in_service.len() <= self.servers {
            1.0
        } else {
            self.servers as f64 / self.in_service.len() as f64
        }
    }

    fn advance(&mut self, now: Instant, time: &OperationalTime) {
        self.ledger.add(now, self.at_work());
        if self.in_service.len() == 0 {
            self.virtual_now = 0.0;
        } else {
            self.virtual_now += time.between(self.last, now) * self.share();
        }
        self.last = now;
    }

    fn aim(&mut self, time: &OperationalTime) {
        self.due = self.in_service.first().map_or(Instant::FAR, |end| {
            time.after(self.last, (f64::from_bits(end) - self.virtual_now) / self.share())
        });
    }
}
