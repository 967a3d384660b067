//! Monitors: follow the counters of all classes and turn them into a measurement for each period.
//!
//! Rates are sampled several times a period, everything else is read at its end.

use crate::model::{Served, Tracker};
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::measurement::ClassMeasurement;
use crate::telemetry::readings::ReportedMean;
use crate::telemetry::snapshot::{ClassSnapshot, PlantSnapshot, ServiceSnapshot};
use crate::telemetry::unseen_queue::UnseenQueue;
use alloc::{sync::Arc, vec::Vec};
use core::ops::RangeInclusive;

/// The monitors of all classes, and their measurements of the last period, both by class number.
#[derive(Default)]
pub(crate) struct Monitors {
    monitors: Vec<ClassMonitor>,
    measurements: Vec<ClassMeasurement>,
    /// The arrivals of all lanes, while they are summed.
    arrivals: Vec<u64>,
}

/// Follows one class.
struct ClassMonitor {
    /// M.
    levels: usize,
    totals: ClassSnapshot,
    services: ServiceSnapshot,
    rate: Tracker,
    /// Arrivals up to the last sample.
    arrivals: u64,
    /// The part of a request that came unseen and was not counted yet.
    rest: f64,
    /// The rate stepped since the last period's end.
    stepped: bool,
}

impl Monitors {
    /// The number of classes.
    pub(crate) fn len(&self) -> usize {
        self.monitors.len()
    }

    /// What the last period showed.
    pub(crate) fn measurements(&self) -> &[ClassMeasurement] {
        &self.measurements
    }

    /// R of a class now [1/s], as of the last sample.
    pub(crate) fn rate(&self, class: usize) -> f64 {
        self.monitors[class].rate.mean()
    }

    /// Adds the next class.
    pub(crate) fn push(&mut self, levels: usize) {
        self.monitors.push(ClassMonitor {
            levels,
            totals: ClassSnapshot::default(),
            services: ServiceSnapshot::default(),
            rate: Tracker::default(),
            arrivals: 0,
            rest: 0.0,
            stepped: false,
        });
        self.measurements.push(ClassMeasurement::default());
        self.arrivals.push(0);
    }

    /// Takes changed levels of a class, or changed plants for them: what was released so far teaches nothing of the new ones.
    pub(crate) fn relevel(&mut self, class: usize, levels: usize, lanes: &[Arc<LaneCounters>]) {
        let (monitor, measurement) = (&mut self.monitors[class], &mut self.measurements[class]);
        monitor.levels = levels;
        monitor.totals = ClassSnapshot::sum(lanes, class, levels);
        measurement.window.cut(levels);
        measurement.served[levels + 1..].fill(Served::default());
        monitor.pass_over(1..=levels, lanes, class);
    }

    /// Begins to measure, without what was counted so far.
    pub(crate) fn begin(&mut self, lanes: &[Arc<LaneCounters>]) {
        for (class, monitor) in self.monitors.iter_mut().enumerate() {
            monitor.totals = ClassSnapshot::sum(lanes, class, monitor.levels);
            monitor.arrivals = monitor.totals.counts.arrivals;
            monitor.pass_over(1..=monitor.levels, lanes, class);
        }
    }

    /// Leaves out what was released at this level up to now.
    pub(crate) fn pass_over(&mut self, class: usize, level: usize, lanes: &[Arc<LaneCounters>]) {
        self.monitors[class].pass_over(level..=level, lanes, class);
    }

    /// Samples the rates of all classes: `empty` parts of a period of `part_seconds` each in which nothing came, and then
    /// one of `last_seconds`. Where requests wait in a server's listen queue, more or fewer have come than were taken.
    pub(crate) fn sample(
        &mut self,
        lanes: &[Arc<LaneCounters>],
        (empty, part_seconds): (u64, f64),
        last_seconds: f64,
        unseen: &mut UnseenQueue,
    ) {
        let Some((first, others)) = lanes.split_first() else { return };
        self.arrivals.iter_mut().zip(&first.classes).for_each(|(sum, class)| *sum = class.arrivals.get());
        for lane in others {
            for (sum, class) in self.arrivals.iter_mut().zip(&lane.classes) {
                *sum = sum.wrapping_add(class.arrivals.get());
            }
        }
        let taken = |(monitor, arrivals): (&ClassMonitor, &u64)| arrivals.wrapping_sub(monitor.arrivals);
        let come_for_each = unseen.come_for_each(self.monitors.iter().zip(&self.arrivals).map(taken));
        for (monitor, &arrivals) in self.monitors.iter_mut().zip(&self.arrivals) {
            let taken = arrivals.wrapping_sub(monitor.arrivals);
            let come = come_for_each.map_or(taken, |each| monitor.come(taken, each));
            monitor.stepped |= monitor.rate.count_nothing(empty, part_seconds);
            monitor.stepped |= monitor.rate.count(come, last_seconds);
            monitor.arrivals = arrivals;
        }
    }

    /// Measures a whole period; returns whether anything happened in it.
    pub(crate) fn observe(&mut self, lanes: &[Arc<LaneCounters>]) -> bool {
        let mut something_came = false;
        for (class, monitor) in self.monitors.iter_mut().enumerate() {
            let measurement = &mut self.measurements[class];
            monitor.observe(lanes, class, measurement);
            something_came |= measurement.active;
        }
        something_came
    }

    /// Whether nothing has happened since the last period.
    pub(crate) fn is_current(&self, lanes: &[Arc<LaneCounters>]) -> bool {
        self.monitors.iter().enumerate().all(|(class, monitor)| monitor.totals.is_current(lanes, class))
    }

    /// Makes the measurements those of a period in which nothing happened.
    pub(crate) fn idle(&mut self) {
        for (monitor, measurement) in self.monitors.iter().zip(&mut self.measurements) {
            monitor.idle(measurement);
        }
    }
}

impl ClassMonitor {
    /// The number of requests that have come, if `taken` were taken from the listen queue and `for_each` have come for each
    /// taken one. The remaining fraction of a request counts in the next sample.
    #[cold]
    #[inline(never)]
    fn come(&mut self, taken: u64, for_each: f64) -> u64 {
        let exact = taken as f64 * for_each + self.rest;
        let whole = exact as u64;
        self.rest = exact - whole as f64;
        whole
    }

    fn observe(&mut self, lanes: &[Arc<LaneCounters>], class: usize, measurement: &mut ClassMeasurement) {
        (measurement.rate, measurement.rose) = (self.rate.mean(), self.rate.rose());
        measurement.stepped = core::mem::take(&mut self.stepped);
        if self.totals.is_current(lanes, class) {
            return self.idle(measurement);
        }
        measurement.active = true;
        self.totals.advance(&mut measurement.window, lanes, class, self.levels);
        let ClassMeasurement { served, samples, .. } = measurement;
        samples.clear();
        for (level, served) in (1..=self.levels).zip(&mut served[1..]) {
            *served = self.services.advance(lanes, class, level, |sample| samples.push(sample));
        }
    }

    /// Most classes are quiet most of the time; a measurement of zeros is written once.
    fn idle(&self, measurement: &mut ClassMeasurement) {
        if measurement.active {
            measurement.window.clear(self.levels);
            measurement.served[..=self.levels].fill(Served::default());
            measurement.samples.clear();
        }
        measurement.active = false;
    }

    fn pass_over(&mut self, levels: RangeInclusive<usize>, lanes: &[Arc<LaneCounters>], class: usize) {
        for level in levels {
            self.services.advance(lanes, class, level, |_| ());
        }
    }
}

/// Follows one plant: its counters, and what it reported since the last period.
#[derive(Default)]
pub(crate) struct PlantMonitor {
    totals: PlantSnapshot,
    pub(crate) reported: ReportedMean,
    service: WorkerSeconds,
}

/// What a request takes of a worker: the mean of the last period in which the workers were mostly busy. A period in which they
/// were less busy counts for less: health checks of an idle server do not show what requests take under load.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerSeconds {
    /// The weighted sum of the means (s), and the sum of their weights.
    sum: f64,
    weight: f64,
    /// Busy time and the time of all workers (s) since requests were last released.
    busy: f64,
    capacity: f64,
}

/// The busy part of the workers' time from which a period counts in full.
const MOSTLY_BUSY: f64 = 0.5;

impl WorkerSeconds {
    fn learn(&mut self, counted: &PlantSnapshot, capacity: f64) {
        self.busy += counted.busy_ns as f64 * 1e-9;
        self.capacity += capacity;
        if counted.releases > 0 && self.capacity > 0.0 {
            let weight = (self.busy / self.capacity / MOSTLY_BUSY).min(1.0);
            self.sum += weight * (self.busy / counted.releases as f64 - self.sum);
            self.weight += weight * (1.0 - self.weight);
            (self.busy, self.capacity) = (0.0, 0.0);
        }
    }
}

impl PlantMonitor {
    /// Measures a period: what was counted, and the mean of the reports.
    pub(crate) fn observe(
        &mut self,
        lanes: &[Arc<LaneCounters>],
        plant: usize,
    ) -> (PlantSnapshot, Option<f64>) {
        let totals = PlantSnapshot::sum(lanes, plant);
        let counted = totals.since(&self.totals);
        self.totals = totals;
        (counted, self.reported.take())
    }

    /// Learns from a period in which all workers together had this much time (s).
    pub(crate) fn learn_service(&mut self, counted: &PlantSnapshot, capacity: f64) {
        self.service.learn(counted, capacity);
    }

    /// The time that a request recently took of a worker, without its wait in the server (s); `None` before the first release.
    pub(crate) fn service_seconds(&self) -> Option<f64> {
        (self.service.weight > 0.0).then_some(self.service.sum / self.service.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_takes_is_learned_from_busy_periods() {
        let period = |releases, busy_ns| PlantSnapshot { releases, busy_ns, ..PlantSnapshot::default() };
        let mut monitor = PlantMonitor::default();
        monitor.learn_service(&period(0, 500_000_000), 8.0);
        assert_eq!(monitor.service_seconds(), None);
        // One worker was busy for two periods, and released one request at the end.
        monitor.learn_service(&period(1, 1_000_000_000), 8.0);
        assert!((monitor.service_seconds().unwrap() - 1.5).abs() < 1e-9);
        monitor.learn_service(&period(100, 4_000_000_000), 8.0);
        assert!((monitor.service_seconds().unwrap() - 0.04).abs() < 1e-9, "the workers were half busy");
        for _ in 0..60 {
            monitor.learn_service(&period(2, 2_000_000), 8.0);
        }
        let quiet = monitor.service_seconds().unwrap();
        assert!((0.037..0.04).contains(&quiet), "a minute of health checks: {quiet}");
    }

    #[test]
    fn a_period_is_measured_from_the_counters_and_an_empty_one_is_zeros() {
        let lanes = [Arc::new(LaneCounters::default().grown(1, 1))];
        let counters = &lanes[0].classes[0];
        let mut monitors = Monitors::default();
        monitors.push(2);
        (0..8).for_each(|_| counters.arrivals.add(1));
        counters.started.add(8);
        counters.services[2][0].requests.add(8);
        counters.services[2][0].work_ns.add(80_000_000);
        monitors.sample(&lanes, (0, 0.25), 0.25, &mut UnseenQueue::default());
        assert!(monitors.observe(&lanes));
        let measured = &monitors.measurements()[0];
        assert_eq!((measured.rate, measured.stepped, measured.active), (32.0, true, true));
        assert_eq!((measured.window.counts.arrivals, measured.window.started), (8, 8));
        assert_eq!((measured.served[2].requests, measured.served[2].work_seconds), (8.0, 0.08));
        assert_eq!(measured.samples.as_slice(), [measured.served[2]]);
        assert!(monitors.is_current(&lanes) && !monitors.observe(&lanes));
        let measured = &monitors.measurements()[0];
        assert_eq!((measured.window, measured.served[2]), (ClassSnapshot::default(), Served::default()));
        assert!(!measured.active && !measured.stepped && measured.samples.as_slice().is_empty());
    }
}
