//! Monitors: what the lanes counted, by period, and what it says of rates and costs.
//!
//! R and W of a class are differences of counters over the period. A counter is read without stopping its writer, so
//! two counters of one window may differ by the requests of some nanoseconds; nothing here divides one by another
//! across such a difference except means, where it does not matter.

use crate::model::{CostEstimate, LinearModel, Served, Tracker};
use crate::promises::MAX_LEVELS;
use crate::shared::{BINS, ClassCounters, Counter, LaneCounters, ServiceCounters};
use crate::status::Counts;
use alloc::sync::Arc;

/// Sums of one class over all lanes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClassTotals {
    pub(crate) counts: Counts,
    pub(crate) decided: [u64; MAX_LEVELS + 1],
    /// Requests, work (ns), bytes.
    pub(crate) services: [[[u64; 3]; BINS]; MAX_LEVELS + 1],
    pub(crate) started: u64,
    pub(crate) queue_delay_ns: u64,
    pub(crate) released: u64,
    pub(crate) response_ns: u64,
}

impl ClassTotals {
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], class: usize) -> Self {
        let mut totals = ClassTotals::default();
        for lane in lanes {
            totals.combine(&ClassTotals::read(&lane.classes[class]), u64::wrapping_add);
        }
        totals
    }

    /// What came since `before`.
    pub(crate) fn since(mut self, before: &ClassTotals) -> Self {
        self.combine(before, u64::wrapping_sub);
        self
    }

    fn read(counters: &ClassCounters) -> Self {
        let service = |s: &ServiceCounters| [s.requests.get(), s.work_ns.get(), s.bytes.get()];
        ClassTotals {
            counts: Counts {
                arrivals: counters.arrivals.get(),
                served: counters.served.each_ref().map(Counter::get),
                reasons: counters.reasons.each_ref().map(Counter::get),
                outcomes: counters.outcomes.each_ref().map(Counter::get),
                bytes: counters.bytes.get(),
                unserved: counters.unserved.get(),
            },
            decided: counters.decided.each_ref().map(Counter::get),
            services: counters.services.each_ref().map(|bins| bins.each_ref().map(service)),
            started: counters.started.get(),
            queue_delay_ns: counters.queue_delay_ns.get(),
            released: counters.released.get(),
            response_ns: counters.response_ns.get(),
        }
    }

    fn combine(&mut self, other: &ClassTotals, with: impl Fn(u64, u64) -> u64) {
        fn each(to: &mut [u64], from: &[u64], with: &impl Fn(u64, u64) -> u64) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = with(*to, *from));
        }
        each(&mut self.counts.served, &other.counts.served, &with);
        each(&mut self.decided, &other.decided, &with);
        each(&mut self.counts.reasons, &other.counts.reasons, &with);
        each(&mut self.counts.outcomes, &other.counts.outcomes, &with);
        each(
            self.services.as_flattened_mut().as_flattened_mut(),
            other.services.as_flattened().as_flattened(),
            &with,
        );
        let counts = &mut self.counts;
        let ours = [&mut counts.arrivals, &mut counts.bytes, &mut counts.unserved, &mut self.started];
        let ours =
            ours.into_iter().chain([&mut self.queue_delay_ns, &mut self.released, &mut self.response_ns]);
        let counts = &other.counts;
        let theirs = [counts.arrivals, counts.bytes, counts.unserved, other.started];
        let theirs = theirs.into_iter().chain([other.queue_delay_ns, other.released, other.response_ns]);
        ours.zip(theirs).for_each(|(to, from)| *to = with(*to, from));
    }

    /// What was served at one level, all sizes together.
    pub(crate) fn served_at(&self, level: usize) -> Served {
        self.services[level].iter().map(served).fold(Served::default(), |a, b| Served {
            requests: a.requests + b.requests,
            work_seconds: a.work_seconds + b.work_seconds,
            bytes: a.bytes + b.bytes,
        })
    }
}

fn served(bin: &[u64; 3]) -> Served {
    Served { requests: bin[0] as f64, work_seconds: bin[1] as f64 * 1e-9, bytes: bin[2] as f64 }
}

/// Sums of one plant over all lanes.
#[derive(Clone, Copy, Default)]
pub(crate) struct PlantTotals {
    pub(crate) busy_ns: u64,
    pub(crate) releases: u64,
    pub(crate) service_ns: u64,
}

impl PlantTotals {
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], plant: usize) -> Self {
        let mut totals = PlantTotals::default();
        for counters in lanes.iter().map(|lane| &lane.plants[plant]) {
            totals.busy_ns = totals.busy_ns.wrapping_add(counters.busy_ns.get());
            totals.releases = totals.releases.wrapping_add(counters.releases.get());
            totals.service_ns = totals.service_ns.wrapping_add(counters.service_ns.get());
        }
        totals
    }

    pub(crate) fn since(self, before: &PlantTotals) -> Self {
        PlantTotals {
            busy_ns: self.busy_ns.wrapping_sub(before.busy_ns),
            releases: self.releases.wrapping_sub(before.releases),
            service_ns: self.service_ns.wrapping_sub(before.service_ns),
        }
    }
}

/// Follows one class: its totals, the last period's window, its rate and its costs.
pub(crate) struct ClassMonitor {
    pub(crate) totals: ClassTotals,
    pub(crate) window: ClassTotals,
    pub(crate) rate: Tracker,
    arrivals: u64,
    /// The rate stepped since the last period's end.
    stepped: bool,
    pub(crate) costs: [CostEstimate; MAX_LEVELS + 1],
    pub(crate) line: LinearModel,
    /// The last period served nothing that could teach.
    pub(crate) frozen: bool,
}

impl ClassMonitor {
    pub(crate) fn new(line: LinearModel) -> Self {
        ClassMonitor {
            totals: ClassTotals::default(),
            window: ClassTotals::default(),
            rate: Tracker::default(),
            arrivals: 0,
            stepped: false,
            costs: Default::default(),
            line,
            frozen: true,
        }
    }

    /// Takes the arrivals of a part of a period.
    pub(crate) fn sample(&mut self, arrivals: u64, seconds: f64) {
        self.stepped |= self.rate.count(arrivals.wrapping_sub(self.arrivals), seconds);
        self.arrivals = arrivals;
    }

    /// Takes a whole period; returns whether a rate or a cost stepped in it.
    pub(crate) fn observe(&mut self, totals: ClassTotals) -> bool {
        self.window = totals.since(&self.totals);
        self.totals = totals;
        let mut stepped = core::mem::take(&mut self.stepped);
        for (level, cost) in self.costs.iter_mut().enumerate() {
            stepped |= cost.learn(self.window.served_at(level));
        }
        let samples = self.window.services.as_flattened().iter().map(served);
        self.frozen = !self.line.learn(samples);
        stepped
    }
}
