//! Rules, which products and limiters implement: they decide for one plant, and are informed of each request that ends. They
//! know neither tokens nor levels; `shell.rs` makes them a [`Front`](super::Front).

use crate::request::Request;
use crate::workload::Plant;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::time::{Duration, Instant};
use std::fmt::Debug;

/// A comparator's decisions before one plant.
pub(super) trait Rules: Debug {
    /// Decides on an arrival.
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling;

    /// Decides on a request whose delay is over.
    fn resume(&mut self, _now: Instant, _holds: u32) -> Ruling {
        Ruling::Start(0)
    }

    /// Whether a waiting request may start now; `service` is its service time, as in [`Asked`]. `Some` means that the request
    /// starts, and is the number that it holds.
    fn dequeue(&mut self, _now: Instant, _service: Duration) -> Option<u32> {
        None
    }

    /// A request that was started is gone from the plant. `holds` is what [`Ruling::Start`] said.
    fn released(&mut self, _now: Instant, _gone: Gone) {}

    /// Whether a request whose client has left keeps its place, in the queue and in service.
    fn keeps_abandoned(&self) -> bool {
        false
    }

    /// The longest that a request waits in the queue.
    fn wait(&self) -> Duration {
        Duration::MAX
    }

    /// Runs what is due, and returns the time of the next call.
    fn tick(&mut self, _now: Instant) -> Instant {
        Instant::FAR
    }

    /// Whether the rules let requests start later than they arrive.
    fn delays(&self) -> bool {
        false
    }
}

/// A request as rules see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    /// The priority of the request's class; 1 is the highest.
    pub(super) priority: u8,
    /// The true service time of the request on one worker.
    pub(super) service: Duration,
    /// How many requests wait in the queue.
    pub(super) waiting: usize,
}

/// What the rules decide on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The request starts, and holds this number until it is released.
    Start(u32),
    /// The rules decide on the request again after this time; it then holds this number.
    After(Duration, u32),
    /// The request waits; the smallest number is served first, and of equal ones the one that came first.
    Wait(i64),
    /// The request is rejected.
    Reject(Reason),
}

/// A request that is gone from the plant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) holds: u32,
    pub(super) started: Instant,
    pub(super) ended: Outcome,
}

/// Makes rules for a plant, from its true properties and a seed.
pub(super) type MakeRules = Box<dyn Fn(&Plant, u64) -> Box<dyn Rules>>;
