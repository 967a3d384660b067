//! The plant: s workers behind one first-come queue of finite length (the process pool of UC 6.1).
//!
//! It keeps its own busy time. A claim about a loop is judged by that, never by the loop's sensor.

use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// How service times vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceTime {
    /// Not at all.
    Deterministic,
    /// Exponentially.
    Exponential,
}

/// The listen queue is full: the request is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// s workers, a listen queue, and a ledger of busy time.
#[derive(Debug)]
pub struct Plant {
    workers: usize,
    listen_queue: usize,
    service_time: ServiceTime,
    in_service: usize,
    waiting: VecDeque<(u64, Duration)>,
    busy_ns: u64,
    last: Instant,
}

impl Plant {
    /// A plant at rest.
    pub fn new(workers: usize, listen_queue: usize, service_time: ServiceTime) -> Self {
        let (waiting, last) = (VecDeque::new(), Instant::ZERO);
        Plant { workers, listen_queue, service_time, in_service: 0, waiting, busy_ns: 0, last }
    }

    /// Offers a request whose service takes `mean`. If a worker is free it starts: returns when it will be done.
    ///
    /// # Errors
    /// The listen queue is full: the request is lost.
    pub fn offer(
        &mut self,
        now: Instant,
        request: u64,
        mean: Duration,
        random: &mut Random,
    ) -> Result<Option<Instant>, Overflow> {
        self.advance(now);
        let service = match self.service_time {
            ServiceTime::Deterministic => mean,
            ServiceTime::Exponential => Duration::from_secs_f64(random.exponential(mean.as_secs_f64())),
        };
        if self.in_service < self.workers {
            self.in_service += 1;
            return Ok(Some(now + service));
        }
        if self.waiting.len() >= self.listen_queue {
            return Err(Overflow);
        }
        self.waiting.push_back((request, service));
        Ok(None)
    }

    /// A service has ended; returns the request that starts in its place, and when that will be done.
    pub fn complete(&mut self, now: Instant) -> Option<(u64, Instant)> {
        self.advance(now);
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.in_service -= 1;
        }
        next.map(|(request, service)| (request, now + service))
    }

    /// Busy server time up to `now`, over all workers.
    pub fn busy(&mut self, now: Instant) -> Duration {
        self.advance(now);
        Duration::from_nanos(self.busy_ns)
    }

    fn advance(&mut self, now: Instant) {
        self.busy_ns += self.in_service as u64 * now.nanos_since(self.last);
        self.last = now;
    }
}
