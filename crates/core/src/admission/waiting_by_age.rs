//! Waiting work of one rank by the time of its arrival, where requests with a shorter deadline are of the same priority.
//!
//! Within a priority the earlier deadline goes first. So before a request with a shorter deadline goes only the part of this
//! work that is older than the difference of the two deadlines. The sums are in a ring of words by arrival. It is longer than
//! the deadline, after which no request waits any more, so that a word is empty when its turn comes again. A request's work
//! stays in its part of the ring.

use crate::time::Instant;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Waiting work (us) by arrival.
#[derive(Default)]
pub(super) struct WaitingByAge([AtomicU64; PARTS]);

const PARTS: usize = 16;
/// The part of work that is in no ring.
pub(crate) const IN_NO_PART: u8 = u8::MAX;

/// The length of a part of the ring.
fn width(deadline_ns: u64) -> u64 {
    (deadline_ns / (PARTS as u64 - 2)).max(1)
}

impl WaitingByAge {
    /// Adds work that arrived at an instant; returns its part.
    pub(super) fn add(&self, arrived: Instant, deadline_ns: u64, us: u64) -> u8 {
        let part = (arrived.as_nanos() / width(deadline_ns)) as usize % PARTS;
        self.0[part].fetch_add(us, Relaxed);
        part as u8
    }

    pub(super) fn subtract(&self, part: u8, us: u64) {
        if let Some(sum) = self.0.get(usize::from(part)) {
            sum.fetch_sub(us, Relaxed);
        }
    }

    /// The work that arrived in the last `within_ns` and waits.
    pub(super) fn lately(&self, now: Instant, deadline_ns: u64, within_ns: u64) -> f64 {
        let (now, width) = (now.as_nanos(), width(deadline_ns));
        let from = now.saturating_sub(within_ns);
        let (first, last) = (from / width, now / width);
        let first = first.max((last + 1).saturating_sub(PARTS as u64));
        let part = |number: u64| {
            let inside = ((number + 1) * width - from.max(number * width)) as f64 / width as f64;
            inside * self.0[number as usize % PARTS].load(Relaxed) as f64
        };
        (first..=last).map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn work_is_known_by_its_age() {
        let waiting = WaitingByAge::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(60_000 + ms);
        let deadline = 1_400_000_000;
        let parts: [u8; 14] = core::array::from_fn(|n| waiting.add(at(100 * n as u64 + 5), deadline, 1000));
        let lately = |within: u64| waiting.lately(at(1390), deadline, 1_000_000 * within);
        assert!((lately(500) - 5000.0).abs() < 1000.0, "{}", lately(500));
        assert!((lately(1390) - 14_000.0).abs() < 1000.0, "{}", lately(1390));
        assert_eq!(lately(60_000), 14_000.0);
        parts[..10].iter().for_each(|part| waiting.subtract(*part, 1000));
        assert_eq!(lately(60_000), 4000.0);
        waiting.subtract(IN_NO_PART, 1000);
        assert_eq!(lately(60_000), 4000.0, "what is in no ring is not taken from it");
    }
}
