//! The arrival of a request: it is counted, given its level, admitted or refused, and placed in service or in the queue.
//!
//! A request inside its site's contract, or exempt, gets the highest level; any other the level that the service level of its
//! class gives its client (`actuator/level_of_client.rs`), or by chance where the client is heavy or the class says so. Level 0
//! is a rejection. Where deadlines are promised, a request that would be late is served at a lighter level, or refused too.

use super::place::{Admitted, Placed};
use super::start::{Start, reason, start};
use super::{Lane, unreserve};
use crate::actuator::level_of_client::turned;
use crate::actuator::service_level::FRACTION_ONE;
use crate::admission::contract_token_bucket::TokenBucket;
use crate::admission::deadline::{self, Candidate};
use crate::admission::slot_key::SlotKey;
use crate::engine::published_state::{PublishedClass, PublishedState};
use crate::promises::{Choice, Mode};
use crate::random::Random;
use crate::request::{Arrival, Permit, Reason, Rejection, Stage, Target, Token, Verdicts};
use crate::scheduling::rank::Standing;
use crate::telemetry::counters::{ClassCounters, RECENT};
use crate::time::{Duration, Instant};
use core::net::IpAddr;
use core::sync::atomic::Ordering;

/// What the level of a request depends on.
#[derive(Clone, Copy)]
pub(super) struct LevelQuery {
    pub(super) class: u16,
    pub(super) client: u64,
    pub(super) standing: Standing,
}

/// The level that a request was given, and its standing.
#[derive(Clone, Copy)]
struct GivenLevel {
    query: LevelQuery,
    level: u8,
}

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
    /// send the body. `None`: whether it is rejected is decided when it arrives. What depends on more than the client, a
    /// contract or chance, is not asked twice.
    pub fn reject_before_body(&mut self, now: Instant, target: &Target) -> Option<Rejection> {
        self.follow();
        if !self.rejects(target) {
            return None;
        }
        let (_, mut permit) = self.give_level(now, target);
        Some(self.reject(target, &mut permit, Refusal { reason: Reason::Overload, at_least: None }))
    }

    /// Whether a request of this client would be rejected for its level now, whatever else it asks.
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

    /// Counts an arriving request, and gives it its level and a permit.
    fn give_level(&mut self, now: Instant, target: &Target) -> (GivenLevel, Permit) {
        let class = &self.published.classes[usize::from(target.class)];
        let counters = &self.counters.classes[usize::from(target.class)];
        count_arrival(class, counters, target);
        let standing = standing(class, self.published.mode, now, target);
        let query = LevelQuery { class: target.class, client: target.client, standing };
        let level = level_of_request((&self.published, class), query, &mut self.random);
        if standing != Standing::Guaranteed {
            counters.decided[usize::from(level)].add(1);
        }
        (GivenLevel { query, level }, permit((&self.published, class), now, query, level))
    }

    /// Admits a request at its level, or at a lighter one, or refuses it: because its level is 0, because as many requests
    /// stream as may, or because it would miss its deadline.
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
        counters.reasons[reason as usize].add(1);
        counters.unserved.add(1);
        Rejection { reason, retry_after }
    }
}

/// Counts an arrival, and notes the client of every 2^k-th one for the search for heavy clients.
fn count_arrival(class: &PublishedClass, counters: &ClassCounters, target: &Target) {
    let arrivals = counters.arrivals.get();
    let shift = class.words.note_shift.load(Ordering::Relaxed);
    if arrivals & ((1 << shift) - 1) == 0 {
        let index = (arrivals >> shift) as usize % RECENT;
        counters.recent[index].store(target.client, Ordering::Relaxed);
    }
    counters.arrivals.add(1);
}

/// The standing of an arriving request: exempt, inside its site's contract, or ordinary.
#[inline]
fn standing(class: &PublishedClass, mode: Mode, now: Instant, target: &Target) -> Standing {
    match &class.contract {
        _ if target.exempt => Standing::Exempt,
        None => Standing::Ordinary,
        Some(contract) => standing_in_contract(contract, mode, now),
    }
}

/// The standing of a request at a site with a contract, which its token bucket tells. It is a function of its own, so that
/// the path of requests without a contract stays short.
#[inline(never)]
fn standing_in_contract(contract: &TokenBucket, mode: Mode, now: Instant) -> Standing {
    if mode != Mode::Off && contract.conforms(now) { Standing::Guaranteed } else { Standing::Ordinary }
}

/// The level, 0..=M, of a request: the highest one if it is exempt or inside a contract, else the level of its client at
/// the service level of its class. A heavy client gets a random level for each request, so that no single client carries
/// the whole fraction F.
#[inline(always)]
pub(super) fn level_of_request(
    (published, class): (&PublishedState, &PublishedClass),
    query: LevelQuery,
    random: &mut Random,
) -> u8 {
    if query.standing != Standing::Ordinary || published.mode == Mode::Off {
        return class.top_level;
    }
    let by_chance = class.choice == Choice::Random || class.words.is_heavy(query.client);
    let turn = published.turn.load(Ordering::Relaxed);
    let hash = if by_chance { random.bits() & (FRACTION_ONE - 1) } else { turned(query.client, turn) };
    let level = class.words.service_level.get().level_of_client(hash).min(class.top_level);
    if class.base > 0 && level <= class.base { class.lower_level(hash) } else { level }
}

/// A permit at the level that was decided, or at the highest level in observe mode and without control.
pub(super) fn permit(
    (published, class): (&PublishedState, &PublishedClass),
    arrived: Instant,
    query: LevelQuery,
    decided: u8,
) -> Permit {
    let level = if published.mode == Mode::Control { decided } else { class.top_level };
    Permit {
        class: query.class,
        plant: class.plant_of_level[usize::from(level)],
        level,
        reason: reason(decided, class.top_level, query.standing),
        stage: Stage::InService,
        has_contract: class.contract.is_some() && query.standing != Standing::Exempt,
        has_quota: class.quota.is_some() && query.standing != Standing::Exempt,
        streams: false,
        tunnel: false,
        abandoned: false,
        work: None,
        generation: published.generation,
        in_service_at_start: 0,
        arrived,
        started: arrived,
        excused_ns: 0,
    }
}
