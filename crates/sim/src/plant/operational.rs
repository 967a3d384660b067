//! The server's inner clock: real time, slowed down while [`FaultKind::Slower`] lasts.
//!
//! Operational time tau(t) runs at 1 / f(t), where f is the product of the slow-downs at t; while one of them is infinite it
//! stands still. All work is measured in it, so a slow-down acts on work in progress as on new work, and nothing in service
//! must be updated when one begins or ends. Faults are given before the run, so tau is piecewise linear and known for all
//! times: the end of a service is computed once and never moved.
//!
//! In real time, an end is the first whole nanosecond at which the work is done: never early (but for the rounding of a float),
//! and less than one nanosecond late. Without slow-downs tau(t) = t, exactly.

use crate::workload::{Fault, FaultKind};
use plimsoll_core::time::Instant;

/// tau(t) as a piecewise linear function.
#[derive(Debug)]
pub(super) struct OperationalTime {
    /// The pieces in order of time: the beginning (ns) and the slow-down. The first begins at 0, the last has no end. Empty:
    /// the server is never slow.
    slopes: Vec<(u64, f64)>,
}

impl OperationalTime {
    pub(super) fn new(faults: &[Fault]) -> Self {
        let slow_downs: Vec<(u64, u64, f64)> = faults
            .iter()
            .filter_map(|fault| match fault.kind {
                FaultKind::Slower(factor) => {
                    let ns = |time| (Instant::ZERO + time).as_nanos();
                    Some((ns(fault.from), ns(fault.until), factor))
                }
                _ => None,
            })
            .collect();
        let mut bounds: Vec<u64> = slow_downs.iter().flat_map(|(from, until, _)| [*from, *until]).collect();
        if !bounds.is_empty() {
            bounds.push(0);
        }
        bounds.sort_unstable();
        bounds.dedup();
        let factor = |at| {
            let lasting = slow_downs.iter().filter(|(from, until, _)| (*from..*until).contains(&at));
            lasting.map(|(.., factor)| factor).product()
        };
        OperationalTime { slopes: bounds.into_iter().map(|at| (at, factor(at))).collect() }
    }

    /// When this much work (ns) that starts now is done; [`Instant::FAR`] if never.
    #[inline]
    pub(super) fn after(&self, now: Instant, work: f64) -> Instant {
        if self.slopes.is_empty() || work <= 0.0 {
            return Instant::from_nanos(now.as_nanos().saturating_add(ceil(work)));
        }
        self.after_slow_downs(now, work)
    }

    fn after_slow_downs(&self, now: Instant, mut work: f64) -> Instant {
        let mut at = now.as_nanos();
        let mut place = self.place(at);
        loop {
            let (until, factor) = self.stretch(place);
            let needed = work * factor;
            if needed <= (until - at) as f64 {
                return Instant::from_nanos(at.saturating_add(ceil(needed)));
            }
            if until == u64::MAX {
                return Instant::FAR;
            }
            work -= (until - at) as f64 / factor;
            at = until;
            place += 1;
        }
    }

    /// The operational time (ns) between two instants.
    #[inline]
    pub(super) fn between(&self, from: Instant, to: Instant) -> f64 {
        if self.slopes.is_empty() {
            return to.nanos_since(from) as f64;
        }
        self.between_slow_downs(from, to)
    }

    fn between_slow_downs(&self, from: Instant, to: Instant) -> f64 {
        let (mut at, to) = (from.as_nanos(), to.as_nanos());
        let mut passed = 0.0;
        let mut place = self.place(at);
        while at < to {
            let (until, factor) = self.stretch(place);
            let next = until.min(to);
            passed += (next - at) as f64 / factor;
            at = next;
            place += 1;
        }
        passed
    }

    /// The index of the piece in which a time lies.
    fn place(&self, at: u64) -> usize {
        self.slopes.partition_point(|(from, _)| *from <= at)
    }

    /// The end of a piece, and its slow-down.
    fn stretch(&self, place: usize) -> (u64, f64) {
        let until = self.slopes.get(place).map_or(u64::MAX, |(from, _)| *from);
        let factor = if place == 0 { 1.0 } else { self.slopes[place - 1].1 };
        (until, factor)
    }
}

/// The smallest whole number that is not less than x; 0 if x is negative. (The standard function is a call on the oldest
/// supported processors.)
fn ceil(x: f64) -> u64 {
    let whole = x as u64;
    whole.saturating_add(u64::from((whole as f64) < x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::random::Random;
    use std::time::Duration;

    fn slower(from: u64, until: u64, factor: f64) -> Fault {
        let ns = Duration::from_nanos;
        Fault { from: ns(from), until: ns(until), kind: FaultKind::Slower(factor) }
    }

    fn after(faults: &[Fault], now: u64, work: f64) -> u64 {
        OperationalTime::new(faults).after(Instant::from_nanos(now), work).as_nanos()
    }

    #[test]
    fn without_slow_downs_it_is_real_time() {
        assert_eq!(after(&[], 1_000_000_007, 999.0), 1_000_001_006);
        assert_eq!(after(&[], 5, 0.25), 6, "rounded up");
        assert_eq!(after(&[], 5, 0.0), 5);
    }

    #[test]
    fn a_slow_down_meets_what_is_under_way() {
        let twice = [slower(100, 200, 2.0)];
        assert_eq!(after(&twice, 0, 100.0), 100, "done before");
        assert_eq!(after(&twice, 50, 70.0), 140, "50 at full speed, 20 at half");
        assert_eq!(after(&twice, 50, 110.0), 210, "50, then 50 of 100, then 10");
        assert_eq!(after(&twice, 200, 10.0), 210, "it is over at its end");
        assert_eq!(after(&[slower(0, 90, 3.0)], 0, 31.0), 91);
    }

    #[test]
    fn overlapping_slow_downs_multiply() {
        let both = [slower(0, 100, 2.0), slower(50, 150, 5.0)];
        // 25 units of work are done by 50, 5 more by 100, 10 more by 150.
        assert_eq!(after(&both, 0, 30.0), 100);
        assert_eq!(after(&both, 0, 41.0), 151);
    }

    #[test]
    fn a_pause_is_waited_out_and_one_without_end_is_for_good() {
        let pause = [slower(100, 200, f64::INFINITY)];
        assert_eq!(after(&pause, 50, 51.0), 201);
        assert_eq!(after(&pause, 50, 50.0), 100, "its last moment is before the pause");
        assert_eq!(after(&pause, 150, 1.0), 201);
        let endless = Fault { until: Duration::MAX, ..slower(100, 0, f64::INFINITY) };
        assert_eq!(after(&[endless], 50, 51.0), Instant::FAR.as_nanos());
    }

    /// The end is the first nanosecond at which enough operational time has passed.
    #[test]
    fn never_early_and_less_than_a_nanosecond_late() {
        let mut random = Random::new(7);
        for _ in 0..20_000 {
            let factors = [0.5, 1.5, 3.0, 7.0, 1000.0, f64::INFINITY];
            let faults: Vec<Fault> = (0..random.below(4))
                .map(|_| {
                    let from = random.below(1000);
                    slower(from, from + random.below(500), factors[random.below(6) as usize])
                })
                .collect();
            let time = OperationalTime::new(&faults);
            let now = Instant::from_nanos(random.below(1500));
            let work = random.below(100_000) as f64 / 128.0;
            let end = time.after(now, work);
            assert!(time.between(now, end) >= work - 1e-6, "early: {faults:?} {now:?} {work}");
            let before = Instant::from_nanos(end.as_nanos().saturating_sub(1)).max(now);
            assert!(end == now || time.between(now, before) < work + 1e-6, "late: {faults:?} {now:?} {work}");
        }
    }
}
