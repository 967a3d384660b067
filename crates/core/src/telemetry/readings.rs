//! What is made of the readings that `tick` is told: a utilization as a server reports it, and the gateway's own CPU time.

use crate::model::{LinearModel, Served};
use crate::telemetry::monitor::ClassMonitor;
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
    /// How many workers plants say that they have: their index and the number. It holds until another is told, where workers
    /// are to be found, and within the bounds of that.
    pub workers: Vec<(usize, u32)>,
    /// The time since midnight, where rates are predicted by the hour of day. Nothing: the origin of time was at midnight.
    pub time_of_day: Option<Duration>,
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

/// c, the cost of a rejection, from the gateway's own CPU time: `CPU = x served + c rejected`, by the same recursive
/// least squares, with rejections in the place of bytes.
pub(crate) struct GatewayCost {
    line: LinearModel,
    /// From the promises, until enough was rejected to tell.
    pub(crate) known: Option<f64>,
    last_cpu: Option<Duration>,
    rejected: f64,
}

impl GatewayCost {
    /// The model counts its second column in KiB.
    const COLUMN: f64 = 1024.0;
    /// Fewer rejections carry more of the noise than of the cost.
    const ENOUGH: f64 = 100.0;

    pub(crate) fn new() -> Self {
        GatewayCost { line: LinearModel::default(), known: None, last_cpu: None, rejected: 0.0 }
    }

    pub(crate) fn learn(&mut self, monitors: &[ClassMonitor], cpu: Option<Duration>) {
        let Some(cpu) = cpu else { return };
        if let Some(last) = self.last_cpu {
            let sum = |count: fn(&ClassMonitor) -> u64| monitors.iter().map(count).sum::<u64>() as f64;
            let rejected = sum(|m| m.window.counts.rejected());
            let served = sum(|m| m.window.started);
            self.rejected += rejected;
            let work_seconds = cpu.saturating_sub(last).as_secs_f64();
            let sample = Served { requests: served, bytes: rejected * Self::COLUMN, work_seconds };
            self.line.learn([sample].into_iter());
        }
        self.last_cpu = Some(cpu);
    }

    /// c [s of the whole machine]; `None` while it is not known. Never more than it costs to serve: that would be noise.
    pub(crate) fn per_rejection_seconds(&self) -> Option<f64> {
        let (served, rejected) = self.line.costs();
        if self.rejected < Self::ENOUGH { self.known } else { Some((rejected * Self::COLUMN).min(served)) }
    }
}
