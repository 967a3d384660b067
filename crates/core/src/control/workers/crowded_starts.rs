//! How long requests take by how many are in service when they start: where the search looks first.
//!
//! A request that starts as the n-th of s workers takes `max(1, n / s)` times what it takes alone. So the first dozen requests
//! of an overload show about how many workers there are, long before throughput does: a server of two workers of 200 ms takes
//! five seconds for fifty departures. Throughput is evidence of a limit only once another one was tried.
//!
//! Nothing is concluded from it. A server that becomes slower while requests gather looks like one with few workers. It says
//! which limit is tried next, half of the present one or twice as many, and throughput judges what is tried.

use super::evidence::middle;
use crate::telemetry::counters::{LOADS, load_bin};
use alloc::vec::Vec;
use libm::log;

/// What is kept at the end of each stretch.
const KEPT: f64 = 0.9;

/// Service times (s) and work of the requests that departed, by bin of the number in service after their start.
pub(super) struct CrowdedStarts {
    service: Vec<f64>,
    work: Vec<f64>,
}

impl CrowdedStarts {
    pub(super) fn new() -> Self {
        CrowdedStarts { service: alloc::vec![0.0; LOADS], work: alloc::vec![0.0; LOADS] }
    }

    pub(super) fn add(&mut self, service: &[f64], work: &[f64]) {
        self.service.iter_mut().zip(service).for_each(|(sum, more)| *sum += more);
        self.work.iter_mut().zip(work).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn end_stretch(&mut self) {
        self.service.iter_mut().chain(&mut self.work).for_each(|sum| *sum *= KEPT);
    }

    /// What speaks for at most half as many workers as this limit, against as many as it or more, as a difference in the
    /// logarithm of the likelihood with exponential times. A unit of work is worth `unit` departures.
    pub(super) fn speaks_for_half(&self, limit: u32, unit: f64) -> f64 {
        let seen: Vec<(f64, f64, f64)> = (0..LOADS)
            .map(|bin| (middle(bin), self.service[bin], self.work[bin]))
            .filter(|(_, service, _)| *service > 0.0)
            .collect();
        let all: f64 = seen.iter().map(|(_, _, work)| work).sum();
        let likelihood = |bin: usize| {
            let (mut alone, mut logarithms) = (0.0, 0.0);
            for (n, service, work) in &seen {
                let longer = (n / middle(bin)).max(1.0);
                alone += service / longer;
                logarithms += work * log(longer);
            }
            -unit * (logarithms + all * log(alone.max(1e-12)))
        };
        let best = |own: f64, bin: usize| f64::max(own, likelihood(bin));
        let few = (0..=load_bin(limit / 2)).fold(f64::NEG_INFINITY, best);
        let many = (load_bin(limit)..LOADS).fold(f64::NEG_INFINITY, best);
        few - many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that start as the first to the sixteenth, and then as many again as the sixteenth.
    fn overload(workers: f64, slower: f64) -> CrowdedStarts {
        let mut starts = CrowdedStarts::new();
        for n in (1..=16).chain([16; 16]) {
            let (mut service, mut work) = (alloc::vec![0.0; LOADS], alloc::vec![0.0; LOADS]);
            service[load_bin(n)] = 0.2 * slower * (f64::from(n) / workers).max(1.0);
            work[load_bin(n)] = 1.0;
            starts.add(&service, &work);
        }
        starts
    }

    #[test]
    fn the_first_requests_of_an_overload_distinguish_few_workers_from_many() {
        for slower in [0.1, 1.0, 10.0] {
            for workers in [1.0, 2.0, 4.0] {
                assert!(overload(workers, slower).speaks_for_half(16, 1.0) > 1.5, "{workers}");
            }
            for workers in [14.0, 16.0, 64.0] {
                assert!(overload(workers, slower).speaks_for_half(16, 1.0) < 0.5, "{workers}");
            }
        }
    }

    #[test]
    fn they_say_nothing_of_numbers_at_which_none_was_in_service() {
        assert!(overload(4.0, 1.0).speaks_for_half(4, 1.0) < 0.0);
        assert!(CrowdedStarts::new().speaks_for_half(16, 1.0).abs() < 1e-9);
    }
}
