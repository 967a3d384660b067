//! How long service may take for the limit to rise: the guard of the search.
//!
//! All requests of a plant have its `response_time_limit`, where there is one. A class that was promised a percentile or a
//! deadline has half of it for its own requests, and of a promised mean 0.65. Those of others beside it may take far longer,
//! and say nothing of it: judged by the mean of all, a search beside requests of ten times the promised time lowered its limit
//! to one worker of eight. Where a class with a deadline has levels at several plants, each of these is judged by the levels
//! that it serves.

use crate::promises::Delay;
use crate::telemetry::counters::{ClassCounters, Counter, LaneCounters};
use crate::telemetry::recent_service::RecentService;
use crate::telemetry::snapshot::sum_over;
use crate::time::Duration;
use alloc::{sync::Arc, vec::Vec};
use core::ops::RangeInclusive;

/// What of the service times is kept at each look: they are those of some two looks.
const KEPT: f64 = 0.5;

/// The guard of one plant.
pub(crate) struct Guard {
    all: Duration,
    classes: Vec<GuardedClass>,
}

/// A class with a promise.
struct GuardedClass {
    class: usize,
    /// The most that its service may take (s).
    most: f64,
    of: GuardedService,
    /// How many came up to the last look.
    arrivals: u64,
    service: RecentService,
}

/// Which service of a class is looked at.
pub(crate) enum GuardedService {
    /// All of a class with a delay or a ratio, which has one plant.
    All,
    /// That of a class with a deadline alone at these levels, those that the plant serves.
    AtLevels(RangeInclusive<usize>),
}

/// The part of a promised mean that service may take. A mean of twice the service itself leaves it little room: half of it is
/// service with nobody before it, which chance makes longer now and then, so that the limit would never rise.
const OF_MEAN: f64 = 0.65;

impl Guard {
    /// How long the requests of a class with this delay may be in service. Half of a percentile's time is enough: even where
    /// service times vary much, few then take longer than promised.
    pub(crate) fn most(delay: Delay) -> Duration {
        if delay.percentile.is_none() { delay.target.mul_f64(OF_MEAN) } else { delay.target / 2 }
    }

    /// For a plant whose requests may take so long.
    pub(crate) fn new(all: Duration) -> Self {
        Guard { all, classes: Vec::new() }
    }

    /// Adds a class whose requests may take so long.
    pub(crate) fn add(&mut self, class: usize, most: Duration, of: GuardedService) {
        let (most, service) = (most.as_secs_f64(), RecentService::default());
        self.classes.push(GuardedClass { class, most, of, arrivals: 0, service });
    }

    /// By how much service of all requests could take longer and still be within the plant's limit (s); negative where it takes
    /// longer now.
    pub(crate) fn slack_of_plant(&self, service_time: Duration) -> f64 {
        self.all.as_secs_f64() - service_time.as_secs_f64()
    }

    /// The same of the promised classes: the least of theirs. No class has answers after less than `silent`.
    pub(crate) fn slack(&mut self, lanes: &[Arc<LaneCounters>], silent: f64) -> f64 {
        let slack = |one: &mut GuardedClass| one.most - one.service_seconds(lanes).max(silent);
        self.classes.iter_mut().map(slack).fold(f64::INFINITY, f64::min)
    }
}

impl GuardedClass {
    /// The recent mean service time (s); 0 where nothing was released. While requests come but none is released, as all are
    /// refused or still in service, what was seen last is kept: no answer is no sign of health. But requests of a class
    /// without a deadline are not refused for their service, so if none of them is in service, others are in their way.
    fn service_seconds(&mut self, lanes: &[Arc<LaneCounters>]) -> f64 {
        let sum = |of: fn(&ClassCounters) -> &Counter| sum_over(lanes, self.class, of);
        let arrivals = sum(|class| &class.arrivals);
        let come = self.service.come(self.of.sums(lanes, self.class));
        if self.of.is_all() && sum(|class| &class.started) == sum(|class| &class.released) && come[0] == 0 {
            self.service.remember(come, 0.0);
        }
        if core::mem::replace(&mut self.arrivals, arrivals) == arrivals || come[0] > 0 {
            self.service.remember(come, KEPT);
        }
        self.service.mean_seconds()
    }
}

impl GuardedService {
    fn is_all(&self) -> bool {
        matches!(self, GuardedService::All)
    }

    /// Requests released, and their service times (ns).
    fn sums(&self, lanes: &[Arc<LaneCounters>], class: usize) -> [u64; 2] {
        match self {
            GuardedService::All => [
                sum_over(lanes, class, |class| &class.released),
                sum_over(lanes, class, |class| &class.timing.service_ns),
            ],
            GuardedService::AtLevels(levels) => {
                let counters =
                    lanes.iter().flat_map(|lane| &lane.classes[class].clipped_services[levels.clone()]);
                counters.fold([0, 0], |[requests, service_ns]: [u64; 2], own| {
                    [requests.wrapping_add(own.requests.get()), service_ns.wrapping_add(own.service_ns.get())]
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_a_promise_is_judged_by_its_own_requests_of_late() {
        let lanes = [Arc::new(LaneCounters::default().grown(2, 1))];
        let release = |class: usize, requests: u64, ms: u64| {
            lanes[0].classes[class].released.add(requests);
            lanes[0].classes[class].timing.service_ns.add(requests * ms * 1_000_000);
        };
        let mut guard = Guard::new(Duration::from_secs(10));
        guard.add(1, Duration::from_millis(50), GuardedService::All);
        let mut slack = |silent| guard.slack(&lanes, silent);
        release(0, 100, 5000);
        release(1, 10, 500);
        assert!(
            (slack(0.0) - 0.05).abs() < 1e-9,
            "what was released before the first look is no answer of late"
        );
        release(0, 100, 5000);
        release(1, 10, 20);
        assert!((slack(0.0) - 0.03).abs() < 1e-9, "20 of 50 ms, and others may take what they take");
        release(1, 20, 65);
        assert!((slack(0.0) + 0.006).abs() < 1e-9, "five of 20 ms and twenty of 65 are 56");
        assert!((slack(2.0) + 1.95).abs() < 1e-9, "no answer for two seconds");
        let alone = Guard::new(Duration::from_millis(100));
        assert!(alone.slack_of_plant(Duration::from_millis(200)) < 0.0);
        assert!(Guard::new(Duration::MAX).slack_of_plant(Duration::from_secs(60)) > 1e9);
    }
}
