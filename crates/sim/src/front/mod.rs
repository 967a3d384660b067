//! What stands in front of the plants and decides: the gateway's own engine, or a comparator.
//!
//! Comes in: arrivals, releases, departures and ticks, as the gateway's engine gets them. Goes out: a [`Decision`] on each
//! arrival, and an [`Order`] for each request that waited.

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

/// What decides. The run calls it as the gateway calls the engine, and does what it says.
pub trait Front {
    /// Where a request belongs; `None` if no site has its host.
    fn classify(&self, request: &Request) -> Option<Target>;

    /// Decides on an arrival. Orders for others go to `orders`; the arriving one's own decision is returned.
    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision;

    /// The `Retry-After` of the rejection that the request got last, in whole seconds. A comparator sends none.
    fn retry_after(&mut self, _token: Token) -> Option<Duration> {
        None
    }

    /// The plant is free of a started request, and its response was sent.
    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>);

    /// The plant refused a started request, which departs then.
    fn refused(&mut self, _token: Token) {}

    /// The client of a started request has left, and its plant does not know. Whether its place is kept until the plant is done
    /// with it; else it departs at once. A comparator closes the connection and takes the place for free.
    fn abandon(&mut self, _now: Instant, _token: Token) -> bool {
        false
    }

    /// A request that was started or waits has ended. Called once for each, after `release` if that came.
    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>);

    /// Runs what is due; says when to come again.
    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant;

    /// The time by which it must be ticked, if something since the last tick has brought that forward.
    fn due(&self) -> Instant {
        Instant::FAR
    }

    /// The time of the next tick instead of `next`, if no request arrives before `until` and the state is not read.
    fn put_off(&mut self, next: Instant, _until: Instant) -> Instant {
        next
    }

    /// m of a class, for the record. A comparator has none.
    fn service_level(&self, _class: u16) -> Option<f64> {
        None
    }

    /// What the engine knows. A comparator has none.
    fn status(&self) -> Option<Status> {
        None
    }

    /// What of that the record keeps.
    fn recorded(&self) -> Option<Recorded> {
        self.status().map(Recorded::from)
    }

    /// A probe to send to a server now; asked for after each tick. Only the agent probes.
    fn probe(&mut self, _now: Instant) -> Option<ServerProbe> {
        None
    }

    /// The probe has ended: answered, or failed.
    fn probed(&mut self, _now: Instant, _answered: bool) {}

    /// What it has learned that a later run can begin with, as text. Only AC's prediction has any.
    fn learned(&self) -> Option<String> {
        None
    }
}

/// A request that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// What it asks for.
    pub request: &'a Request,
    /// Where it belongs.
    pub target: Target,
    /// The request's name from here on, and its slot: the lower 32 bits are small numbers, used again after a
    /// departure.
    pub token: Token,
}

/// A question to a server that waits in its queue like a request. One is under way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProbe {
    /// Which plant is asked.
    pub plant: usize,
    /// One worker's time for the answer.
    pub service: Duration,
}

/// What becomes of an arrival.
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

/// What becomes of one that waited.
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
