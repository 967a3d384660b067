//! For how long the requests of lower classes hold a worker that a promised class waits for.
//!
//! Service is not preempted. Where all workers serve lower classes, the first of s is free after a whole service time over s,
//! if what is left of one has the mean of a whole one (as of exponential times). No quota shortens that wait: if it does not
//! leave room for the class's own service, lower classes have to yield.

use crate::promises::Delay;
use crate::telemetry::counters::{ClassCounters, LaneCounters};
use crate::telemetry::recent_service::RecentService;
use alloc::sync::Arc;

/// The requests that are remembered.
const REMEMBERED: f64 = 100.0;

/// A class is kept out if service and the wait for the first worker of lower classes take more than this part of its mean.
const KEPT_OUT: f64 = 0.75;

/// Whether a worker is free of lower classes too late for a class with this service time (s), whatever its quota. A percentile
/// is reached by its quota, of which a request that becomes urgent has no need. Where its own service takes as long, lower
/// classes are not what keeps it out.
pub(super) fn keeps_out(delay: Delay, service_seconds: f64, first_free: f64) -> bool {
    let most = KEPT_OUT * delay.target.as_secs_f64();
    delay.percentile.is_none() && service_seconds <= most && service_seconds + first_free > most
}

/// The service times of the lower classes of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LowerService(RecentService);

impl LowerService {
    /// The same of other lower classes, unless they are the same: sums of other classes say nothing beside those before.
    pub(super) fn of(mut self, same: bool) -> Self {
        if !same {
            self.0.look_anew();
        }
        self
    }

    /// Looks at the lower classes; returns their mean service time (s).
    pub(super) fn observe(&mut self, lanes: &[Arc<LaneCounters>], below: &[usize]) -> f64 {
        let sum = |of: fn(&ClassCounters) -> u64| {
            let sums = below.iter().flat_map(|class| lanes.iter().map(|lane| of(&lane.classes[*class])));
            sums.fold(0, u64::wrapping_add)
        };
        let come = self.0.come([
            sum(|class| class.released.get()),
            sum(|class| class.response_ns.get().wrapping_sub(class.waited_ns.get())),
        ]);
        self.0.remember(come, (1.0 - come[0] as f64 / REMEMBERED).max(0.0));
        self.0.mean_seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn long_requests_of_lower_classes_keep_a_short_mean_out() {
        let lanes = [Arc::new(LaneCounters::default().grown(2, 1))];
        let release = |class: usize, requests: u64, ms: u64| {
            lanes[0].classes[class].released.add(requests);
            lanes[0].classes[class].response_ns.add(requests * ms * 1_000_000);
        };
        let mut lower = LowerService::default();
        assert_eq!(lower.observe(&lanes, &[1]), 0.0);
        release(0, 50, 10);
        release(1, 20, 100);
        assert!((lower.observe(&lanes, &[1]) - 0.1).abs() < 1e-9);
        release(1, 200, 40);
        assert!((lower.observe(&lanes, &[1]) - 0.04).abs() < 1e-9, "only the last ones count");
        let mut other = lower.of(false);
        release(0, 1_000, 10_000);
        assert!((other.observe(&lanes, &[0, 1]) - 0.04).abs() < 1e-9, "other classes begin anew");
        let promised = |ms, percentile| Delay { target: Duration::from_millis(ms), percentile };
        assert!(keeps_out(promised(60, None), 0.01, 0.05) && !keeps_out(promised(100, None), 0.01, 0.05));
        assert!(!keeps_out(promised(60, Some(95.0)), 0.01, 0.05));
        assert!(!keeps_out(promised(60, None), 0.05, 0.05), "its own service takes too long");
    }
}
