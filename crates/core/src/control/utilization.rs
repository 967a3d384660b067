//! The utilization loop of one plant: holds U at the set point by moving m.
//!
//! One loop governs all classes whose site the plant serves. Where one site has it to itself, with one m that each class
//! clamps to its own levels; else the law says how much there is, and `sharing.rs` who gets it.
//! What drives it is the offered load, R times the cost at the level given, unclipped, plus the backlog: a measured U
//! saturates at 1 and comes late. The measurement trains the costs and supervises through the trim.

use super::governed::{Governed, governed};
use super::sharing::{Load, Sharing};
use super::{Decision, Demand, FeedForward, Law, Observation, PaperPi};
use crate::census::Census;
use crate::model::{EVIDENCE, LinearModel, Served};
use crate::monitor::{ClassMonitor, PlantTotals};
use crate::plan::Known;
use crate::promises::{self, Costs, Guarantee, Mode, Promises, Sense};
use crate::shared::LaneCounters;
use crate::status::{PlantStatus, SiteStatus};
use crate::time::Duration;
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::ops::Range;

/// Above this a measured utilization says nothing of the cost.
const SATURATED: f64 = 0.95;
/// Backlog, in periods of work, that waits in time where the queue turns away what would not.
const WAITS_IN_TIME: f64 = 0.25;
/// A linear model as sure as this of a contract's pages is believed rather than what was told.
const SURE: f64 = 0.8;

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
    /// Among whom the plant is shared.
    sharing: Option<Sharing>,
    /// c as in the last period.
    rejection_cost: f64,
    /// The load line, lowered by what its delays press.
    line: f64,
    pub(crate) status: PlantStatus,
    /// Nothing happened in the last period.
    rested: bool,
    /// The costs were forgotten in this period.
    forgotten: bool,
    /// Of the sites that the plant serves: their numbers, contracts, and costs as told.
    sites: Vec<OwnSite>,
}

/// A site that the plant serves.
struct OwnSite {
    number: usize,
    guarantee: Option<Guarantee>,
    told: Option<Known>,
    /// Its classes, among those that the loop governs.
    classes: Range<usize>,
    status: SiteStatus,
}

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
    /// s, as promised or found.
    pub(crate) workers: u32,
    /// It was promised, or found.
    pub(crate) capacity_known: bool,
    /// By how much the load line is lowered for the delays that the plant misses.
    pub(crate) pressure: f64,
    /// The queue itself turns away what would be late.
    pub(crate) sheds: bool,
    /// Nothing came, went or was in service.
    pub(crate) idle: bool,
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
            sharing: law.aims().then(|| Sharing::new(promises, &classes)).flatten(),
            rejection_cost: 0.0,
            line: own.set_point,
            sites: own_sites(promises, plant, &classes),
            classes,
            law,
            mode,
            before: PlantTotals::default(),
            reported_line,
            silent_seconds: 0.0,
            rested: false,
            forgotten: false,
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
        let mut sharing = self.law.aims().then(|| Sharing::new(promises, &classes)).flatten();
        for (place, class) in classes.iter().enumerate().filter(|(_, class)| class.ours) {
            let before = self.classes.iter().position(|before| before.class == class.class && before.ours);
            if let (Some(sharing), Some(before)) = (&mut sharing, before) {
                let known = self.sharing.as_ref().map_or(present, |known| known.level(before));
                sharing.set_level(place, m(class.class, known.min(self.classes[before].top as f64)));
            }
        }
        let reported = new.sense == Sense::Reported;
        if !reported || self.reported_line.is_none() || (old.costs != new.costs && new.costs.is_some()) {
            self.reported_line = reported.then(|| known_line(new));
        }
        (self.sharing, self.sites) = (sharing, own_sites(promises, number, &classes));
        self.rested = false;
        self.status.service_level = moved;
        self.status.name.clone_from(&new.name);
        (self.status.workers, self.status.set_point) = (new.workers, new.set_point);
        (self.plant, self.classes, self.mode) = (new.clone(), classes, promises.control.mode);
    }

    /// Runs one period; returns m for each class that this loop moves.
    pub(crate) fn run(&mut self, period: &Period<'_>) -> impl Iterator<Item = (usize, f64)> {
        let window = period.totals.since(&self.before);
        self.before = period.totals;
        self.plant.workers = period.workers;
        self.line = self.plant.set_point * (1.0 - period.pressure);
        self.rejection_cost = if self.plant.same_host { period.rejection_cost } else { 0.0 };
        // After one period of nothing all senses say what they said then.
        let rests = period.idle && period.reported.is_none();
        let is_same = core::mem::replace(&mut self.rested, rests) && rests;
        if !is_same {
            self.sense(period, &window);
        }
        self.price(period.monitors);
        let mut sharing = self.sharing.take();
        let demand = match &mut sharing {
            Some(sharing) => self.parts(period, sharing),
            None => self.demand(period),
        };
        let served = if is_same { 0.0 } else { self.served(period) };

        // Without control the measurement says nothing of m, and the trim must not follow it.
        let controls = self.mode == Mode::Control;
        let overridden = self.status.response_time_override && controls;
        let steady = !self.classes.iter().any(|c| period.stepped[c.class]) && controls;
        let decision = self.law.next(&Observation {
            set_point: self.line,
            measured: if overridden { 1.0 } else { self.status.utilization },
            served,
            overridden,
            steady,
            demand: &demand,
            ordinary_backlog: if self.line >= 1.0 && period.sheds { WAITS_IN_TIME } else { 0.0 },
            wait_periods: period.max_wait.as_secs_f64() / period.nominal_seconds,
            service_periods: self.status.service_time.as_secs_f64() / period.nominal_seconds,
            unconfirmed: self.classes.iter().any(|c| period.monitors[c.class].rate.rose()),
        });
        // What a part of a period taught of the costs is chance.
        let known = period.capacity_known && !core::mem::take(&mut self.forgotten);
        let decision = if known { decision } else { self.hold_top() };
        let backlog = demand.backlog(self.status.service_level);
        self.status.utilization_offered = served + backlog;
        self.status.service_level = decision.m;
        self.status.trim = decision.trim;
        if let (Some(sharing), Some(aim)) = (&mut sharing, self.law.aim()) {
            sharing.share_out(&aim);
        }
        self.sharing = sharing;
        let sharing = self.sharing.as_ref();
        let ours = self.classes.iter_mut().enumerate().filter(|(_, class)| class.ours && !class.exempt);
        ours.map(move |(number, class)| {
            let top = class.top as f64;
            let m = sharing.filter(|_| known).map_or(decision.m, |sharing| sharing.level(number));
            let monitor = &period.monitors[class.class];
            class.share.learn(if monitor.active { &monitor.window.decided[..=class.top] } else { &[] });
            (class.class, class.share.knob(m.min(top), top))
        })
    }

    /// What the plant can carry is not known yet: nobody is degraded for it.
    fn hold_top(&mut self) -> Decision {
        let m = top(&self.classes);
        self.law.track(m);
        Decision { m, trim: 0.0 }
    }

    /// What is known of a site's costs: the linear models of its classes, weighted by their rates, as soon as they say
    /// something of the contract's page size; else what was told; else the mean cost of a full response.
    fn known(&self, site: &OwnSite, monitors: &[ClassMonitor]) -> Option<Known> {
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

    /// The sites that this plant serves: their numbers and their status.
    pub(crate) fn sites(&self) -> impl Iterator<Item = (usize, &SiteStatus)> {
        self.sites.iter().map(|site| (site.number, &site.status))
    }

    /// m_site of the classes whose site has a contract.
    pub(crate) fn site_levels(&self) -> impl Iterator<Item = (usize, f64)> {
        let ours = self.classes.iter().enumerate().filter(|(_, class)| class.ours && !class.exempt);
        ours.filter_map(|(number, class)| Some((class.class, self.sharing.as_ref()?.site_level(number)?)))
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

    /// Notes what the classes' requests cost, where that may have moved: most classes are quiet most of the time, and
    /// the others are asked several times a period.
    fn price(&mut self, monitors: &[ClassMonitor]) {
        for index in 0..self.classes.len() {
            let class = &self.classes[index];
            if class.stale || monitors[class.class].active || self.reported_line.is_some() {
                let cost = |level| self.cost(class, level, monitors).unwrap_or(0.0);
                let costs =
                    core::array::from_fn(
                        |level| if level > 0 && level <= class.top { cost(level) } else { 0.0 },
                    );
                let class = &mut self.classes[index];
                (class.costs, class.stale) = (costs, false);
            }
        }
    }

    /// The plant is not what it was taken for: what was measured of its requests is forgotten.
    pub(crate) fn forget_costs(&mut self, monitors: &mut [ClassMonitor], lanes: &[Arc<LaneCounters>]) {
        for class in &self.classes {
            monitors[class.class].forget_costs(class.levels_here(), lanes, class.class);
        }
        self.forgotten = true;
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

    /// Offered load as a function of one m, of the rates and costs known now.
    fn demand(&self, period: &Period<'_>) -> Demand {
        let top = self.classes.iter().filter(|c| c.ours && !c.exempt).map(|c| c.top).max().unwrap_or(0);
        let mut demand = Demand { top: top as u8, ..Demand::default() };
        for class in &self.classes {
            if Self::is_quiet(class, period) {
                continue;
            }
            for level in 0..=top {
                let given = if class.exempt { class.top } else { level.min(class.top) };
                let load = self.load(class, given, period);
                demand.arriving[level] += load.arriving;
                demand.link[level] += load.link;
                demand.waiting[level] += load.waiting;
            }
        }
        demand
    }

    /// The same of a plant that is shared, with its parts by site and priority.
    fn parts(&mut self, period: &Period<'_>, sharing: &mut Sharing) -> Demand {
        sharing.clear();
        for (number, class) in self.classes.iter().enumerate() {
            let monitor = &period.monitors[class.class];
            if Self::is_quiet(class, period) {
                continue;
            }
            let fixed = if class.exempt { 1.0 } else { monitor.window.guaranteed_share() };
            sharing.take(number, class, fixed, |level| self.load(class, level, period));
        }
        for index in 0..self.sites.len() {
            let first = self.sites[index].classes.start;
            let known = || self.known(&self.sites[index], period.monitors);
            self.sites[index].status.utilization_promised = sharing.promise(first, known);
        }
        sharing.demand()
    }

    /// Most classes are quiet most of the time: they ask for nothing at any level.
    fn is_quiet(class: &Governed, period: &Period<'_>) -> bool {
        let monitor = &period.monitors[class.class];
        let quiet = if class.ours { monitor.rate.mean() == 0.0 } else { !monitor.active };
        quiet && period.waiting[class.class] == 0
    }

    /// What a class brings at a level.
    fn load(&self, class: &Governed, given: usize, period: &Period<'_>) -> Load {
        let monitor = &period.monitors[class.class];
        let (arriving, link) = if !class.ours {
            self.sent_here(class, period)
        } else if given == 0 {
            (monitor.rate.mean() * self.rejection_cost, 0.0)
        } else {
            let bytes = if class.here[given] { monitor.costs[given].bytes().unwrap_or(0.0) } else { 0.0 };
            (monitor.rate.mean() * class.costs[given], monitor.rate.mean() * bytes)
        };
        let waiting = match period.waiting[class.class] {
            0 => 0.0,
            waiting => f64::from(waiting) / period.nominal_seconds * class.costs[class.level_at(given)],
        };
        let link = self.plant.bandwidth_bytes_per_second.map_or(0.0, |limit| link / limit);
        Load { arriving, link, waiting }
    }

    /// Work and bytes per second of a class that another loop sends here: as much as came, whatever our m.
    fn sent_here(&self, class: &Governed, period: &Period<'_>) -> (f64, f64) {
        let monitor = &period.monitors[class.class];
        let at = |level| {
            let rate = class.starts(monitor, level, period.seconds);
            (rate * class.costs[level], rate * monitor.costs[level].bytes().unwrap_or(0.0))
        };
        class.levels_here().map(at).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    /// R times the cost at the level given in this period, of each site and of all.
    fn served(&mut self, period: &Period<'_>) -> f64 {
        let mut sum = 0.0;
        let mut model = 0.0;
        let mut guaranteed = (0.0, 0.0);
        let mut own = 0;
        for site in &mut self.sites {
            (site.status.utilization, site.status.guaranteed_share) = (0.0, 0.0);
        }
        for class in &self.classes {
            let monitor = &period.monitors[class.class];
            if !monitor.active {
                continue;
            }
            let mut served = 0.0;
            for level in class.levels_here() {
                let rate = class.starts(monitor, level, period.seconds);
                let work = rate * class.costs[level];
                (served, sum) = (served + work, sum + work);
            }
            if class.ours {
                let work = monitor.window.counts.rejected() as f64 / period.seconds * self.rejection_cost;
                (served, sum) = (served + work, sum + work);
                while self.sites[own].number != class.site {
                    (own, guaranteed) = (own + 1, (0.0, 0.0));
                }
                if !class.exempt {
                    let arrivals = monitor.window.counts.arrivals as f64;
                    guaranteed.0 += arrivals * monitor.window.guaranteed_share();
                    guaranteed.1 += arrivals;
                }
                let status = &mut self.sites[own].status;
                status.utilization += served;
                status.guaranteed_share = guaranteed.0 / f64::max(guaranteed.1, 1.0);
            }
            let (a, b) = monitor.line.costs();
            let released = class.served(monitor);
            model += (a * released.requests + b * released.bytes) / f64::from(self.plant.workers);
        }
        self.status.utilization_model = model / period.seconds;
        sum
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

/// The sites that a plant serves, in order.
fn own_sites(promises: &Promises, plant: usize, classes: &[Governed]) -> Vec<OwnSite> {
    let own = promises.sites.iter().enumerate().filter(|(_, site)| site.plant == plant);
    let own = own.map(|(number, site)| OwnSite {
        number,
        guarantee: site.guarantee,
        told: crate::plan::told(promises, site),
        classes: {
            let place = |last: bool| classes.partition_point(|c| c.site < number + usize::from(last));
            place(false)..place(true)
        },
        status: SiteStatus { name: site.name.clone(), plant, ..SiteStatus::default() },
    });
    own.collect()
}
