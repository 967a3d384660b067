//! The front around a comparator's policy: it keeps the stage of each request, and carries out what the policy decides.
//!
//! A request that starts gets its site's highest level. Exempt requests pass and are not counted.

use super::full_quality::FullQuality;
use super::slots::Slots;
use super::{Arriving, Decision, Front, Order, Start};
use crate::request::Request;
use crate::service::FullService;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};

/// A comparator's decisions about requests before they reach their plants.
pub(super) trait Policy: Sized {
    /// Where a request waits at its plant.
    type Place: Copy;
    /// What the policy keeps of a request in service.
    type Kept: Copy;

    /// Decides on an arrival; others that were waiting may start or be dropped.
    fn arrive(&mut self, now: Instant, asking: Asking<'_>, waiting: &mut Waiting<'_, Self>) -> Ruled<Self>;

    /// The client of a request that waits has left.
    fn forget(&mut self, plant: usize, token: Token, place: Self::Place);

    /// A request that was started is gone from its plant.
    fn leave(&mut self, now: Instant, gone: Left<Self::Kept>, waiting: &mut Waiting<'_, Self>);

    /// Whether a request whose client has left keeps its place before its plant, and at it.
    fn keeps_abandoned(&self, _plant: usize) -> bool {
        false
    }

    /// Runs what is due; says when to come again.
    fn tick(&mut self, _now: Instant, _waiting: &mut Waiting<'_, Self>) -> Instant {
        Instant::FAR
    }

    /// As [`Front::learned`].
    fn learned(&self) -> Option<String> {
        None
    }
}

/// Where a request that was not rejected is from now on.
pub(super) type Ruled<P> = Result<Stage<<P as Policy>::Place, <P as Policy>::Kept>, Reason>;

/// Where a request is.
#[derive(Clone, Copy)]
pub(super) enum Stage<Place, Kept> {
    Waiting(Place),
    InService(Kept),
}

/// A request that asks to start.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) request: &'a Request,
    pub(super) class: u16,
    pub(super) plant: usize,
    /// Its token, and the level at which it starts.
    pub(super) waiter: (Token, u8),
    /// The true service time of the request on one worker.
    pub(super) service: Duration,
}

/// A request that is gone from its plant.
pub(super) struct Left<Kept> {
    pub(super) plant: usize,
    pub(super) token: Token,
    pub(super) kept: Kept,
    pub(super) ended: Outcome,
}

type Stages<P> = Slots<Option<(usize, Stage<<P as Policy>::Place, <P as Policy>::Kept>)>>;

/// The requests that wait, for a policy to start or to drop.
pub(super) struct Waiting<'a, P: Policy> {
    stages: &'a mut Stages<P>,
    orders: &'a mut Vec<Order>,
}

impl<P: Policy> Waiting<'_, P> {
    /// Carries out the policy's decision on a request that waited.
    pub(super) fn resume(&mut self, plant: usize, (token, level): (Token, u8), ruled: Ruled<P>) {
        match obey::<P>(self.stages, plant, (token, level), ruled) {
            Decision::Start(start) => self.orders.push(Order::Start(token, start)),
            Decision::Reject(reason) => self.orders.push(Order::Drop(token, reason)),
            Decision::Wait => {}
        }
    }
}

fn obey<P: Policy>(
    stages: &mut Stages<P>,
    plant: usize,
    (token, level): (Token, u8),
    ruled: Ruled<P>,
) -> Decision {
    *stages.at(token) = ruled.ok().map(|stage| (plant, stage));
    match ruled {
        Ok(Stage::InService(_)) => Decision::Start(Start { plant, level, reason: Reason::Full }),
        Ok(Stage::Waiting(_)) => Decision::Wait,
        Err(reason) => Decision::Reject(reason),
    }
}

/// A policy in front of the plants.
pub(super) struct Books<P: Policy> {
    full: FullQuality,
    pub(super) policy: P,
    stages: Stages<P>,
}

impl<P: Policy> Books<P> {
    pub(super) fn new(full: FullQuality, policy: P) -> Self {
        Books { full, policy, stages: Slots::new() }
    }

    fn leave(&mut self, now: Instant, gone: Left<P::Kept>, orders: &mut Vec<Order>) {
        self.policy.leave(now, gone, &mut Waiting { stages: &mut self.stages, orders });
    }
}

impl<P: Policy> Front for Books<P> {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.full.classifier.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        let Arriving { request, target, token } = arrival;
        let start = self.full.start(&target);
        if target.exempt {
            return Decision::Start(start);
        }
        let Start { plant, level, .. } = start;
        // A request without a drawn factor gets the mean of its law.
        let full = FullService::of(request, request.work.unwrap_or(1.0));
        let service = self.full.plan.work(target.site, start, full).service;
        let waiter = (token, level);
        let asking = Asking { request, class: target.class, plant, waiter, service };
        let ruled = self.policy.arrive(now, asking, &mut Waiting { stages: &mut self.stages, orders });
        obey::<P>(&mut self.stages, plant, waiter, ruled)
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if let Some((plant, Stage::InService(kept))) = *self.stages.at(token) {
            *self.stages.at(token) = None;
            let ended = if service.representative { Outcome::Completed } else { Outcome::Failed };
            self.leave(now, Left { plant, token, kept, ended }, orders);
        }
    }

    fn abandon(&mut self, _now: Instant, token: Token) -> bool {
        self.abandon_waiting(token)
    }

    fn abandon_waiting(&mut self, token: Token) -> bool {
        let stage = *self.stages.at(token);
        stage.is_some_and(|(plant, _)| self.policy.keeps_abandoned(plant))
    }

    fn depart(&mut self, now: Instant, token: Token, ended: Outcome, orders: &mut Vec<Order>) {
        match self.stages.take(token) {
            None => {}
            Some((plant, Stage::Waiting(place))) => self.policy.forget(plant, token, place),
            Some((plant, Stage::InService(kept))) => {
                self.leave(now, Left { plant, token, kept, ended }, orders);
            }
        }
    }

    fn tick(&mut self, now: Instant, _readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        self.policy.tick(now, &mut Waiting { stages: &mut self.stages, orders })
    }

    fn learned(&self) -> Option<String> {
        self.policy.learned()
    }
}
