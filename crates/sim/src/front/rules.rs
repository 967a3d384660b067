//! What products and limiters are made of: rules that decide for one plant, and hear of each request that ends. They know
//! neither tokens nor levels; `shell.rs` makes them a [`Front`](super::Front).

use crate::request::Request;
use crate::workload::Plant;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::time::{Duration, Instant};
use std::fmt::Debug;

/// What is decided before one plant.
pub(super) trait Rules: Debug {
    /// Decides on an arrival.
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling;

    /// Decides on a request whose delay is over.
    fn resume(&mut self, _now: Instant, _holds: u32) -> Ruling {
        Ruling::Start(0)
    }

    /// Whether a request that waits may start now; `service` is what it takes, as in [`Asked`]. `Some` means that it does, and
    /// holds what this number says.
    fn dequeue(&mut self, _now: Instant, _service: Duration) -> Option<u32> {
        None
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
    /// What it truly takes of one worker.
    pub(super) service: Duration,
    /// How many wait in the queue.
    pub(super) waiting: usize,
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

/// Makes rules from the plant's truth and a seed of their own.
pub(super) type MakeRules = Box<dyn Fn(&Plant, u64) -> Box<dyn Rules>>;
