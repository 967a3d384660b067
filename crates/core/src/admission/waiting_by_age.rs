//! Waiting work of one rank by the time of its arrival, where requests with a shorter deadline are of the same priority.
//!
//! Within a priority the earlier deadline goes first. So before a request with a shorter deadline goes only the part of this
//! work that is older than the difference of the two deadlines. The sums are in a ring of words by arrival. It is longer than
//! the deadline, after which no request waits any more, so that a word is empty when its turn comes again. A request's work
//! stays in its part of the ring.
//!
//! A request passes work that is younger. That work was admitted, and must still be in time behind the request.

use crate::time::Instant;
use core::ops::RangeInclusive;
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
        let (from, width) = (now.as_nanos().saturating_sub(within_ns), width(deadline_ns));
        let inside = |number: u64| ((number + 1) * width - from.max(number * width)) as f64 / width as f64;
        let part = |number: u64| inside(number) * self.part(number) as f64;
        parts(now, width, from).map(part).sum()
    }

    /// The least slack (us) of the requests that arrived in the last `within_ns` and wait: the time that is left to a request,
    /// less the work of these that waits before it, which `workers` share.
    pub(super) fn least_slack(&self, now: Instant, deadline_ns: u64, within_ns: u64, workers: u32) -> f64 {
        let (now_ns, width) = (now.as_nanos(), width(deadline_ns));
        let from = now_ns.saturating_sub(within_ns);
        let (mut least, mut before_us) = (f64::INFINITY, 0.0);
        for number in parts(now, width, from) {
            let work = self.part(number);
            if work > 0 {
                before_us += work as f64 / f64::from(workers);
                let arrived = (number * width + width / 2).clamp(from, now_ns);
                let left_us = (arrived + deadline_ns - now_ns) as f64 / 1e3;
                least = least.min(left_us - before_us);
            }
        }
        least
    }

    fn part(&self, number: u64) -> u64 {
        self.0[number as usize % PARTS].load(Relaxed)
    }
}

/// The parts of the ring for what came from an instant (ns) until now, by their numbers since the beginning.
fn parts(now: Instant, width: u64, from: u64) -> RangeInclusive<u64> {
    let (first, last) = (from / width, now.as_nanos() / width);
    first.max((last + 1).saturating_sub(PARTS as u64))..=last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn slack_is_the_time_that_is_left_less_what_waits_before() {
        let waiting = WaitingByAge::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(60_000 + ms);
        let slack = |within: u64| waiting.least_slack(at(1000), 1_400_000_000, 1_000_000 * within, 2);
        assert_eq!(slack(1000), f64::INFINITY, "nothing waits");
        waiting.add(at(450), 1_400_000_000, 300_000);
        let alone = slack(1000);
        assert!((alone - (850_000.0 - 150_000.0)).abs() <= 50_000.0, "two workers do it in 150 ms: {alone}");
        waiting.add(at(950), 1_400_000_000, 1_600_000);
        let behind = slack(1000);
        assert!((behind - (1_350_000.0 - 950_000.0)).abs() <= 50_000.0, "behind the other one: {behind}");
        let last = slack(500);
        assert!((last - (1_350_000.0 - 800_000.0)).abs() <= 50_000.0, "the other one is not passed: {last}");
    }

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
