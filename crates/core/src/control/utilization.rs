//! The utilization loop of one plant: holds U at the set point by moving m.
//!
//! One loop governs all classes whose site the plant serves, with one m that each class clamps to its own levels.
//! What drives it is the offered load, R times the cost at the level given, unclipped, plus the backlog: a measured U
//! saturates at 1 and comes late. The measurement trains the costs and supervises through the trim.

use super::governed::{Governed, governed};
use super::{Demand, FeedForward, Law, Observation, PaperPi};
use crate::census::Census;
use crate::model::{EVIDENCE, LinearModel, Served};
use crate::monitor::{ClassMonitor, PlantTotals};
use crate::promises::{self, Mode, Promises, Sense};
use crate::status::PlantStatus;
use crate::time::Duration;
use alloc::{boxed::Box, vec::Vec};

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
    /// For how long the plant was busy and released nothing (s).
    silent_seconds: f64,
    pub(crate) status: PlantStatus,
}

/// What `tick` knows when it runs a loop.
pub(crate) struct Period<'a> {
    /// How long it was.
    pub(crate) seconds: f64,
    /// T, as promised.
    pub(crate) nominal_seconds: f64,
    pub(crate) monitors: &'a [ClassMonitor],
    pub(crate) totals: PlantTotals,
    pub(crate) waiting: &'a [u32],
    pub(crate) reported: Option<f64>,
    pub(crate) rejection_cost: f64,
    pub(crate) stepped: &'a [bool],
    pub(crate) max_wait: Duration,
    pub(crate) in_service: u32,
}

impl UtilizationLoop {
    pub(crate) fn new(census: &Census, plant: usize) -> Self {
        let promises = &census.promises;
        let classes = governed(census, plant);
        let top = top(&classes);
        let law = law(promises, top);
        let own = &promises.plants[plant];
        let status = PlantStatus {
            name: own.name.clone(),
            workers: own.workers,
            set_point: own.set_point,
            service_level: top,
            ..PlantStatus::default()
        };
        let reported_line = (own.sense == Sense::Reported).then(|| known_line(own));
        let mode = promises.control.mode;
        UtilizationLoop {
            plant: own.clone(),
            classes,
            law,
            mode,
            before: PlantTotals::default(),
            reported_line,
            silent_seconds: 0.0,
            status,
        }
    }

    /// Goes on with what was promised anew. `m` maps a level of a class, by number, as it was to what it is now.
    pub(crate) fn reload(
        &mut self,
        was: &Promises,
        census: &Census,
        number: usize,
        m: impl Fn(usize, f64) -> f64,
    ) {
        let promises = &census.promises;
        let (old, new) = (&was.plants[number], &promises.plants[number]);
        let mut classes = governed(census, number);
        for class in &mut classes {
            let before = self.classes.iter_mut().find(|before| before.class == class.class);
            if let Some(before) = before.filter(|before| before.top == class.top && before.here == class.here)
            {
                class.share = core::mem::take(&mut before.share);
            }
        }
        let (old_top, new_top) = (top(&self.classes), top(&classes));
        let present = self.status.service_level;
        // Of the classes that it governed, one with the most levels has its m unclamped.
        let stays = |before: &&Governed| {
            before.ours
                && before.top as f64 == old_top
                && classes.iter().any(|c| c.ours && c.class == before.class)
        };
        let moved = match self.classes.iter().find(stays) {
            _ if present >= old_top => new_top,
            Some(class) => m(class.class, present).min(new_top),
            None => present.min(new_top),
        };
        if was.control.law != promises.control.law {
            self.law = law(promises, new_top);
        }
        if moved != present || was.control.law != promises.control.law {
            self.law.track(moved);
        }
        let reported = new.sense == Sense::Reported;
        if !reported || self.reported_line.is_none() || (old.costs != new.costs && new.costs.is_some()) {
            self.reported_line = reported.then(|| known_line(new));
        }
        self.status.service_level = moved;
        self.status.name.clone_from(&new.name);
        (self.status.workers, self.status.set_point) = (new.workers, new.set_point);
        (self.plant, self.classes, self.mode) = (new.clone(), classes, promises.control.mode);
    }

    /// Runs one period; returns m for each class that this loop moves.
    pub(crate) fn run(&mut self, period: &Period<'_>) -> impl Iterator<Item = (usize, f64)> {
        let window = period.totals.since(&self.before);
        self.before = period.totals;
        self.sense(period, &window);
        let demand = self.demand(period);
        let served = self.served(period);

        // Without control the measurement says nothing of m, and the trim must not follow it.
        let controls = self.mode == Mode::Control;
        let overridden = self.status.response_time_override && controls;
        let steady = !self.classes.iter().any(|c| period.stepped[c.class]) && controls;
        let decision = self.law.next(&Observation {
            set_point: self.plant.set_point,
            measured: if overridden { 1.0 } else { self.status.utilization },
            served,
            overridden,
            steady,
            demand: &demand,
            wait_periods: period.max_wait.as_secs_f64() / period.nominal_seconds,
            service_periods: self.status.service_time.as_secs_f64() / period.nominal_seconds,
            unconfirmed: self.classes.iter().any(|c| period.monitors[c.class].rate.rose()),
        });
        let backlog = demand.backlog(self.status.service_level);
        self.status.utilization_offered = served + backlog;
        self.status.service_level = decision.m;
        self.status.trim = decision.trim;
        let ours = self.classes.iter_mut().filter(|class| class.ours && !class.exempt);
        ours.map(move |class| {
            let top = class.top as f64;
            class.share.learn(&period.monitors[class.class].window.decided);
            (class.class, class.share.knob(decision.m.min(top), top))
        })
    }

    /// The plant idles while clients are degraded or rejected, so some cost is too high, and where too few requests come
    /// to correct it, it is believed less. See [`CostEstimate::doubt`](crate::model::CostEstimate::doubt).
    pub(crate) fn doubt(&mut self, monitors: &mut [ClassMonitor], in_service: u32) {
        const IDLE: f64 = 0.6;
        let top = self.classes.iter().filter(|c| c.ours).map(|c| c.top).max().unwrap_or(0) as f64;
        let idles = self.status.utilization < IDLE * self.plant.set_point && in_service < self.plant.workers;
        if !idles || self.status.service_level >= top {
            return;
        }
        let mut requests = 0.0;
        for class in &self.classes {
            let monitor = &mut monitors[class.class];
            requests += class.served(monitor).requests;
            for level in class.levels_here() {
                if monitor.window.served_at(level).requests < EVIDENCE {
                    monitor.costs[level].doubt();
                }
            }
        }
        if let Some(line) = self.reported_line.as_mut().filter(|_| requests < EVIDENCE) {
            line.doubt();
        }
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

    /// Offered load as a function of m, of the rates and costs known now.
    fn demand(&self, period: &Period<'_>) -> Demand {
        let top = self.classes.iter().filter(|c| c.ours && !c.exempt).map(|c| c.top).max().unwrap_or(0);
        let mut demand = Demand { top: top as u8, ..Demand::default() };
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            let waits = period.waiting[class.class] > 0;
            // Most classes are quiet most of the time: they ask for nothing at any level.
            let quiet = if class.ours { monitor.rate.mean() == 0.0 } else { !monitor.active };
            if quiet && !waits {
                continue;
            }
            let waiting = f64::from(period.waiting[class.class]) / period.nominal_seconds;
            for level in 0..=top {
                let given = if class.exempt { class.top } else { level.min(class.top) };
                let (arriving, link) = if !class.ours {
                    self.sent_here(class, period)
                } else if given == 0 {
                    (monitor.rate.mean() * self.rejection_cost(period), 0.0)
                } else {
                    let bytes =
                        if class.here[given] { monitor.costs[given].bytes().unwrap_or(0.0) } else { 0.0 };
                    let cost = self.cost(class, given, period.monitors).unwrap_or(0.0);
                    (monitor.rate.mean() * cost, monitor.rate.mean() * bytes)
                };
                demand.arriving[level] += arriving;
                demand.link[level] += self.plant.bandwidth_bytes_per_second.map_or(0.0, |limit| link / limit);
                if waits {
                    let at = class.level_at(given);
                    demand.waiting[level] += waiting * self.cost(class, at, period.monitors).unwrap_or(0.0);
                }
            }
        }
        demand
    }

    /// Work and bytes per second of a class that another loop sends here: as much as came, whatever our m.
    fn sent_here(&self, class: &Governed, period: &Period<'_>) -> (f64, f64) {
        let monitor = &period.monitors[class.class];
        let at = |level| {
            let rate = class.starts(monitor, level, period.seconds);
            let cost = self.cost(class, level, period.monitors).unwrap_or(0.0);
            (rate * cost, rate * monitor.costs[level].bytes().unwrap_or(0.0))
        };
        class.levels_here().map(at).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// R times the cost at the level given in this period.
    fn served(&mut self, period: &Period<'_>) -> f64 {
        let mut served = 0.0;
        let mut model = 0.0;
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            if !monitor.active {
                continue;
            }
            for level in class.levels_here() {
                let rate = class.starts(monitor, level, period.seconds);
                served += rate * self.cost(class, level, period.monitors).unwrap_or(0.0);
            }
            if class.ours {
                served +=
                    monitor.window.counts.rejected() as f64 / period.seconds * self.rejection_cost(period);
            }
            let (a, b) = monitor.line.costs();
            let released = class.served(monitor);
            model += (a * released.requests + b * released.bytes) / f64::from(self.plant.workers);
        }
        self.status.utilization_model = model / period.seconds;
        served
    }

    /// c, where the gateway shares the plant's machine (UC rejects inside the server); else it costs the plant nothing.
    fn rejection_cost(&self, period: &Period<'_>) -> f64 {
        if self.plant.same_host { period.rejection_cost } else { 0.0 }
    }
}

/// M of the loop: of the classes that it moves, the most levels.
fn top(classes: &[Governed]) -> f64 {
    classes.iter().filter(|c| c.ours).map(|c| c.top).max().unwrap_or(0) as f64
}

/// The one place where laws are chosen.
fn law(promises: &Promises, m: f64) -> Box<dyn Law> {
    match promises.control.law {
        promises::Law::FeedForward => Box::new(FeedForward::new(m)),
        promises::Law::Paper { gain_margin } => Box::new(PaperPi::new(m, gain_margin)),
    }
}

fn known_line(plant: &promises::Plant) -> LinearModel {
    plant
        .costs
        .map_or_else(LinearModel::default, |c| LinearModel::known(c.per_request_seconds, c.per_byte_seconds))
}
