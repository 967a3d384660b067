//! The cost c of a rejection, learned from the gateway's own CPU time.
//!
//! `CPU = x served + c rejected` is fitted by the recursive least squares of the linear model, with rejections in the place
//! of bytes.

use crate::model::{LinearModel, Served};
use crate::telemetry::measurement::ClassMeasurement;
use crate::time::Duration;

/// What is known of c.
#[derive(Default)]
pub(crate) struct RejectionCost {
    line: LinearModel,
    /// c as promised, which counts until enough requests were rejected.
    pub(crate) promised: Option<f64>,
    last_cpu: Option<Duration>,
    rejected: f64,
}

impl RejectionCost {
    /// The linear model divides its second column by this, because it counts bytes in KiB.
    const COLUMN: f64 = 1024.0;
    /// With fewer rejections the noise exceeds the cost.
    const ENOUGH: f64 = 100.0;

    /// Learns from a period's measurements and the CPU time used so far.
    pub(crate) fn learn(&mut self, classes: &[ClassMeasurement], cpu: Option<Duration>) {
        let Some(cpu) = cpu else { return };
        if let Some(last) = self.last_cpu {
            let sum = |count: fn(&ClassMeasurement) -> u64| classes.iter().map(count).sum::<u64>() as f64;
            let rejected = sum(|class| class.window.counts.rejected());
            let served = sum(|class| class.window.started);
            self.rejected += rejected;
            let work_seconds = cpu.saturating_sub(last).as_secs_f64();
            let sample = Served { requests: served, bytes: rejected * Self::COLUMN, work_seconds };
            self.line.learn([sample].into_iter());
        }
        self.last_cpu = Some(cpu);
    }

    /// c [s of the whole machine]; `None` while it is not known. A rejection never costs more than serving a request does, so a
    /// larger estimate is noise and is cut.
    pub(crate) fn per_rejection_seconds(&self) -> Option<f64> {
        let (served, rejected) = self.line.costs();
        if self.rejected < Self::ENOUGH { self.promised } else { Some((rejected * Self::COLUMN).min(served)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Reason;

    #[test]
    fn c_is_as_promised_until_enough_was_rejected_and_then_as_measured() {
        let mut cost = RejectionCost { promised: Some(0.5), ..RejectionCost::default() };
        let mut class = ClassMeasurement::default();
        let mut cpu = Duration::ZERO;
        cost.learn(&[], Some(cpu));
        for period in 0..200_u64 {
            let (served, rejected) = (100 + period % 7, 5 * (period % 3));
            class.window.started = served;
            class.window.counts.reasons[Reason::Overload as usize] = rejected;
            cpu += Duration::from_micros(200 * served + 40 * rejected);
            if period < 10 {
                assert_eq!(cost.per_rejection_seconds(), Some(0.5));
            }
            cost.learn(core::slice::from_ref(&class), Some(cpu));
        }
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((known - 40e-6).abs() < 2e-6, "{known}");
    }
}
