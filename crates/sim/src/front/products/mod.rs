//! Overload protection of four products, written as in their configurations: directives behind the product's name, a `;`
//! between them. One file a product says what it does and by which source; `shell.rs` makes each a [`Front`](super::Front).
//!
//! Rules decide for one plant, and hear of each request that ends. They know neither tokens nor levels.

mod directives;
mod envoy;
mod haproxy;
mod mod_qos;
mod nginx;
mod shell;

pub(super) use directives::Directives;
pub(super) use shell::ProductFront;

use crate::request::Request;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::time::{Duration, Instant};
use std::fmt::Debug;

/// What a product decides before one plant.
pub(super) trait Rules: Debug {
    /// Decides on an arrival.
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling;

    /// Decides on a request whose delay is over.
    fn resume(&mut self, _now: Instant, _holds: u32) -> Ruling {
        Ruling::Start(0)
    }

    /// Whether a request that waits may start now. `true` means that it does.
    fn dequeue(&mut self) -> bool {
        false
    }

    /// A request that was started is gone from the plant. `holds` is what [`Ruling::Start`] said.
    fn released(&mut self, _now: Instant, _gone: Gone) {}

    /// The longest that a request waits in the queue.
    fn wait(&self) -> Duration {
        Duration::MAX
    }

    /// Runs what is due; says when to come again.
    fn tick(&mut self, _now: Instant) -> Instant {
        Instant::FAR
    }

    /// Whether it lets requests start later than they come.
    fn delays(&self) -> bool {
        false
    }
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    /// That of its class; 1 is the highest.
    pub(super) priority: u8,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It starts, and holds what this number says.
    Start(u32),
    /// It is looked at again after this time, and then holds what this number says.
    After(Duration, u32),
    /// It waits; the least number is served first, and of equal ones the one that came first.
    Wait(i64),
    /// It is turned away.
    Reject(Reason),
}

/// A request that is gone from the plant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) holds: u32,
    pub(super) started: Instant,
    pub(super) ended: Outcome,
}

/// Makes the rules of a product from a seed of their own.
pub(super) type MakeRules = Box<dyn Fn(u64) -> Box<dyn Rules>>;

/// The product that a text names, with its directives; `None` if it names none.
///
/// # Errors
/// A directive that is not understood, and how it is written.
pub(super) fn parse(text: &str) -> Option<Result<MakeRules, String>> {
    let (name, rest) = text.trim().split_once(':')?;
    let directives = Directives::new(rest);
    Some(match name.trim() {
        "haproxy" => haproxy::read(directives),
        "nginx" => nginx::read(directives),
        "envoy" => envoy::read(directives),
        "mod_qos" => mod_qos::read(directives),
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    pub(super) fn request(path: &str, client: u8) -> Request {
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, client));
        Request { path: path.to_owned(), client, ..Request::default() }
    }

    pub(super) fn rules(text: &str) -> Box<dyn Rules> {
        let made = parse(text).unwrap_or_else(|| panic!("{text}: no product"));
        made.unwrap_or_else(|wrong| panic!("{text}: {wrong}"))(7)
    }

    pub(super) fn wrong(text: &str) -> String {
        parse(text).unwrap_or_else(|| panic!("{text}: no product")).err().unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn other_names_are_no_products() {
        assert!(parse("concurrency:64").is_none() && parse("nginx").is_none());
    }
}
