//! The fronts, which decide before the plants: the gateway's own engine, or a comparator.
//!
//! Input: arrivals, releases, departures and ticks, as the gateway's engine gets them. Output: a [`Decision`] on each arrival,
//! and an [`Order`] for each request that waited.

mod aces;
mod agent;
mod books;
mod comparator;
mod form;
mod full_quality;
mod gateway;
mod inside;
mod limit;
mod pools;
mod priorities;
mod products;
mod rules;
mod sac;
mod shell;
mod slots;

pub use agent::{AgentSettings, ShownCounters};
pub use comparator::Comparator;
pub use gateway::Gateway;
pub use inside::{Inside, QueueLook, ServerProcesses};

use crate::record::Recorded;
use crate::request::Request;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::{Duration, Instant};

/// A front decides on requests. The run calls it as the gateway calls the engine, and carries out its decisions.
pub trait Front {
    /// The site and class of a request; `None` if no site has its host.
    fn classify(&self, request: &Request) -> Option<Target>;

    /// Decides on an arrival and returns the decision. Orders for waiting requests go to `orders`.
    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision;

    /// The `Retry-After` of a request's last rejection, in whole seconds. A comparator sends none.
    fn retry_after(&mut self, _token: Token) -> Option<Duration> {
        None
    }

    /// Called when the plant has finished a started request, and its response was sent.
    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>);

    /// Called when the plant refused a started request, which then departs.
    fn refused(&mut self, _token: Token) {}

    /// The client of a started request has left, and its plant does not know. Whether its place is kept until the plant is
    /// done with it; else it departs at once. Most comparators close the connection and take the place for free.
    fn abandon(&mut self, _now: Instant, _token: Token) -> bool {
        false
    }

    /// The client of a request that waits has left. Whether it is started in its turn all the same; else it departs at once.
    fn abandon_waiting(&mut self, _token: Token) -> bool {
        false
    }

    /// A request that was started or waits has ended. Called once for each, after `release` if that came.
    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>);

    /// Runs what is due, and returns the time of the next tick.
    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant;

    /// The time by which the front must be ticked, if something since the last tick has moved it forward.
    fn due(&self) -> Instant {
        Instant::FAR
    }

    /// The time of the next tick instead of `next`, if no request arrives before `until` and the state is not read.
    fn put_off(&mut self, next: Instant, _until: Instant) -> Instant {
        next
    }

    /// The service level m of a class, for the record. A comparator has none.
    fn service_level(&self, _class: u16) -> Option<f64> {
        None
    }

    /// The engine's status. A comparator has none.
    fn status(&self) -> Option<Status> {
        None
    }

    /// The part of the status that the record keeps.
    fn recorded(&self) -> Option<Recorded> {
        self.status().map(Recorded::from)
    }

    /// A probe to send to a server now; asked for after each tick. Only the agent probes.
    fn probe(&mut self, _now: Instant) -> Option<ServerProbe> {
        None
    }

    /// The probe has ended: answered, or failed.
    fn probed(&mut self, _now: Instant, _answered: bool) {}

    /// What the front has learned that a later run can begin with, as text. Only AC's prediction has any.
    fn learned(&self) -> Option<String> {
        None
    }
}

/// A request that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// The request itself.
    pub request: &'a Request,
    /// The request's site and class.
    pub target: Target,
    /// Names the request from here on. The lower 32 bits are the slot: a small number that is used again after a departure.
    pub token: Token,
}

/// A probe, which waits in the server's queue like a request. At most one is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProbe {
    /// Which plant is asked.
    pub plant: usize,
    /// One worker's time for the answer.
    pub service: Duration,
}

/// What a front decides on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Hand it to this plant now, at this level, for this reason.
    Start(Start),
    /// Keep it until an [`Order`] comes.
    Wait,
    /// Turn it away. It does not depart.
    Reject(Reason),
}

/// How a request is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The plant.
    pub plant: usize,
    /// 1..=M.
    pub level: u8,
    /// Why this level.
    pub reason: Reason,
}

/// What a front decides on a request that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start it.
    Start(Token, Start),
    /// Answer it with a rejection. It does not depart.
    Drop(Token, Reason),
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::workload::{self, Discipline, Workload};
    use plimsoll_core::promises::{Condition, Plant, Promises, Site};
    use plimsoll_core::time::Duration;

    pub(crate) fn truth() -> workload::Plant {
        workload::Plant::new(Discipline::Workers(8), 511, Duration::from_millis(40))
    }

    pub(crate) fn workload() -> Workload {
        Workload { plants: vec![truth()], ..Workload::default() }
    }

    pub(crate) fn promises() -> Promises {
        let mut site = Site::new("site", &["light", "full"]);
        site.exempt.push(Condition { paths: vec!["/health".into()], ..Condition::default() });
        Promises::of(Plant::new("origin", 8), site)
    }
}
