//! What was released of a class, by level and size: what its costs are learned from.
//!
//! Most size bins of most levels are quiet in most periods. A release counts its request first, and then its work and its
//! bytes: a bin in which no request was counted has nothing new, and is not read further.

use crate::model::Served;
use crate::promises::MAX_LEVELS;
use crate::telemetry::counters::{BINS, LaneCounters, ServiceCounters};
use alloc::sync::Arc;

/// Sums over all lanes up to the last period.
#[derive(Default)]
pub(crate) struct Releases([[Sums; BINS]; MAX_LEVELS + 1]);

#[derive(Clone, Copy, Default)]
struct Sums {
    requests: u64,
    work_ns: u64,
    bytes: u64,
}

impl Releases {
    /// Takes what was released at a level since the last time, and returns all of it; `each` is told it by size.
    pub(crate) fn take(
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
                let none = Sums { requests: requests[bin], work_ns: 0, bytes: 0 };
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

impl Sums {
    /// Adds a lane's work and bytes.
    fn add(self, counters: &ServiceCounters) -> Self {
        Sums {
            work_ns: self.work_ns.wrapping_add(counters.work_ns.get()),
            bytes: self.bytes.wrapping_add(counters.bytes.get()),
            ..self
        }
    }

    fn since(self, before: &Sums) -> Served {
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

    #[test]
    fn what_came_since_the_last_time_over_all_lanes_by_size() {
        let lanes = [(), ()].map(|()| Arc::new(LaneCounters::default().grown(1, 1)));
        let release = |lane: usize, bin: usize, work_ns, bytes| {
            let counters = &lanes[lane].classes[0].services[2][bin];
            counters.requests.add(1);
            counters.work_ns.add(work_ns);
            counters.bytes.add(bytes);
        };
        let mut releases = Releases::default();
        let mut take = |level| {
            let mut sizes = Vec::new();
            let all = releases.take(&lanes, 0, level, |served| sizes.push(served.requests));
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
}
