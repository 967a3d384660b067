//! The algorithms that other gateways use against overload, one in each file, and the adapter that makes each
//! [`Rules`](super::rules::Rules).
//!
//! A limiter decides whether one more request may start now, and is informed of each request that ends. It knows neither tokens
//! nor classes. One `Front` for each algorithm would repeat the bookkeeping of requests eight times, and a comparison would
//! compare the bookkeeping.

mod aimd;
mod cac;
mod gradient;
mod gradient2;
mod limited;
mod rate;
mod static_limit;

pub(super) use aimd::Aimd;
pub(super) use cac::Cac;
pub(super) use gradient::Gradient;
pub(super) use gradient2::Gradient2;
pub(super) use limited::Limited;
pub(super) use rate::Rate;
pub(super) use static_limit::StaticLimit;

use plimsoll_core::request::Outcome;
use plimsoll_core::time::{Duration, Instant};
use std::fmt::Debug;

/// Decides for one plant whether one more request may start.
pub(super) trait Limiter: Debug {
    /// Whether a request may start; `true` means that it starts now.
    fn admit(&mut self, now: Instant, ask: Ask) -> bool;

    /// A request that was started is gone from the plant.
    fn released(&mut self, _now: Instant, _sample: RoundTrip) {}

    /// Runs what is due, and returns the time of the next call, which may come earlier.
    fn tick(&mut self, _now: Instant) -> Instant {
        Instant::FAR
    }

    /// The bounds of waiting for a request that may not start.
    fn queue(&self) -> Queue {
        Queue::NONE
    }
}

/// What a limiter may know of a request that asks to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// Requests that were started and not released, without this one and without exempt ones.
    pub(super) in_flight: u32,
    /// The true service time of the request on one worker.
    pub(super) service: Duration,
}

/// A request that is gone from the plant.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// When it was started.
    pub(super) started: Instant,
    /// Requests in flight when it was started, itself included.
    pub(super) in_flight: u32,
    /// How the request ended.
    pub(super) ended: Outcome,
}

/// The bounds of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    /// The most requests that wait at once.
    pub(super) most: u32,
    /// The longest that a request waits.
    pub(super) wait: Duration,
}

impl Queue {
    pub(super) const NONE: Queue = Queue { most: 0, wait: Duration::MAX };
}

/// The bounds of an adaptive limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) initial: u32,
    pub(super) least: u32,
    pub(super) most: u32,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::front) fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9).round() as u64)
    }

    pub(in crate::front) fn ask(in_flight: u32) -> Ask {
        Ask { in_flight, service: Duration::from_millis(40) }
    }

    /// A round trip that took `rtt` and ends at `now`.
    pub(in crate::front) fn after(now: Instant, rtt: Duration, in_flight: u32) -> RoundTrip {
        let started = Instant::from_nanos(now.as_nanos() - rtt.as_nanos() as u64);
        RoundTrip { started, in_flight, ended: Outcome::Completed }
    }
}
