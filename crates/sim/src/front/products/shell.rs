//! The shell around a product's rules that makes them a [`Front`]: it knows where each request is, and keeps those that wait.
//!
//! A request that starts gets its site's highest level. Each plant has its own rules. Exempt requests pass and are not counted.

use super::{Asked, Gone, Rules, Ruling};
use crate::front::full_quality::FullQuality;
use crate::front::slots::Slots;
use crate::front::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// How often requests are looked at that start later: the products' own clocks have no finer time.
const MILLISECOND: Duration = Duration::from_millis(1);

/// A product in front of the plants.
pub(in crate::front) struct ProductFront {
    full: FullQuality,
    /// By class.
    priorities: Vec<u8>,
    plants: Vec<ProductPlant>,
    slots: Slots<ProductStage>,
    arrived: u64,
}

struct ProductPlant {
    rules: Box<dyn Rules>,
    /// By rank and order of arrival.
    queue: BTreeMap<(i64, u64), (Token, u8)>,
    /// When those in the queue have waited as long as they may.
    deadlines: BTreeMap<(Instant, u64), i64>,
    /// Requests that start later, with what they will hold.
    delayed: BTreeMap<(Instant, u64), (Token, u8, u32)>,
}

/// Where a request is.
#[derive(Clone, Copy, Default)]
enum ProductStage {
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

impl ProductFront {
    /// The front, with rules for each plant.
    ///
    /// # Errors
    /// What in the promises cannot be, or plants without their truth.
    pub(in crate::front) fn new(
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
        let plants = rules.into_iter().map(|rules| ProductPlant {
            rules,
            queue: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            delayed: BTreeMap::new(),
        });
        Ok(ProductFront {
            full,
            priorities: priorities.collect(),
            plants: plants.collect(),
            slots: Slots::new(),
            arrived: 0,
        })
    }

    /// Does with a request what was ruled; `start` is how it starts.
    fn obey(&mut self, now: Instant, ruling: Ruling, token: Token, start: Start) -> Decision {
        let Start { plant, level, .. } = start;
        self.arrived += 1;
        let product = &mut self.plants[plant];
        let (stage, decision) = match ruling {
            Ruling::Start(holds) => {
                (ProductStage::InFlight { plant, started: now, holds }, Decision::Start(start))
            }
            Ruling::Reject(reason) => (ProductStage::Free, Decision::Reject(reason)),
            Ruling::After(delay, holds) => {
                let place = (now + delay, self.arrived);
                product.delayed.insert(place, (token, level, holds));
                (ProductStage::Delayed { plant, place }, Decision::Wait)
            }
            Ruling::Wait(rank) => {
                let (place, until) = ((rank, self.arrived), now + product.rules.wait());
                product.queue.insert(place, (token, level));
                product.deadlines.insert((until, self.arrived), rank);
                (ProductStage::Queued { plant, place, until }, Decision::Wait)
            }
        };
        *self.slots.at(token) = stage;
        decision
    }

    /// Accounts for a request that is gone from its plant, and starts those that wait.
    fn leave(&mut self, now: Instant, plant: usize, gone: Gone, orders: &mut Vec<Order>) {
        self.plants[plant].rules.released(now, gone);
        loop {
            let product = &mut self.plants[plant];
            if product.queue.is_empty() || !product.rules.dequeue() {
                return;
            }
            let Some((place, (token, level))) = product.queue.pop_first() else { return };
            if let ProductStage::Queued { until, .. } = *self.slots.at(token) {
                product.deadlines.remove(&(until, place.1));
            }
            *self.slots.at(token) = ProductStage::InFlight { plant, started: now, holds: 0 };
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
            let product = &mut self.plants[plant];
            product.deadlines.pop_first();
            if let Some((token, _)) = product.queue.remove(&place) {
                *self.slots.at(token) = ProductStage::Free;
                orders.push(Order::Drop(token, Reason::WaitTimeout));
            }
        }
        while let Some(entry) = self.plants[plant].delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (token, level, holds) = entry.remove();
            let ruling = self.plants[plant].rules.resume(now, holds);
            let start = Start { plant, level, reason: Reason::Full };
            match self.obey(now, ruling, token, start) {
                Decision::Start(start) => orders.push(Order::Start(token, start)),
                Decision::Reject(reason) => orders.push(Order::Drop(token, reason)),
                Decision::Wait => {}
            }
        }
    }
}

impl Front for ProductFront {
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
        let ruling = self.plants[start.plant].rules.arrive(now, Asked { request, priority });
        self.obey(now, ruling, token, start)
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let ProductStage::InFlight { plant, started, holds } = *self.slots.at(token) {
            *self.slots.at(token) = ProductStage::Free;
            let ended = if service.representative { Outcome::Completed } else { Outcome::Failed };
            self.leave(now, plant, Gone { holds, started, ended }, orders);
        }
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        match self.slots.take(token) {
            ProductStage::Free => {}
            ProductStage::Queued { plant, place, until } => {
                self.plants[plant].queue.remove(&place);
                self.plants[plant].deadlines.remove(&(until, place.1));
            }
            ProductStage::Delayed { plant, place } => {
                self.plants[plant].delayed.remove(&place);
            }
            ProductStage::InFlight { plant, started, holds } => {
                self.leave(now, plant, Gone { holds, started, ended: outcome }, orders);
            }
        }
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        let mut next = Instant::FAR;
        for plant in 0..self.plants.len() {
            self.run_due(now, plant, orders);
            let ProductPlant { rules, deadlines, .. } = &mut self.plants[plant];
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
