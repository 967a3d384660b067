//! Measured utilization, and what it teaches.

use super::{Period, UtilizationLoop};
use crate::control::utilization::class_view::Governed;
use crate::model::Served;
use crate::promises::Sense;
use crate::telemetry::monitor::PlantTotals;
use crate::time::Duration;

/// Above this a measured utilization says nothing of the cost.
const SATURATED: f64 = 0.95;

impl UtilizationLoop {
    /// Measured utilization, and what it teaches.
    pub(crate) fn sense(&mut self, period: &Period<'_>, window: &PlantTotals) {
        let capacity_ns = period.seconds * 1e9 * f64::from(self.plant.workers);
        let gap = (window.busy_ns as f64 / capacity_ns).min(1.0);
        let sensed = match (self.plant.sense, period.reported) {
            (Sense::Reported, Some(reported)) => reported.clamp(0.0, 1.0),
            // Rejections on the same host that find it busy make services longer, and are in the gap already.
            _ => gap + (1.0 - gap) * self.rejections(period).min(1.0),
        };
        self.status.utilization = sensed.max(self.link(period)).min(1.0);
        if let (Some(line), Some(reported)) = (&mut self.reported_line, period.reported)
            && reported < SATURATED
        {
            let served = self.classes.iter().map(|c| c.served(&period.monitors[c.class]));
            let (requests, bytes) =
                served.fold((0.0, 0.0), |(n, bytes), s| (n + s.requests, bytes + s.bytes));
            let work_seconds = reported * period.seconds;
            line.learn([Served { requests, bytes, work_seconds }].into_iter());
        }
        let mean_service_ns = window.service_ns.checked_div(window.releases).unwrap_or(0);
        self.status.service_time = Duration::from_nanos(mean_service_ns);
        // A plant that is busy and releases nothing answers no sooner than it has been silent.
        let silent = window.releases == 0 && period.in_service > 0;
        self.silent_seconds = if silent { self.silent_seconds + period.seconds } else { 0.0 };
        let answers_after = self.status.service_time.as_secs_f64().max(self.silent_seconds);
        self.status.response_time_override =
            self.plant.response_time_limit.is_some_and(|limit| answers_after > limit.as_secs_f64());
    }

    /// c R of those who were rejected in the period, on the plant's own host.
    fn rejections(&self, period: &Period<'_>) -> f64 {
        if self.rejection_cost == 0.0 {
            return 0.0;
        }
        let ours = self.classes.iter().filter(|class| class.ours).map(|class| &period.monitors[class.class]);
        let rejected: u64 = ours.map(|monitor| monitor.window.counts.rejected()).sum();
        rejected as f64 / period.seconds * self.rejection_cost
    }

    /// b' W of the period: what the second resource carried (UC eq. 9). Bytes as delivered; of a class that other plants
    /// serve too, bytes of the responses that came from here.
    fn link(&self, period: &Period<'_>) -> f64 {
        let Some(bandwidth) = self.plant.bandwidth_bytes_per_second else { return 0.0 };
        let bytes = |class: &Governed| {
            let monitor = &period.monitors[class.class];
            let all_here = class.levels_here().count() == class.top;
            if all_here { monitor.window.counts.bytes as f64 } else { class.served(monitor).bytes }
        };
        self.classes.iter().map(bytes).sum::<f64>() / (bandwidth * period.seconds)
    }
}
