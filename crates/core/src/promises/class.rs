//! A class: a group of requests in a site, by a condition, with a priority and promises about time.

use crate::time::Duration;
use alloc::{string::String, vec::Vec};
use core::net::IpAddr;

/// A group of clients or requests in a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Requests that belong to it.
    pub condition: Condition,
    /// 1 is the highest: it is degraded last, and waits the shortest. Classes of one priority share one m.
    pub priority: u8,
    /// The relative deadline of its requests (AC): a request that is admitted is released within it, and one that could
    /// not be is refused at once. Within a priority earlier deadlines are served first.
    pub deadline: Option<Duration>,
    /// What its deadline prefers. `None`: as its site.
    pub prefer: Option<Prefer>,
    /// What it was promised about its response times (QM).
    pub delay: Option<Delay>,
    /// delta: its mean response time, relative to those of the other classes of its site that have a ratio (PR). A class
    /// has a delay or a ratio, not both.
    pub ratio: Option<f64>,
}

/// What admission by deadline prefers, where it cannot have both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// No worker idles: a request that can just be done in time is admitted.
    #[default]
    Throughput,
    /// Waits are short: the queue is kept to a fifth of the deadline, and a worker may idle now and then for it.
    Delay,
}

/// D_ref: a bound on the response time of a class, arrival to release (QM).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// The bound.
    pub target: Duration,
    /// The percentile of response times that the bound is for; `None`: the mean.
    pub percentile: Option<f64>,
}

/// The priority of classes without one: after all classes that have one.
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
