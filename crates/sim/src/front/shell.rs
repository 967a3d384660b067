//! The shell around rules that makes them a [`Front`]: it knows where each request is, and keeps those that wait.
//!
//! A request that starts gets its site's highest level. Each plant has its own rules. Exempt requests pass and are not counted.

use super::full_quality::FullQuality;
use super::rules::{Asked, Gone, Rules, Ruling};
use super::slots::Slots;
use super::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use crate::service::FullService;
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// How often requests are looked at that start later: the products' own clocks have no finer time.
const MILLISECOND: Duration = Duration::from_millis(1);

/// Rules in front of the plants.
pub(super) struct RuledFront {
    full: FullQuality,
    /// By class.
    priorities: Vec<u8>,
    plants: Vec<RuledPlant>,
    slots: Slots<RuledStage>,
    arrived: u64,
}

struct RuledPlant {
    rules: Box<dyn Rules>,
    /// By rank and order of arrival.
    queue: BTreeMap<(i64, u64), Queued>,
    /// When those in the queue have waited as long as they may.
    deadlines: BTreeMap<(Instant, u64), i64>,
    /// Requests that start later, with what they will hold.
    delayed: BTreeMap<(Instant, u64), (Queued, u32)>,
}

/// A request in the queue.
struct Queued {
    token: Token,
    level: u8,
    service: Duration,
}

/// Where a request is.
#[derive(Clone, Copy, Default)]
enum RuledStage {
    #[default]
    Free,
    Queued {
        plant: usize,
        place: (i64, u64),
        until: Instant,
    },
    Delayed {
        plant: usize,
        place: (Instant, u64),
    },
    InFlight {
        plant: usize,
        started: Instant,
        holds: u32,
    },
}

impl RuledFront {
    /// The front, with rules for each plant.
    ///
    /// # Errors
    /// What in the promises cannot be, or plants without their truth.
    pub(super) fn new(
        promises: &Promises,
        workload: &Workload,
        seed: u64,
        rules: Vec<Box<dyn Rules>>,
    ) -> Result<Self, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let priorities = promises.sites.iter().flat_map(|site| {
            let own = site.classes.iter().map(|class| class.priority);
            // `default` has the site's own priority, and `exempt` is never asked for.
            own.chain([site.default_priority, site.default_priority])
        });
        let plants = rules.into_iter().map(|rules| RuledPlant {
            rules,
            queue: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            delayed: BTreeMap::new(),
        });
        Ok(RuledFront {
            full,
            priorities: priorities.collect(),
            plants: plants.collect(),
            slots: Slots::new(),
            arrived: 0,
        })
    }

    /// Does with a request what was ruled.
    fn obey(&mut self, now: Instant, plant: usize, ruling: Ruling, request: Queued) -> Decision {
        let Queued { token, level, .. } = request;
        self.arrived += 1;
        let ruled = &mut self.plants[plant];
        let (stage, decision) = match ruling {
            Ruling::Start(holds) => {
                let start = Start { plant, level, reason: Reason::Full };
                (RuledStage::InFlight { plant, started: now, holds }, Decision::Start(start))
            }
            Ruling::Reject(reason) => (RuledStage::Free, Decision::Reject(reason)),
            Ruling::After(delay, holds) => {
                let place = (now + delay, self.arrived);
                ruled.delayed.insert(place, (request, holds));
                (RuledStage::Delayed { plant, place }, Decision::Wait)
            }
            Ruling::Wait(rank) => {
                let (place, until) = ((rank, self.arrived), now + ruled.rules.wait());
                ruled.queue.insert(place, request);
                ruled.deadlines.insert((until, self.arrived), rank);
                (RuledStage::Queued { plant, place, until }, Decision::Wait)
            }
        };
        *self.slots.at(token) = stage;
        decision
    }

    /// Accounts for a request that is gone from its plant, and starts those that wait.
    fn leave(&mut self, now: Instant, plant: usize, gone: Gone, orders: &mut Vec<Order>) {
        self.plants[plant].rules.released(now, gone);
        loop {
            let ruled = &mut self.plants[plant];
            let Some(first) = ruled.queue.first_entry() else { return };
            let Some(holds) = ruled.rules.dequeue(now, first.get().service) else { return };
            let (place, Queued { token, level, .. }) = first.remove_entry();
            if let RuledStage::Queued { until, .. } = *self.slots.at(token) {
                ruled.deadlines.remove(&(until, place.1));
            }
            *self.slots.at(token) = RuledStage::InFlight { plant, started: now, holds };
            orders.push(Order::Start(token, Start { plant, level, reason: Reason::Full }));
        }
    }

    /// Drops those whose time is up, and starts those whose delay is over.
    fn run_due(&mut self, now: Instant, plant: usize, orders: &mut Vec<Order>) {
        while let Some(((until, order), rank)) = self.plants[plant].deadlines.first_key_value() {
            if *until > now {
                break;
            }
            let place = (*rank, *order);
            let ruled = &mut self.plants[plant];
            ruled.deadlines.pop_first();
            if let Some(Queued { token, .. }) = ruled.queue.remove(&place) {
                *self.slots.at(token) = RuledStage::Free;
                orders.push(Order::Drop(token, Reason::WaitTimeout));
            }
        }
        while let Some(entry) = self.plants[plant].delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (request, holds) = entry.remove();
            let token = request.token;
            let ruling = self.plants[plant].rules.resume(now, holds);
            match self.obey(now, plant, ruling, request) {
                Decision::Start(start) => orders.push(Order::Start(token, start)),
                Decision::Reject(reason) => orders.push(Order::Drop(token, reason)),
                Decision::Wait => {}
            }
        }
    }
}

impl Front for RuledFront {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.full.classifier.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, _orders: &mut Vec<Order>) -> Decision {
        let Arriving { request, target, token } = arrival;
        let start = self.full.start(&target);
        if target.exempt {
            return Decision::Start(start);
        }
        let priority = self.priorities.get(usize::from(target.class)).copied().unwrap_or(u8::MAX);
        let Start { plant, level, .. } = start;
        // A request without a draw of its own is taken for the mean of its law.
        let full = FullService::of(request, request.work.unwrap_or(1.0));
        let service = self.full.plan.work(target.site, start, full).service;
        let ruled = &mut self.plants[plant];
        let asked = Asked { request, priority, service, waiting: ruled.queue.len() };
        let ruling = ruled.rules.arrive(now, asked);
        self.obey(now, plant, ruling, Queued { token, level, service })
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let RuledStage::InFlight { plant, started, holds } = *self.slots.at(token) {
            *self.slots.at(token) = RuledStage::Free;
            let ended = if service.representative { Outcome::Completed } else { Outcome::Failed };
            self.leave(now, plant, Gone { holds, started, ended }, orders);
        }
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        match self.slots.take(token) {
            RuledStage::Free => {}
            RuledStage::Queued { plant, place, until } => {
                self.plants[plant].queue.remove(&place);
                self.plants[plant].deadlines.remove(&(until, place.1));
            }
            RuledStage::Delayed { plant, place } => {
                self.plants[plant].delayed.remove(&place);
            }
            RuledStage::InFlight { plant, started, holds } => {
                self.leave(now, plant, Gone { holds, started, ended: outcome }, orders);
            }
        }
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        let mut next = Instant::FAR;
        for plant in 0..self.plants.len() {
            self.run_due(now, plant, orders);
            let RuledPlant { rules, deadlines, .. } = &mut self.plants[plant];
            next = next.min(rules.tick(now));
            // A request that comes later is not late, and starts no sooner, than this.
            let first = deadlines.first_key_value().map_or(now + rules.wait(), |((until, _), _)| *until);
            next = next.min(first);
            if rules.delays() {
                next = next.min(now + MILLISECOND);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::limit::tests::at;
    use super::super::limit::{Limited, Queue, StaticLimit};
    use super::super::tests::{promises, workload};
    use super::*;

    /// A front and what it ordered.
    struct Driven {
        front: RuledFront,
        orders: Vec<Order>,
    }

    impl Driven {
        fn arrive(&mut self, now: f64, path: &str, token: u64) -> Decision {
            let request = Request { path: path.into(), ..Request::default() };
            let target = self.front.classify(&request).unwrap();
            let arriving = Arriving { request: &request, target, token: Token(token) };
            self.front.arrive(at(now), arriving, &mut self.orders)
        }

        fn done(&mut self, now: f64, token: u64) -> Vec<Order> {
            self.front.release(
                at(now),
                Token(token),
                Service { response_bytes: 0, representative: true, cost: None },
                &mut self.orders,
            );
            self.front.depart(at(now), Token(token), Outcome::Completed, &mut self.orders);
            std::mem::take(&mut self.orders)
        }

        fn left(&mut self, now: f64, token: u64) -> Vec<Order> {
            self.front.depart(at(now), Token(token), Outcome::Abandoned, &mut self.orders);
            std::mem::take(&mut self.orders)
        }

        fn tick(&mut self, now: f64) -> (Instant, Vec<Order>) {
            let next = self.front.tick(at(now), &Readings::default(), &mut self.orders);
            (next, std::mem::take(&mut self.orders))
        }
    }

    const FULL: Start = Start { plant: 0, level: 2, reason: Reason::Full };

    fn limited(most: u32, queue: Queue) -> Driven {
        let rules = Box::new(Limited::new(StaticLimit { most, queue }));
        let front = RuledFront::new(&promises(), &workload(), 1, vec![rules]).unwrap();
        Driven { front, orders: Vec::new() }
    }

    fn queued(most: u32, queue: u32, wait_ms: u64) -> Driven {
        limited(most, Queue { most: queue, wait: Duration::from_millis(wait_ms) })
    }

    fn start(token: u64) -> Order {
        Order::Start(Token(token), FULL)
    }

    #[test]
    fn exempt_requests_pass_and_are_not_counted() {
        let mut driven = limited(1, Queue::NONE);
        let exempt = Decision::Start(Start { reason: Reason::Exempt, ..FULL });
        assert_eq!(driven.arrive(0.0, "/health", 0), exempt);
        assert_eq!(driven.arrive(0.0, "/", 1), Decision::Start(FULL));
        assert_eq!(driven.arrive(0.0, "/", 2), Decision::Reject(Reason::Overload));
        assert_eq!(driven.arrive(0.0, "/health", 3), exempt);
        assert_eq!((driven.done(0.1, 0), driven.done(0.1, 3)), (vec![], vec![]));
        assert_eq!(driven.arrive(0.2, "/", 4), Decision::Reject(Reason::Overload));
        driven.done(0.3, 1);
        assert_eq!(driven.arrive(0.4, "/", 1), Decision::Start(FULL));
        assert_eq!(driven.tick(0.5), (Instant::FAR, vec![]));
    }

    #[test]
    fn who_waits_starts_in_order_of_arrival() {
        let mut driven = queued(1, 2, 1000);
        assert_eq!(driven.arrive(0.0, "/", 0), Decision::Start(FULL));
        assert_eq!(driven.arrive(0.1, "/", 1), Decision::Wait);
        assert_eq!(driven.arrive(0.2, "/", 2), Decision::Wait);
        assert_eq!(driven.arrive(0.3, "/", 3), Decision::Reject(Reason::QueueFull));
        assert_eq!(driven.done(0.4, 0), [start(1)]);
        // The slot is free again: its next request is another one.
        assert_eq!(driven.arrive(0.5, "/", 0), Decision::Wait);
        assert_eq!(driven.done(0.6, 1), [start(2)]);
        assert_eq!(driven.done(0.7, 2), [start(0)]);
        assert_eq!(driven.done(0.8, 0), []);
        assert_eq!(driven.arrive(0.9, "/", 0), Decision::Start(FULL));
    }

    #[test]
    fn who_waits_too_long_is_dropped_when_tick_said() {
        let mut driven = queued(1, 9, 1000);
        // While no request waits, none can be late before a second has passed.
        assert_eq!(driven.tick(0.0), (at(1.0), vec![]));
        driven.arrive(0.0, "/", 0);
        driven.arrive(0.4, "/", 1);
        driven.arrive(0.7, "/", 2);
        assert_eq!(driven.tick(1.0), (at(1.4), vec![]));
        assert_eq!(driven.tick(1.4), (at(1.7), vec![Order::Drop(Token(1), Reason::WaitTimeout)]));
        assert_eq!(driven.done(1.5, 0), [start(2)]);
        assert_eq!(driven.tick(1.7), (at(2.7), vec![]));
    }

    #[test]
    fn who_left_makes_room_in_the_queue_and_in_service() {
        let mut driven = queued(1, 2, 1000);
        for token in 0..3 {
            driven.arrive(0.0, "/", token);
        }
        assert_eq!(driven.left(0.1, 1), []);
        // Slot 1 is used again, and stands behind 2.
        assert_eq!(driven.arrive(0.2, "/", 1), Decision::Wait);
        assert_eq!(driven.left(0.3, 0), [start(2)]);
        assert_eq!(driven.done(0.4, 2), [start(1)]);
        assert_eq!(driven.done(0.5, 1), []);
        assert_eq!(driven.tick(9.0), (at(10.0), vec![]));
    }

    #[test]
    fn a_plant_without_its_truth_is_an_error() {
        let none = RuledFront::new(&promises(), &Workload::default(), 1, vec![]);
        assert!(none.err().unwrap()[0].contains("1 plants are promised, but the workload tells of 0"));
        let without_sites = Promises { sites: vec![], ..promises() };
        assert!(RuledFront::new(&without_sites, &workload(), 1, vec![]).is_ok());
    }
}
