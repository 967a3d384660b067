//! Measured utilization of one period.

use super::view::{ClassView, PlantView};
use crate::model::{Served, erlang_c};
use crate::promises::Sense;
use crate::telemetry::measurement::{ClassMeasurement, Measurement};
use crate::time::Duration;
use core::ops::Add;

/// The values measured at the plant itself in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sensed {
    /// U: the busy part of the workers' time, or U as the plant reports it; in [0, 1].
    pub(crate) utilization: f64,
    /// Mean service time; zero if no request was released.
    pub(crate) service_time: Duration,
    /// The time of a worker that a recent request took, without its wait in the server (s); zero before the first request.
    pub(super) worker_seconds: f64,
    /// For how long all workers have been busy and released no request (s).
    pub(crate) silent_seconds: f64,
    /// Whether the plant answers slower than its limit (CA 4.2.1).
    pub(crate) too_slow: bool,
}

impl Sensed {
    /// Senses a period. `before` is the result of the period before, and `rejection_cost` is the part of c that is time of the
    /// workers.
    pub(crate) fn new(
        plant: &PlantView,
        measured: &Measurement<'_>,
        rejection_cost: f64,
        before: &Sensed,
    ) -> Self {
        let gap = busy(measured);
        let sensed = match (plant.promised.sense, measured.reported) {
            (Sense::Reported, Some(reported)) => reported.clamp(0.0, 1.0),
            _ => {
                let visible = (1.0 - hidden(measured)) * rejected(plant, measured) * rejection_cost;
                (gap + visible).min(1.0)
            }
        };
        let link = match plant.promised.bandwidth_bytes_per_second {
            Some(_) => plant.classes.iter().map(|class| link(plant, measured, class)).sum(),
            None => 0.0,
        };
        let mean_ns = measured.counted.service_ns.checked_div(measured.counted.releases).unwrap_or(0);
        let service_time = Duration::from_nanos(mean_ns);
        // If a plant whose workers are all busy releases no request, its response time is at least the time since its last
        // release. If a worker is free, long services do not count: the next request does not wait for them.
        let silent = measured.counted.releases == 0 && measured.in_service >= measured.serving;
        let silent_seconds = if silent { before.silent_seconds + measured.seconds } else { 0.0 };
        let answers_after = service_time.as_secs_f64().max(silent_seconds);
        let limit = plant.promised.response_time_limit;
        Sensed {
            utilization: sensed.max(link).min(1.0),
            service_time,
            worker_seconds: measured.service_seconds.unwrap_or(0.0),
            silent_seconds,
            too_slow: limit.is_some_and(|limit| answers_after > limit.as_secs_f64()),
        }
    }

    /// The mean service time of the period. If no request was released, the time of a worker that a recent request took,
    /// without its wait in the server.
    pub(crate) fn usual_service(&self) -> Duration {
        let before = Duration::from_secs_f64(self.worker_seconds);
        if self.service_time > Duration::ZERO { self.service_time } else { before }
    }
}

/// The busy part of the workers' time.
pub(super) fn busy(measured: &Measurement<'_>) -> f64 {
    let capacity_ns = measured.seconds * 1e9 * f64::from(measured.workers);
    (measured.counted.busy_ns as f64 / capacity_ns).min(1.0)
}

/// The part of the work of rejections on the same host that busy time includes already. A rejection that finds all workers busy
/// makes their services longer, which counts as busy time; a rejection that finds a free worker takes time that does not count.
/// So the part is the chance that all workers are busy. With one worker it is U.
pub(super) fn hidden(measured: &Measurement<'_>) -> f64 {
    erlang_c(measured.workers, busy(measured) * f64::from(measured.workers))
}

/// The part of the period's busy time that services took, without the rejections that made them longer.
pub(crate) fn own_work(plant: &PlantView, measured: &Measurement<'_>, rejection_cost: f64) -> f64 {
    if rejection_cost <= 0.0 {
        return 1.0;
    }
    let hidden = hidden(measured) * rejected(plant, measured) * rejection_cost;
    if hidden > 0.0 { (1.0 - hidden / busy(measured)).max(0.0) } else { 1.0 }
}

/// Requests rejected in the period, per second.
pub(super) fn rejected(plant: &PlantView, measured: &Measurement<'_>) -> f64 {
    let own = |class: &ClassView| measured.classes[class.class].window.counts.rejected();
    plant.classes.iter().map(own).sum::<u64>() as f64 / measured.seconds
}

/// b' W of a class in the period: the load that the second resource carried (UC eq. 9). The bytes are those delivered or, if
/// other plants serve the class too, those of the responses that came from here.
pub(super) fn link(plant: &PlantView, measured: &Measurement<'_>, class: &ClassView) -> f64 {
    let Some(bandwidth) = plant.promised.bandwidth_bytes_per_second else { return 0.0 };
    let own = &measured.classes[class.class];
    let bytes =
        if class.is_all_here { own.window.counts.bytes as f64 } else { served_here(class, own).bytes };
    bytes / (bandwidth * measured.seconds)
}

/// The requests of a class that this plant served in the period.
pub(crate) fn served_here(class: &ClassView, measured: &ClassMeasurement) -> Served {
    class.levels_here().map(|level| measured.served[level]).fold(Served::default(), Served::add)
}

#[cfg(test)]
mod tests {
    use super::super::view::by_hand::{arrivals, class, measured, plant};
    use super::*;
    use crate::request::Reason;
    use crate::telemetry::snapshot::PlantSnapshot;

    fn sensed(plant: &PlantView, measured: &Measurement<'_>) -> Sensed {
        Sensed::new(plant, measured, 0.001, &Sensed::default())
    }

    #[test]
    fn u_is_the_busy_part_of_the_workers_time_or_as_reported() {
        let mut own = plant(alloc::vec![class(0, 1)]);
        let mut rejected = arrivals(100.0, 1);
        rejected.window.counts.reasons[Reason::Overload as usize] = 50;
        let classes = [rejected];
        let counted =
            PlantSnapshot { busy_ns: 2_000_000_000, releases: 100, service_ns: 3_000_000_000, repeated: 0 };
        let mut period = Measurement { counted, ..measured(&classes, &[0]) };
        let found = sensed(&own, &period);
        // With two of four workers busy on average, an arrival finds all busy with a probability of 4/23.
        let wanted = 0.5 + 19.0 / 23.0 * 0.05;
        assert!((found.utilization - wanted).abs() < 1e-12, "with 50 rejections of 1 ms: {found:?}");
        assert_eq!((found.service_time, found.too_slow), (Duration::from_millis(30), false));
        own.promised.sense = Sense::Reported;
        assert!(sensed(&own, &period).utilization > 0.5, "U is measured until the plant reports");
        period.reported = Some(1.4);
        assert_eq!(sensed(&own, &period).utilization, 1.0);
    }

    #[test]
    fn a_plant_that_releases_nothing_is_too_slow_after_its_limit() {
        let mut own = plant(alloc::vec![class(0, 1)]);
        own.promised.response_time_limit = Some(Duration::from_millis(1500));
        let classes = [arrivals(10.0, 1)];
        let period = Measurement { in_service: 4, ..measured(&classes, &[0]) };
        let first = sensed(&own, &period);
        assert!(!first.too_slow && first.silent_seconds == 1.0);
        assert!(Sensed::new(&own, &period, 0.0, &first).too_slow);
        let download = Measurement { in_service: 3, ..period };
        let first = sensed(&own, &download);
        assert!(!Sensed::new(&own, &download, 0.0, &first).too_slow, "one worker is free");
    }

    #[test]
    fn the_link_is_the_bottleneck_where_it_is_fuller_than_the_workers() {
        let mut own = plant(alloc::vec![class(0, 1)]);
        own.promised.bandwidth_bytes_per_second = Some(1e6);
        let mut class = arrivals(10.0, 1);
        class.window.counts.bytes = 700_000;
        let classes = [class];
        assert_eq!(sensed(&own, &measured(&classes, &[0])).utilization, 0.7);
    }
}
