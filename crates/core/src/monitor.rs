//! Monitors: what the lanes counted, by period, and what it says of rates and costs.
//!
//! R and W of a class are differences of counters over the period. A counter is read without stopping its writer, so
//! two counters of one window may differ by the requests of some nanoseconds; nothing here divides one by another
//! across such a difference except means, where it does not matter.

use crate::model::{CostEstimate, LinearModel, Served, Tracker};
use crate::promises::MAX_LEVELS;
use crate::shared::{BINS, ClassCounters, Counter, LaneCounters};
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
    /// `levels` is M: what lies above stays zero.
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], class: usize, levels: usize) -> Self {
        let mut totals = ClassTotals::default();
        for lane in lanes {
            totals.add(&lane.classes[class], levels);
        }
        totals
    }

    fn add(&mut self, counters: &ClassCounters, levels: usize) {
        fn each<'a>(to: &mut [u64], from: impl IntoIterator<Item = &'a Counter>) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = to.wrapping_add(from.get()));
        }
        let counts = &mut self.counts;
        each(&mut counts.served[..=levels], &counters.served);
        each(&mut self.decided[..=levels], &counters.decided);
        each(&mut counts.reasons, &counters.reasons);
        each(&mut counts.outcomes, &counters.outcomes);
        for (to, from) in self.services[..=levels].iter_mut().zip(&counters.services) {
            let from = from.iter().flat_map(|s| [&s.requests, &s.work_ns, &s.bytes]);
            each(to.as_flattened_mut(), from);
        }
        let rest = [
            (&mut counts.arrivals, &counters.arrivals),
            (&mut counts.bytes, &counters.bytes),
            (&mut counts.unserved, &counters.unserved),
            (&mut self.started, &counters.started),
            (&mut self.queue_delay_ns, &counters.queue_delay_ns),
            (&mut self.released, &counters.released),
            (&mut self.response_ns, &counters.response_ns),
        ];
        rest.into_iter().for_each(|(to, from)| *to = to.wrapping_add(from.get()));
    }

    /// Takes what the lanes have counted since the last time: that is the window. In place, since a hundred sites have
    /// a megabyte of this.
    fn advance(
        &mut self,
        window: &mut ClassTotals,
        lanes: &[Arc<LaneCounters>],
        class: usize,
        levels: usize,
    ) {
        *window = *self;
        self.clear(levels);
        for lane in lanes {
            self.add(&lane.classes[class], levels);
        }
        window.complement(self, levels);
    }

    fn clear(&mut self, levels: usize) {
        self.counts = Counts::default();
        self.decided[..=levels].fill(0);
        self.services[..=levels].fill(Default::default());
        (self.started, self.queue_delay_ns, self.released, self.response_ns) = (0, 0, 0, 0);
    }

    /// From what was counted then to what came between then and now.
    fn complement(&mut self, now: &ClassTotals, levels: usize) {
        fn each(then: &mut [u64], now: &[u64]) {
            then.iter_mut().zip(now).for_each(|(then, now)| *then = now.wrapping_sub(*then));
        }
        let (counts, new) = (&mut self.counts, &now.counts);
        each(&mut counts.served[..=levels], &new.served);
        each(&mut counts.reasons, &new.reasons);
        each(&mut counts.outcomes, &new.outcomes);
        each(&mut self.decided[..=levels], &now.decided);
        for (then, now) in self.services[..=levels].iter_mut().zip(&now.services) {
            each(then.as_flattened_mut(), now.as_flattened());
        }
        let rest = [
            (&mut counts.arrivals, new.arrivals),
            (&mut counts.bytes, new.bytes),
            (&mut counts.unserved, new.unserved),
            (&mut self.started, now.started),
            (&mut self.queue_delay_ns, now.queue_delay_ns),
            (&mut self.released, now.released),
            (&mut self.response_ns, now.response_ns),
        ];
        rest.into_iter().for_each(|(then, now)| *then = now.wrapping_sub(*then));
    }

    /// The share of the arrivals that was inside the site's contract: those that the knob was not asked about.
    pub(crate) fn guaranteed_share(&self) -> f64 {
        let asked = self.decided.iter().fold(0, |sum: u64, level| sum.wrapping_add(*level));
        let arrivals = self.counts.arrivals;
        arrivals.saturating_sub(asked) as f64 / arrivals.max(1) as f64
    }

    /// Whether nothing has happened since: every event of a class moves one of these counts.
    fn is_current(&self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
        let sum = |of: fn(&ClassCounters) -> u64| {
            lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(of(&lane.classes[class])))
        };
        let ended = |counters: &ClassCounters| {
            counters.outcomes.iter().fold(0, |sum: u64, outcome| sum.wrapping_add(outcome.get()))
        };
        let known = self.counts.outcomes.iter().fold(0, |sum: u64, outcome| sum.wrapping_add(*outcome));
        sum(|c| c.arrivals.get()) == self.counts.arrivals
            && sum(|c| c.bytes.get()) == self.counts.bytes
            && sum(|c| c.started.get()) == self.started
            && sum(|c| c.released.get()) == self.released
            && sum(|c| c.unserved.get()) == self.counts.unserved
            && sum(ended) == known
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
    /// M.
    levels: usize,
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
    /// The window holds something.
    pub(crate) active: bool,
}

impl ClassMonitor {
    pub(crate) fn new(line: LinearModel, levels: usize) -> Self {
        ClassMonitor {
            levels,
            totals: ClassTotals::default(),
            window: ClassTotals::default(),
            rate: Tracker::default(),
            arrivals: 0,
            stepped: false,
            costs: Default::default(),
            line,
            frozen: true,
            active: false,
        }
    }

    /// The levels, or what serves them, changed: `costs` are what is known of them at levels 1..=M. What was served so
    /// far teaches nothing of them.
    pub(crate) fn relevel(&mut self, costs: &[CostEstimate], lanes: &[Arc<LaneCounters>], class: usize) {
        self.levels = costs.len();
        self.costs = Default::default();
        self.costs[1..=costs.len()].clone_from_slice(costs);
        self.totals = ClassTotals::sum(lanes, class, self.levels);
    }

    /// Takes the arrivals of a part of a period.
    pub(crate) fn sample(&mut self, arrivals: u64, seconds: f64) {
        self.stepped |= self.rate.count(arrivals.wrapping_sub(self.arrivals), seconds);
        self.arrivals = arrivals;
    }

    /// Takes a whole period; returns whether a rate or a cost stepped in it.
    pub(crate) fn observe(&mut self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
        let mut stepped = core::mem::take(&mut self.stepped);
        if self.totals.is_current(lanes, class) {
            // Most classes are quiet most of the time; there is nothing to learn from zeros.
            if self.active {
                self.window = ClassTotals::default();
            }
            (self.active, self.frozen) = (false, true);
            return stepped;
        }
        self.active = true;
        self.totals.advance(&mut self.window, lanes, class, self.levels);
        for (level, cost) in self.costs[..=self.levels].iter_mut().enumerate() {
            stepped |= cost.learn(self.window.served_at(level));
        }
        let samples = self.window.services[..=self.levels].as_flattened().iter().map(served);
        self.frozen = !self.line.learn(samples);
        stepped
    }
}
