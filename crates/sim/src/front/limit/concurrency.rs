//! A static concurrency limit: at most N in service, at most Q more wait in order of arrival, each at most W.
//!
//! nginx `max_conns` (with no queue), HAProxy `maxconn` on a server with `maxqueue` and `timeout queue`. Set right, N is
//! the number of workers, which must be known to set it.

use super::{Ask, Limiter, Queue};
use plimsoll_core::time::{Duration, Instant};

/// At most `most` requests in service, and a queue.
pub(in crate::front) struct Concurrency {
    most: u32,
    queue: Queue,
}

impl Concurrency {
    pub(in crate::front) fn new(most: u32, queue: u32, wait: Duration) -> Self {
        Concurrency { most, queue: Queue { most: queue, wait } }
    }
}

impl Limiter for Concurrency {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.most
    }

    fn queue(&self) -> Queue {
        self.queue
    }
}
