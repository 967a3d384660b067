//! The gateway as plant: its own engine, driven through its own door.

use super::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Target, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use plimsoll_core::{Engine, Lane};

/// The engine, one lane, and the permits of requests under way.
pub struct Gateway {
    engine: Engine,
    lane: Lane,
    /// By slot: the lower 32 bits of a token.
    permits: Vec<Option<Permit>>,
    verdicts: Verdicts,
}

impl Gateway {
    /// An engine that keeps `promises`; `seed` as in [`Engine::new`].
    ///
    /// # Errors
    /// What in the promises cannot be.
    pub fn new(promises: &Promises, seed: u64) -> Result<Self, Vec<String>> {
        let (engine, mut lanes) = Engine::new(promises, 1, seed)?;
        let Some(lane) = lanes.pop() else { unreachable!("asked for one lane") };
        Ok(Gateway { engine, lane, permits: Vec::new(), verdicts: Verdicts::new() })
    }

    /// Hands on what the engine decided about those who waited.
    #[inline]
    fn hand_on(&mut self, orders: &mut Vec<Order>) {
        if !self.verdicts.is_empty() {
            self.hand_on_all(orders);
        }
    }

    fn hand_on_all(&mut self, orders: &mut Vec<Order>) {
        let Gateway { permits, verdicts, .. } = self;
        for verdict in verdicts.drain(..) {
            match verdict {
                Verdict::Start(token, permit) => {
                    orders.push(Order::Start(token, start(&permit)));
                    keep(permits, token, permit);
                }
                Verdict::Drop { token, reason, .. } => {
                    permits[slot(token)].take();
                    orders.push(Order::Drop(token, reason));
                }
            }
        }
    }
}

fn slot(token: Token) -> usize {
    token.0 as u32 as usize
}

fn keep(permits: &mut Vec<Option<Permit>>, token: Token, permit: Permit) {
    let slot = slot(token);
    if permits.len() <= slot {
        permits.resize_with(slot + 1, || None);
    }
    permits[slot] = Some(permit);
}

fn start(permit: &Permit) -> Start {
    Start { plant: permit.plant(), level: permit.level(), reason: permit.reason() }
}

impl Front for Gateway {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.lane.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        let Arriving { target, token, .. } = arrival;
        let decision = match self.lane.arrive(now, target, token, &mut self.verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                let decision = Decision::Start(start(&permit));
                keep(&mut self.permits, token, permit);
                decision
            }
            Arrival::Wait(permit) => {
                keep(&mut self.permits, token, permit);
                Decision::Wait
            }
            Arrival::Reject { reason, .. } => Decision::Reject(reason),
        };
        self.hand_on(orders);
        decision
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let Some(permit) = &mut self.permits[slot(token)] {
            self.lane.sent(permit, service.response_bytes);
            self.lane.release(now, permit, service, &mut self.verdicts);
        }
        self.hand_on(orders);
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        if let Some(permit) = self.permits[slot(token)].take() {
            self.lane.depart(now, permit, outcome, &mut self.verdicts);
        }
        self.hand_on(orders);
    }

    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        let next = self.engine.tick(now, readings, &mut self.verdicts);
        self.hand_on(orders);
        next
    }

    fn put_off(&mut self, next: Instant, until: Instant) -> Instant {
        self.engine.put_off(next, until)
    }

    fn service_level(&self, class: u16) -> Option<f64> {
        Some(self.engine.service_level(class))
    }

    fn status(&self) -> Option<Status> {
        Some(self.engine.status())
    }
}
