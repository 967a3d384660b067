//! The costs of requests at one plant: as promised, learned from service times, or learned from the plant's reports.

use super::output::DoubtedCost;
use super::sense::{Sensed, rejected, served_here};
use super::view::{ClassView, PlantView, SiteView};
use crate::control::cost::class::ClassCosts;
use crate::model::{CommonFall, CostEstimate, EVIDENCE, LinearModel, Served};
use crate::promises::plan::Known;
use crate::promises::{self, Costs, MAX_LEVELS, Mode, Sense};
use crate::telemetry::measurement::Measurement;
use alloc::vec::Vec;
use libm::sqrt;

/// Above this, a measured utilization has saturated, and costs cannot be learned from it.
const SATURATED: f64 = 0.95;
/// A linear model with this confidence at a contract's page size replaces the promised costs.
const SURE: f64 = 0.8;
/// A plant that is used less than this part of its set point counts as idle.
const IDLE: f64 = 0.6;

/// Costs by level, in seconds of the whole plant; 0 before any level was seen, and where the plant does not serve it.
type LevelCosts = [f64; MAX_LEVELS + 1];

/// The learned costs of one plant.
pub(crate) struct CostModel {
    /// U T = a n + b bytes over all classes, where the plant reports U. The part of that U that rejections took on the same
    /// machine is no cost of served requests: the load counts `c R` by itself.
    reported_line: Option<LinearModel>,
    /// By class of the view.
    by_class: Vec<LevelCosts>,
    /// By class of the view: whether its costs are to be computed anew, because the learned values have changed.
    stale: Vec<bool>,
    /// s, as of the last period.
    workers: u32,
    /// The share of the plant that is available; the cost of a request is a part of its time.
    available: f64,
    common_fall: CommonFall,
    /// The part of c that was time of the workers in the last period, in seconds of the whole plant; 0 if they are on another
    /// machine.
    pub(crate) rejection: f64,
}

/// The assumed costs of a site's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AssumedCosts {
    pub(crate) known: Known,
    /// Whether seen or promised costs determine `known`.
    pub(crate) determined: bool,
    /// The factor by which the true cost may be higher than `known`.
    pub(crate) most: f64,
}

impl AssumedCosts {
    fn determined(known: Known) -> Self {
        AssumedCosts { known, determined: true, most: 1.0 }
    }
}

/// The costs of requests, as known in one period.
#[derive(Debug)]
pub(crate) struct RequestCosts<'a> {
    by_class: &'a [LevelCosts],
    learned: LearnedCosts<'a>,
    /// c.
    pub(crate) rejection: f64,
}

/// The sources of one plant's costs.
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
        let (reported_line, common_fall) = (None, CommonFall::new());
        let mut model = CostModel {
            reported_line,
            by_class,
            stale,
            workers: 0,
            available: 1.0,
            common_fall,
            rejection: 0.0,
        };
        model.reload(plant, false);
        model
    }

    /// Takes the classes of a new view. A new promise of the plant's costs replaces the line learned from its reports.
    pub(crate) fn reload(&mut self, plant: &PlantView, new_promise: bool) {
        self.by_class = alloc::vec![Default::default(); plant.classes.len()];
        self.stale = alloc::vec![true; plant.classes.len()];
        self.workers = plant.promised.workers;
        let reports = plant.promised.sense == Sense::Reported;
        if !reports || self.reported_line.is_none() || new_promise {
            self.reported_line = reports.then(|| promised_line(plant.promised.costs, 1));
            self.reported_line.iter_mut().for_each(|line| line.scale(1.0 / self.available));
        }
    }

    /// Learns from all classes together whether the server has become faster, and carries the step of a class's cost over to
    /// its levels with hardly any requests.
    pub(crate) fn learn_steps(
        &mut self,
        plant: &PlantView,
        measured: &Measurement<'_>,
        learned: &mut [ClassCosts],
    ) {
        // If the number of workers is searched for, services become longer and shorter because more or fewer requests are
        // admitted, so that a step says nothing of the server.
        if plant.promised.find_workers.is_some() {
            return;
        }
        self.learn_fall(plant, measured, learned);
        for class in plant.classes.iter().filter(|class| measured.classes[class.class].active) {
            if learned[class.class].moved {
                let served = &measured.classes[class.class].served;
                learned[class.class].carry_step((class.levels_here(), class.is_all_here), served);
            }
        }
    }

    fn learn_fall(&mut self, plant: &PlantView, measured: &Measurement<'_>, learned: &mut [ClassCosts]) {
        let active = || plant.classes.iter().filter(|class| measured.classes[class.class].active);
        for class in active() {
            let (own, served) = (&learned[class.class], &measured.classes[class.class].served);
            class.levels_here().for_each(|level| self.common_fall.add(served[level], &own.by_level[level]));
        }
        let Some(factor) = self.common_fall.end_period() else { return };
        for class in active() {
            let (own, served) = (&mut learned[class.class], &measured.classes[class.class].served);
            let fallen = |level: &usize| own.by_level[*level].fall(factor, served[*level]);
            own.stepped |= class.levels_here().filter(fallen).count() > 0;
        }
    }

    /// Learns from the utilization that the plant reports for a period, and computes anew the costs of the classes whose costs
    /// may have changed. Most classes are quiet most of the time, so most costs stay.
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
            let rejecting = self.rejection * rejected(plant, measured);
            let work_seconds = (reported - rejecting).max(0.0) * measured.seconds;
            line.learn([Served { requests, bytes, work_seconds }].into_iter());
        }
        let (reported_line, workers) = (self.reported_line.as_ref(), self.workers);
        let known = LearnedCosts { classes: learned, reported_line, workers };
        let priced = self.by_class.iter_mut().zip(&mut self.stale);
        for (class, (costs, stale)) in plant.classes.iter().zip(priced) {
            if *stale || measured.classes[class.class].active || reported_line.is_some() {
                for (level, cost) in class.levels_here().zip(&mut costs[class.base + 1..]) {
                    *cost = known.at_here(class, level).unwrap_or(0.0);
                }
                *stale = false;
            }
        }
        self.costs(learned)
    }

    /// Sets the share of the plant that is available from now on: a request takes a larger part of a smaller share.
    pub(crate) fn set_available(&mut self, share: f64) {
        if let Some(line) = &mut self.reported_line {
            line.scale(self.available / share);
        }
        self.available = share;
        self.stale.fill(true);
    }

    /// s, as of the last period.
    pub(crate) fn workers(&self) -> u32 {
        self.workers
    }

    /// The costs as known now.
    pub(crate) fn costs<'a>(&'a self, learned: &'a [ClassCosts]) -> RequestCosts<'a> {
        let (reported_line, workers) = (self.reported_line.as_ref(), self.workers);
        let learned = LearnedCosts { classes: learned, reported_line, workers };
        RequestCosts { by_class: &self.by_class, learned, rejection: self.rejection }
    }

    /// The costs that must be too high and that too few requests correct. The loop calls this while the plant idles although
    /// clients are degraded or rejected. The line learned from the plant's own reports is lowered here. See
    /// [`CostEstimate::doubt`](crate::model::CostEstimate::doubt).
    pub(crate) fn doubt(&mut self, plant: &PlantView, measured: &Measurement<'_>) -> Vec<DoubtedCost> {
        let (mut requests, mut doubted) = (0.0, Vec::new());
        for (class, stale) in plant.classes.iter().zip(&mut self.stale) {
            let own = &measured.classes[class.class];
            requests += served_here(class, own).requests;
            *stale = true;
            let rare = class.levels_here().filter(|level| own.served[*level].requests < EVIDENCE);
            doubted.extend(rare.map(|level| DoubtedCost { class: class.class, level }));
        }
        if let Some(line) = self.reported_line.as_mut().filter(|_| requests < EVIDENCE) {
            line.doubt();
        }
        doubted
    }
}

/// Whether the plant idles: it is used well below its set point, and a worker is free.
pub(crate) fn idles(sensed: &Sensed, measured: &Measurement<'_>, set_point: f64) -> bool {
    sensed.utilization < IDLE * set_point && measured.in_service < measured.workers
}

impl RequestCosts<'_> {
    /// Cost of one request at a level, of the class with this index in the view, as computed for this period.
    pub(crate) fn priced(&self, index: usize, level: usize) -> f64 {
        self.by_class[index][level]
    }

    /// The relative standard error of the arriving load at the lowest level that the errors of measured costs cause. A few
    /// requests a second whose work varies much are little evidence of the load. It is 0 where the set point is held whatever
    /// the error, and where workers are searched for, since their number is less certain than the costs then.
    pub(crate) fn load_error(&self, plant: &PlantView, measured: &Measurement<'_>) -> f64 {
        if plant.promised.find_workers.is_some() || plant.capacity(Mode::Control, true).is_none() {
            return 0.0;
        }
        let (mut load, mut variance) = (0.0, 0.0);
        for (index, class) in plant.classes.iter().enumerate() {
            let own = class.rate(measured) * self.priced(index, 1);
            let known = &self.learned.classes[class.class].by_level[1];
            let error = if known.seconds().is_some() { own * (1.0 - known.confidence()) } else { 0.0 };
            load += own;
            variance += error * error;
        }
        if load > 0.0 { sqrt(variance) / load } else { 0.0 }
    }

    /// The relative standard error of a period's arriving load at the lowest level that the number of its arrivals causes.
    pub(crate) fn arrivals_error(&self, plant: &PlantView, measured: &Measurement<'_>) -> f64 {
        let (mut load, mut variance) = (0.0, 0.0);
        for (index, class) in plant.classes.iter().enumerate() {
            let cost = self.priced(index, 1);
            let own = class.rate(measured) * cost;
            load += own;
            variance += own * cost / measured.seconds;
        }
        if load > 0.0 { sqrt(variance) / load } else { 0.0 }
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

    /// A site's costs for the capacity plan; `None` while no seen or promised cost determines the load of its contract.
    pub(crate) fn known(
        &self,
        plant: &PlantView,
        site: &SiteView,
        rate: impl Fn(usize) -> f64,
    ) -> Option<Known> {
        self.assumed(plant, site, rate).filter(|assumed| assumed.determined).map(|assumed| assumed.known)
    }

    /// A site's costs to share the plant by, and whether they are known.
    ///
    /// A contract for a rate alone is for responses at full quality, and takes their mean cost once that is known well. A
    /// contract with a bandwidth is for pages of a certain size, and takes the linear models of its classes once these are
    /// confident at that size. Both are weighted by the classes' rates. While neither is known, the costs are as promised.
    ///
    /// Without promised costs, they follow from the mean cost of a response at full quality, however well that is known. As a,
    /// b >= 0, the cost of a page of another size differs by no larger factor than its size does. If pages of about the
    /// contract's size were seen, the highest cost that this allows is taken as known. If pages of other sizes were seen and
    /// the site has lighter levels, the least cost is taken: the site is then degraded as soon as it exceeds its bandwidth, and
    /// the lighter pages distinguish a from b. A site that could only be rejected takes the mean cost as it is, and so keeps
    /// the promised rate.
    pub(crate) fn assumed(
        &self,
        plant: &PlantView,
        site: &SiteView,
        rate: impl Fn(usize) -> f64,
    ) -> Option<AssumedCosts> {
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
            if bandwidth.is_none() && self.learned.reported_line.is_none() {
                // A line through all levels would not distinguish lighter pages from full pages of as many bytes.
                let full = &self.learned.classes[class.class].by_level[class.top];
                let known = (full.confidence() > SURE).then(|| self.at(class, class.top)).flatten();
                a.add(weight(class), known);
                b.add(weight(class), known.map(|_| 0.0));
                continue;
            }
            // The line of reports has seconds of the whole plant, a line of service times has seconds of one worker.
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
            return Some(AssumedCosts::determined(Known { costs: costs(a, b), full_bytes }));
        }
        if let Some(promised) = site.promised_costs {
            return Some(AssumedCosts::determined(Known { full_bytes, ..promised }));
        }
        let can_teach = own.clone().any(|class| class.top > 1);
        let mut whole = WeightedMean::default();
        own.for_each(|class| whole.add(weight(class), self.at(class, class.top)));
        let alike = (bytes - full_bytes).abs() <= (1.0 - SURE) * full_bytes;
        let ratio = bytes / full_bytes;
        let part = match ratio {
            part if alike => part.max(1.0),
            part if can_teach => part.min(1.0),
            _ => 1.0,
        };
        let known = Known { costs: costs(part * whole.value()?, 0.0), full_bytes };
        let is_open = can_teach && !alike && ratio.is_finite();
        Some(AssumedCosts {
            known,
            determined: alike,
            most: if is_open { ratio.max(1.0 / ratio) } else { 1.0 },
        })
    }
}

impl LearnedCosts<'_> {
    /// Cost of one request of a class at a level, in seconds of the whole plant; `None` before any level was seen.
    fn at(&self, class: &ClassView, level: usize) -> Option<f64> {
        if class.is_here(level) { self.at_here(class, level) } else { Some(0.0) }
    }

    /// The cost at a level that this plant serves.
    fn at_here(&self, class: &ClassView, level: usize) -> Option<f64> {
        let by_level = &self.classes[class.class].by_level;
        let known = |l: usize| self.measured(&by_level[l]);
        if let Some(cost) = known(level) {
            return Some(cost);
        }
        // The cost follows from that of the nearest level that was seen, above first, by the cost ratios between them.
        let above = ((level + 1)..=class.top).find(|l| known(*l).is_some());
        if let Some(seen) = above {
            return known(seen).map(|cost| class.cost_ratio[level..seen].iter().product::<f64>() * cost);
        }
        let below = (class.base + 1..level).rev().find(|l| known(*l).is_some())?;
        known(below).map(|cost| cost / class.cost_ratio[below..level].iter().product::<f64>())
    }

    /// The cost at a level that was seen.
    fn measured(&self, seen: &CostEstimate) -> Option<f64> {
        match self.reported_line {
            Some(line) if line.confidence(seen.bytes()?) > 0.0 => {
                let (a, b) = line.costs();
                Some(a + b * seen.bytes()?)
            }
            // Without reports the cost is that of the measured service times.
            _ => Some(seen.seconds()? / f64::from(self.workers)),
        }
    }
}

/// A weighted mean of the values that are known.
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

/// The line of promised costs, converted from seconds of the whole plant to seconds of one of its `workers`.
pub(crate) fn promised_line(promised: Option<Costs>, workers: u32) -> LinearModel {
    let workers = f64::from(workers);
    promised.map_or_else(LinearModel::default, |c| {
        LinearModel::known(c.per_request_seconds * workers, c.per_byte_seconds * workers)
    })
}

#[cfg(test)]
mod tests {
    use super::super::view::by_hand::{arrivals, class, learned, measured, plant};
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn a_cost_is_a_share_of_the_plant_and_an_unseen_level_follows_the_nearest() {
        let own = plant(alloc::vec![class(0, 3)]);
        let classes = [arrivals(10.0, 2)];
        for (known, expected) in [
            ([0.0, 0.02, 0.08], [0.0005, 0.005, 0.02]),
            ([0.0, 0.0, 0.08], [0.0002, 0.002, 0.02]),
            ([0.008, 0.0, 0.0], [0.002, 0.02, 0.2]),
        ] {
            let learned = [learned(&known)];
            let mut model = CostModel::new(&own);
            let costs = model.learn(&own, &measured(&classes, &[0]), &learned);
            let found = [1, 2, 3].map(|level| costs.priced(0, level));
            assert!(found.iter().zip(expected).all(|(found, wanted)| close(*found, wanted)), "{found:?}");
        }
        let nothing = [learned(&[0.0; 3])];
        assert_eq!(CostModel::new(&own).costs(&nothing).at(&own.classes[0], 3), None);
    }

    #[test]
    fn a_level_that_another_plant_serves_costs_nothing_here() {
        let mut own = class(0, 2);
        own.top = 1;
        let own = plant(alloc::vec![own]);
        let learned = [learned(&[0.02, 0.08])];
        let model = CostModel::new(&own);
        let costs = model.costs(&learned);
        assert_eq!(costs.at(&own.classes[0], 2), Some(0.0));
        assert!(close(costs.at(&own.classes[0], 1).expect("seen"), 0.005));
    }

    #[test]
    fn an_idle_plant_lowers_the_costs_that_too_few_requests_correct() {
        let own = plant(alloc::vec![class(0, 2)]);
        let mut classes = [arrivals(10.0, 2)];
        classes[0].served[1].requests = 2.0 * EVIDENCE;
        let mut learned = [learned(&[0.02, 0.08])];
        let period = measured(&classes, &[0]);
        let sensed = Sensed { utilization: 0.3, ..Sensed::default() };
        assert!(idles(&sensed, &period, 0.85) && !idles(&sensed, &period, 0.4));
        let mut model = CostModel::new(&own);
        let doubted = model.doubt(&own, &period);
        assert_eq!(doubted, [DoubtedCost { class: 0, level: 2 }]);
        doubted.iter().for_each(|cost| learned[cost.class].by_level[cost.level].doubt());
        let costs = model.costs(&learned);
        let [light, full] = [1, 2].map(|level| costs.at(&own.classes[0], level).expect("seen"));
        assert!(close(light, 0.005) && full < 0.02, "{light} {full}");
    }

    #[test]
    fn a_plan_takes_the_promised_costs_until_the_line_is_known() {
        let mut own = plant(alloc::vec![class(0, 1)]);
        let learned = [learned(&[0.08])];
        let model = CostModel::new(&own);
        let mean = model.costs(&learned).known(&own, &own.sites[0], |_| 10.0).expect("seen");
        assert!(close(mean.costs.per_request_seconds, 0.02) && close(mean.full_bytes, 1000.0));
        let costs =
            promises::Costs { per_request_seconds: 0.5, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 };
        own.sites[0].promised_costs = Some(Known { costs, full_bytes: 0.0 });
        let measured = model.costs(&learned).known(&own, &own.sites[0], |_| 10.0).expect("measured");
        assert_eq!(measured, mean, "a hundred requests show the cost of a mere rate");
        own.sites[0].guarantee = Some(promises::Guarantee::new(10.0, 10.0 * 1000.0));
        let promised = model.costs(&learned).known(&own, &own.sites[0], |_| 10.0).expect("promised");
        assert_eq!((promised.costs.per_request_seconds, promised.full_bytes), (0.5, mean.full_bytes));
    }

    #[test]
    fn a_contract_for_pages_that_were_never_seen_is_unknown_to_the_plan() {
        let mut own = plant(alloc::vec![class(0, 1)]);
        // Pages of 1,000 bytes were seen.
        let learned = [learned(&[0.08])];
        let model = CostModel::new(&own);
        for (bytes_each, cost, determined) in
            [(1000.0, 0.02, true), (1100.0, 0.022, true), (500.0, 0.02, false), (4000.0, 0.02, false)]
        {
            own.classes[0].top = 1;
            own.sites[0].guarantee = Some(promises::Guarantee::new(10.0, 10.0 * bytes_each));
            let assumed = model.costs(&learned).assumed(&own, &own.sites[0], |_| 10.0).expect("seen");
            assert!(close(assumed.known.costs.per_request_seconds, cost), "{bytes_each}: {assumed:?}");
            assert_eq!((assumed.determined, assumed.most), (determined, 1.0), "{bytes_each}");
            let planned = model.costs(&learned).known(&own, &own.sites[0], |_| 10.0);
            assert_eq!(planned.is_some(), determined, "{bytes_each}");
            // A class that can be degraded is degraded, until its lighter pages have shown more.
            own.classes[0] = class(0, 2);
            let learned = [self::learned(&[0.0, 0.08])];
            let assumed = model.costs(&learned).assumed(&own, &own.sites[0], |_| 10.0).expect("seen");
            let (least, most) = match bytes_each {
                500.0 => (0.01, 2.0),
                4000.0 => (cost, 4.0),
                _ => (cost, 1.0),
            };
            let AssumedCosts { known, most: found, .. } = assumed;
            assert!(
                close(known.costs.per_request_seconds, least) && found == most,
                "{bytes_each}: {assumed:?}"
            );
        }
    }
}
