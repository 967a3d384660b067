//! What threads share: per class a knob and the clients that are too heavy to hash, per contract a meter, per plant a
//! gate; and the lanes' counters, each written by one thread and summed by `tick`.
//!
//! A counter is an atomic only so that `tick` may read it: its one writer loads and stores, and never needs an atomic
//! addition. Counters wrap; `tick` takes differences.

use crate::actuator::service_level::Knob;
use crate::admission::estimates::Estimates;
use crate::admission::token_bucket::Meter;
use crate::admission::unfinished_work::{Backlog, Terms, Workers};
use crate::promises::registry::Census;
use crate::promises::{Choice, MAX_LEVELS, Mode, QueueBounds};
use crate::request::Reason;
use crate::request::classify::Classifier;
use crate::scheduling::gate::Gate;
use crate::scheduling::queue::{Rank, Standing};
use crate::scheduling::quota::Quota;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A monotone count with one writer.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the size bins by which service times are summed (bytes); the last bin is open. Bins give the
/// regression of service time on bytes an excitation that the mean size alone does not have.
pub(crate) const SIZE_BINS: [u64; 3] = [4 << 10, 32 << 10, 256 << 10];
/// How many size bins there are.
pub(crate) const BINS: usize = SIZE_BINS.len() + 1;

/// Requests released in one size bin at one level.
#[derive(Default)]
pub(crate) struct ServiceCounters {
    pub(crate) requests: Counter,
    pub(crate) work_ns: Counter,
    pub(crate) bytes: Counter,
}

/// The latest clients of a class in one lane, of every 2^k-th arrival, to find those that are too heavy.
pub(crate) const RECENT: usize = 256;

/// Of a class that was promised a delay or a ratio: what its loop needs to know. Squares are of microseconds, so that
/// they do not overflow.
#[derive(Default)]
pub(crate) struct TimingCounters {
    /// Responses over D_ref.
    pub(crate) late: Counter,
    pub(crate) service_ns: Counter,
    pub(crate) service_us2: Counter,
    pub(crate) interarrival_us2: Counter,
}

impl TimingCounters {
    pub(crate) fn arrive(&self, interval_ns: u64) {
        self.interarrival_us2.add((interval_ns / 1000).saturating_mul(interval_ns / 1000));
    }

    pub(crate) fn release(&self, service_ns: u64, late: bool) {
        self.late.add(u64::from(late));
        self.service_ns.add(service_ns);
        self.service_us2.add((service_ns / 1000).saturating_mul(service_ns / 1000));
    }
}

/// One lane's counters of one class. They share no cache lines (a processor fetches two) with what another lane writes,
/// wherever they come to lie.
#[repr(align(128))]
pub(crate) struct ClassCounters {
    pub(crate) arrivals: Counter,
    /// By the level that the knob gave at arrival; what waits is given its level again at its start. Those inside a
    /// contract are not asked about.
    pub(crate) decided: [Counter; MAX_LEVELS + 1],
    pub(crate) served: [Counter; MAX_LEVELS + 1],
    pub(crate) reasons: [Counter; Reason::ALL.len()],
    pub(crate) outcomes: [Counter; 3],
    pub(crate) bytes: Counter,
    /// Arrivals that ended before a start: rejected, dropped, or left.
    pub(crate) unserved: Counter,
    pub(crate) services: [[ServiceCounters; BINS]; MAX_LEVELS + 1],
    pub(crate) started: Counter,
    pub(crate) queue_delay_ns: Counter,
    pub(crate) released: Counter,
    pub(crate) response_ns: Counter,
    pub(crate) timing: TimingCounters,
    pub(crate) recent: [AtomicU64; RECENT],
}

impl Default for ClassCounters {
    fn default() -> Self {
        ClassCounters {
            arrivals: Counter::default(),
            decided: Default::default(),
            served: Default::default(),
            reasons: Default::default(),
            outcomes: Default::default(),
            bytes: Counter::default(),
            unserved: Counter::default(),
            services: Default::default(),
            started: Counter::default(),
            queue_delay_ns: Counter::default(),
            released: Counter::default(),
            response_ns: Counter::default(),
            timing: TimingCounters::default(),
            recent: [const { AtomicU64::new(0) }; RECENT],
        }
    }
}

/// One lane's counters of one plant, on cache lines of their own too.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct PlantCounters {
    /// Integral of min(in service, s) dt [server nanoseconds].
    pub(crate) busy_ns: Counter,
    pub(crate) releases: Counter,
    pub(crate) service_ns: Counter,
    /// By how many were in service: where the number of workers is looked for.
    pub(crate) by_load: ByLoad,
}

/// Bins of the number in service: each number up to 16, then eight to the octave, up to what a gate counts.
pub(crate) const LOADS: usize = 16 + 12 * 8;

/// Time and departures, by how many were in service.
pub(crate) struct ByLoad {
    pub(crate) time_ns: [Counter; LOADS],
    pub(crate) departures: [Counter; LOADS],
}

impl Default for ByLoad {
    fn default() -> Self {
        ByLoad { time_ns: [const { Counter::new() }; LOADS], departures: [const { Counter::new() }; LOADS] }
    }
}

/// The bin of a number in service, from 1.
pub(crate) fn load_bin(in_service: u32) -> usize {
    let n = in_service.max(1) as usize;
    if n <= 16 {
        return n - 1;
    }
    let octave = (n - 1).ilog2() as usize;
    let eighth = ((n - 1) >> (octave - 3)) & 7;
    (16 + (octave - 4) * 8 + eighth).min(LOADS - 1)
}

/// The least and the most in service that share a bin.
pub(crate) fn bin_loads(bin: usize) -> (u32, u32) {
    if bin < 16 {
        return (bin as u32 + 1, bin as u32 + 1);
    }
    let (octave, eighth) = ((bin - 16) / 8 + 4, (bin - 16) as u32 % 8);
    let least = ((8 + eighth) << (octave - 3)) + 1;
    (least, least + (1 << (octave - 3)) - 1)
}

/// One lane's counters: classes and plants by number. At a reload the lane gets a longer list of the same counters.
#[derive(Clone, Default)]
pub(crate) struct LaneCounters {
    pub(crate) classes: Vec<Arc<ClassCounters>>,
    pub(crate) plants: Vec<Arc<PlantCounters>>,
}

impl LaneCounters {
    /// The same counters, and new ones up to so many.
    pub(crate) fn grown(&self, classes: usize, plants: usize) -> Self {
        let mut grown = self.clone();
        grown.classes.resize_with(classes.max(self.classes.len()), Default::default);
        grown.plants.resize_with(plants.max(self.plants.len()), Default::default);
        grown
    }
}

/// At most nine clients can each carry more than a tenth.
pub(crate) const MOST_HEAVY: usize = 9;

/// What the calls at the door need to know of a class.
pub(crate) struct SharedClass {
    pub(crate) knob: Knob,
    pub(crate) top_level: u8,
    pub(crate) choice: Choice,
    /// The plant of each level; index 0 is not used.
    pub(crate) plant_of_level: [u16; MAX_LEVELS + 1],
    pub(crate) heavy: [AtomicU64; MOST_HEAVY],
    pub(crate) heavy_count: AtomicU32,
    /// k: every 2^k-th arrival is noted in `recent`.
    pub(crate) note_shift: AtomicU32,
    /// Its site's, if that has a contract.
    pub(crate) meter: Option<Arc<Meter>>,
    /// Of requests that wait: those at the loop's choice, and those inside the contract.
    pub(crate) ranks: [Rank; 2],
    /// If it was promised a delay or a ratio.
    pub(crate) quota: Option<Arc<Quota>>,
    /// Its deadline.
    pub(crate) terms: Terms,
    /// Its site's, where one of its plants has deadlines to keep.
    pub(crate) estimates: Option<Arc<Estimates>>,
}

impl SharedClass {
    /// For a class that is no longer promised: as it was.
    pub(crate) fn kept(&self) -> Self {
        let copy = |word: &AtomicU64| AtomicU64::new(word.load(Ordering::Relaxed));
        SharedClass {
            knob: self.knob.copy(),
            top_level: self.top_level,
            choice: self.choice,
            plant_of_level: self.plant_of_level,
            heavy: self.heavy.each_ref().map(copy),
            heavy_count: AtomicU32::new(self.heavy_count.load(Ordering::Relaxed)),
            note_shift: AtomicU32::new(self.note_shift.load(Ordering::Relaxed)),
            meter: self.meter.clone(),
            ranks: self.ranks,
            quota: self.quota.clone(),
            terms: self.terms,
            estimates: self.estimates.clone(),
        }
    }

    /// The level at which a request that waits at `plant` starts when `wanted` is its level: the next one up that this
    /// plant serves, else the next one down, and at least 1, since who waits was admitted.
    pub(crate) fn level_at(&self, plant: usize, wanted: u8) -> u8 {
        let wanted = wanted.max(1);
        let here = |level: &u8| usize::from(self.plant_of_level[usize::from(*level)]) == plant;
        let up = (wanted..=self.top_level).find(here);
        up.or_else(|| (1..wanted).rev().find(here)).unwrap_or(wanted)
    }

    /// The rank of a request of this standing.
    pub(crate) fn rank(&self, standing: Standing) -> Rank {
        match standing {
            Standing::Exempt => Rank::EXEMPT,
            Standing::Guaranteed if self.quota.is_none() => self.ranks[1],
            // A class with a delay or a ratio stands in one line.
            Standing::Guaranteed => self.ranks[0],
            Standing::Ordinary => self.ranks[0],
        }
    }

    pub(crate) fn is_heavy(&self, client: u64) -> bool {
        let count = self.heavy_count.load(Ordering::Relaxed) as usize;
        count > 0 && self.heavy[..count.min(MOST_HEAVY)].iter().any(|h| h.load(Ordering::Relaxed) == client)
    }

    pub(crate) fn set_heavy(&self, clients: &[u64]) {
        let clients = &clients[..clients.len().min(MOST_HEAVY)];
        for (slot, client) in self.heavy.iter().zip(clients) {
            slot.store(*client, Ordering::Relaxed);
        }
        self.heavy_count.store(clients.len() as u32, Ordering::Relaxed);
    }
}

/// What the calls at the door need to know of a plant.
pub(crate) struct SharedPlant {
    /// The same in every generation.
    pub(crate) gate: Arc<Gate>,
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) queue: QueueBounds,
    /// A class that it serves has a deadline: the work of all is counted.
    pub(crate) has_deadlines: bool,
    pub(crate) backlog: Backlog,
}

impl SharedPlant {
    /// Its workers now; without a clock, about.
    pub(crate) fn workers(&self, now: Option<Instant>) -> Workers {
        let all = self.capacity.workers();
        let (waits, in_service) = (self.gate.is_waited_at(), self.gate.in_service());
        let (idle, empty) = (!waits && in_service < all, !waits && in_service == 0);
        Workers { all, idle, left: self.backlog.in_service(now), at: now.unwrap_or(Instant::ZERO), empty }
    }
}

/// How many workers a plant has, and how many requests it is given at once: as promised, or as found.
pub(crate) struct Capacity {
    workers: AtomicU32,
    limit: AtomicU32,
    /// They are looked for, so that time and departures are counted by how many were in service.
    pub(crate) found: bool,
}

impl Capacity {
    pub(crate) fn new(workers: u32, limit: u32, found: bool) -> Self {
        Capacity { workers: AtomicU32::new(workers), limit: AtomicU32::new(limit), found }
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, workers: u32, limit: u32) {
        self.workers.store(workers, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }
}

/// Everything that threads share: one generation of it. What moves in it, moves in the newest one only.
pub(crate) struct Shared {
    /// Counted from 0, by reloads.
    pub(crate) generation: u32,
    pub(crate) rules: Classifier,
    pub(crate) mode: Mode,
    pub(crate) retry_after: Duration,
    pub(crate) classes: Vec<SharedClass>,
    pub(crate) plants: Vec<SharedPlant>,
    pub(crate) lanes: Vec<Arc<LaneCounters>>,
}

impl Shared {
    /// Of an engine that was promised nothing yet.
    pub(crate) fn empty(lanes: Vec<Arc<LaneCounters>>) -> Self {
        Shared {
            generation: 0,
            rules: Classifier::of(&Census::default(), 0),
            mode: Mode::default(),
            retry_after: Duration::ZERO,
            classes: Vec::new(),
            plants: Vec::new(),
            lanes,
        }
    }
}
