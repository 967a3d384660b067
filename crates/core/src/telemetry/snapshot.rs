//! Counter snapshots: plain sums of counters, whatever threads, processes or gateways counted them.
//!
//! A snapshot of a class is what its counters stand at; two snapshots add up, and the difference of two in time is what a
//! measurement is made of. A counter is read without stopping its writer, so that two counters of one snapshot may differ
//! by the requests of some nanoseconds.

use crate::model::Served;
use crate::promises::MAX_LEVELS;
use crate::telemetry::counters::{
    BINS, ClassCounters, Counter, DurationCounters, LaneCounters, ServiceCounters,
};
use crate::telemetry::status::{Counts, DurationHistogram};
use alloc::sync::Arc;

/// Sums of one class: of its counters since the start, or of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassSnapshot {
    pub(crate) counts: Counts,
    pub(crate) decided: [u64; MAX_LEVELS + 1],
    pub(crate) started: u64,
    pub(crate) queue_delay_ns: u64,
    pub(crate) released: u64,
    pub(crate) response_ns: u64,
}

impl ClassSnapshot {
    /// The sum over all lanes. `levels` is M: the levels above it stay zero.
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], class: usize, levels: usize) -> Self {
        let mut sum = ClassSnapshot::default();
        sum.advance(&mut ClassSnapshot::default(), lanes, class, levels);
        sum
    }

    /// Brings a snapshot up to date and leaves the difference in `window`. One walk over both, in place and up to the
    /// levels in use, since a hundred sites have a megabyte of counters and most of the time goes into fetching it.
    pub(crate) fn advance(
        &mut self,
        window: &mut ClassSnapshot,
        lanes: &[Arc<LaneCounters>],
        class: usize,
        levels: usize,
    ) {
        let mut counters = lanes.iter().map(|lane| &*lane.classes[class]);
        // There is at least one lane. The others add to it.
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
        window: &mut ClassSnapshot,
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

    /// Makes it the snapshot of a period in which nothing happened.
    pub(crate) fn clear(&mut self, levels: usize) {
        self.counts = Counts::default();
        self.decided[..=levels].fill(0);
        (self.started, self.queue_delay_ns, self.released, self.response_ns) = (0, 0, 0, 0);
    }

    /// Drops what lies above these levels.
    pub(crate) fn cut(&mut self, levels: usize) {
        self.counts.served[levels + 1..].fill(0);
        self.decided[levels + 1..].fill(0);
    }

    /// The share of the arrivals that was inside the site's contract: those that the service level did not decide on.
    pub(crate) fn guaranteed_share(&self) -> f64 {
        let decided = self.decided.iter().fold(0, |sum: u64, level| sum.wrapping_add(*level));
        let arrivals = self.counts.arrivals;
        arrivals.saturating_sub(decided) as f64 / arrivals.max(1) as f64
    }

    /// Whether nothing has happened since this snapshot: every event of a class moves one of these counts.
    pub(crate) fn is_current(&self, lanes: &[Arc<LaneCounters>], class: usize) -> bool {
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
pub(crate) fn sum_over(
    lanes: &[Arc<LaneCounters>],
    class: usize,
    counter: fn(&ClassCounters) -> &Counter,
) -> u64 {
    lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(counter(&lane.classes[class]).get()))
}

/// How many requests of a class are in service.
pub(crate) fn in_service(lanes: &[Arc<LaneCounters>], class: usize) -> u32 {
    let started = sum_over(lanes, class, |counters| &counters.started);
    let in_service = started.wrapping_sub(sum_over(lanes, class, |counters| &counters.released));
    // The counters are read one after the other, so a request that ended in between makes it negative.
    i64::max(in_service as i64, 0) as u32
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

/// Sums of one plant: of its counters since the start, or of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlantSnapshot {
    pub(crate) busy_ns: u64,
    pub(crate) releases: u64,
    pub(crate) service_ns: u64,
    pub(crate) repeated: u64,
}

impl PlantSnapshot {
    /// The sum over all lanes.
    pub(crate) fn sum(lanes: &[Arc<LaneCounters>], plant: usize) -> Self {
        let mut sum = PlantSnapshot::default();
        for counters in lanes.iter().map(|lane| &lane.plants[plant]) {
            sum.busy_ns = sum.busy_ns.wrapping_add(counters.busy_ns.get());
            sum.releases = sum.releases.wrapping_add(counters.releases.get());
            sum.service_ns = sum.service_ns.wrapping_add(counters.service_ns.get());
            sum.repeated = sum.repeated.wrapping_add(counters.repeated.get());
        }
        sum
    }

    /// What was counted since an earlier snapshot.
    pub(crate) fn since(self, before: &PlantSnapshot) -> Self {
        PlantSnapshot {
            busy_ns: self.busy_ns.wrapping_sub(before.busy_ns),
            releases: self.releases.wrapping_sub(before.releases),
            service_ns: self.service_ns.wrapping_sub(before.service_ns),
            repeated: self.repeated.wrapping_sub(before.repeated),
        }
    }
}

/// What was released of a class up to a snapshot, by level and size: what its costs are learned from.
///
/// Most size bins of most levels are quiet in most periods. A release counts its request first, and then its work and its
/// bytes, so a bin in which no request was counted has nothing new and is not read further.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceSnapshot([[ServiceSums; BINS]; MAX_LEVELS + 1]);

#[derive(Clone, Copy, Debug, Default)]
struct ServiceSums {
    requests: u64,
    work_ns: u64,
    bytes: u64,
}

impl ServiceSnapshot {
    /// Brings one level up to date; returns what was released since the last time, and passes it to `each` by size.
    pub(crate) fn advance(
        &mut self,
        lanes: &[Arc<LaneCounters>],
        class: usize,
        level: usize,
        mut each: impl FnMut(Served),
    ) -> Served {
        let counters = lanes.iter().map(|lane| &lane.classes[class].services[level]);
        let mut requests = [0_u64; BINS];
        for bins in counters.clone() {
            for (sum, bin) in requests.iter_mut().zip(bins) {
                *sum = sum.wrapping_add(bin.requests.get());
            }
        }
        let mut all = Served::default();
        for (bin, known) in self.0[level].iter_mut().enumerate() {
            if requests[bin] != known.requests {
                let none = ServiceSums { requests: requests[bin], work_ns: 0, bytes: 0 };
                let now = counters.clone().fold(none, |sums, bins| sums.add(&bins[bin]));
                let served = now.since(known);
                *known = now;
                each(served);
                all = all + served;
            }
        }
        all
    }
}

impl ServiceSums {
    /// Adds a lane's work and bytes.
    fn add(self, counters: &ServiceCounters) -> Self {
        ServiceSums {
            work_ns: self.work_ns.wrapping_add(counters.work_ns.get()),
            bytes: self.bytes.wrapping_add(counters.bytes.get()),
            ..self
        }
    }

    fn since(self, before: &ServiceSums) -> Served {
        Served {
            requests: self.requests.wrapping_sub(before.requests) as f64,
            work_seconds: self.work_ns.wrapping_sub(before.work_ns) as f64 * 1e-9,
            bytes: self.bytes.wrapping_sub(before.bytes) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn lanes() -> [Arc<LaneCounters>; 2] {
        [(), ()].map(|()| Arc::new(LaneCounters::default().grown(1, 1)))
    }

    #[test]
    fn releases_since_the_last_time_are_summed_over_all_lanes_by_size() {
        let lanes = lanes();
        let release = |lane: usize, bin: usize, work_ns, bytes| {
            let counters = &lanes[lane].classes[0].services[2][bin];
            counters.requests.add(1);
            counters.work_ns.add(work_ns);
            counters.bytes.add(bytes);
        };
        let mut released = ServiceSnapshot::default();
        let mut take = |level| {
            let mut sizes = Vec::new();
            let all = released.advance(&lanes, 0, level, |served| sizes.push(served.requests));
            (all, sizes)
        };
        let nothing = (Served::default(), Vec::new());
        assert_eq!(take(2), nothing);
        release(0, 1, 2_000_000_000, 100);
        release(1, 1, 3_000_000_000, 200);
        release(1, 3, 5_000_000_000, 400);
        let all = Served { requests: 3.0, work_seconds: 10.0, bytes: 700.0 };
        assert_eq!(take(2), (all, alloc::vec![2.0, 1.0]));
        assert_eq!((take(2), take(1)), (nothing.clone(), nothing));
        release(0, 3, 1_000_000_000, 10);
        assert_eq!(take(2), (Served { requests: 1.0, work_seconds: 1.0, bytes: 10.0 }, alloc::vec![1.0]));
    }

    #[test]
    fn a_window_is_the_difference_of_the_sums_at_its_ends() {
        let lanes = lanes();
        let count = |lane: usize, n: u64| {
            let class = &lanes[lane].classes[0];
            class.arrivals.add(n);
            class.decided[2].add(n - 1);
            class.served[1].add(n);
            class.response_ns.add(100 * n);
            class.outcomes[0].add(n);
        };
        (0..2).for_each(|lane| count(lane, 3));
        let (mut snapshot, mut window) = (ClassSnapshot::sum(&lanes, 0, 2), ClassSnapshot::default());
        assert!(snapshot.is_current(&lanes, 0));
        count(1, 5);
        assert!(!snapshot.is_current(&lanes, 0));
        snapshot.advance(&mut window, &lanes, 0, 2);
        assert_eq!(snapshot, ClassSnapshot::sum(&lanes, 0, 2));
        assert_eq!((window.counts.arrivals, window.response_ns, window.counts.outcomes[0]), (5, 500, 5));
        assert_eq!((window.counts.served[1], window.decided[2], snapshot.counts.arrivals), (5, 4, 11));
        assert_eq!(window.guaranteed_share(), 0.2);
    }
}
