//! Monitors: what the lanes counted, by period, and what it says of rates and costs.
//!
//! R and W of a class are differences of counters over the period. A counter is read without stopping its writer, so
//! two counters of one window may differ by the requests of some nanoseconds; nothing here divides one by another
//! across such a difference except means, where it does not matter.

use crate::model::{CostEstimate, LinearModel, Served, Tracker};
use crate::promises::MAX_LEVELS;
use crate::telemetry::counters::{ClassCounters, Counter, DurationCounters, LaneCounters};
use crate::telemetry::releases::Releases;
use crate::telemetry::status::{Counts, DurationHistogram};
use alloc::sync::Arc;
use core::ops::RangeInclusive;

/// Sums of one class over all lanes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ClassTotals {
    pub(crate) counts: Counts,
    pub(crate) decided: [u64; MAX_LEVELS + 1],
    pub(crate) started: u64,
    pub(crate) queue_delay_ns: u64,
    pub(crate) released: u64,
    pub(crate) response_ns: u64,
}

impl ClassTotals {
    /// `levels` is M: what lies above stays zero.
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], class: usize, levels: usize) -> Self {
        let mut totals = ClassTotals::default();
        totals.advance(&mut ClassTotals::default(), lanes, class, levels);
        totals
    }

    /// Takes what the lanes have counted since the last time: that is the window. One walk over both, in place and up to
    /// the levels in use, since a hundred sites have a megabyte of this and most of the time goes into fetching it.
    fn advance(
        &mut self,
        window: &mut ClassTotals,
        lanes: &[Arc<LaneCounters>],
        class: usize,
        levels: usize,
    ) {
        let mut counters = lanes.iter().map(|lane| &*lane.classes[class]);
        // There is at least one. The others add to it.
        if let Some(first) = counters.next() {
            self.read(window, first, levels, |total, window, count| {
                *window = count.wrapping_sub(*total);
                *total = count;
            });
        }
        for more in counters {
            self.read(window, more, levels, |total, window, count| {
                *window = window.wrapping_add(count);
                *total = total.wrapping_add(count);
            });
        }
    }

    #[inline]
    fn read(
        &mut self,
        window: &mut ClassTotals,
        counters: &ClassCounters,
        levels: usize,
        put: impl Fn(&mut u64, &mut u64, u64),
    ) {
        let one = |total: &mut u64, window: &mut u64, count: &Counter| put(total, window, count.get());
        let each = |total: &mut [u64], window: &mut [u64], counts: &[Counter]| {
            let pairs = total.iter_mut().zip(window);
            pairs.zip(counts).for_each(|((total, window), count)| one(total, window, count));
        };
        let (sums, new) = (&mut self.counts, &mut window.counts);
        each(&mut sums.served[..=levels], &mut new.served, &counters.served);
        each(&mut self.decided[..=levels], &mut window.decided, &counters.decided);
        each(&mut sums.reasons, &mut new.reasons, &counters.reasons);
        each(&mut sums.outcomes, &mut new.outcomes, &counters.outcomes);
        one(&mut sums.arrivals, &mut new.arrivals, &counters.arrivals);
        one(&mut sums.bytes, &mut new.bytes, &counters.bytes);
        one(&mut sums.unserved, &mut new.unserved, &counters.unserved);
        one(&mut self.started, &mut window.started, &counters.started);
        one(&mut self.queue_delay_ns, &mut window.queue_delay_ns, &counters.queue_delay_ns);
        one(&mut self.released, &mut window.released, &counters.released);
        one(&mut self.response_ns, &mut window.response_ns, &counters.response_ns);
    }

    fn clear(&mut self, levels: usize) {
        self.counts = Counts::default();
        self.decided[..=levels].fill(0);
        (self.started, self.queue_delay_ns, self.released, self.response_ns) = (0, 0, 0, 0);
    }

    /// There is nothing above these levels.
    fn cut(&mut self, levels: usize) {
        self.counts.served[levels + 1..].fill(0);
        self.decided[levels + 1..].fill(0);
    }

    /// The share of the arrivals that was inside the site's contract: those that the knob was not asked about.
    pub(crate) fn guaranteed_share(&self) -> f64 {
        let asked = self.decided.iter().fold(0, |sum: u64, level| sum.wrapping_add(*level));
        let arrivals = self.counts.arrivals;
        arrivals.saturating_sub(asked) as f64 / arrivals.max(1) as f64
    }

    /// Whether nothing has happened since: every event of a class moves one of these counts.
    fn is_current(&self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
        let arrivals = lanes.iter().map(|lane| lane.classes[class].arrivals.get());
        if arrivals.fold(0, u64::wrapping_add) != self.counts.arrivals {
            return false;
        }
        let counts = &self.counts;
        let known = [counts.bytes, self.started, self.released, counts.unserved];
        let mut moved = known.map(u64::wrapping_neg);
        let mut ended = counts.outcomes.map(u64::wrapping_neg);
        for counters in lanes.iter().map(|lane| &lane.classes[class]) {
            let now = [&counters.bytes, &counters.started, &counters.released, &counters.unserved];
            let pairs = moved.iter_mut().zip(now).chain(ended.iter_mut().zip(&counters.outcomes));
            pairs.for_each(|(sum, now)| *sum = sum.wrapping_add(now.get()));
        }
        moved.into_iter().chain(ended).all(|difference| difference == 0)
    }
}

/// The sum of one counter of a class over all lanes.
pub(crate) fn sum_over(lanes: &[Arc<LaneCounters>], class: usize, of: fn(&ClassCounters) -> u64) -> u64 {
    lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(of(&lane.classes[class])))
}

/// The histogram of one kind of duration of a class over all lanes, with `count` durations whose sum is `sum_ns`.
pub(crate) fn durations<'a>(
    lanes: impl Iterator<Item = &'a DurationCounters>,
    count: u64,
    sum_ns: u64,
) -> DurationHistogram {
    let mut histogram = DurationHistogram { sum_ns, ..DurationHistogram::default() };
    for (bucket, more) in lanes.flat_map(|lane| lane.counts().enumerate()) {
        histogram.buckets[bucket + 1] += more;
    }
    histogram.buckets[0] = count.saturating_sub(histogram.count());
    histogram
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
    totals: ClassTotals,
    pub(crate) window: ClassTotals,
    releases: Releases,
    /// Of the window, by level.
    served: [Served; MAX_LEVELS + 1],
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
            releases: Releases::default(),
            served: Default::default(),
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
        self.window.cut(self.levels);
        self.pass_over(1..=self.levels, lanes, class);
        self.served[self.levels + 1..].fill(Served::default());
    }

    /// What requests at these levels cost was measured by another plant than there is, up to now: in this period too.
    pub(crate) fn forget_costs(
        &mut self,
        levels: impl Iterator<Item = usize>,
        lanes: &[Arc<LaneCounters>],
        class: usize,
    ) {
        for level in levels {
            self.costs[level] = CostEstimate::default();
            self.pass_over(level..=level, lanes, class);
        }
    }

    /// What was released at these levels up to now teaches nothing.
    fn pass_over(&mut self, levels: RangeInclusive<usize>, lanes: &[Arc<LaneCounters>], class: usize) {
        for level in levels {
            self.releases.take(lanes, class, level, |_| ());
        }
    }

    /// What was served at one level in the last period.
    pub(crate) fn served_at(&self, level: usize) -> Served {
        self.served[level]
    }

    /// Whether nothing has happened since the last period.
    pub(crate) fn is_current(&self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
        self.totals.is_current(lanes, class)
    }

    /// Takes so many parts of a period in which nothing came.
    pub(crate) fn sample_nothing(&mut self, times: u64, seconds: f64) {
        self.stepped |= self.rate.count_nothing(times, seconds);
    }

    /// Takes the arrivals of a part of a period.
    pub(crate) fn sample(&mut self, arrivals: u64, seconds: f64) {
        self.stepped |= self.rate.count(arrivals.wrapping_sub(self.arrivals), seconds);
        self.arrivals = arrivals;
    }

    /// Nothing came in the last period. Most classes are quiet most of the time; there is nothing to learn from zeros.
    pub(crate) fn rest(&mut self) {
        if self.active {
            self.window.clear(self.levels);
            self.served[..=self.levels].fill(Served::default());
        }
        (self.active, self.frozen) = (false, true);
    }

    /// Takes a whole period; returns whether a rate or a cost stepped in it.
    pub(crate) fn observe(&mut self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
        let mut stepped = core::mem::take(&mut self.stepped);
        if self.is_current(lanes, class) {
            self.rest();
            return stepped;
        }
        self.active = true;
        self.totals.advance(&mut self.window, lanes, class, self.levels);
        let mut batch = self.line.batch();
        for level in 1..=self.levels {
            let served = self.releases.take(lanes, class, level, |served| batch.add(served));
            stepped |= self.costs[level].learn(served);
            self.served[level] = served;
        }
        self.frozen = !self.line.take(&batch);
        stepped
    }
}
