//! For how long the requests of lower classes hold a worker that a promised class waits for.
//!
//! Service is not preempted. Where all workers serve lower classes, the first of s is free after a whole service time over s,
//! if what is left of one has the mean of a whole one (as of exponential times). No quota shortens that wait: if it does not
//! leave room for the class's own service, lower classes have to yield.

use crate::telemetry::counters::{ClassCounters, LaneCounters};
use alloc::sync::Arc;

/// The requests that are remembered.
const REMEMBERED: f64 = 100.0;

/// The mean service time of the lower classes of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LowerService {
    /// Requests released, and their service times (ns), up to the last look.
    before: Option<[u64; 2]>,
    /// The same of late.
    recent: [f64; 2],
}

impl LowerService {
    /// Looks at the lower classes; returns their mean service time (s).
    pub(super) fn observe(&mut self, lanes: &[Arc<LaneCounters>], below: &[usize]) -> f64 {
        let sum = |of: fn(&ClassCounters) -> u64| {
            let sums = below.iter().flat_map(|class| lanes.iter().map(|lane| of(&lane.classes[*class])));
            sums.fold(0, u64::wrapping_add)
        };
        let now = [
            sum(|class| class.released.get()),
            sum(|class| class.response_ns.get().wrapping_sub(class.waited_ns.get())),
        ];
        let before = self.before.replace(now).unwrap_or(now);
        let came = [0, 1].map(|place| now[place].wrapping_sub(before[place]) as f64);
        let kept = (1.0 - came[0] / REMEMBERED).max(0.0);
        for (recent, came) in self.recent.iter_mut().zip(came) {
            *recent = kept * *recent + came;
        }
        let [released, service_ns] = self.recent;
        if released > 0.0 { service_ns * 1e-9 / released } else { 0.0 }
    }
}
