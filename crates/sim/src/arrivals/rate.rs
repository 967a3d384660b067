//! A rate that changes by steps and ramps, and the time change that carries a unit-rate process onto it.
//!
//! With the integrated rate `A(t) = integral of rate`, a process of rate 1 with arrivals at s_1, s_2, ... has the wanted rate
//! at every moment if its arrivals move to `A^-1(s_1), A^-1(s_2), ...`; a Poisson process stays one (Cinlar, "Introduction to
//! Stochastic Processes", 4.7). On a ramp, `A(x) = r x + k x^2 / 2` with slope k, so `x = 2 A / (r + sqrt(r^2 + 2 k A))`: this
//! form of the root does not cancel, and holds for k = 0 too.
//!
//! Thinning at the highest rate would be simpler, but it wastes draws while the rate is low, and works for Poisson only.

use crate::workload::Phase;
use std::sync::Arc;

/// A process's position on its rate. The position only moves forward, so finding the phase costs nothing.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// Phases in which anything arrives.
    stretches: Arc<[Stretch]>,
    /// The index of the present stretch.
    at: usize,
    /// The area of the present stretch that was used up.
    spent: f64,
}

/// A phase. Times in seconds.
#[derive(Clone, Debug)]
struct Stretch {
    from: f64,
    until: f64,
    rate: f64,
    slope: f64,
    /// The area under the rate: the expected number of arrivals.
    area: f64,
}

/// What [`Cursor::advance`] came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reached {
    /// All of the area was used up at this time (s).
    Arrival(f64),
    /// The limit came first; this much area is left.
    Limit(f64),
    /// The rate is zero for ever.
    End,
}

impl Cursor {
    /// The cursor at the beginning.
    pub(super) fn new(phases: &[Phase]) -> Self {
        let ends = phases.iter().skip(1).map(|next| next.from.as_secs_f64()).chain([f64::INFINITY]);
        let stretches = phases.iter().zip(ends).map(|(phase, until)| Stretch::new(phase, until));
        Cursor { stretches: stretches.filter(|stretch| stretch.area > 0.0).collect(), at: 0, spent: 0.0 }
    }

    /// Uses up this much area, but moves no further than the time `limit` (s).
    pub(super) fn advance(&mut self, mut area: f64, limit: f64) -> Reached {
        while let Some(stretch) = self.stretches.get(self.at) {
            let goal = self.spent + area;
            let inside = goal <= stretch.area;
            let time = if inside { stretch.time_of(goal) } else { stretch.until };
            if time > limit {
                let reached = stretch.area_until(limit).clamp(self.spent, goal);
                self.spent = reached;
                return Reached::Limit(goal - reached);
            }
            if inside {
                self.spent = goal;
                return Reached::Arrival(time);
            }
            area = goal - stretch.area;
            self.at += 1;
            self.spent = 0.0;
        }
        Reached::End
    }
}

impl Stretch {
    fn new(phase: &Phase, until: f64) -> Self {
        let (from, rate) = (phase.from.as_secs_f64(), phase.rate.max(0.0));
        let length = until - from;
        if length == f64::INFINITY {
            let area = if rate > 0.0 { f64::INFINITY } else { 0.0 };
            return Stretch { from, until, rate, slope: 0.0, area };
        }
        let end = phase.to.map_or(rate, |to| to.max(0.0));
        Stretch { from, until, rate, slope: (end - rate) / length, area: 0.5 * (rate + end) * length }
    }

    fn time_of(&self, area: f64) -> f64 {
        if self.slope == 0.0 {
            return self.from + area / self.rate;
        }
        // At the end of a ramp to zero, rounding may make this slightly negative.
        let root = (self.rate * self.rate + 2.0 * self.slope * area).max(0.0).sqrt();
        (self.from + 2.0 * area / (self.rate + root)).min(self.until)
    }

    fn area_until(&self, time: f64) -> f64 {
        let x = (time - self.from).max(0.0);
        x * (self.rate + 0.5 * self.slope * x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::time::Duration;

    fn phase(from: u64, rate: f64, to: Option<f64>) -> Phase {
        Phase { from: Duration::from_secs(from), rate, to }
    }

    fn times(phases: &[Phase], step: f64) -> Vec<f64> {
        let mut cursor = Cursor::new(phases);
        std::iter::from_fn(|| match cursor.advance(step, f64::INFINITY) {
            Reached::Arrival(time) => Some(time),
            Reached::Limit(_) | Reached::End => None,
        })
        .take(1_000)
        .collect()
    }

    #[test]
    fn steps_and_pauses() {
        let phases = [phase(2, 1.0, None), phase(4, 0.0, None), phase(10, 2.0, None), phase(12, 0.0, None)];
        assert_eq!(times(&phases, 1.0), [3.0, 4.0, 10.5, 11.0, 11.5, 12.0]);
        // The area left over from one phase counts in the next.
        assert_eq!(times(&phases, 1.5), [3.5, 10.5, 11.25, 12.0]);
    }

    #[test]
    fn ramps_invert_their_area() {
        for (rate, to) in [(0.0, 10.0), (10.0, 0.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)] {
            let phases = [phase(1, rate, Some(to)), phase(11, 0.0, None)];
            let found = times(&phases, 0.01);
            let (slope, area) = ((to - rate) / 10.0, 5.0 * (rate + to));
            assert!(
                (found.len() as f64 - (area / 0.01).min(1_000.0)).abs() <= 1.0,
                "{rate} {to}: {}",
                found.len()
            );
            for (index, time) in found.iter().enumerate() {
                let x = time - 1.0;
                let behind = rate * x + 0.5 * slope * x * x;
                assert!((behind - 0.01 * (index + 1) as f64).abs() < 1e-9, "{rate} {to}: {index} at {time}");
            }
        }
    }

    #[test]
    fn nothing_arrives_without_a_rate() {
        assert!(times(&[], 1.0).is_empty());
        assert!(times(&[phase(0, 0.0, None)], 1.0).is_empty());
        assert!(times(&[phase(0, 0.0, Some(0.0)), phase(5, -1.0, None)], 1.0).is_empty());
        assert!(times(&[phase(5, 1e3, None), phase(5, 0.0, None)], 1.0).is_empty());
    }

    #[test]
    fn limits_split_an_advance_without_loss() {
        let phases = [phase(1, 1.0, Some(9.0)), phase(5, 0.0, None), phase(6, 7.0, None)];
        let whole = times(&phases, 1.7);
        let mut cursor = Cursor::new(&phases);
        let (mut split, mut left, mut limit) = (Vec::new(), 1.7, 0.0);
        while split.len() < 50 {
            match cursor.advance(left, limit) {
                Reached::Arrival(time) => {
                    split.push(time);
                    left = 1.7;
                }
                Reached::Limit(rest) => {
                    left = rest;
                    limit += 0.3;
                }
                Reached::End => unreachable!("the last phase has a rate"),
            }
        }
        for (one, other) in split.iter().zip(&whole) {
            assert!((one - other).abs() < 1e-9, "{one} {other}");
        }
    }
}
