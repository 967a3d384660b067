//! What requests cost, as far as it is known: what was told, learned of service times, or reported by the plant.

use super::{OwnSite, UtilizationLoop};
use crate::control::utilization::class_view::Governed;
use crate::model::EVIDENCE;
use crate::promises::Costs;
use crate::promises::plan::Known;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::monitor::ClassMonitor;
use alloc::{sync::Arc, vec::Vec};

/// A linear model as sure as this of a contract's pages is believed rather than what was told.
const SURE: f64 = 0.8;

/// A weighted mean of what is known.
#[derive(Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, weight: f64, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += weight * value;
            self.weight += weight;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

impl UtilizationLoop {
    /// Notes what the classes' requests cost, where that may have moved: most classes are quiet most of the time, and
    /// the others are asked several times a period.
    pub(crate) fn price(&mut self, monitors: &[ClassMonitor]) {
        for index in 0..self.classes.len() {
            let class = &self.classes[index];
            if class.stale || monitors[class.class].active || self.reported_line.is_some() {
                for level in 1..=self.classes[index].top {
                    let cost = self.cost(&self.classes[index], level, monitors);
                    self.classes[index].costs[level] = cost.unwrap_or(0.0);
                }
                self.classes[index].stale = false;
            }
        }
    }

    /// Cost of one request of a class at a level, in seconds of the whole plant; `None` before any level was seen.
    pub(crate) fn cost(&self, governed: &Governed, level: usize, monitors: &[ClassMonitor]) -> Option<f64> {
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

    /// What is known of a site's costs: the linear models of its classes, weighted by their rates, as soon as they say
    /// something of the contract's page size; else what was told; else the mean cost of a full response.
    pub(crate) fn known(&self, site: &OwnSite, monitors: &[ClassMonitor]) -> Option<Known> {
        let own = self.classes[site.classes.clone()].iter().filter(|class| !class.exempt);
        let own = own.map(|class| (class, &monitors[class.class]));
        let weight = |monitor: &ClassMonitor| monitor.rate.mean().max(1e-6);
        let mut full_bytes = Mean::default();
        for (class, monitor) in own.clone() {
            full_bytes.add(weight(monitor), monitor.costs[class.top].bytes());
        }
        let full_bytes = full_bytes.value().unwrap_or(0.0);
        let bandwidth = site.guarantee.and_then(|g| Some(g.bandwidth_bytes_per_second? / g.rate));
        let bytes = bandwidth.unwrap_or(full_bytes);
        let (mut a, mut b, mut whole) = (Mean::default(), Mean::default(), Mean::default());
        for (class, monitor) in own {
            // Of what the plant reports a and b are shares of it, of service times one worker's time.
            let (line, servers) = match &self.reported_line {
                Some(line) => (line, 1.0),
                None => (&monitor.line, f64::from(self.plant.workers)),
            };
            let costs = (line.confidence(bytes) > SURE).then(|| line.costs());
            a.add(weight(monitor), costs.map(|(a, _)| a / servers));
            b.add(weight(monitor), costs.map(|(_, b)| b / servers));
            whole.add(weight(monitor), self.cost(class, class.top, monitors));
        }
        let per_rejection_seconds = self.rejection_cost;
        if let (Some(per_request_seconds), Some(per_byte_seconds)) = (a.value(), b.value()) {
            let costs = Costs { per_request_seconds, per_byte_seconds, per_rejection_seconds };
            return Some(Known { costs, full_bytes });
        }
        if let Some(told) = site.told {
            return Some(Known { full_bytes, ..told });
        }
        let costs =
            Costs { per_request_seconds: whole.value()?, per_byte_seconds: 0.0, per_rejection_seconds };
        Some(Known { costs, full_bytes })
    }

    /// What is known of the costs of a site that this plant serves, for the plan.
    pub(crate) fn known_of(&self, number: usize, monitors: &[ClassMonitor]) -> Option<Known> {
        self.known(self.sites.iter().find(|site| site.number == number)?, monitors)
    }

    /// The classes' costs at levels 1..=M, for the status.
    pub(crate) fn level_costs<'a>(
        &'a self,
        monitors: &'a [ClassMonitor],
    ) -> impl Iterator<Item = (usize, Vec<Option<f64>>)> + 'a {
        let ours = self.classes.iter().filter(|class| class.ours);
        ours.map(|c| (c.class, (1..=c.top).map(|level| self.cost(c, level, monitors)).collect()))
    }

    /// The plant idles while clients are degraded or rejected, so some cost is too high, and where too few requests come
    /// to correct it, it is believed less. See [`CostEstimate::doubt`](crate::model::CostEstimate::doubt).
    pub(crate) fn doubt(&mut self, monitors: &mut [ClassMonitor], in_service: u32) {
        const IDLE: f64 = 0.6;
        let top = self.classes.iter().filter(|c| c.ours).map(|c| c.top).max().unwrap_or(0) as f64;
        let idles = self.status.utilization < IDLE * self.line && in_service < self.plant.workers;
        if !idles || self.status.service_level >= top {
            return;
        }
        let mut requests = 0.0;
        for class in &mut self.classes {
            let monitor = &mut monitors[class.class];
            requests += class.served(monitor).requests;
            class.stale = true;
            for level in class.levels_here() {
                if monitor.served_at(level).requests < EVIDENCE {
                    monitor.costs[level].doubt();
                }
            }
        }
        if let Some(line) = self.reported_line.as_mut().filter(|_| requests < EVIDENCE) {
            line.doubt();
        }
    }

    /// The plant is not what it was taken for: what was measured of its requests is forgotten.
    pub(crate) fn forget_costs(&mut self, monitors: &mut [ClassMonitor], lanes: &[Arc<LaneCounters>]) {
        for class in &self.classes {
            monitors[class.class].forget_costs(class.levels_here(), lanes, class.class);
        }
        self.forgotten = true;
    }
}
