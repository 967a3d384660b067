//! Passive health of one address: what requests met there.
//!
//! An address that refuses or times out is paused; the pause doubles with each failure in a row, from half a second to
//! half a minute. Nothing probes the address: the first request after the pause does. Where all addresses are paused,
//! the one whose pause ends first is tried all the same, so that a lone server is never given up.

use plimsoll_core::time::Instant;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

pub(crate) const FIRST_PAUSE_NS: u64 = 500_000_000;
const LONGEST_PAUSE_NS: u64 = 30_000_000_000;

/// What is known of an address. A race between threads costs at most one try more or less.
#[derive(Debug, Default)]
pub(crate) struct AddressHealth {
    failures: AtomicU32,
    paused_until: AtomicU64,
    /// Connections open to it, busy and idle.
    pub open: AtomicUsize,
}

impl AddressHealth {
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
            self.paused_until.store(0, Relaxed);
        }
    }

    pub(crate) fn failed(&self, now: Instant) {
        let before = self.failures.fetch_add(1, Relaxed).min(16);
        let pause = (FIRST_PAUSE_NS << before).min(LONGEST_PAUSE_NS);
        self.paused_until.store(now.as_nanos().saturating_add(pause), Relaxed);
    }

    /// How much of its pause is left (ns).
    pub(crate) fn paused(&self, now: Instant) -> u64 {
        self.paused_until.load(Relaxed).saturating_sub(now.as_nanos())
    }
}

/// The address to try next: not in `tried`, best not paused, with the fewest connections; `turn` breaks ties.
pub(crate) fn choose(addresses: &[AddressHealth], now: Instant, tried: u64, turn: usize) -> Option<usize> {
    let count = addresses.len();
    (0..count)
        .map(|offset| (turn + offset) % count)
        .filter(|index| tried & 1 << (index % 64) == 0)
        .min_by_key(|&index| (addresses[index].paused(now), addresses[index].open.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn failures_pause_longer_and_longer_and_one_success_ends_it() {
        let health = AddressHealth::default();
        health.failed(at(0));
        assert_eq!(health.paused(at(0)), FIRST_PAUSE_NS);
        health.failed(at(0));
        assert_eq!(health.paused(at(0)), 2 * FIRST_PAUSE_NS);
        for _ in 0..100 {
            health.failed(at(0));
        }
        assert_eq!(health.paused(at(0)), LONGEST_PAUSE_NS);
        health.succeeded();
        assert_eq!(health.paused(at(0)), 0);
    }

    #[test]
    fn the_healthy_come_first_then_the_least_used_and_all_paused_still_gives_one() {
        let addresses = [AddressHealth::default(), AddressHealth::default()];
        addresses[0].open.store(3, Relaxed);
        assert_eq!(choose(&addresses, at(0), 0, 0), Some(1));
        addresses[1].failed(at(0));
        assert_eq!(choose(&addresses, at(0), 0, 0), Some(0));
        assert_eq!(choose(&addresses, at(600), 0, 0), Some(1));
        assert_eq!(choose(&addresses, at(0), 1, 0), Some(1), "the paused one, since the other was tried");
        assert_eq!(choose(&addresses, at(0), 3, 0), None);
    }
}
