//! What requests that start together say against few workers.
//!
//! The counts by the number in service at a *departure* (`evidence.rs`) take service times for exponential. The files of a page
//! that are asked for together and take the same time end together too: the last of them is alone for a moment only, and a
//! server that worked on five at once looks like one that does as much with one in service as with five.
//!
//! A request that starts as the n-th of s workers takes `max(1, n / s)` times what it takes alone, whatever the distribution.
//! So where those that start as the n-th take no longer than those that start alone, there are at least n workers. Nothing
//! is concluded from their taking longer: a server that becomes slower while requests gather would look like one with few
//! workers. One that becomes faster would look like one with many. Therefore the time alone is taken from below, and falls
//! as soon as requests take less that are not alone.

use super::evidence::{MOST, MOST_OF_STRETCH, middle};
use crate::telemetry::counters::LOADS;
use alloc::vec::Vec;
use libm::{log, sqrt};

/// The most departures that the time of a request alone is a mean of, and the fewest that determine it.
const MOST_ALONE: f64 = 200.0;
const LEAST_ALONE: f64 = 5.0;
/// The fewest departures in a bin of which the mean service time is used.
const LEAST_IN_BIN: f64 = 20.0;
/// By how many deviations of that mean the time alone is taken lower.
const DEVIATIONS: f64 = 2.0;
/// What is kept of the evidence at the end of each stretch.
const KEPT: f64 = 0.9;

/// Service times (s) and work of the requests that departed in a stretch, by bin of the number in service after their start.
pub(super) struct Started<'a> {
    pub(super) service: &'a [f64],
    pub(super) work: &'a [f64],
}

pub(super) struct Together {
    /// By bin: what speaks against so few workers, at most 0.
    pub(super) against: Vec<f64>,
    /// What a unit of work takes alone (s), and how many departures it is a mean of.
    alone: f64,
    known: f64,
}

impl Together {
    pub(super) fn new() -> Self {
        Together { against: alloc::vec![0.0; LOADS], alone: 0.0, known: 0.0 }
    }

    /// Takes a stretch, in which a unit of work is worth `unit` departures with exponential service.
    pub(super) fn judge(&mut self, started: &Started<'_>, unit: f64) {
        let departures = started.work[0] * unit;
        if departures > 0.0 {
            let own = started.service[0] / started.work[0];
            self.known = self.known.min(MOST_ALONE) + departures;
            self.alone += (own - self.alone) * departures / self.known;
        }
        let bins = (0..LOADS).filter(|bin| started.work[*bin] * unit >= LEAST_IN_BIN);
        let least = bins.map(|bin| started.service[bin] / started.work[bin]).fold(f64::INFINITY, f64::min);
        self.alone = self.alone.min(least);
        let alone = self.alone * (1.0 - DEVIATIONS / sqrt(self.known.clamp(LEAST_ALONE, MOST_ALONE)));
        if self.known < LEAST_ALONE || alone <= 0.0 {
            return;
        }
        let seen: Vec<usize> =
            (0..LOADS).filter(|bin| started.work[*bin] + started.service[*bin] > 0.0).collect();
        // The logarithm of the likelihood of s workers, up to a constant, with exponential times.
        let likelihood = |s: f64| -> f64 {
            let of_bin = |bin: &usize| {
                let longer = (middle(*bin) / s).max(1.0);
                started.work[*bin] * log(longer) + started.service[*bin] / (alone * longer)
            };
            -unit * seen.iter().map(of_bin).sum::<f64>()
        };
        let mut most = f64::NEG_INFINITY;
        for bin in (0..LOADS).rev() {
            let own = likelihood(middle(bin));
            most = most.max(own);
            let against = (own - most).max(-MOST_OF_STRETCH);
            self.against[bin] = (KEPT * self.against[bin] + against).max(-2.0 * MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::load_bin;

    /// The evidence after ten stretches of a hundred departures that start as the first to the n-th, where they take so long.
    fn against(most: u32, service: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut together = Together::new();
        for _ in 0..10 {
            let (mut times, mut work) = (alloc::vec![0.0; LOADS], alloc::vec![0.0; LOADS]);
            for n in 1..=most {
                let departures = 100.0 / f64::from(most);
                times[load_bin(n)] += departures * service(n);
                work[load_bin(n)] += departures;
            }
            together.judge(&Started { service: &times, work: &work }, 1.0);
        }
        together.against
    }

    #[test]
    fn requests_that_take_as_long_together_as_alone_speak_against_fewer_workers() {
        let against = against(5, |_| 0.04);
        assert!(against[load_bin(2)] < -6.0 && against[load_bin(1)] < -12.0, "{against:?}");
        assert_eq!(against[load_bin(5)..], [0.0; LOADS][load_bin(5)..]);
    }

    #[test]
    fn requests_that_take_longer_together_say_nothing_against_as_many_as_there_are() {
        for workers in [1.0, 2.0, 8.0] {
            let against = against(12, |n| 0.04 * (f64::from(n) / workers).max(1.0));
            assert!(against[load_bin(workers as u32)] > -1.0, "{workers}: {against:?}");
        }
    }

    #[test]
    fn a_server_that_becomes_faster_seems_to_have_no_more_workers_than_the_fewest_in_service() {
        let mut together = Together::new();
        for speed in [1.0, 4.0] {
            for _ in 0..10 {
                let (mut times, mut work) = (alloc::vec![0.0; LOADS], alloc::vec![0.0; LOADS]);
                // Two workers, and none is alone once it is faster.
                for n in if speed == 1.0 { 1..=4 } else { 3..=6 } {
                    times[load_bin(n)] = 25.0 * 0.04 / speed * (f64::from(n) / 2.0).max(1.0);
                    work[load_bin(n)] = 25.0;
                }
                together.judge(&Started { service: &times, work: &work }, 1.0);
            }
        }
        assert!(together.against[load_bin(3)] > -1.0, "{:?}", together.against);
    }
}
