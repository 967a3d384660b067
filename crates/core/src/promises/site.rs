//! A site: a virtual server with its levels, classes and contract.

use super::{Class, Condition, Costs, Delay, LAST_PRIORITY, Prefer, RequestType};
use crate::time::Duration;
use alloc::{string::String, vec::Vec};

/// A virtual server: a set of hosts with its classes, levels and promises.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The site's name, unique in the configuration.
    pub name: String,
    /// Host patterns (see [`Condition`] for the pattern's form), any of which matches; empty matches every host.
    pub hosts: Vec<String>,
    /// The plant that serves it, unless a level says otherwise: an index into [`Promises::plants`](super::Promises::plants).
    pub plant: usize,
    /// The levels of service 1..=M, lowest quality first, at least one. Level 0, rejection, is not listed.
    pub levels: Vec<Level>,
    /// The classes, matched in order; a request that matches none belongs to the built-in class `default`, the last one.
    pub classes: Vec<Class>,
    /// Requests for which any of these conditions holds, such as health checks, are never degraded or rejected. They
    /// have a class of their own, and their load is taken from what the other classes may have.
    pub exempt: Vec<Condition>,
    /// The identity of a client, for the hash that picks its level.
    pub identity: Identity,
    /// Which requests are the fraction F.
    pub choice: Choice,
    /// The site's contract. `None`: best effort, served from what the contracts leave.
    pub guarantee: Option<Guarantee>,
    /// The site's share of a plant that is shared out, its contract included, relative to the other sites'.
    pub weight: f64,
    /// Whether it may take more than its contract. `false` holds it to that even on an idle plant.
    pub share_excess: bool,
    /// Priority of the class `default`.
    pub default_priority: u8,
    /// The relative deadline of classes that have none of their own and no ratio: see [`Class::deadline`].
    pub deadline: Option<Duration>,
    /// How many of a hundred admitted requests keep their deadline, where a class does not say.
    pub in_time: f64,
    /// The preference of its deadlines, for classes without one of their own.
    pub prefer: Prefer,
    /// Types of requests by what they cost, matched in order; a request that matches none has one of
    /// [`DEFAULT_TYPES`](super::DEFAULT_TYPES).
    pub types: Vec<RequestType>,
    /// The request header in which an application announces what a request will cost, in seconds of service.
    pub cost_header: Option<String>,
    /// The delay that was promised to the class `default`.
    pub default_delay: Option<Delay>,
    /// The delta of the class `default`.
    pub default_ratio: Option<f64>,
    /// Whether ratios hold even where workers must idle for them.
    pub strict_ratios: bool,
    /// The costs of its requests, where they differ from [`Plant::costs`](super::Plant::costs): a and b belong to one
    /// server and one kind of content.
    pub costs: Option<Costs>,
}

/// The built-in classes of every site, in the order of their numbers after the site's own classes.
const BUILT_IN_CLASSES: [&str; 2] = ["default", "exempt"];

impl Site {
    /// How many of a hundred admitted requests keep their deadline, unless the operator says otherwise.
    pub const IN_TIME: f64 = 99.0;

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
            in_time: Site::IN_TIME,
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
        self.shortest_deadline().is_some()
    }

    pub(crate) fn shortest_deadline(&self) -> Option<Duration> {
        self.deadlines().map(|(_, deadline)| deadline).min()
    }

    /// The priority of the class with this index among its classes; the built-in classes have the priority of `default`.
    pub(crate) fn priority_of(&self, index: usize) -> u8 {
        self.classes.get(index).map_or(self.default_priority, |class| class.priority)
    }

    /// The relative deadline of the class with this index among its classes; `default` comes after its own. A class with a
    /// ratio does not have the deadline of its site: the turns of the ratio decide when its requests start.
    pub fn deadline_of(&self, index: usize) -> Option<Duration> {
        let (own, ratio) =
            self.classes.get(index).map_or((None, self.default_ratio), |class| (class.deadline, class.ratio));
        own.or(self.deadline.filter(|_| ratio.is_none()))
    }

    /// The indexes of the classes with a deadline, and their deadlines.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = (usize, Duration)> + '_ {
        (0..=self.classes.len()).filter_map(|index| Some((index, self.deadline_of(index)?)))
    }

    /// How many of a hundred admitted requests of that class keep their deadline.
    pub fn in_time_of(&self, index: usize) -> f64 {
        self.classes.get(index).and_then(|class| class.in_time).unwrap_or(self.in_time)
    }

    /// The lowest level that the load may give to requests of that class. If the class has a deadline, the deadline decides
    /// which requests are refused, and the load only how well the others are served. But a deadline does not hold a site to its
    /// contract on a server that has room, so a site that takes no part in the excess is refused by its level.
    pub(crate) fn least_level(&self, index: usize) -> u8 {
        u8::from(self.deadline_of(index).is_some() && self.held_to().is_none())
    }

    /// In which order the load serves the classes of a site, lowest first: by priority, and of one priority a class with a
    /// delay before classes with a deadline and what is beside them. Deadlines refuse what the server cannot do in time, so
    /// that the load alone would reject the class with the delay for what they take.
    pub(crate) fn load_order(&self, index: usize) -> (u8, bool) {
        let priority = self.priority_of(index);
        let refuse = |index: usize| self.least_level(index) > 0;
        let has_delay = self.classes.get(index).map_or(self.default_delay, |class| class.delay).is_some();
        let mut deadlines = (0..=self.classes.len()).filter(|other| refuse(*other));
        let beside_deadlines = deadlines.any(|other| self.priority_of(other) == priority);
        (priority, beside_deadlines && (refuse(index) || !has_delay))
    }

    /// The contract beyond which the site gets nothing, even on an idle server.
    fn held_to(&self) -> Option<&Guarantee> {
        self.guarantee.as_ref().filter(|_| !self.share_excess)
    }

    /// The time between two promised requests (s), if the site gets no others; else 0.
    pub(crate) fn next_promised(&self) -> f64 {
        self.held_to().map_or(0.0, |contract| 1.0 / contract.rate)
    }

    /// The plants of its levels 1..=M.
    pub(crate) fn plants(&self) -> impl Iterator<Item = usize> + '_ {
        self.levels.iter().map(|level| level.plant.unwrap_or(self.plant))
    }

    /// Names of its classes: its own in their order, then the built-in ones.
    pub fn class_names(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|class| class.name.as_str()).chain(BUILT_IN_CLASSES)
    }
}

/// A version of the service.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The level's name in headers, metrics and logs.
    pub name: String,
    /// The plant that serves this level, where it is not the site's.
    pub plant: Option<usize>,
    /// Cost relative to the level above, if the operator knows it: the first guess until it is measured.
    pub cost_ratio: Option<f64>,
}

/// A capacity contract (UC 5.1): what a site gets at full quality, whatever the other sites do.
///
/// A contract takes U* = a R + b W of the plant. Requests inside it are served at the highest level; a site over its rate gets
/// what its own U* carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guarantee {
    /// R_max, requests per second.
    pub rate: f64,
    /// W_max, delivered body bytes per second. `None`: the bytes of R_max full responses, and U* = R_max times the mean
    /// cost of one.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// The burst: how many seconds' worth of rate and of bandwidth may come at once.
    pub burst: Duration,
}

impl Guarantee {
    /// The burst of a contract unless the file says otherwise: two seconds of its rate.
    pub const BURST: Duration = Duration::from_secs(2);

    /// A contract for a rate (requests/s) and a bandwidth (byte/s), with the usual burst.
    pub fn new(rate: f64, bandwidth_bytes_per_second: f64) -> Self {
        let bandwidth_bytes_per_second = Some(bandwidth_bytes_per_second);
        Guarantee { rate, bandwidth_bytes_per_second, burst: Self::BURST }
    }
}

/// The part of a request by which a client is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Identity {
    /// The address; for IPv6 its first 64 bits, since a household has that many addresses.
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
