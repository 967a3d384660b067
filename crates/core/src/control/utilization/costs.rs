//! What requests cost at one plant: as promised, learned from service times, or learned from what the plant reports.

use super::sense::{Sensed, served_here};
use super::view::{ClassView, PlantView, SiteView};
use crate::control::cost::class::ClassCosts;
use crate::model::{CostEstimate, EVIDENCE, LinearModel, Served};
use crate::promises::plan::Known;
use crate::promises::{self, MAX_LEVELS, Plant, Sense};
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;

/// Above this a measured utilization says nothing of the cost.
const SATURATED: f64 = 0.95;
/// A linear model as sure as this of a contract's pages is believed rather than what was promised.
const SURE: f64 = 0.8;
/// A plant that uses less of its set point idles.
const IDLE: f64 = 0.6;

/// Costs by level, in seconds of the whole plant; 0 before any level was seen, and where the plant does not serve it.
type LevelCosts = [f64; MAX_LEVELS + 1];

/// What is learned of one plant's costs.
pub(crate) struct CostModel {
    /// U T = a n + b bytes over all classes, where the plant reports U.
    reported_line: Option<LinearModel>,
    /// By class of the view.
    by_class: Vec<LevelCosts>,
    /// Costs of the same classes that are no longer what was learned.
    stale: Vec<bool>,
    /// s, as of the last period.
    workers: u32,
    /// c in the last period, where rejections cost the plant itself.
    pub(crate) rejection: f64,
}

/// What requests cost, as known in one period.
#[derive(Debug)]
pub(crate) struct RequestCosts<'a> {
    by_class: &'a [LevelCosts],
    learned: LearnedCosts<'a>,
    /// c.
    pub(crate) rejection: f64,
}

/// What the costs of one plant are known from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnedCosts<'a> {
    /// By class number.
    classes: &'a [ClassCosts],
    reported_line: Option<&'a LinearModel>,
    workers: u32,
}

impl CostModel {
    pub(crate) fn new(plant: &PlantView) -> Self {
        let (by_class, stale) = (Vec::new(), Vec::new());
        let mut model = CostModel { reported_line: None, by_class, stale, workers: 0, rejection: 0.0 };
        model.reload(plant, false);
        model
    }

    /// Begins with the classes of a new view. Another promise of the plant's costs replaces what its reports have taught.
    pub(crate) fn reload(&mut self, plant: &PlantView, new_promise: bool) {
        self.by_class = alloc::vec![Default::default(); plant.classes.len()];
        self.stale = alloc::vec![true; plant.classes.len()];
        self.workers = plant.promised.workers;
        let reports = plant.promised.sense == Sense::Reported;
        if !reports || self.reported_line.is_none() || new_promise {
            self.reported_line = reports.then(|| promised_line(&plant.promised));
        }
    }

    /// Learns from a period what the plant reports, and prices the requests anew where that may have moved a cost: most
    /// classes are quiet most of the time, and the others are asked several times a period.
    pub(crate) fn learn<'a>(
        &'a mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        learned: &'a [ClassCosts],
    ) -> RequestCosts<'a> {
        self.workers = measured.workers;
        if let (Some(line), Some(reported)) = (&mut self.reported_line, measured.reported)
            && reported < SATURATED
        {
            let served = plant.classes.iter().map(|c| served_here(c, &measured.classes[c.class]));
            let (requests, bytes) =
                served.fold((0.0, 0.0), |(n, bytes), s| (n + s.requests, bytes + s.bytes));
            let work_seconds = reported * measured.seconds;
            line.learn([Served { requests, bytes, work_seconds }].into_iter());
        }
        let (reported_line, workers) = (self.reported_line.as_ref(), self.workers);
        let known = LearnedCosts { classes: learned, reported_line, workers };
        let priced = self.by_class.iter_mut().zip(&mut self.stale);
        for (class, (costs, stale)) in plant.classes.iter().zip(priced) {
            if *stale || measured.classes[class.class].active || reported_line.is_some() {
                for (level, cost) in (1..=class.top).zip(&mut costs[1..]) {
                    *cost = known.at(class, level).unwrap_or(0.0);
                }
                *stale = false;
            }
        }
        self.costs(learned)
    }

    /// What is known now.
    pub(crate) fn costs<'a>(&'a self, learned: &'a [ClassCosts]) -> RequestCosts<'a> {
        let (reported_line, workers) = (self.reported_line.as_ref(), self.workers);
        let learned = LearnedCosts { classes: learned, reported_line, workers };
        RequestCosts { by_class: &self.by_class, learned, rejection: self.rejection }
    }

    /// The plant idles while clients are degraded or rejected, so some cost is too high; where too few requests come to
    /// correct it, it is believed less. See [`CostEstimate::doubt`](crate::model::CostEstimate::doubt).
    pub(crate) fn doubt(
        &mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        learned: &mut [ClassCosts],
    ) {
        let mut requests = 0.0;
        for (class, stale) in plant.classes.iter().zip(&mut self.stale) {
            let own = &measured.classes[class.class];
            requests += served_here(class, own).requests;
            *stale = true;
            for level in class.levels_here().filter(|level| own.served[*level].requests < EVIDENCE) {
                learned[class.class].by_level[level].doubt();
            }
        }
        if let Some(line) = self.reported_line.as_mut().filter(|_| requests < EVIDENCE) {
            line.doubt();
        }
    }
}

/// Whether the plant idles although it serves at less than full quality.
pub(crate) fn idles(sensed: &Sensed, measured: &Measurement<'_>, set_point: f64) -> bool {
    sensed.utilization < IDLE * set_point && measured.in_service < measured.workers
}

impl RequestCosts<'_> {
    /// Cost of one request of the class at this place of the view at a level it is served at, as priced in this period.
    pub(crate) fn priced(&self, place: usize, level: usize) -> f64 {
        self.by_class[place][level]
    }

    /// Mean body bytes of a request of a class at a level; 0 before any was seen.
    pub(crate) fn bytes(&self, class: &ClassView, level: usize) -> f64 {
        self.learned.classes[class.class].by_level[level].bytes().unwrap_or(0.0)
    }

    /// Work by the linear model of a class [seconds of the whole plant].
    pub(crate) fn linear(&self, class: &ClassView, served: &Served) -> f64 {
        let (a, b) = self.learned.classes[class.class].line.costs();
        (a * served.requests + b * served.bytes) / f64::from(self.learned.workers)
    }

    /// Cost of one request of a class at a level, in seconds of the whole plant; `None` before any level was seen.
    pub(crate) fn at(&self, class: &ClassView, level: usize) -> Option<f64> {
        self.learned.at(class, level)
    }

    /// What is known of a site's costs: the linear models of its classes, weighted by their rates, as soon as they say
    /// something of the contract's page size; else what was promised; else the mean cost of a full response.
    pub(crate) fn known(
        &self,
        plant: &PlantView,
        site: &SiteView,
        rate: impl Fn(usize) -> f64,
    ) -> Option<Known> {
        let own = plant.classes[site.classes.clone()].iter().filter(|class| !class.exempt);
        let weight = |class: &ClassView| rate(class.class).max(1e-6);
        let mut full_bytes = WeightedMean::default();
        for class in own.clone() {
            full_bytes.add(weight(class), self.learned.classes[class.class].by_level[class.top].bytes());
        }
        let full_bytes = full_bytes.value().unwrap_or(0.0);
        let bandwidth = site.guarantee.and_then(|g| Some(g.bandwidth_bytes_per_second? / g.rate));
        let bytes = bandwidth.unwrap_or(full_bytes);
        let (mut a, mut b) = (WeightedMean::default(), WeightedMean::default());
        for class in own.clone() {
            // A line of reports gives shares of the plant, a line of service times gives one worker's time.
            let (line, servers) = match self.learned.reported_line {
                Some(line) => (line, 1.0),
                None => (&self.learned.classes[class.class].line, f64::from(self.learned.workers)),
            };
            let costs = (line.confidence(bytes) > SURE).then(|| line.costs());
            a.add(weight(class), costs.map(|(a, _)| a / servers));
            b.add(weight(class), costs.map(|(_, b)| b / servers));
        }
        let costs = |per_request_seconds, per_byte_seconds| promises::Costs {
            per_request_seconds,
            per_byte_seconds,
            per_rejection_seconds: self.rejection,
        };
        if let (Some(a), Some(b)) = (a.value(), b.value()) {
            return Some(Known { costs: costs(a, b), full_bytes });
        }
        if let Some(told) = site.told {
            return Some(Known { full_bytes, ..told });
        }
        let mut whole = WeightedMean::default();
        own.for_each(|class| whole.add(weight(class), self.at(class, class.top)));
        Some(Known { costs: costs(whole.value()?, 0.0), full_bytes })
    }
}

impl LearnedCosts<'_> {
    /// Cost of one request of a class at a level, in seconds of the whole plant; `None` before any level was seen.
    fn at(&self, class: &ClassView, level: usize) -> Option<f64> {
        if !class.here[level] {
            return Some(0.0);
        }
        let by_level = &self.classes[class.class].by_level;
        let known = |l: usize| self.measured(&by_level[l]);
        if let Some(cost) = known(level) {
            return Some(cost);
        }
        // From the nearest level that was seen, above first, through the ratios between.
        let above = ((level + 1)..=class.top).find(|l| class.here[*l] && known(*l).is_some());
        if let Some(seen) = above {
            return known(seen).map(|cost| class.cost_ratio[level..seen].iter().product::<f64>() * cost);
        }
        let below = (1..level).rev().find(|l| class.here[*l] && known(*l).is_some())?;
        known(below).map(|cost| cost / class.cost_ratio[below..level].iter().product::<f64>())
    }

    /// The same of a level that was seen.
    fn measured(&self, seen: &CostEstimate) -> Option<f64> {
        match self.reported_line {
            Some(line) if line.confidence(seen.bytes()?) > 0.0 => {
                let (a, b) = line.costs();
                Some(a + b * seen.bytes()?)
            }
            // Nothing reported yet, or the plant does not report: its own service times.
            _ => Some(seen.seconds()? / f64::from(self.workers)),
        }
    }
}

/// A weighted mean of what is known.
#[derive(Default)]
struct WeightedMean {
    sum: f64,
    weight: f64,
}

impl WeightedMean {
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

fn promised_line(plant: &Plant) -> LinearModel {
    plant
        .costs
        .map_or_else(LinearModel::default, |c| LinearModel::known(c.per_request_seconds, c.per_byte_seconds))
}
