//! The utilization loop of one plant: holds U at the set point by moving m.
//!
//! One loop governs all classes whose site the plant serves, with one m that each class clamps to its own levels.
//! What drives it is the offered load, R times the cost at the level given, unclipped, plus the backlog: a measured U
//! saturates at 1 and comes late. The measurement trains the costs and supervises through the trim.

use super::{Demand, FeedForward, Law, Observation, PaperPi};
use crate::classify::class_names;
use crate::model::{LinearModel, Served};
use crate::monitor::{ClassMonitor, PlantTotals};
use crate::promises::{self, MAX_LEVELS, Mode, Promises, Sense};
use crate::status::PlantStatus;
use crate::time::Duration;
use alloc::{boxed::Box, vec::Vec};

/// A class, as the loop of one plant sees it.
struct Governed {
    /// The class's number.
    class: usize,
    /// M; 0 levels are listed for classes that this plant serves only in part.
    top: usize,
    exempt: bool,
    /// This plant is the site's own, so the loop moves the class's knob.
    ours: bool,
    /// Whether this plant serves level l.
    here: [bool; MAX_LEVELS + 1],
    /// The first guess of C_l / C_{l+1}.
    cost_ratio: [f64; MAX_LEVELS + 1],
}

/// A level never served yet is taken to cost this much of the one above: low, so that nobody is rejected before the
/// level was tried; one period of it then tells.
const UNKNOWN_COST_RATIO: f64 = 0.1;
/// Above this a measured utilization says nothing of the cost.
const SATURATED: f64 = 0.95;

/// The loop's state.
pub(crate) struct UtilizationLoop {
    plant: promises::Plant,
    classes: Vec<Governed>,
    law: Box<dyn Law>,
    mode: Mode,
    before: PlantTotals,
    /// Of reported utilization: U T = a n + b bytes over all classes.
    reported_line: Option<LinearModel>,
    pub(crate) status: PlantStatus,
}

/// What `tick` knows when it runs a loop.
pub(crate) struct Period<'a> {
    pub(crate) seconds: f64,
    pub(crate) monitors: &'a [ClassMonitor],
    pub(crate) totals: PlantTotals,
    pub(crate) waiting: &'a [u32],
    pub(crate) reported: Option<f64>,
    pub(crate) rejection_cost: f64,
    pub(crate) stepped: &'a [bool],
    pub(crate) max_wait: Duration,
}

impl UtilizationLoop {
    pub(crate) fn new(promises: &Promises, plant: usize) -> Self {
        let classes = governed(promises, plant);
        let top = classes.iter().filter(|c| c.ours).map(|c| c.top).max().unwrap_or(0) as f64;
        // The one line where laws are chosen.
        let law: Box<dyn Law> = match promises.control.law {
            promises::Law::FeedForward => Box::new(FeedForward::new(top)),
            promises::Law::Paper { gain_margin } => Box::new(PaperPi::new(top, gain_margin)),
        };
        let own = &promises.plants[plant];
        let status = PlantStatus {
            name: own.name.clone(),
            workers: own.workers,
            set_point: own.set_point,
            service_level: top,
            ..PlantStatus::default()
        };
        let known = own.costs.map(|c| LinearModel::known(c.per_request_seconds, c.per_byte_seconds));
        let reported_line = (own.sense == Sense::Reported).then(|| known.unwrap_or_default());
        let mode = promises.control.mode;
        UtilizationLoop {
            plant: own.clone(),
            classes,
            law,
            mode,
            before: PlantTotals::default(),
            reported_line,
            status,
        }
    }

    /// Runs one period; returns m for each class that this loop moves.
    pub(crate) fn run(&mut self, period: &Period<'_>) -> impl Iterator<Item = (usize, f64)> {
        let window = period.totals.since(&self.before);
        self.before = period.totals;
        self.sense(period, &window);
        let demand = self.demand(period);
        let served = self.served(period);

        let overridden = self.status.response_time_override;
        let steady = !self.classes.iter().any(|c| period.stepped[c.class]) && self.mode == Mode::Control;
        let decision = self.law.next(&Observation {
            set_point: self.plant.set_point,
            measured: if overridden { 1.0 } else { self.status.utilization },
            served,
            overridden,
            steady,
            demand: &demand,
            wait_periods: period.max_wait.as_secs_f64() / period.seconds,
        });
        let backlog = demand.backlog(self.status.service_level);
        self.status.utilization_offered = served + backlog;
        self.status.service_level = decision.m;
        self.status.trim = decision.trim;
        let ours = self.classes.iter().filter(|class| class.ours && !class.exempt);
        ours.map(move |class| (class.class, decision.m.min(class.top as f64)))
    }

    /// Cost of one request of a class at a level, in seconds of the whole plant; `None` before any level was seen.
    fn cost(&self, governed: &Governed, level: usize, monitors: &[ClassMonitor]) -> Option<f64> {
        if !governed.here[level] {
            return Some(0.0);
        }
        let known = |l: usize| self.measured_cost(&monitors[governed.class], l);
        if let Some(cost) = known(level) {
            return Some(cost);
        }
        // From the nearest level that was seen, above first, through the ratios between.
        let above = ((level + 1)..=governed.top).find(|l| governed.here[*l] && known(*l).is_some());
        if let Some(seen) = above {
            return known(seen).map(|cost| governed.cost_ratio[level..seen].iter().product::<f64>() * cost);
        }
        let below = (1..level).rev().find(|l| governed.here[*l] && known(*l).is_some())?;
        known(below).map(|cost| cost / governed.cost_ratio[below..level].iter().product::<f64>())
    }

    /// The classes' costs at levels 1..=M, for the status.
    pub(crate) fn level_costs<'a>(
        &'a self,
        monitors: &'a [ClassMonitor],
    ) -> impl Iterator<Item = (usize, Vec<Option<f64>>)> + 'a {
        let ours = self.classes.iter().filter(|class| class.ours);
        ours.map(|c| (c.class, (1..=c.top).map(|level| self.cost(c, level, monitors)).collect()))
    }

    fn measured_cost(&self, monitor: &ClassMonitor, level: usize) -> Option<f64> {
        let seen = &monitor.costs[level];
        match &self.reported_line {
            Some(line) if line.confidence(seen.bytes()?) > 0.0 => {
                let (a, b) = line.costs();
                Some(a + b * seen.bytes()?)
            }
            // Nothing reported yet, or the plant does not report: its own service times.
            _ => Some(seen.seconds()? / f64::from(self.plant.workers)),
        }
    }

    /// Measured utilization, and what it teaches.
    fn sense(&mut self, period: &Period<'_>, window: &PlantTotals) {
        let capacity_ns = period.seconds * 1e9 * f64::from(self.plant.workers);
        let gap = (window.busy_ns as f64 / capacity_ns).min(1.0);
        let sensed = match (self.plant.sense, period.reported) {
            (Sense::Reported, Some(reported)) => reported.clamp(0.0, 1.0),
            _ => gap,
        };
        self.status.utilization = sensed.max(self.link(period)).min(1.0);
        if let (Some(line), Some(reported)) = (&mut self.reported_line, period.reported)
            && reported < SATURATED
        {
            let windows = self.classes.iter().map(|c| &period.monitors[c.class].window);
            let released = |field: fn(&Served) -> f64| -> f64 {
                windows.clone().flat_map(|w| (1..=MAX_LEVELS).map(|l| field(&w.served_at(l)))).sum()
            };
            let requests = released(|s| s.requests);
            let bytes = released(|s| s.bytes);
            let work_seconds = reported * period.seconds;
            line.learn([Served { requests, bytes, work_seconds }].into_iter());
        }
        let mean_service_ns = window.service_ns.checked_div(window.releases).unwrap_or(0);
        self.status.service_time = Duration::from_nanos(mean_service_ns);
        self.status.response_time_override =
            self.plant.response_time_limit.is_some_and(|limit| self.status.service_time > limit);
    }

    /// b' W of the period: what the second resource carried (UC eq. 9).
    fn link(&self, period: &Period<'_>) -> f64 {
        let Some(bandwidth) = self.plant.bandwidth_bytes_per_second else { return 0.0 };
        let here = |class: &Governed| {
            let window = &period.monitors[class.class].window;
            (1..=class.top)
                .filter(|level| class.here[*level])
                .map(|level| window.served_at(level).bytes)
                .sum::<f64>()
        };
        self.classes.iter().map(here).sum::<f64>() / (bandwidth * period.seconds)
    }

    /// Offered load as a function of m, of the rates and costs known now.
    fn demand(&self, period: &Period<'_>) -> Demand {
        let top = self.classes.iter().filter(|c| c.ours && !c.exempt).map(|c| c.top).max().unwrap_or(0);
        let mut demand = Demand { top: top as u8, ..Demand::default() };
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            let rate = monitor.rate.mean();
            let waiting = f64::from(period.waiting[class.class]);
            for level in 0..=top {
                let given = if class.exempt || !class.ours { class.top } else { level.min(class.top) };
                if given == 0 {
                    demand.arriving[0] += rate * self.rejection_cost(period);
                    continue;
                }
                let cost = self.cost(class, given, period.monitors).unwrap_or(0.0);
                // A class that is not ours comes here only at the levels that its own loop sends: count what came.
                let rate = if class.ours { rate } else { self.rate_here(class, period) };
                demand.arriving[level] += rate * cost;
                demand.waiting[level] += waiting * cost / period.seconds;
                if let Some(bandwidth) = self.plant.bandwidth_bytes_per_second {
                    demand.link[level] += rate * monitor.costs[given].bytes().unwrap_or(0.0) / bandwidth;
                }
            }
        }
        demand
    }

    /// R times the cost at the level given in this period.
    fn served(&mut self, period: &Period<'_>) -> f64 {
        let mut served = 0.0;
        let mut model = 0.0;
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            for level in (1..=class.top).filter(|level| class.here[*level]) {
                let starts = monitor.window.counts.served[level] as f64;
                served += starts * self.cost(class, level, period.monitors).unwrap_or(0.0);
                let (a, b) = monitor.line.costs();
                let released = monitor.window.served_at(level);
                model += (a * released.requests + b * released.bytes) / f64::from(self.plant.workers);
            }
            let rejected = monitor.window.counts.rejected() as f64;
            served += rejected * self.rejection_cost(period);
        }
        self.status.utilization_model = model / period.seconds;
        served / period.seconds
    }

    fn rate_here(&self, class: &Governed, period: &Period<'_>) -> f64 {
        let window = &period.monitors[class.class].window;
        let here = (1..=class.top).filter(|level| class.here[*level]);
        here.map(|level| window.counts.served[level] as f64).sum::<f64>() / period.seconds
    }

    /// c, where the gateway shares the plant's machine (UC rejects inside the server); else it costs the plant nothing.
    fn rejection_cost(&self, period: &Period<'_>) -> f64 {
        if self.plant.same_host { period.rejection_cost } else { 0.0 }
    }
}

fn governed(promises: &Promises, plant: usize) -> Vec<Governed> {
    let mut number = 0;
    let mut classes = Vec::new();
    for site in &promises.sites {
        let mut here = [false; MAX_LEVELS + 1];
        let mut cost_ratio = [UNKNOWN_COST_RATIO; MAX_LEVELS + 1];
        for (level, promise) in site.levels.iter().enumerate() {
            here[level + 1] = promise.plant.unwrap_or(site.plant) == plant;
            cost_ratio[level + 1] = promise.cost_ratio.unwrap_or(UNKNOWN_COST_RATIO);
        }
        let names = class_names(site).count();
        for class in number..number + names {
            if site.plant == plant || here.contains(&true) {
                let exempt = class == number + names - 1;
                let ours = site.plant == plant;
                classes.push(Governed { class, top: site.levels.len(), exempt, ours, here, cost_ratio });
            }
        }
        number += names;
    }
    classes
}
