//! The arrival of a request: it is counted, given its level (`give_level.rs`), admitted or refused, and placed in service or in
//! the queue.
//!
//! Level 0 is a rejection. Where deadlines are promised, a request that would be late is served at a lighter level, or refused
//! too.

use super::give_level::{GivenLevel, LevelQuery, level_of_request};
use super::place::{Admitted, Placed};
use super::start::{Start, start};
use super::{Lane, unreserve};
use crate::admission::deadline::{self, Candidate};
use crate::admission::slot_key::SlotKey;
use crate::engine::published_state::PublishedState;
use crate::promises::{Choice, Mode};
use crate::request::{Arrival, Permit, Reason, Rejection, Target, Token, Verdicts};
use crate::scheduling::rank::Standing;
use crate::time::{Duration, Instant};
use core::net::IpAddr;

/// Why a request is turned away, and how long until admission might let it in.
struct Refusal {
    reason: Reason,
    at_least: Option<Duration>,
}

impl Lane {
    /// Decides on a request: serve, wait, or reject. `token` comes back in the verdict if it waits.
    ///
    /// `target` must come from this engine's [`classify`](Lane::classify), however many reloads ago.
    pub fn arrive(&mut self, now: Instant, target: Target, token: Token, verdicts: &mut Verdicts) -> Arrival {
        self.follow();
        let (given, mut permit) = self.give_level(now, &target);
        if target.repeats {
            self.counters.plants[permit.plant()].repeated.add(1);
        }
        let level = match self.admit(&target, given, &mut permit) {
            Ok(level) => level,
            Err(refusal) => return Arrival::Reject(self.reject(&target, &mut permit, refusal)),
        };
        let GivenLevel { query, level: given } = given;
        let admitted = Admitted { target: &target, token, standing: query.standing, given };
        match self.place(now, admitted, &mut permit, verdicts) {
            Placed::Entered(change) => {
                let started = Start { now, decided: level, change };
                start(&self.published, &self.counters, &mut permit, started);
                if target.exempt { Arrival::Exempt(permit) } else { Arrival::Serve(permit) }
            }
            Placed::Waiting => Arrival::Wait(permit),
            Placed::Overflow => {
                let full = Refusal { reason: Reason::QueueFull, at_least: None };
                Arrival::Reject(self.reject(&target, &mut permit, full))
            }
        }
    }

    /// Rejects a request whose body is not there yet, if it would be rejected for its level now, so that its client need not
    /// send the body. `None`: the decision is left to its arrival. A level that depends on a contract or on chance is not
    /// determined here, since it would be determined twice.
    pub fn reject_before_body(&mut self, now: Instant, target: &Target) -> Option<Rejection> {
        self.follow();
        if !self.rejects(target) {
            return None;
        }
        let (_, mut permit) = self.give_level(now, target);
        Some(self.reject(target, &mut permit, Refusal { reason: Reason::Overload, at_least: None }))
    }

    /// Whether a request of this client would be rejected for its level now, whatever it asks for.
    fn rejects(&mut self, target: &Target) -> bool {
        let class = &self.published.classes[usize::from(target.class)];
        let by_client = class.contract.is_none()
            && class.choice != Choice::Random
            && !class.words.is_heavy(target.client);
        if target.exempt || !by_client || self.published.mode != Mode::Control {
            return false;
        }
        let query = LevelQuery { class: target.class, client: target.client, standing: Standing::Ordinary };
        level_of_request((&self.published, class), query, &mut self.random) == 0
    }

    /// Rejects a client whose connection has just come, if each request from its address would be rejected for its level now,
    /// so that none needs to be read. It is accounted as one request. `None`: whether a request is rejected is decided when
    /// it arrives.
    pub fn reject_client(&mut self, now: Instant, client: IpAddr) -> Option<Rejection> {
        self.follow();
        let target = self.published.rules.classify_client(client)?;
        self.reject_before_body(now, &target)
    }

    /// Counts a request of a client that was turned away without any lane being asked, whatever would be decided now.
    pub(crate) fn count_rejected_client(&mut self, now: Instant, client: IpAddr) {
        self.follow();
        if let Some(target) = self.published.rules.classify_client(client) {
            let (_, mut permit) = self.give_level(now, &target);
            self.reject(&target, &mut permit, Refusal { reason: Reason::Overload, at_least: None });
        }
    }

    /// Whether [`reject_client`](Self::reject_client) would reject a client now; nothing is counted.
    pub fn rejects_client(&mut self, client: IpAddr) -> bool {
        self.follow();
        self.published.rules.classify_client(client).is_some_and(|target| self.rejects(&target))
    }

    /// Admits a request at its level, or at a lighter one, or refuses it: because its level is 0, because the plant has as many
    /// streams as it may, or because it would miss its deadline.
    fn admit(&self, target: &Target, given: GivenLevel, permit: &mut Permit) -> Result<u8, Refusal> {
        if given.level == 0 && self.published.mode == Mode::Control {
            return Err(Refusal { reason: Reason::Overload, at_least: None });
        }
        if target.streams {
            let refused = Refusal { reason: Reason::TooManyStreams, at_least: None };
            self.take_stream(permit).then_some(()).ok_or(refused)?;
        }
        if self.published.plants[permit.plant()].has_deadlines() {
            self.admit_by_deadline(target, given, permit)
        } else {
            Ok(given.level)
        }
    }

    /// Refuses a request that would miss its deadline at any level of its plant (`admission/deadline.rs`); returns the level
    /// at which it is admitted. In observe mode it is admitted, and only its reason is changed.
    #[inline(never)]
    fn admit_by_deadline(
        &self,
        target: &Target,
        given: GivenLevel,
        permit: &mut Permit,
    ) -> Result<u8, Refusal> {
        let published: &PublishedState = &self.published;
        let class = &published.classes[usize::from(target.class)];
        let plant = &published.plants[permit.plant()];
        let (Some(estimates), true) = (&class.estimates, published.mode != Mode::Off) else {
            return Ok(given.level);
        };
        let (exempt, features) = (target.exempt, target.features());
        let (arrived, level) = (permit.arrived, permit.level);
        let quota_of = class.quota_of(target.class).filter(|_| !exempt);
        let key = SlotKey::new(class.rank(given.query.standing), target.site, quota_of);
        let lowest = class.lowest_at(permit.plant(), level);
        let candidate = Candidate { arrived, key, features, level, lowest, exempt };
        let at_plant = (&plant.unfinished, plant.workers(Some(arrived)));
        let (work, decision) = deadline::admit(at_plant, (estimates, &class.terms), &candidate);
        permit.work = Some(work);
        match decision {
            Ok(admitted) if admitted == level => Ok(given.level),
            Ok(lighter) if published.mode == Mode::Control => {
                (permit.level, permit.reason) = (lighter, Reason::Degraded);
                Ok(lighter)
            }
            Err(late) if published.mode == Mode::Control => {
                unreserve(plant, permit.work);
                Err(Refusal { reason: Reason::Deadline, at_least: late.retry_after })
            }
            Ok(lighter) => {
                plant.unfinished.take_back(&work);
                permit.work = Some(deadline::reserve(&plant.unfinished, estimates, &candidate));
                if given.level > lighter {
                    permit.reason = Reason::Degraded;
                }
                Ok(given.level.min(lighter))
            }
            Err(_) => {
                permit.reason = Reason::Deadline;
                Ok(given.level)
            }
        }
    }

    /// Accounts a request that is turned away.
    fn reject(&self, target: &Target, permit: &mut Permit, refusal: Refusal) -> Rejection {
        self.end_stream(permit);
        let Refusal { reason, at_least } = refusal;
        let (plant_and_class, request) = ((permit.plant(), target.class), (permit.arrived, target.client));
        let retry_after = self.published.retry_after(plant_and_class, request, at_least);
        let counters = &self.counters.classes[usize::from(target.class)];
        counters.end_unserved(reason);
        Rejection { reason, retry_after }
    }
}
