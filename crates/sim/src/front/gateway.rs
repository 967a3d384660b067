//! The gateway as a front: its own engine, driven through the same request API.

use super::slots::Slots;
use super::{Arriving, Decision, Front, Order, Start};
use crate::record::Recorded;
use crate::request::Request;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::processes::PlaceLoad;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{
    Arrival, Outcome, Permit, Rejection, Service, Target, Token, Verdict, Verdicts,
};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane, LearnedState};

/// The engine, one lane, and the permits of requests under way.
pub struct Gateway {
    engine: Engine,
    lane: Lane,
    permits: Slots<Option<Permit>>,
    verdicts: Verdicts,
    /// For each plant, whether its server stops when a client leaves, as promised.
    stops_when_abandoned: Vec<bool>,
    /// How requests were turned away, by their tokens.
    rejected: Vec<(Token, Rejection)>,
}

impl Gateway {
    /// An engine that keeps `promises`; `seed` as in [`Engine::new`].
    ///
    /// # Errors
    /// Which promises contradict each other.
    pub fn new(promises: &Promises, seed: u64) -> Result<Self, Vec<String>> {
        let (engine, mut lanes) = Engine::new(promises, 1, seed)?;
        let Some(lane) = lanes.pop() else { unreachable!("asked for one lane") };
        let stops_when_abandoned = promises.plants.iter().map(|plant| plant.stops_when_abandoned).collect();
        let (permits, verdicts) = (Slots::new(), Verdicts::new());
        Ok(Gateway { engine, lane, permits, verdicts, stops_when_abandoned, rejected: Vec::new() })
    }

    /// Takes over rate forecasts that another gateway learned.
    pub fn restore_rate_forecasts(&mut self, known: RateForecasts) {
        self.engine.restore_rate_forecasts(known);
    }

    /// The rate forecasts that the engine has learned.
    pub fn rate_forecasts(&self) -> RateForecasts {
        self.engine.rate_forecasts()
    }

    /// What the engine has learned.
    pub fn learned(&self) -> LearnedState {
        self.engine.learned()
    }

    /// Goes on from what another gateway has learned; see [`Engine::restore`].
    pub fn restore(&mut self, learned: &LearnedState, at_once: bool) -> Vec<String> {
        self.engine.restore(learned, at_once)
    }

    /// What the gateway reports to this plant's server about its places there; see [`Lane::place_load`].
    pub fn place_load(&self, plant: usize) -> PlaceLoad {
        self.lane.place_load(plant)
    }

    /// Inside a server: takes in the place load that a gateway sent with a request; see [`Lane::hear_place_load`].
    pub fn hear_place_load(&self, now: Instant, target: Target, load: PlaceLoad) {
        self.lane.hear_place_load(now, target, load);
    }

    /// Passes on what the engine decided about waiting requests.
    #[inline]
    fn hand_on(&mut self, orders: &mut Vec<Order>) {
        if !self.verdicts.is_empty() {
            self.hand_on_all(orders);
        }
    }

    fn hand_on_all(&mut self, orders: &mut Vec<Order>) {
        let Gateway { permits, verdicts, rejected, .. } = self;
        for verdict in verdicts.drain(..) {
            match verdict {
                Verdict::Start(token, permit) => {
                    orders.push(Order::Start(token, start(&permit)));
                    *permits.at(token) = Some(permit);
                }
                Verdict::Drop(token, rejection) => {
                    rejected.push((token, rejection));
                    permits.take(token);
                    orders.push(Order::Drop(token, rejection.reason));
                }
            }
        }
    }
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
                *self.permits.at(token) = Some(permit);
                decision
            }
            Arrival::Wait(permit) => {
                *self.permits.at(token) = Some(permit);
                Decision::Wait
            }
            Arrival::Reject(rejection) => {
                self.rejected.push((token, rejection));
                Decision::Reject(rejection.reason)
            }
        };
        self.hand_on(orders);
        decision
    }

    fn retry_after(&mut self, token: Token) -> Option<Duration> {
        // A rejection is asked for at once, and there are few at a time.
        let place = self.rejected.iter().rposition(|(own, _)| *own == token)?;
        let (_, rejection) = self.rejected.swap_remove(place);
        // As the gateway writes it.
        Some(Duration::from_secs(rejection.retry_after_seconds().max(1)))
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let Some(permit) = self.permits.at(token) {
            if !permit.is_abandoned() {
                self.lane.sent(permit, service.response_bytes);
            }
            self.lane.release(now, permit, service, &mut self.verdicts);
        }
        self.hand_on(orders);
    }

    fn refused(&mut self, token: Token) {
        if let Some(permit) = self.permits.at(token) {
            self.lane.refused(permit);
        }
    }

    fn abandon(&mut self, now: Instant, token: Token) -> bool {
        let Some(permit) = self.permits.at(token) else { return false };
        let finishes = !self.stops_when_abandoned[permit.plant()];
        if finishes {
            self.lane.abandon(now, permit);
        }
        finishes
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        if let Some(permit) = self.permits.take(token) {
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

    /// Reads only what the record keeps: a whole status takes as long as a control period.
    fn recorded(&self) -> Option<Recorded> {
        let plants = (0..self.stops_when_abandoned.len()).map(|plant| self.engine.plant_status(plant));
        Some(Recorded { plants: plants.collect(), responses: self.engine.response_status().collect() })
    }
}
