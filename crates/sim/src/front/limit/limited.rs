//! The shell around a limiter that makes it a [`Front`]: it knows where each request is, and keeps the queue.
//!
//! An admitted request gets its site's highest level at its site's plant. Each plant has one limiter. Exempt requests
//! pass and are not counted.
//!
//! Waiting requests stand in order of arrival in the queue of their plant.

use super::{Ask, Limiter, RoundTrip};
use crate::front::full_quality::FullQuality;
use crate::front::slots::Slots;
use crate::front::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use crate::service::FullService;
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// A front that limits.
pub(in crate::front) struct Limited {
    full: FullQuality,
    plants: Vec<LimitedPlant>,
    slots: Slots<LimitedStage>,
}

/// One plant's limiter and queue.
struct LimitedPlant {
    limiter: Box<dyn Limiter>,
    in_flight: u32,
    queue: VecDeque<QueuedRequest>,
}

#[derive(Clone, Copy)]
struct QueuedRequest {
    token: Token,
    arrived: Instant,
    service: Duration,
    level: u8,
}

#[derive(Clone, Copy, Default)]
enum LimitedStage {
    #[default]
    Free,
    Waiting {
        plant: usize,
    },
    InFlight {
        plant: usize,
        started: Instant,
        in_flight: u32,
    },
}

impl Limited {
    /// A front with one limiter for each plant.
    ///
    /// # Errors
    /// What in the promises cannot be, or plants without their truth.
    pub(in crate::front) fn new(
        promises: &Promises,
        workload: &Workload,
        seed: u64,
        limiters: Vec<Box<dyn Limiter>>,
    ) -> Result<Self, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let plants = limiters.into_iter().map(|limiter| LimitedPlant {
            limiter,
            in_flight: 0,
            queue: VecDeque::new(),
        });
        Ok(Limited { full, plants: plants.collect(), slots: Slots::new() })
    }

    fn start(&mut self, now: Instant, plant: usize, token: Token) {
        let in_flight = &mut self.plants[plant].in_flight;
        *in_flight += 1;
        let in_flight = *in_flight;
        *self.slots.at(token) = LimitedStage::InFlight { plant, started: now, in_flight };
    }

    /// Accounts for a request that is gone from its plant, and starts waiting ones.
    fn leave(&mut self, now: Instant, plant: usize, sample: RoundTrip, orders: &mut Vec<Order>) {
        let limited = &mut self.plants[plant];
        limited.in_flight -= 1;
        limited.limiter.released(now, sample);
        self.dispatch(now, plant, orders);
    }

    fn dispatch(&mut self, now: Instant, plant: usize, orders: &mut Vec<Order>) {
        while let Some(waiter) = self.plants[plant].queue.front().copied() {
            let limited = &mut self.plants[plant];
            let ask = Ask { in_flight: limited.in_flight, service: waiter.service };
            if !limited.limiter.admit(now, ask) {
                return;
            }
            limited.queue.pop_front();
            self.start(now, plant, waiter.token);
            let start = Start { plant, level: waiter.level, reason: Reason::Full };
            orders.push(Order::Start(waiter.token, start));
        }
    }

    /// Drops requests whose time is up; returns when the next one's is.
    fn expire(&mut self, now: Instant, plant: usize, orders: &mut Vec<Order>) -> Instant {
        let limited = &mut self.plants[plant];
        let bounds = limited.limiter.queue();
        if bounds.most == 0 {
            return Instant::FAR;
        }
        while let Some(waiter) = limited.queue.front().copied() {
            if now.since(waiter.arrived) < bounds.wait {
                return waiter.arrived + bounds.wait;
            }
            limited.queue.pop_front();
            *self.slots.at(waiter.token) = LimitedStage::Free;
            orders.push(Order::Drop(waiter.token, Reason::WaitTimeout));
        }
        // A request that begins to wait later is not late before that.
        now + bounds.wait
    }
}

impl Front for Limited {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.full.classifier.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, _orders: &mut Vec<Order>) -> Decision {
        let Arriving { request, target, token } = arrival;
        let start = self.full.start(&target);
        if target.exempt {
            return Decision::Start(start);
        }
        let Start { plant, level, .. } = start;
        // A request without a draw of its own is taken for the mean of its law.
        let full = FullService::of(request, request.work.unwrap_or(1.0));
        let service = self.full.plan.work(target.site, start, full).service;
        let limited = &mut self.plants[plant];
        let ask = Ask { in_flight: limited.in_flight, service };
        if limited.queue.is_empty() && limited.limiter.admit(now, ask) {
            self.start(now, plant, token);
            return Decision::Start(start);
        }
        match limited.limiter.queue().most {
            0 => Decision::Reject(Reason::Overload),
            most if limited.queue.len() >= most as usize => Decision::Reject(Reason::QueueFull),
            _ => {
                limited.queue.push_back(QueuedRequest { token, arrived: now, service, level });
                *self.slots.at(token) = LimitedStage::Waiting { plant };
                Decision::Wait
            }
        }
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let LimitedStage::InFlight { plant, started, in_flight } = *self.slots.at(token) {
            *self.slots.at(token) = LimitedStage::Free;
            let ended = if service.representative { Outcome::Completed } else { Outcome::Failed };
            self.leave(now, plant, RoundTrip { started, in_flight, ended }, orders);
        }
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        match self.slots.take(token) {
            LimitedStage::Free => {}
            LimitedStage::Waiting { plant } => {
                self.plants[plant].queue.retain(|waiter| waiter.token != token);
            }
            LimitedStage::InFlight { plant, started, in_flight } => {
                self.leave(now, plant, RoundTrip { started, in_flight, ended: outcome }, orders);
            }
        }
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        let mut next = Instant::FAR;
        for plant in 0..self.plants.len() {
            next = next.min(self.plants[plant].limiter.tick(now));
            next = next.min(self.expire(now, plant, orders));
        }
        next
    }
}

#[cfg(test)]
pub(in crate::front) mod tests {
    use super::super::tests::at;
    use super::super::{Queue, StaticLimit};
    use super::*;
    use crate::front::tests::{promises, workload};

    /// A front and what it ordered.
    pub(in crate::front) struct Driven<F> {
        front: F,
        orders: Vec<Order>,
    }

    impl<F: Front> Driven<F> {
        pub(in crate::front) fn new(front: F) -> Self {
            Driven { front, orders: Vec::new() }
        }

        pub(in crate::front) fn arrive(&mut self, now: f64, path: &str, token: u64) -> Decision {
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

    fn limited(most: u32, queue: Queue) -> Driven<Limited> {
        let limiter = Box::new(StaticLimit { most, queue });
        Driven::new(Limited::new(&promises(), &workload(), 1, vec![limiter]).unwrap())
    }

    fn queued(most: u32, queue: u32, wait_ms: u64) -> Driven<Limited> {
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
        let none = Limited::new(&promises(), &Workload::default(), 1, vec![]);
        assert!(none.err().unwrap()[0].contains("1 plants are promised, but the workload tells of 0"));
        let without_sites = Promises { sites: vec![], ..promises() };
        assert!(Limited::new(&without_sites, &workload(), 1, vec![]).is_ok());
    }
}
