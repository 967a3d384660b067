//! What was promised, as plain data: plants, sites, classes, levels, and how the loops are set.
//!
//! This is what `config` yields, what a program that embeds the engine writes by hand, and what the engine is built
//! from. Nothing here decides. Everything that a request is matched by is text; `classify.rs` gives it meaning.
//! [`Promises::validate`] says what cannot be.

use crate::control::Share;
use crate::time::Duration;
use alloc::{format, string::String, vec::Vec};
use core::net::IpAddr;

mod deadline;
pub(crate) mod diff;
pub mod plan;
pub(crate) mod registry;

pub use deadline::{Admission, DEFAULT_TYPES, Prefer, RequestType};

/// The most levels a site may have; a level number fits the knob's byte, and counters have a fixed layout.
pub const MAX_LEVELS: usize = 8;

/// Everything that was promised, and the machines that must keep it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Promises {
    /// The servers that the loops control: one per upstream, or per folder that the gateway serves itself.
    pub plants: Vec<Plant>,
    /// The virtual servers, matched in order: the first whose host matches.
    pub sites: Vec<Site>,
    /// How the loops run.
    pub control: Control,
}

/// A server whose utilization is held at a set point.
#[derive(Clone, Debug, PartialEq)]
pub struct Plant {
    /// Its name in the configuration, metrics and status.
    pub name: String,
    /// How many requests it works on at once (s): Apache's `MaxRequestWorkers`, an application server's processes. Where
    /// it is to be found, what to begin with.
    pub workers: u32,
    /// The number of workers is not known: the engine finds it between these, and starts no more requests than it found.
    pub find_workers: Option<WorkerBounds>,
    /// The most requests in service at once, all threads together; beyond it requests wait. At least 1.
    pub max_connections: u32,
    /// The load line: the utilization U* to hold, in (0, 1].
    pub set_point: f64,
    /// How U is sensed.
    pub sense: Sense,
    /// The second resource of UC 7.2: the most bytes per second that the link carries, 1 / b'.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// A mean service time over this in one period means U = 1 (CA 4.2.1).
    pub response_time_limit: Option<Duration>,
    /// The gateway shares the plant's machine: a rejection's cost c enters the plant's U (UC eq. 2).
    pub same_host: bool,
    /// Costs known beforehand (from a profile). Where the plant reports its utilization they drive the loop from the
    /// first period; by gaps, each level's own service times do as soon as there are any.
    pub costs: Option<Costs>,
    /// The bounds of the queue in front of the plant.
    pub queue: QueueBounds,
    /// The most that contracts may promise of it together, in (0, 1). `None`: the load line, or, where deadlines are
    /// promised, the planning rule of [`crate::promises::plan`].
    pub ceiling: Option<f64>,
    /// The response header in which it reports what a request did cost, in seconds of service.
    pub cost_header: Option<String>,
}

/// What tells the utilization of a plant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Gap estimation over s workers: U = time average of min(in service, s) / s (CA 4.2.1, generalized).
    #[default]
    Gap,
    /// A reading pushed into `tick`: ORCA's `endpoint-load-metrics` of the upstream, or the gateway's own CPU for a
    /// folder that it serves itself.
    Reported,
}

/// Between what the number of workers is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerBounds {
    /// Never fewer are in service at once, if that many want to be.
    pub least: u32,
    /// Never more.
    pub most: u32,
}

/// The linear model's coefficients, UC eq. 1 and 2: what one request takes of the plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// a: fixed part, utilization times seconds per request (s).
    pub per_request_seconds: f64,
    /// b: per delivered byte [s/byte].
    pub per_byte_seconds: f64,
    /// c: per rejected request (s).
    pub per_rejection_seconds: f64,
}

impl Costs {
    fn are_possible(self) -> bool {
        let all = [self.per_request_seconds, self.per_byte_seconds, self.per_rejection_seconds];
        all.iter().all(|cost| cost.is_finite() && *cost >= 0.0)
    }
}

/// How long, and how many, may wait for a plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// The most that wait at once; one more is rejected as `queue-full`.
    pub max_waiting: u32,
    /// A request that waited this long is answered instead of started.
    pub max_wait: Duration,
}

impl Default for QueueBounds {
    fn default() -> Self {
        // Generous: a healthy burst must wait, not fail. The level loop empties the queue, these bounds only end it.
        QueueBounds { max_waiting: 20_000, max_wait: Duration::from_secs(10) }
    }
}

/// A capacity contract (UC 5.1): what a site gets at full quality, whatever the others do.
///
/// It takes U* = a R + b W of the plant. Requests inside it are served at the highest level; a site over its rate gets
/// what its own U* carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// R_max, requests per second.
    pub rate: f64,
    /// W_max, delivered body bytes per second. `None`: as many as so many full responses have, and U* = R_max times the
    /// mean cost of one.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// How much may come at once: so many seconds' worth of rate and of bandwidth.
    pub burst: Duration,
}

impl Guarantee {
    /// Two seconds' worth.
    pub const BURST: Duration = Duration::from_secs(2);

    /// So many requests and bytes per second.
    pub fn new(rate: f64, bandwidth_bytes_per_second: f64) -> Self {
        let bandwidth_bytes_per_second = Some(bandwidth_bytes_per_second);
        Guarantee { rate, bandwidth_bytes_per_second, burst: Self::BURST }
    }

    fn validate(&self, site: &str, wrong: &mut Vec<String>) {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if !is_rate(self.rate) || !self.bandwidth_bytes_per_second.is_none_or(is_rate) {
            wrong.push(format!("{site}: a guaranteed rate and bandwidth must be above 0"));
        }
        if self.burst.is_zero() || self.burst > Duration::from_secs(3600) {
            wrong.push(format!(
                "{site}: a guarantee's burst lies above 0 and at most at an hour; 2 s is usual"
            ));
        }
    }
}

/// A virtual server.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// Host patterns (see [`Condition`] for the pattern's form), any of which matches; empty matches every host.
    pub hosts: Vec<String>,
    /// The plant that serves it, unless a level says otherwise: an index into [`Promises::plants`].
    pub plant: usize,
    /// The levels of service 1..=M, lowest quality first. Level 0, rejection, is not listed. At least one.
    pub levels: Vec<Level>,
    /// The classes, matched in order; what matches none belongs to the site's last, built-in class `default`.
    pub classes: Vec<Class>,
    /// Never degraded or rejected: health checks. Any condition that holds exempts. Their load counts all the same, in a
    /// class of its own, and is taken from what the others may have.
    pub exempt: Vec<Condition>,
    /// What a client is, for the hash that picks its level.
    pub identity: Identity,
    /// Which requests are the fraction F.
    pub choice: Choice,
    /// Its contract. `None`: best effort, served from what the contracts leave.
    pub guarantee: Option<Guarantee>,
    /// Its share of what is left, relative to the other sites'.
    pub weight: f64,
    /// Whether it may take of what is left. `false`: held to its contract even on an idle plant.
    pub share_excess: bool,
    /// Priority of the class `default`.
    pub default_priority: u8,
    /// The relative deadline of its requests, where their class has none: see [`Class::deadline`].
    pub deadline: Option<Duration>,
    /// What its deadlines prefer, where a class does not say.
    pub prefer: Prefer,
    /// Types of requests by what they cost, matched in order; what matches none has one of [`DEFAULT_TYPES`].
    pub types: Vec<RequestType>,
    /// The request header in which an application announces what a request will cost, in seconds of service.
    pub cost_header: Option<String>,
    /// What the class `default` was promised of its response times.
    pub default_delay: Option<Delay>,
    /// The delta of the class `default`.
    pub default_ratio: Option<f64>,
    /// Its ratios hold even where work must be left undone for it.
    pub strict_ratios: bool,
    /// What its requests cost, where that differs from [`Plant::costs`]: a and b belong to one server and one kind of
    /// content.
    pub costs: Option<Costs>,
}

/// A version of the service.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name in headers, metrics and logs.
    pub name: String,
    /// The plant that serves this level, where it is not the site's.
    pub plant: Option<usize>,
    /// Cost relative to the level above, if the operator knows it: the first guess until it is measured.
    pub cost_ratio: Option<f64>,
}

/// A group of clients or requests in a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Who belongs to it.
    pub condition: Condition,
    /// 1 is the highest: it is degraded last, and waits the shortest. Classes of one priority share one m.
    pub priority: u8,
    /// The relative deadline of its requests: who is admitted is released within it, and who could not be is refused at
    /// once (AC). Earlier ones wait shorter within a priority, and the plan is stricter.
    pub deadline: Option<Duration>,
    /// What its deadline prefers. `None`: as its site.
    pub prefer: Option<Prefer>,
    /// What it was promised of its response times (QM).
    pub delay: Option<Delay>,
    /// delta: its mean response time, relative to those of the other classes of its site that have one (PR). Not beside
    /// a delay.
    pub ratio: Option<f64>,
}

/// D_ref: a bound on the response time of a class, arrival to release (QM).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// D_ref.
    pub target: Duration,
    /// Of so many requests in a hundred; `None`: of the mean.
    pub percentile: Option<f64>,
}

/// The priority of classes that were given none: after all that were.
pub const LAST_PRIORITY: u8 = u8::MAX;

impl Class {
    /// A class without priority or deadline.
    pub fn new(name: &str, condition: Condition) -> Self {
        Class {
            name: name.into(),
            condition,
            priority: LAST_PRIORITY,
            deadline: None,
            prefer: None,
            delay: None,
            ratio: None,
        }
    }
}

/// All parts that are given must hold; a part holds if any of its alternatives does. An empty condition holds always.
///
/// A pattern is text with at most one `*`, which stands for any run of characters: `/buy/*`, `*.php`, `*.example.org`,
/// `*`. Hosts and header names ignore case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Path patterns, compared with the path without its query.
    pub paths: Vec<String>,
    /// Methods, as sent.
    pub methods: Vec<String>,
    /// Header name and value pattern.
    pub headers: Vec<(String, String)>,
    /// Cookie name and value pattern.
    pub cookies: Vec<(String, String)>,
    /// Client networks.
    pub clients: Vec<Network>,
}

/// A network in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Any address of the network.
    pub address: IpAddr,
    /// How many leading bits count: at most 32, or 128 for IPv6.
    pub prefix_bits: u8,
}

/// What makes two requests the same client.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Identity {
    /// Its address; of an IPv6 address the first 64 bits, since a household has that many.
    #[default]
    Address,
    /// A header's value, the address where it is absent.
    Header(String),
    /// A cookie's value, the address where it is absent.
    Cookie(String),
}

/// Which requests are the fraction F that is served at the higher level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// By a keyed hash of the client: a client keeps its level while m stands still (UC 4.2). A client that carries
    /// more than a tenth of its class's load is chosen at random all the same.
    #[default]
    Client,
    /// At random, request by request (CA 4.2.2).
    Random,
}

/// How the loops run.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Whether decisions are acted on.
    pub mode: Mode,
    /// T, the control period.
    pub period: Duration,
    /// The law that moves m.
    pub law: Law,
    /// Told to a rejected client as `Retry-After`.
    pub retry_after: Duration,
    /// What of the law of the delays runs.
    pub delay_law: DelayParts,
    /// What admission by deadline looks at.
    pub admission: Admission,
    /// Of a budget: least and most shares of the priorities that classes have, the highest first. One that is not told has
    /// [`Share::ANY`].
    pub shares: Vec<Share>,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            mode: Mode::Control,
            period: Duration::from_secs(1),
            law: Law::FeedForward,
            retry_after: Duration::from_secs(5),
            delay_law: DelayParts::default(),
            admission: Admission::default(),
            shares: Vec::new(),
        }
    }
}

/// What of the law of the delays runs: the paper's comparison (QM 3.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayParts {
    /// The model's prediction, and PI on what is left.
    #[default]
    Both,
    /// The prediction, and P.
    PredictorP,
    /// The prediction alone.
    Predictor,
    /// PI alone, around what was predicted once the first window was full.
    Feedback,
}

/// Whether decisions are acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    #[default]
    Control,
    /// Everything is decided, counted and logged, and every request passes at full quality.
    Observe,
    /// Nothing is decided: no level, no rejection, no queue. The twin of every scenario.
    Off,
}

/// The law that moves m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Law {
    /// Feed-forward from the measured rate and costs, PI on what is left. The default.
    #[default]
    FeedForward,
    /// The PI controller of UC 4.4 with its constants as printed, for this gain margin. For comparison.
    Paper {
        /// G_m, above 1.
        gain_margin: f64,
    },
}

impl Promises {
    /// One plant, one site on it, the loops as they are by default.
    pub fn of(plant: Plant, site: Site) -> Self {
        Promises { plants: alloc::vec![plant], sites: alloc::vec![site], control: Control::default() }
    }

    /// Says what cannot be, one sentence each: what an engine could not be built from.
    ///
    /// # Errors
    /// All of them at once.
    pub fn validate(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        if self.control.period.is_zero() {
            wrong.push("the control period is zero; 1 s is usual".into());
        }
        if let Law::Paper { gain_margin } = self.control.law
            && (gain_margin.is_nan() || gain_margin <= 1.0)
        {
            wrong.push(format!("the gain margin is {gain_margin}; it must be above 1, 4 is usual"));
        }
        if !Share::fit(&self.control.shares) {
            wrong.push(
                "shares lie from 0 to 1, least below most, and the least ones add up to 1 at most".into(),
            );
        }
        for plant in &self.plants {
            plant.validate(&mut wrong);
        }
        for site in &self.sites {
            site.validate(self.plants.len(), &mut wrong);
        }
        let classes: usize = self.sites.iter().map(|site| site.classes.len() + 2).sum();
        if self.plants.len().max(classes) > usize::from(u16::MAX) {
            wrong.push(format!("{} plants and {classes} classes; at most 65535 of each", self.plants.len()));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl Promises {
    /// By plant: whether some class that it serves, at whatever level, has a deadline.
    pub(crate) fn keeping_deadlines(&self) -> Vec<bool> {
        let mut keeping = alloc::vec![false; self.plants.len()];
        for site in self.sites.iter().filter(|site| site.has_deadlines()) {
            site.plants().for_each(|plant| keeping[plant] = true);
        }
        keeping
    }

    /// Whether some class that this plant serves, at whatever level, has a deadline.
    pub fn has_deadlines(&self, plant: usize) -> bool {
        let mut sites = self.sites.iter().filter(|site| site.has_deadlines());
        sites.any(|site| site.plants().any(|own| own == plant))
    }
}

impl Plant {
    /// A plant of so many workers with everything else as it is by default: as many connections, a load line of 0.85,
    /// gap estimation, a generous queue.
    pub fn new(name: &str, workers: u32) -> Self {
        Plant {
            name: name.into(),
            workers,
            find_workers: None,
            max_connections: workers,
            set_point: 0.85,
            sense: Sense::Gap,
            bandwidth_bytes_per_second: None,
            response_time_limit: None,
            same_host: false,
            costs: None,
            queue: QueueBounds::default(),
            ceiling: None,
            cost_header: None,
        }
    }

    fn validate(&self, wrong: &mut Vec<String>) {
        let name = &self.name;
        if self.workers == 0 || self.max_connections == 0 {
            wrong.push(format!("{name}: workers and connections must be at least 1"));
        }
        if self.find_workers.is_some_and(|bounds| bounds.least == 0 || bounds.least > bounds.most) {
            wrong.push(format!("{name}: workers are looked for between at least 1 and no fewer"));
        }
        if self.max_connections > u32::from(u16::MAX) {
            wrong.push(format!("{name}: {} connections; at most 65535", self.max_connections));
        }
        if !self.costs.is_none_or(|costs| costs.are_possible()) {
            wrong.push(format!("{name}: costs are seconds, at least 0"));
        }
        if self.ceiling.is_some_and(|ceiling| !(ceiling > 0.0 && ceiling < 1.0)) {
            wrong.push(format!("{name}: the ceiling of contracts lies above 0 and below 1"));
        }
        if !(self.set_point > 0.0 && self.set_point <= 1.0) {
            wrong.push(format!(
                "{name}: the set point is {}; it lies above 0 and at most at 1",
                self.set_point
            ));
        }
        if self.bandwidth_bytes_per_second.is_some_and(|b| b.is_nan() || b <= 0.0) {
            wrong.push(format!("{name}: the bandwidth must be above 0"));
        }
    }
}

impl Site {
    /// A site for every host, on the first plant, with these levels, lowest quality first.
    pub fn new(name: &str, levels: &[&str]) -> Self {
        let level = |name: &&str| Level { name: (*name).into(), plant: None, cost_ratio: None };
        Site {
            name: name.into(),
            hosts: Vec::new(),
            plant: 0,
            levels: levels.iter().map(level).collect(),
            classes: Vec::new(),
            exempt: Vec::new(),
            identity: Identity::default(),
            choice: Choice::default(),
            guarantee: None,
            weight: 1.0,
            share_excess: true,
            default_priority: LAST_PRIORITY,
            deadline: None,
            prefer: Prefer::default(),
            types: Vec::new(),
            cost_header: None,
            default_delay: None,
            default_ratio: None,
            strict_ratios: false,
            costs: None,
        }
    }

    /// Whether one of its classes has a deadline.
    pub fn has_deadlines(&self) -> bool {
        self.deadline.is_some() || self.classes.iter().any(|class| class.deadline.is_some())
    }

    /// The plants of its levels 1..=M.
    pub(crate) fn plants(&self) -> impl Iterator<Item = usize> + '_ {
        self.levels.iter().map(|level| level.plant.unwrap_or(self.plant))
    }

    fn validate(&self, plants: usize, wrong: &mut Vec<String>) {
        let name = &self.name;
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            wrong.push(format!("{name}: has {} levels; 1 to {MAX_LEVELS} are possible", self.levels.len()));
        }
        if self.plant >= plants || self.levels.iter().any(|level| level.plant.is_some_and(|p| p >= plants)) {
            wrong.push(format!("{name}: names a plant that is not there"));
        }
        if self.levels.last().is_some_and(|top| top.plant.is_some_and(|plant| plant != self.plant)) {
            wrong.push(format!(
                "{name}: the highest level is served by the site's own upstream; that one is held"
            ));
        }
        if self.levels.iter().any(|level| level.cost_ratio.is_some_and(|r| !(r > 0.0 && r <= 1.0))) {
            wrong.push(format!("{name}: a level's cost ratio lies above 0 and at most at 1"));
        }
        if let Some(guarantee) = &self.guarantee {
            guarantee.validate(name, wrong);
        } else if !self.share_excess {
            wrong.push(format!(
                "{name}: has no guarantee and no share of what is left: nothing would be served"
            ));
        }
        if !(self.weight.is_finite() && self.weight > 0.0) {
            wrong.push(format!("{name}: a weight must be above 0"));
        }
        if !self.costs.is_none_or(|costs| costs.are_possible()) {
            wrong.push(format!("{name}: costs are seconds, at least 0"));
        }
        let priorities = self.classes.iter().map(|class| class.priority);
        if priorities.chain([self.default_priority]).any(|priority| priority == 0) {
            wrong.push(format!("{name}: the highest priority is 1"));
        }
        let deadlines = self.classes.iter().map(|class| class.deadline).chain([self.deadline]);
        if deadlines.flatten().any(|deadline| deadline.is_zero()) {
            wrong.push(format!("{name}: a deadline must be above 0"));
        }
        if self.types.iter().any(|own| !(own.quantum.is_finite() && own.quantum > 0.0)) {
            wrong.push(format!("{name}: what a type's request costs must be above 0"));
        }
        self.validate_response_times(wrong);
    }

    fn validate_response_times(&self, wrong: &mut Vec<String>) {
        let name = &self.name;
        let classes = self.classes.iter().map(|class| (class.delay, class.ratio, class.priority));
        let own = (self.default_delay, self.default_ratio, self.default_priority);
        let all: Vec<_> = classes.chain([own]).collect();
        for delay in all.iter().filter_map(|(delay, ..)| *delay) {
            if delay.target.is_zero() {
                wrong.push(format!("{name}: a delay must be above 0"));
            }
            if delay.percentile.is_some_and(|p| !(50.0..=99.9).contains(&p)) {
                wrong.push(format!("{name}: a delay's percentile lies between 50 and 99.9"));
            }
        }
        if all.iter().any(|(delay, ratio, _)| delay.is_some() && ratio.is_some()) {
            wrong.push(format!("{name}: a class has a delay or a ratio, not both"));
        }
        let ratios: Vec<_> =
            all.iter().filter_map(|(_, ratio, at)| ratio.map(|ratio| (ratio, *at))).collect();
        if ratios.iter().any(|(ratio, _)| !(ratio.is_finite() && *ratio > 0.0)) {
            wrong.push(format!("{name}: a ratio must be above 0"));
        }
        if ratios.len() == 1 {
            wrong.push(format!("{name}: one class alone has a ratio; it needs another to be held against"));
        }
        if ratios.iter().any(|(_, priority)| *priority != ratios[0].1) {
            wrong.push(format!("{name}: classes with a ratio have one priority; the ratio sets them apart"));
        }
    }
}
