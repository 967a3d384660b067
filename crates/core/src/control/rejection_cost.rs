//! The cost c of a rejection, learned from the gateway's own CPU time.
//!
//! `CPU = x served + c rejected` is fitted by the recursive least squares of the linear model, with rejections in the place
//! of bytes.

use crate::model::{LinearModel, Served};
use crate::telemetry::monitor::ClassMonitor;
use crate::time::Duration;

/// What is known of c.
pub(crate) struct RejectionCost {
    line: LinearModel,
    /// From the promises, until enough was rejected to tell.
    pub(crate) known: Option<f64>,
    last_cpu: Option<Duration>,
    rejected: f64,
}

impl RejectionCost {
    /// The model counts its second column in KiB.
    const COLUMN: f64 = 1024.0;
    /// Fewer rejections carry more of the noise than of the cost.
    const ENOUGH: f64 = 100.0;

    pub(crate) fn new() -> Self {
        RejectionCost { line: LinearModel::default(), known: None, last_cpu: None, rejected: 0.0 }
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
