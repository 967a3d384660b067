//! The level of an arriving request, and its standing.
//!
//! A request inside its site's contract, or exempt, gets the highest level; any other the level that the service level of its
//! class gives its client (`actuator/level_of_client.rs`), or a random one if the client is heavy or the class chooses at
//! random.

use super::Lane;
use super::start::reason;
use crate::actuator::level_of_client::turned;
use crate::actuator::service_level::FRACTION_ONE;
use crate::admission::contract_token_bucket::TokenBucket;
use crate::engine::published_state::{PublishedClass, PublishedState};
use crate::promises::{Choice, Mode};
use crate::random::Random;
use crate::request::{Permit, Stage, Target};
use crate::scheduling::rank::Standing;
use crate::telemetry::counters::{ClassCounters, RECENT};
use crate::time::Instant;
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
pub(super) struct GivenLevel {
    pub(super) query: LevelQuery,
    pub(super) level: u8,
}

impl Lane {
    /// Counts an arriving request, and gives it its level and a permit.
    pub(super) fn give_level(&mut self, now: Instant, target: &Target) -> (GivenLevel, Permit) {
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

/// The standing of a request at a site with a contract, which its token bucket determines. It is a function of its own, so that
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
