//! A class: a group of requests in a site, by a condition, with a priority and promises about time.

use crate::time::Duration;
use alloc::{string::String, vec, vec::Vec};
use core::net::IpAddr;

/// A group of clients or requests in a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name, unique in its site.
    pub name: String,
    /// Requests that belong to it.
    pub condition: Condition,
    /// 1 is the highest: it is degraded last, and waits the shortest. Classes of one priority share one m.
    pub priority: u8,
    /// The relative deadline of its requests (AC): a request that is admitted is released within it, and one that could
    /// not be is refused at once. Within a priority earlier deadlines are served first.
    pub deadline: Option<Duration>,
    /// How many of a hundred of its admitted requests keep the deadline. `None`: as its site.
    pub in_time: Option<f64>,
    /// The preference of its deadline. `None`: as its site.
    pub prefer: Option<Prefer>,
    /// The delay that was promised (QM).
    pub delay: Option<Delay>,
    /// delta: its mean response time, relative to those of the other classes of its site that have a ratio (PR). A class
    /// has a ratio, or a delay or a deadline.
    pub ratio: Option<f64>,
}

/// What admission by deadline prefers, where it cannot have both busy workers and short waits.
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
    /// The longest response time that keeps the promise.
    pub target: Duration,
    /// The percentile of response times that the bound is for; `None`: the mean.
    pub percentile: Option<f64>,
}

impl Delay {
    /// N: the departures of the window over which the promise is judged. It is short enough that the class's recent past
    /// counts, and long enough that ten late requests are expected in it: one late request of a thousand says nothing of
    /// 99.9 %.
    pub fn window(&self) -> f64 {
        const USUAL: f64 = 1000.0;
        self.expected_late_in(Self::LATE_EVIDENCE).max(USUAL)
    }

    /// The lowest rate (1/s) at which a percentile can be measured, since departures older than [`Delay::EXPIRY`] say nothing.
    pub fn least_rate(&self) -> f64 {
        self.expected_late_in(Self::LATE_EVIDENCE) / Self::EXPIRY.as_secs_f64()
    }

    /// The number of departures in which `late` late ones are expected, if the promise is just kept.
    fn expected_late_in(&self, late: f64) -> f64 {
        self.percentile.map_or(0.0, |percentile| late / (1.0 - percentile / 100.0))
    }

    /// A mean counts as missed beyond this multiple of the promise.
    pub const MISSED_MEAN: f64 = 1.1;
    /// A share of requests that are late or lost counts as missed beyond this multiple of the share that may be.
    pub const MISSED_SHARE: f64 = 1.3;
    /// The part of a class's requests that may fail or be turned away, however short the mean of its answers is.
    pub const MOST_LOST: f64 = 0.01;
    /// The fewest late requests that are evidence of a share: ten have a deviation of a third.
    pub const LATE_EVIDENCE: f64 = 10.0;
    /// The age at which a departure leaves the window.
    pub const EXPIRY: Duration = Duration::from_secs(600);
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
            in_time: None,
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
    /// Methods as sent, such as `GET`.
    pub methods: Vec<String>,
    /// Names of keys of the query.
    pub query: Vec<String>,
    /// Header name and value pattern.
    pub headers: Vec<(String, String)>,
    /// Cookie name and value pattern.
    pub cookies: Vec<(String, String)>,
    /// Networks that the client's address may be in.
    pub clients: Vec<Network>,
}

impl Condition {
    /// Requests whose path has this pattern. Further parts are fields: `Condition { methods, ..Condition::path("/buy/*") }`.
    pub fn path(pattern: &str) -> Self {
        Condition { paths: vec![pattern.into()], ..Condition::default() }
    }

    /// Requests of this method.
    pub fn method(method: &str) -> Self {
        Condition { methods: vec![method.into()], ..Condition::default() }
    }

    /// Requests with a header of this name whose value has this pattern.
    pub fn header(name: &str, pattern: &str) -> Self {
        Condition { headers: vec![(name.into(), pattern.into())], ..Condition::default() }
    }
}

/// A network in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Any address of the network.
    pub address: IpAddr,
    /// How many leading bits count: at most 32, or 128 for IPv6.
    pub prefix_bits: u8,
}

impl Network {
    /// Whether an address is in it. A mapped address, `::ffff:a.b.c.d`, is the IPv4 address that it maps.
    pub fn contains(&self, address: IpAddr) -> bool {
        fn same_prefix(a: u128, b: u128, width: u32, prefix: u8) -> bool {
            let ignored = width.saturating_sub(prefix.into());
            ignored >= 128 || a >> ignored == b >> ignored
        }
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                // A mapped network, ::ffff:a.b.c.d/n, has the mapping in its first 96 bits.
                let mapped = if self.address.is_ipv6() { 96 } else { 0 };
                same_prefix(
                    a.to_bits().into(),
                    b.to_bits().into(),
                    32,
                    self.prefix_bits.saturating_sub(mapped),
                )
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => same_prefix(a.to_bits(), b.to_bits(), 128, self.prefix_bits),
            _ => false,
        }
    }
}
