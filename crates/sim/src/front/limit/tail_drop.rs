//! Tail-drop: a request is rejected when the number in the system would exceed a bound (AC, section 1: "incoming
//! requests are dropped when the number of awaiting tasks exceeds a predefined threshold").
//!
//! The system holds requests that were started and not released, in service or in the server's listen queue: that is
//! what a gateway can count. A request whose client has left is no longer counted, though it may still stand in the
//! listen queue.

use super::{Ask, Limiter};
use plimsoll_core::time::Instant;

/// At most `most` requests in the system.
pub(in crate::front) struct TailDrop {
    most: u32,
}

impl TailDrop {
    pub(in crate::front) fn new(most: u32) -> Self {
        TailDrop { most }
    }
}

impl Limiter for TailDrop {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ask;
    use super::*;

    #[test]
    fn the_bound_itself_is_let_in() {
        let mut limiter = TailDrop::new(3);
        let admitted: Vec<bool> = (0..5).map(|n| limiter.admit(Instant::ZERO, ask(n))).collect();
        assert_eq!(admitted, [true, true, true, false, false]);
    }
}
