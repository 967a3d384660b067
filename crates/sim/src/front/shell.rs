//! The policy around each plant's rules: the rules decide, and the requests that wait for them are kept here.

use super::books::{Asking, Books, Left, Policy, Ruled, Stage, Waiting};
use super::full_quality::FullQuality;
use super::priorities::priorities_of;
use super::rules::{Asked, Gone, Rules, Ruling};
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Reason, Token};
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// How often delayed requests are checked: the products' own clocks are no finer.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The rules in front of each plant.
pub(super) struct PlantRules {
    /// The priority of each class.
    priorities: Vec<u8>,
    plants: Vec<RuledPlant>,
    arrived: u64,
}

struct RuledPlant {
    rules: Box<dyn Rules>,
    /// Waiting requests by rank and order of arrival, each with the time until which it may wait.
    queue: BTreeMap<(i64, u64), (QueuedRequest, Instant)>,
    /// The waiting requests by the time until which they may wait.
    deadlines: BTreeMap<(Instant, u64), i64>,
    /// Requests that start later, each with the number that it will hold.
    delayed: BTreeMap<(Instant, u64), (QueuedRequest, u32)>,
}

/// A request that waits.
#[derive(Clone, Copy)]
struct QueuedRequest {
    /// The request's token and level.
    waiter: (Token, u8),
    service: Duration,
}

/// Where a request waits.
#[derive(Clone, Copy)]
pub(super) enum RuledPlace {
    Queued((i64, u64)),
    Delayed((Instant, u64)),
}

impl PlantRules {
    /// Rules for each plant.
    ///
    /// # Errors
    /// Promises that contradict each other, or plants that the workload does not describe.
    pub(super) fn front(
        promises: &Promises,
        workload: &Workload,
        seed: u64,
        rules: Vec<Box<dyn Rules>>,
    ) -> Result<Books<Self>, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let plants = rules.into_iter().map(|rules| RuledPlant {
            rules,
            queue: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            delayed: BTreeMap::new(),
        });
        let priorities = promises.sites.iter().flat_map(priorities_of).collect();
        Ok(Books::new(full, PlantRules { priorities, plants: plants.collect(), arrived: 0 }))
    }

    /// Carries out a ruling, and returns where the request then is.
    fn obey(&mut self, now: Instant, plant: usize, ruling: Ruling, request: QueuedRequest) -> Ruled<Self> {
        self.arrived += 1;
        let ruled = &mut self.plants[plant];
        match ruling {
            Ruling::Start(holds) => Ok(Stage::InService((now, holds))),
            Ruling::Reject(reason) => Err(reason),
            Ruling::After(delay, holds) => {
                let place = (now + delay, self.arrived);
                ruled.delayed.insert(place, (request, holds));
                Ok(Stage::Waiting(RuledPlace::Delayed(place)))
            }
            Ruling::Wait(rank) => {
                let until = now + ruled.rules.wait();
                ruled.queue.insert((rank, self.arrived), (request, until));
                ruled.deadlines.insert((until, self.arrived), rank);
                Ok(Stage::Waiting(RuledPlace::Queued((rank, self.arrived))))
            }
        }
    }

    /// Drops the requests whose waiting time is up, and starts those whose delay is over.
    fn run_due(&mut self, now: Instant, plant: usize, waiting: &mut Waiting<'_, Self>) {
        let ruled = &mut self.plants[plant];
        while let Some(entry) = ruled.deadlines.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, order), rank) = entry.remove_entry();
            if let Some((request, _)) = ruled.queue.remove(&(rank, order)) {
                waiting.resume(plant, request.waiter, Err(Reason::WaitTimeout));
            }
        }
        while let Some(entry) = self.plants[plant].delayed.first_entry().filter(|entry| entry.key().0 <= now)
        {
            let (request, holds) = entry.remove();
            let ruling = self.plants[plant].rules.resume(now, holds);
            let ruled = self.obey(now, plant, ruling, request);
            waiting.resume(plant, request.waiter, ruled);
        }
    }
}

impl Policy for PlantRules {
    type Place = RuledPlace;
    /// When the request started, and the number that it holds.
    type Kept = (Instant, u32);

    fn arrive(&mut self, now: Instant, asking: Asking<'_>, _waiting: &mut Waiting<'_, Self>) -> Ruled<Self> {
        let Asking { request, class, plant, waiter, service } = asking;
        let priority = self.priorities.get(usize::from(class)).copied().unwrap_or(u8::MAX);
        let ruled = &mut self.plants[plant];
        let asked = Asked { request, priority, service, waiting: ruled.queue.len() };
        let ruling = ruled.rules.arrive(now, asked);
        self.obey(now, plant, ruling, QueuedRequest { waiter, service })
    }

    fn forget(&mut self, plant: usize, _token: Token, place: RuledPlace) {
        let ruled = &mut self.plants[plant];
        match place {
            RuledPlace::Queued(place) => {
                if let Some((_, until)) = ruled.queue.remove(&place) {
                    ruled.deadlines.remove(&(until, place.1));
                }
            }
            RuledPlace::Delayed(place) => _ = ruled.delayed.remove(&place),
        }
    }

    fn keeps_abandoned(&self, plant: usize) -> bool {
        self.plants[plant].rules.keeps_abandoned()
    }

    /// Starts those that wait, as far as the rules let them.
    fn leave(&mut self, now: Instant, gone: Left<(Instant, u32)>, waiting: &mut Waiting<'_, Self>) {
        let RuledPlant { rules, queue, deadlines, .. } = &mut self.plants[gone.plant];
        let (started, holds) = gone.kept;
        rules.released(now, Gone { holds, started, ended: gone.ended });
        while let Some(first) = queue.first_entry() {
            let Some(holds) = rules.dequeue(now, first.get().0.service) else { return };
            let ((_, order), (request, until)) = first.remove_entry();
            deadlines.remove(&(until, order));
            waiting.resume(gone.plant, request.waiter, Ok(Stage::InService((now, holds))));
        }
    }

    fn tick(&mut self, now: Instant, waiting: &mut Waiting<'_, Self>) -> Instant {
        let mut next = Instant::FAR;
        for plant in 0..self.plants.len() {
            self.run_due(now, plant, waiting);
            let RuledPlant { rules, deadlines, .. } = &mut self.plants[plant];
            next = next.min(rules.tick(now));
            // A request that comes later can be neither late nor started before this time.
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
    use super::super::{Arriving, Decision, Front, Order, Start};
    use super::*;
    use crate::request::Request;
    use plimsoll_core::request::{Outcome, Service};
    use plimsoll_core::telemetry::Readings;

    /// A front and its orders.
    struct Driven {
        front: Books<PlantRules>,
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
        let rules = Box::new(Limited::new(StaticLimit { most, queue }, false));
        let front = PlantRules::front(&promises(), &workload(), 1, vec![rules]).unwrap();
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
        // The slot is used again, by another request.
        assert_eq!(driven.arrive(0.5, "/", 0), Decision::Wait);
        assert_eq!(driven.done(0.6, 1), [start(2)]);
        assert_eq!(driven.done(0.7, 2), [start(0)]);
        assert_eq!(driven.done(0.8, 0), []);
        assert_eq!(driven.arrive(0.9, "/", 0), Decision::Start(FULL));
    }

    #[test]
    fn who_waits_too_long_is_dropped_when_tick_said() {
        let mut driven = queued(1, 9, 1000);
        // If no request waits, none can be late before a second has passed.
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
        // Slot 1 is used again, and its new request stands behind the one in slot 2.
        assert_eq!(driven.arrive(0.2, "/", 1), Decision::Wait);
        assert_eq!(driven.left(0.3, 0), [start(2)]);
        assert_eq!(driven.done(0.4, 2), [start(1)]);
        assert_eq!(driven.done(0.5, 1), []);
        assert_eq!(driven.tick(9.0), (at(10.0), vec![]));
    }

    #[test]
    fn a_plant_without_its_truth_is_an_error() {
        let none = PlantRules::front(&promises(), &Workload::default(), 1, vec![]);
        assert!(none.err().unwrap()[0].contains("1 plants are promised, but the workload has 0"));
        let without_sites = Promises { sites: vec![], ..promises() };
        assert!(PlantRules::front(&without_sites, &workload(), 1, vec![]).is_ok());
    }
}
