//! Readings: what only input or output can sense, pushed into `tick` by a shell.

use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// Senses that need input or output, pushed into `tick`.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// One per plant that reports: its index and its utilization in [0, 1] since its last reading. A period takes their mean,
    /// weighted by the time of each.
    pub utilization: Vec<(usize, f64)>,
    /// CPU time that the gateway's process has used since its start, divided by the machine's cores: for the cost c of a
    /// rejection, in seconds of the whole machine.
    pub gateway_cpu: Option<Duration>,
    /// The busy time of all processors of the machine since any instant, divided by their number. By it the loops know
    /// whether rejections take time of the workers of a plant on this machine.
    pub host_cpu: Option<Duration>,
    /// The index of each plant that reports its number of workers, and the number. It holds until the plant reports another,
    /// where the number is searched for, within the bounds of the search.
    pub workers: Vec<(usize, u32)>,
    /// The index of each plant of several servers, and the share of them that is in use, in (0, 1]. A share holds until the
    /// next reading. Workers and places shrink to this share at once, before the loop of the plant sees that services take
    /// longer.
    pub available: Vec<(usize, f64)>,
    /// The time for which the listen queue of a server that decides inside has never been empty. Zero while it is empty,
    /// and where no process looks at it.
    pub queue_stands: Duration,
    /// The number of requests that wait in that queue, as the process saw that took the last one. `None` where no process
    /// has looked lately.
    pub queue_waiting: Option<u32>,
    /// The time since the Unix epoch, UTC, for hourly forecasts of rates and for the turn of clients. `None`: the engine's own
    /// time counts from the epoch.
    pub unix_time: Option<Duration>,
}

/// The mean over time of what was reported since the last period.
#[derive(Clone, Default)]
pub(crate) struct ReportedMean {
    /// The time of the last reading.
    last: Option<Instant>,
    mean: Option<f64>,
    /// The time (s) that the mean covers.
    seconds: f64,
}

impl ReportedMean {
    /// Takes a reading of the time since the last one. The time of the first reading is not known, so it counts only until
    /// there is another.
    pub(crate) fn add(&mut self, now: Instant, value: f64) {
        let seconds = self.last.replace(now).map_or(0.0, |last| now.since(last).as_secs_f64());
        self.seconds += seconds;
        let weight = if self.seconds > 0.0 { seconds / self.seconds } else { 1.0 };
        let mean = self.mean.get_or_insert(value);
        *mean += weight * (value - *mean);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mean.is_none()
    }

    pub(crate) fn take(&mut self) -> Option<f64> {
        self.seconds = 0.0;
        self.mean.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_takes_the_mean_of_what_was_reported_since_the_last() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut reported = ReportedMean::default();
        assert!(reported.is_empty());
        assert_eq!(reported.take(), None);
        reported.add(at(100), 0.75);
        assert_eq!(reported.take(), Some(0.75), "of a time that nobody knows");
        [(500, 0.25), (900, 0.5), (1300, 0.75)]
            .into_iter()
            .for_each(|(ms, value)| reported.add(at(ms), value));
        assert!(!reported.is_empty());
        assert_eq!((reported.take(), reported.take()), (Some(0.5), None));
    }

    /// A tick that follows the last one at once, as after a wake-up, says little of a period.
    #[test]
    fn a_reading_counts_by_its_time() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut reported = ReportedMean::default();
        reported.add(at(0), 0.0);
        for (ms, value) in [(10, 1.0), (990, 0.2), (1000, 1.0), (1000, 0.0)] {
            reported.add(at(ms), value);
        }
        assert!(reported.take().is_some_and(|mean| (mean - (0.98 * 0.2 + 0.02)).abs() < 1e-12));
        reported.add(at(2000), 0.3);
        assert_eq!(reported.take(), Some(0.3));
    }
}
