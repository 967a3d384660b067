//! The published state: what loops write and all lanes read. Each reload publishes a new generation of it.
//!
//! The words that change between reloads (service levels, heavy clients, capacities, gates, token buckets, quotas) are atomics
//! of fixed layout. Everything else (rules, ranks, deadlines) is constant within a generation.

use crate::actuator::capacity::Capacity;
use crate::actuator::levels_by_plant::LevelsByPlant;
use crate::actuator::retry_after::AtomicReturnTimes;
use crate::actuator::service_level::AtomicServiceLevel;
use crate::admission::contract_token_bucket::TokenBucket;
use crate::admission::estimates::Estimates;
use crate::admission::stream_limits::Rights;
use crate::admission::unfinished_work::{UnfinishedWork, Workers};
use crate::model::CostEstimate;
use crate::promises::registry::Registry;
use crate::promises::{Choice, MAX_LEVELS, Mode, QueueBounds, Tunnels};
use crate::request::classify::Classifier;
use crate::request::work::DeadlineTerms;
use crate::scheduling::gate::Gate;
use crate::scheduling::quota::{Quota, TurnRule};
use crate::scheduling::rank::{Rank, Standing};
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_hitters::MOST_HEAVY;
use crate::telemetry::place_load::PlaceLoads;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The least time after which a rejected request is told to come again, where nothing sets more. With less, all clients
/// that were rejected would come back at once.
const LEAST_RETURN: Duration = Duration::from_secs(1);

/// One generation of everything that threads share. Loops write to the newest generation only.
pub(crate) struct PublishedState {
    /// The number of reloads before this generation.
    pub(crate) generation: u32,
    pub(crate) rules: Classifier,
    pub(crate) mode: Mode,
    /// The time after which every rejected request is told to come again, if the operator has set one.
    pub(crate) promised_return: Option<Duration>,
    /// The offset that is added to the hash of each client, so that it is not always the same clients that are degraded.
    pub(crate) turn: AtomicU64,
    pub(crate) classes: Vec<PublishedClass>,
    pub(crate) plants: Vec<PublishedPlant>,
    pub(crate) lanes: Vec<Arc<LaneCounters>>,
}

impl PublishedState {
    /// The state of an engine that has no promises yet.
    pub(crate) fn empty(lanes: Vec<Arc<LaneCounters>>) -> Self {
        PublishedState {
            generation: 0,
            rules: Classifier::of(&Registry::default(), 0, |_| None),
            mode: Mode::default(),
            promised_return: None,
            turn: AtomicU64::new(0),
            classes: Vec::new(),
            plants: Vec::new(),
            lanes,
        }
    }

    /// The `Retry-After` of a request that is turned away at a plant, by its class, arrival and client. `at_least` is the time
    /// before which admission would not let it in.
    #[inline(never)]
    pub(crate) fn retry_after(
        &self,
        (plant, class): (usize, u16),
        (arrived, client): (Instant, u64),
        at_least: Option<Duration>,
    ) -> Duration {
        if let Some(promised) = self.promised_return {
            return promised.max(at_least.unwrap_or(Duration::ZERO));
        }
        let returns = &self.plants[plant].returns;
        let next_promised = || self.classes[usize::from(class)].next_promised;
        at_least.map_or_else(
            || returns.draw(arrived, client, next_promised()).max(LEAST_RETURN),
            |at_least| returns.draw(arrived, client, at_least),
        )
    }
}

/// The words of a class that loops write and requests read.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ClassWords {
    /// m of the levels at the plant of the highest one.
    pub(crate) service_level: AtomicServiceLevel,
    /// m of the levels at the plants below, one after the other, with the fraction counted among all clients.
    lower: [AtomicServiceLevel; MAX_LEVELS - 1],
    /// k: every 2^k-th arrival is noted for the search for heavy clients.
    pub(crate) note_shift: AtomicU32,
    heavy_count: AtomicU32,
    heavy: [AtomicU64; MOST_HEAVY],
    /// By level: the bytes of a response at full quality for each byte at this level, in units of [`ClassWords::ONE`]; 0
    /// while it is not known.
    full_bytes: [AtomicU32; MAX_LEVELS + 1],
    /// By level: what a request usually costs, in any unit, where the number of workers is searched for.
    usual: [AtomicU32; MAX_LEVELS + 1],
}

impl ClassWords {
    const ONE: f64 = 256.0;
    /// What a request is taken to cost before anything is known of its plant.
    pub(crate) const USUAL: f64 = 10_000.0;

    pub(crate) fn new(levels: &LevelsByPlant) -> Self {
        let usual = [const { AtomicU32::new(Self::USUAL as u32) }; MAX_LEVELS + 1];
        let words = ClassWords { usual, ..ClassWords::default() };
        words.set_levels(levels);
        words
    }

    /// Copies the values of other words, one by one.
    pub(crate) fn follow(&self, other: &Self) {
        let follow = |(own, other): (&AtomicU64, &AtomicU64)| own.store(other.load(Relaxed), Relaxed);
        let follow32 = |(own, other): (&AtomicU32, &AtomicU32)| own.store(other.load(Relaxed), Relaxed);
        self.service_level.follow(&other.service_level);
        self.lower.iter().zip(&other.lower).for_each(|(own, other)| own.follow(other));
        follow32((&self.note_shift, &other.note_shift));
        self.heavy.iter().zip(&other.heavy).for_each(follow);
        follow32((&self.heavy_count, &other.heavy_count));
        self.full_bytes.iter().zip(&other.full_bytes).for_each(follow32);
        self.usual.iter().zip(&other.usual).for_each(follow32);
    }

    /// Copies for a level the size and the usual cost that other words have for the level `of`.
    pub(crate) fn follow_level(&self, level: usize, (other, of): (&Self, usize)) {
        self.full_bytes[level].store(other.full_bytes[of].load(Relaxed), Relaxed);
        self.usual[level].store(other.usual[of].load(Relaxed), Relaxed);
    }

    /// Publishes the service levels.
    pub(crate) fn set_levels(&self, levels: &LevelsByPlant) {
        let words = core::iter::once(&self.service_level).chain(&self.lower);
        words.zip(levels.published()).for_each(|(word, m)| word.set(m));
    }

    /// The bytes of the same responses at full quality, given the bytes that were delivered at this level.
    pub(crate) fn asked_bytes(&self, level: u8, delivered: u64) -> u64 {
        match self.full_bytes[usize::from(level)].load(Ordering::Relaxed) {
            0 => delivered,
            ratio => (delivered as f64 * f64::from(ratio) / Self::ONE) as u64,
        }
    }

    /// Publishes the mean sizes by level, 1 to M, as far as they are known.
    pub(crate) fn set_sizes(&self, sizes: &[CostEstimate]) {
        let full = sizes.last().and_then(CostEstimate::bytes);
        for (word, size) in self.full_bytes[1..].iter().zip(sizes) {
            let ratio = full.zip(size.bytes()).map_or(0.0, |(full, own)| Self::ONE * full / own.max(1.0));
            word.store(ratio as u32, Ordering::Relaxed);
        }
    }

    /// What a request at a level usually costs.
    pub(crate) fn usual(&self, level: u8) -> u32 {
        self.usual[usize::from(level)].load(Ordering::Relaxed)
    }

    pub(crate) fn set_usual(&self, level: usize, cost: f64) {
        self.usual[level].store(cost.max(1.0) as u32, Ordering::Relaxed);
    }

    pub(crate) fn is_heavy(&self, client: u64) -> bool {
        let count = self.heavy_count.load(Ordering::Relaxed) as usize;
        count > 0 && self.heavy[..count.min(MOST_HEAVY)].iter().any(|h| h.load(Ordering::Relaxed) == client)
    }

    /// Publishes the heavy clients, and how often arrivals are noted to find them.
    pub(crate) fn set_heavy(&self, clients: &[u64], note_shift: u32) {
        for (slot, client) in self.heavy.iter().zip(clients) {
            slot.store(*client, Ordering::Relaxed);
        }
        self.heavy_count.store(clients.len() as u32, Ordering::Relaxed);
        self.note_shift.store(note_shift, Ordering::Relaxed);
    }
}

impl Clone for ClassWords {
    fn clone(&self) -> Self {
        let copy = ClassWords::default();
        copy.follow(self);
        copy
    }
}

/// What the calls of the request API read of a class.
#[derive(Clone)]
pub(crate) struct PublishedClass {
    pub(crate) words: ClassWords,
    pub(crate) top_level: u8,
    pub(crate) choice: Choice,
    /// The level below the lowest one at the plant of the highest level: its clients are passed down to the next plant. 0 if
    /// one plant serves all levels.
    pub(crate) base: u8,
    /// The plant of each level. A request of level 0 asks for room at the plant of the lowest level.
    pub(crate) plant_of_level: [u16; MAX_LEVELS + 1],
    /// The token buckets of the site's contract, if it has one.
    pub(crate) contract: Option<Arc<TokenBucket>>,
    /// For a site that is held to its contract on an idle server too, the time between two promised requests; else 0.
    pub(crate) next_promised: Duration,
    /// The ranks of waiting requests: those that the service level decides on, and those inside the contract.
    pub(crate) ranks: [Rank; 2],
    /// The quota of a class that was promised a delay or a ratio.
    pub(crate) quota: Option<Arc<Quota>>,
    /// What was promised about deadlines.
    pub(crate) terms: DeadlineTerms,
    /// The cost estimates of the site, where one of its plants has deadlines to keep.
    pub(crate) estimates: Option<Arc<Estimates>>,
}

impl PublishedClass {
    /// The level of a client that the plant of the highest level passes down.
    #[cold]
    #[inline(never)]
    pub(crate) fn lower_level(&self, hash: u64) -> u8 {
        let mut base = self.base;
        for word in &self.words.lower {
            let plant = self.plant_of_level[usize::from(base)];
            let below = (1..base).rev().find(|level| self.plant_of_level[usize::from(*level)] != plant);
            let level = word.get().level_of_client(hash).min(base);
            base = below.unwrap_or(0);
            if level > base {
                return level;
            }
            if base == 0 {
                break;
            }
        }
        0
    }

    /// The level at which a request that waits at `plant` starts if `wanted` is its level: at least 1, since a request that
    /// waits was admitted, and at most the highest level of this plant.
    pub(crate) fn level_at(&self, plant: usize, wanted: u8) -> u8 {
        let wanted = wanted.max(1);
        let here = |level: &u8| self.is_at(plant, *level);
        if here(&wanted) || self.passes_down(plant, wanted) {
            return wanted;
        }
        (1..wanted).rev().find(here).unwrap_or(wanted)
    }

    /// Whether a request that waits at `plant` is to start elsewhere, since its level is below those of this plant.
    pub(crate) fn passes_down(&self, plant: usize, level: u8) -> bool {
        !self.is_at(plant, level) && (level + 1..=self.top_level).any(|level| self.is_at(plant, level))
    }

    /// The lowest of the levels that follow each other from this one down at a plant.
    pub(crate) fn lowest_at(&self, plant: usize, level: u8) -> u8 {
        (1..level).rev().take_while(|lower| self.is_at(plant, *lower)).last().unwrap_or(level)
    }

    fn is_at(&self, plant: usize, level: u8) -> bool {
        usize::from(self.plant_of_level[usize::from(level)]) == plant
    }

    /// Whether its requests were promised a delay, a ratio or a deadline.
    pub(crate) fn has_own_promise(&self) -> bool {
        self.quota.is_some() || self.terms.deadline.is_some()
    }

    /// The class, if it was promised a delay: its work is counted apart, since its quota goes before ranks.
    pub(crate) fn quota_of(&self, class: u16) -> Option<u16> {
        self.has_delay().then_some(class)
    }

    fn has_delay(&self) -> bool {
        self.quota.as_ref().is_some_and(|quota| quota.turn == TurnRule::Quota)
    }

    /// The rank of a request of this standing. A class with a delay has one rank for all its requests but exempt ones, since it
    /// has one quota.
    pub(crate) fn rank(&self, standing: Standing) -> Rank {
        match standing {
            Standing::Exempt => Rank::EXEMPT,
            Standing::Guaranteed if !self.has_delay() => self.ranks[1],
            Standing::Guaranteed | Standing::Ordinary => self.ranks[0],
        }
    }

    /// The standing with which a waiting request starts. If its site is held meanwhile, it is not inside the contract any more.
    pub(crate) fn standing_at_start(&self, arrived: Standing) -> Standing {
        match &self.contract {
            Some(contract) if arrived == Standing::Guaranteed && contract.is_held() => Standing::Ordinary,
            _ => arrived,
        }
    }
}

/// What the calls of the request API read of a plant.
pub(crate) struct PublishedPlant {
    /// The gate, whose words and queue are the same in every generation.
    pub(crate) gate: Gate,
    /// The requests that stream, waiting or in service.
    pub(crate) streams: Arc<Rights>,
    pub(crate) stream_share: f64,
    /// The upgraded connections and event streams.
    pub(crate) tunnels: Arc<Rights>,
    pub(crate) tunnel_terms: Tunnels,
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) queue: QueueBounds,
    pub(crate) returns: Arc<AtomicReturnTimes>,
    pub(crate) place_loads: PlaceLoads,
    /// The shortest deadline of the classes that the plant serves. If there is one, the work of all requests at the plant is
    /// counted.
    pub(crate) shortest_deadline: Option<Duration>,
    pub(crate) unfinished: UnfinishedWork,
}

impl PublishedPlant {
    pub(crate) fn has_deadlines(&self) -> bool {
        self.shortest_deadline.is_some()
    }

    /// The state of the workers now; without a clock, each request in service is taken to be at its mean age.
    pub(crate) fn workers(&self, now: Option<Instant>) -> Workers {
        let all = self.capacity.serving();
        let (waits, in_service) = (self.gate.is_waited_at(), self.gate.in_service());
        let (idle, empty) = (!waits && in_service < all, !waits && in_service == 0);
        let [left, queued] = self.unfinished.residual().of(now, (in_service, self.capacity.workers()));
        let known = self.capacity.is_known();
        Workers { all, idle, left, queued, at: now, empty, known }
    }
}
