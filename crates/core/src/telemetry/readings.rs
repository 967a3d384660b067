//! Readings: what only input or output can sense, pushed into `tick` by a shell.

use crate::time::Duration;
use alloc::vec::Vec;

/// Senses that need input or output, pushed into `tick`.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// One per plant that reports: its index and its utilization in [0, 1] since the last tick. A period takes the mean.
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
    /// The time since the Unix epoch, UTC: by its hour rates are predicted, and by it the choice of clients turns.
    /// `None`: the origin of time was the epoch.
    pub unix_time: Option<Duration>,
}

/// The mean of what was reported since the last period.
#[derive(Clone, Default)]
pub(crate) struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    pub(crate) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn take(&mut self) -> Option<f64> {
        let mean = core::mem::take(self);
        (mean.count > 0).then(|| mean.sum / f64::from(mean.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_takes_the_mean_of_what_was_reported_since_the_last() {
        let mut reported = Mean::default();
        assert!(reported.is_empty());
        assert_eq!(reported.take(), None);
        [0.25, 0.5, 0.75].into_iter().for_each(|value| reported.add(value));
        assert!(!reported.is_empty());
        assert_eq!((reported.take(), reported.take()), (Some(0.5), None));
    }
}
