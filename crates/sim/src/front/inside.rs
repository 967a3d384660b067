//! A pre-forking server whose own processes decide (UC 6): a request waits unseen in the listen queue until a process takes it
//! and asks the engine.
//!
//! The engine and the promises are those of the gateway, but it knows only what a server's processes know. A request arrives
//! when a process takes it, and is then in service. The queue is known only by its length when the last request was taken. A
//! client that leaves is not noticed before its response is written, so its request is served like all others.

use super::gateway::Gateway;
use super::{Arriving, Decision, Front, Order};
use crate::record::Recorded;
use crate::request::Request;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// A pre-forking server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerProcesses {
    /// How many processes there are.
    pub count: u32,
    /// How many requests may wait for a process; more are rejected unseen.
    pub listen_queue: usize,
    /// How long a process stays occupied after each response and each rejection without counting it: until its client has seen
    /// the end, and until its turn to take the next connection.
    pub held: Duration,
    /// How long clients wait: one that waited longer has left before its response is written. `None`: clients stay.
    pub patience: Option<Duration>,
    /// What the controller learns about the queue.
    pub looks: QueueLook,
    /// Whether the controller knows that requests wait unseen, and counts the service for a client that has left as work.
    pub is_counted: bool,
}

impl ServerProcesses {
    /// A server with `count` processes and Apache's listen queue, whose clients stay, and which occupies no uncounted time.
    pub const fn new(count: u32) -> ServerProcesses {
        ServerProcesses {
            count,
            listen_queue: LISTEN_QUEUE,
            held: Duration::ZERO,
            patience: None,
            looks: QueueLook::Length,
            is_counted: true,
        }
    }
}

/// What a server's processes report about its listen queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLook {
    /// Nothing.
    Nothing,
    /// For how long the queue has not been empty.
    Stands,
    /// The same, and how many requests wait, unless the queue is all but full: then nobody knows how many come.
    Length,
    /// The same, and how many requests wait, also if the queue is full.
    FullLength,
}

/// The default length of the listen queue of Apache and nginx.
const LISTEN_QUEUE: usize = 511;
/// The most requests that the gate has room for, so that the engine queues none.
const WIDE: u32 = 65_535;

/// The server's listen queue, its processes, and the engine by which they decide.
pub struct Inside {
    engine: Gateway,
    is: ServerProcesses,
    period: Duration,
    queue: VecDeque<(Token, Request, Target)>,
    free: u32,
    /// When occupied processes are free again, in order of time.
    returning: VecDeque<Instant>,
    looked: Looked,
    /// When the requests in progress arrived.
    arrived: BTreeMap<u64, Instant>,
}

/// What the processes saw of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    /// When a process last took a request.
    at: Instant,
    /// How many others waited then.
    waiting: u32,
    /// Since when each process has found another request behind the one that it took; `None` if the last process found none.
    stands_since: Option<Instant>,
}

impl Inside {
    /// A server whose processes keep these promises.
    ///
    /// # Errors
    /// Which promises contradict each other.
    pub fn new(promises: &Promises, seed: u64, is: ServerProcesses) -> Result<Inside, Vec<String>> {
        let mut promises = promises.inside_servers();
        let [plant] = &mut promises.plants[..] else {
            return Err(vec!["processes of several servers are not simulated together".to_owned()]);
        };
        (plant.max_connections, plant.waits_unseen) = (WIDE, is.is_counted);
        Ok(Inside {
            engine: Gateway::new(&promises, seed)?,
            is,
            period: promises.control.period,
            queue: VecDeque::new(),
            free: is.count,
            returning: VecDeque::new(),
            looked: Looked::default(),
            arrived: BTreeMap::new(),
        })
    }

    fn has_left(&self, now: Instant, token: Token) -> bool {
        let waited = self.arrived.get(&token.0).map(|arrived| now.since(*arrived));
        self.is.patience.zip(waited).is_some_and(|(patience, waited)| waited > patience)
    }

    /// Lets free processes take requests and decide on them.
    fn take(&mut self, now: Instant, orders: &mut Vec<Order>) {
        while self.returning.front().is_some_and(|free| *free <= now) {
            self.returning.pop_front();
            self.free += 1;
        }
        while self.free > 0
            && let Some((token, request, target)) = self.queue.pop_front()
        {
            self.free -= 1;
            let stands = !self.queue.is_empty();
            self.looked = Looked {
                at: now,
                waiting: self.queue.len() as u32,
                stands_since: stands.then(|| self.looked.stands_since.unwrap_or(now)),
            };
            let arriving = Arriving { request: &request, target, token };
            match self.engine.arrive(now, arriving, &mut Vec::new()) {
                Decision::Start(start) => orders.push(Order::Start(token, start)),
                Decision::Reject(reason) => {
                    orders.push(Order::Drop(token, reason));
                    self.hold(now);
                }
                Decision::Wait => unreachable!("the gate has room for all"),
            }
        }
    }

    /// Ends a process's work on a request; the process is free after its holding time.
    fn hold(&mut self, now: Instant) {
        if self.is.held.is_zero() {
            self.free += 1;
        } else {
            self.returning.push_back(now + self.is.held);
        }
    }

    /// What the controller reads about the queue; nothing if no process has taken a request for a period.
    fn read_queue(&self, now: Instant, readings: &Readings) -> Readings {
        let Looked { at, waiting, stands_since } = self.looked;
        let is_recent = self.is.looks != QueueLook::Nothing && now.since(at) < self.period;
        let stands = stands_since.filter(|_| is_recent).map(|since| now.since(since));
        // A queue counts as full if it is nearly so, as with the kernel's figures: a process has just taken a request from it.
        let is_full = waiting > 0 && (waiting + waiting / 16 + 1) as usize >= self.is.listen_queue;
        let reports = match self.is.looks {
            QueueLook::Nothing | QueueLook::Stands => false,
            QueueLook::Length => !is_full,
            QueueLook::FullLength => true,
        };
        Readings {
            queue_stands: stands.unwrap_or_default(),
            queue_waiting: (is_recent && reports).then_some(waiting),
            ..readings.clone()
        }
    }
}

impl Front for Inside {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.engine.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        let Arriving { request, target, token } = arrival;
        if self.queue.len() >= self.is.listen_queue {
            return Decision::Reject(Reason::QueueFull);
        }
        self.arrived.insert(token.0, now);
        self.queue.push_back((token, request.clone(), target));
        let mut given = Vec::new();
        self.take(now, &mut given);
        let mut own = Decision::Wait;
        for order in given {
            match order {
                Order::Start(of, start) if of == token => own = Decision::Start(start),
                Order::Drop(of, reason) if of == token => own = Decision::Reject(reason),
                other => orders.push(other),
            }
        }
        own
    }

    fn retry_after(&mut self, token: Token) -> Option<Duration> {
        self.engine.retry_after(token)
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        let representative = service.representative && (self.is.is_counted || !self.has_left(now, token));
        self.engine.release(now, token, Service { representative, ..service }, &mut Vec::new());
        self.hold(now);
        self.take(now, orders);
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, _orders: &mut Vec<Order>) {
        let outcome = if self.has_left(now, token) { Outcome::Abandoned } else { outcome };
        if self.arrived.remove(&token.0).is_some() {
            // If a client's patience ends while its request waits, the request leaves the queue too.
            self.queue.retain(|(waiting, ..)| *waiting != token);
        }
        self.engine.depart(now, token, outcome, &mut Vec::new());
    }

    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        let readings = self.read_queue(now, readings);
        let next = self.engine.tick(now, &readings, &mut Vec::new());
        self.take(now, orders);
        self.returning.front().map_or(next, |free| next.min(*free))
    }

    fn service_level(&self, class: u16) -> Option<f64> {
        self.engine.service_level(class)
    }

    fn status(&self) -> Option<Status> {
        self.engine.status()
    }

    fn recorded(&self) -> Option<Recorded> {
        self.engine.recorded()
    }
}
