//! Passive health of one address, by what requests met there, and which address a request goes to.
//!
//! An address that refuses or times out is paused; the pause doubles with each failure in a row, from half a second to
//! half a minute. Requests that fail during a pause were under way when it began, and tell nothing new. Nothing probes the
//! address: the first request after the pause does. Where all addresses are paused, the one whose pause ends first is tried
//! all the same, so that a lone server is never given up.

use plimsoll_core::time::Instant;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

pub(crate) const FIRST_PAUSE_NS: u64 = 500_000_000;
const LONGEST_PAUSE_NS: u64 = 30_000_000_000;

/// What is known of an address. A race between threads costs at most one try more or less.
#[derive(Debug, Default)]
pub(crate) struct AddressHealth {
    failures: AtomicU32,
    paused_until: AtomicU64,
    /// Requests under way there, where there are several addresses.
    pub busy: AtomicU32,
}

impl AddressHealth {
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
            self.paused_until.store(0, Relaxed);
        }
    }

    pub(crate) fn failed(&self, now: Instant) {
        if self.paused(now) > 0 {
            return;
        }
        let before = self.failures.fetch_add(1, Relaxed).min(16);
        let pause = (FIRST_PAUSE_NS << before).min(LONGEST_PAUSE_NS);
        self.paused_until.store(now.as_nanos().saturating_add(pause), Relaxed);
    }

    /// Whether the last request there failed.
    pub(crate) fn fails(&self) -> bool {
        self.failures.load(Relaxed) > 0
    }

    /// How much of its pause is left (ns).
    pub(crate) fn paused(&self, now: Instant) -> u64 {
        self.paused_until.load(Relaxed).saturating_sub(now.as_nanos())
    }
}

/// The address to try next, not in `tried`: the one with fewer requests under way of two that are not paused, or else the
/// one whose pause ends first. The first of the two goes round with `turn`, the other is drawn by it. Two choices keep
/// servers nearly as even as all would, and do not send everybody to the one that has just become free.
pub(crate) fn choose(addresses: &[AddressHealth], now: Instant, tried: u64, turn: usize) -> Option<usize> {
    let count = addresses.len();
    let untried = |from: usize| {
        let round = (0..count).map(move |offset| (from + offset) % count);
        round.filter(|index| tried & 1 << (index % 64) == 0)
    };
    let open = |from: usize| untried(from).filter(|index| addresses[*index].paused(now) == 0);
    let Some(first) = open(turn % count.max(1)).next() else {
        return untried(turn).min_by_key(|index| addresses[*index].paused(now));
    };
    let others = open(0).filter(|index| *index != first);
    let drawn = mix(turn as u64) as usize % open(0).count().saturating_sub(1).max(1);
    let second = others.into_iter().nth(drawn).unwrap_or(first);
    let busy = |index: usize| addresses[index].busy.load(Relaxed);
    Some(if busy(second) < busy(first) { second } else { first })
}

/// A turn as a number that looks drawn: the last step of SplitMix64.
fn mix(turn: u64) -> u64 {
    let mixed = (turn ^ turn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
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
        let mut now = at(0);
        for pause_ms in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            // Requests under way together fail together, and are one failure.
            (0..100).for_each(|_| health.failed(now));
            assert_eq!(health.paused(now), pause_ms * 1_000_000);
            now = Instant::from_nanos(now.as_nanos() + health.paused(now));
        }
        health.failed(now);
        health.succeeded();
        assert_eq!(health.paused(now), 0);
        health.failed(now);
        assert_eq!(health.paused(now), FIRST_PAUSE_NS);
    }

    #[test]
    fn the_healthy_come_first_then_the_least_used_and_all_paused_still_gives_one() {
        let addresses = [AddressHealth::default(), AddressHealth::default()];
        addresses[0].busy.store(3, Relaxed);
        assert_eq!([0, 1].map(|turn| choose(&addresses, at(0), 0, turn)), [Some(1); 2]);
        addresses[1].failed(at(0));
        assert_eq!([0, 1].map(|turn| choose(&addresses, at(0), 0, turn)), [Some(0); 2]);
        assert_eq!(choose(&addresses, at(600), 0, 0), Some(1));
        assert_eq!(choose(&addresses, at(0), 1, 0), Some(1), "the paused one, since the other was tried");
        assert_eq!(choose(&addresses, at(0), 3, 0), None);
        addresses[0].failed(at(100));
        assert_eq!(choose(&addresses, at(100), 0, 0), Some(1), "its pause ends first");
    }

    /// Eight servers, one of which takes ten times as long: two choices keep its requests few, where each server in turn would
    /// give it as many as the others, to be under way for ten times as long.
    #[test]
    fn two_choices_keep_a_slow_server_from_filling_up() {
        let most_at_slow = |choose: &dyn Fn(&[AddressHealth], usize) -> usize| {
            let addresses: Vec<AddressHealth> = (0..8).map(|_| AddressHealth::default()).collect();
            let mut ends: Vec<(u64, usize)> = Vec::new();
            let mut most = 0;
            for turn in 0..20_000_u64 {
                // An arrival a millisecond; a service takes 4 ms at seven of the servers and 40 ms at the first one.
                let now = turn;
                ends.retain(|(end, address)| {
                    let over = *end <= now;
                    addresses[*address].busy.fetch_sub(u32::from(over), Relaxed);
                    !over
                });
                let address = choose(&addresses, turn as usize);
                addresses[address].busy.fetch_add(1, Relaxed);
                ends.push((now + if address == 0 { 40 } else { 4 }, address));
                most = most.max(addresses[0].busy.load(Relaxed));
            }
            most
        };
        let two = most_at_slow(&|addresses, turn| choose(addresses, at(0), 0, turn).expect("one"));
        let in_turn = most_at_slow(&|addresses, turn| turn % addresses.len());
        assert!(two <= 3, "{two} at the slow server");
        assert!(in_turn >= 5, "in turn only {in_turn}: nothing is shown");
    }
}
