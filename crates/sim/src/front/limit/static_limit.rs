//! A static limit: at most N requests in the system, and at most Q more wait in order of arrival, each at most W.
//!
//! - `none`, the uncontrolled twin of every comparison: N is unbounded.
//! - Tail-drop (AC, section 1: "incoming requests are dropped when the number of awaiting tasks exceeds a predefined
//!   threshold"): no queue. The system holds requests that were started and not released, in service or in the server's listen
//!   queue, because those are what a gateway can count. A request whose client has left is no longer counted, though it may
//!   still stand in the listen queue.
//! - `concurrency`: nginx `max_conns` (with no queue), HAProxy `maxconn` on a server with `maxqueue` and `timeout queue`. The
//!   right N is the number of workers, which the operator must know.

use super::{Ask, Limiter, Queue};
use plimsoll_core::time::Instant;

/// At most `most` requests in the system, and a queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::front) struct StaticLimit {
    pub(in crate::front) most: u32,
    pub(in crate::front) queue: Queue,
}

impl Limiter for StaticLimit {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.most
    }

    fn queue(&self) -> Queue {
        self.queue
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ask;
    use super::*;

    #[test]
    fn the_bound_itself_is_let_in() {
        let mut limiter = StaticLimit { most: 3, queue: Queue::NONE };
        let admitted: Vec<bool> = (0..5).map(|n| limiter.admit(Instant::ZERO, ask(n))).collect();
        assert_eq!(admitted, [true, true, true, false, false]);
    }
}
