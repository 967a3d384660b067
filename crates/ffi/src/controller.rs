//! The process that ticks: it makes the shared state or takes it over, runs the engine over the counters of all lanes,
//! publishes the service levels, and gives back the places that dead processes held.

use crate::fault::Fault;
use crate::layout::{Changing, Layout, ListenQueue};
use crate::lock::Lock;
use crate::mapping::{Contents, Mapping};
use crate::owner;
use crate::server::now;
use crate::slot::LaneSlot;
use crate::state_file::StateFile;
use plimsoll_config::Configuration;
use plimsoll_core::processes::{SharedLane, SharedShape, SharedWords};
use plimsoll_core::request::Verdicts;
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::{Engine, LearnedState};
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;
use std::time::{Duration, SystemTime};

/// The most comparisons of gates and lanes in a tick, until one finds no lane in the middle of a change.
const TRIES: usize = 100;

/// The controller of the shared state: it runs the loops for all processes that are attached.
pub struct Controller {
    engine: Engine,
    words: SharedWords,
    changing: &'static Changing,
    queue: &'static ListenQueue,
    lanes: Vec<LaneSlot>,
    versions: Vec<u64>,
    verdicts: Verdicts,
    own: u64,
    seed: u64,
    /// The control period T.
    period: Duration,
    state_file: StateFile,
    /// The lock of the state, declared last so that it is released last.
    _lock: Lock,
}

/// Whether the state was made or taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The state was made anew.
    Made,
    /// A state of the same configuration was there; processes that are attached to it go on with this controller.
    Over,
}

impl Controller {
    /// Makes the shared state of this configuration at `path`, or takes over the state that is there. `seed` is the key of the
    /// client hash in a new state.
    ///
    /// # Errors
    /// Everything that is wrong, one sentence each.
    pub fn start(
        path: &Path,
        (text, configuration): (&str, &Configuration),
        seed: u64,
        lanes: usize,
    ) -> Result<(Controller, Taken), Vec<String>> {
        let shape = shape_inside(configuration)?;
        let lock = Lock::take(path).map_err(|wrong| vec![wrong])?;
        let layout = Layout::new(shape, lanes, text.len());
        let period = configuration.promises.control.period;
        let contents = Contents { layout, configuration: text, seed, period_ns: period.as_nanos() as u64 };
        let (mapping, taken) = find_or_make(path, &contents)?;
        let state_file = StateFile::of(path);
        let changing = &mapping.header().changing;
        let own = owner::own();
        changing.controller.store(own, Release);
        let lanes: Vec<LaneSlot> = mapping.lanes().collect();
        let counters: Vec<SharedLane> = lanes.iter().map(|lane| lane.counters).collect();
        let words = mapping.words();
        let seed = mapping.header().seed;
        let engine = Engine::of_processes(&configuration.promises, seed, words, &counters)?;
        let (versions, verdicts) = (Vec::with_capacity(lanes.len()), Vec::new());
        let queue = &mapping.header().queue;
        let controller = Controller {
            engine,
            words,
            changing,
            queue,
            lanes,
            versions,
            verdicts,
            own,
            seed,
            period,
            state_file,
            _lock: lock,
        };
        Ok((controller, taken))
    }

    /// Loads what an earlier controller has learned; returns what it did not take over.
    pub fn restore(&mut self, learned: &LearnedState, at_once: bool) -> Vec<String> {
        self.engine.restore(learned, at_once)
    }

    /// What the loops have learned, to be kept over a restart.
    pub fn learned(&self) -> LearnedState {
        self.engine.learned()
    }

    /// The key of the client hash: the one in the state, which may be older than this controller.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A snapshot of every plant, site and class, as of the last control period.
    pub fn status(&self) -> Status {
        self.engine.status()
    }

    /// Runs the loops that are due, publishes the result, and returns how long the controller may sleep.
    pub fn tick(&mut self) -> Duration {
        let start = now();
        self.changing.heartbeat_ns.store(start.as_nanos(), Relaxed);
        self.return_from_dead();
        let unix_time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let (queue_stands, queue_waiting) = self.queue.read(start, self.period);
        let readings = Readings { unix_time, queue_stands, queue_waiting, ..Readings::default() };
        let next = self.engine.tick(start, &readings, &mut self.verdicts);
        self.engine.publish_words(self.words);
        self.changing.generation.fetch_add(1, Release);
        next.since(now())
    }

    /// How many lanes belong to a process now.
    pub fn attached(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.owner() != 0).count()
    }

    /// The number of lanes, which is the most processes that may attach.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// How many connections wait in the server's listen queue; `None` if no process has looked lately, or if the queue was
    /// full, since the length of a full queue says nothing.
    pub fn listen_queue(&self) -> Option<u32> {
        let (_, waiting) = self.queue.read(now(), self.period);
        waiting
    }

    /// The number of processes that were found dead, and the number of requests that they held.
    pub fn deaths(&self) -> (u64, u64) {
        (self.changing.deaths.load(Relaxed), self.changing.returned.load(Relaxed))
    }

    /// How often a process was refused because all lanes belonged to living processes.
    pub fn refused(&self) -> u64 {
        self.changing.refused.load(Relaxed)
    }

    /// Whether the state's file still has its path, so that processes can attach.
    pub fn is_in_place(&self) -> bool {
        !self.state_file.is_gone_or_replaced()
    }

    /// Frees the lanes of dead processes, and gives back the places that they held at the gates.
    fn return_from_dead(&mut self) {
        for lane in &self.lanes {
            if lane.claim_from_dead(self.own, self.changing) {
                lane.free();
            }
        }
        for plant in 0..self.words.plants.len() {
            let (requests, exempt) = self.left_at(plant);
            if (requests, exempt) != (0, 0) {
                self.engine.give_back(now(), plant, requests, exempt);
            }
        }
    }

    /// How many requests, and exempt requests, a gate counts beyond what all lanes hold.
    ///
    /// A process that is stopped in the middle of a change may hold one more of each than its lane says. So for each such
    /// process one of each is left at the gate until the process goes on: never more is given back than dead processes held.
    fn left_at(&mut self, plant: usize) -> (u32, u32) {
        let mut most = (0, 0);
        for _ in 0..TRIES {
            let Some((left, changing)) = self.compare(plant) else { continue };
            let least = |left: u32| left.saturating_sub(changing);
            most = (most.0.max(least(left.0)), most.1.max(least(left.1)));
            if changing == 0 {
                break;
            }
        }
        most
    }

    /// The same by one comparison, with the number of lanes that are in the middle of a change; `None` if a lane has begun or
    /// ended a change meanwhile.
    fn compare(&mut self, plant: usize) -> Option<((u32, u32), u32)> {
        self.versions.clear();
        self.versions.extend(self.lanes.iter().map(LaneSlot::version));
        let held = self.lanes.iter().map(|lane| lane.held(plant));
        let held = held.fold((0, 0), |sum: (u32, u32), own| (sum.0 + own.0, sum.1 + own.1));
        let counted = self.words.plants[plant].in_service();
        fence(Acquire);
        let is_same = self.lanes.iter().zip(&self.versions).all(|(lane, version)| lane.version() == *version);
        let changing = self.versions.iter().filter(|version| **version % 2 == 1).count() as u32;
        is_same.then(|| ((counted.0.saturating_sub(held.0), counted.1.saturating_sub(held.1)), changing))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // Another controller may come at once. The exchange cannot fail, since this controller still has the lock.
        let _ = self.changing.controller.compare_exchange(self.own, 0, AcqRel, Relaxed);
    }
}

/// The layout of this configuration's shared state, or what in it needs the gateway.
fn shape_inside(configuration: &Configuration) -> Result<SharedShape, Vec<String>> {
    let mut wrong = needing_the_gateway(configuration);
    let shape = SharedShape::of(&configuration.promises).map_err(|more| wrong.extend(more));
    if let (Ok(shape), true) = (shape, wrong.is_empty()) { Ok(shape) } else { Err(wrong) }
}

/// The state with these contents at `path`; it is made if it is not there. A state of other contents is replaced: its processes
/// go on with the levels that they have, and attach to the new state when they restart. The caller holds the state's lock.
fn find_or_make(path: &Path, contents: &Contents<'_>) -> Result<(Mapping, Taken), Vec<String>> {
    let at = path.display();
    match Mapping::open(path) {
        Ok(known) if is_of(&known, contents) => return Ok((known, Taken::Over)),
        Err(Fault::NotState) if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) => {
            return Err(vec![format!("{at} is a file of something else; name another one")]);
        }
        _ => {}
    }
    Mapping::create(path, contents).map(|mapping| (mapping, Taken::Made)).map_err(|_| {
        vec![format!(
            "{at} cannot be made; name a file in a folder that is there and that this user may write to"
        )]
    })
}

/// Whether processes that are attached to this state can go on with these contents.
fn is_of(known: &Mapping, contents: &Contents<'_>) -> bool {
    let header = known.header();
    known.layout() == contents.layout
        && known.configuration() == Ok(contents.configuration)
        && !header.is_of_earlier_start(owner::boot(), now())
        && !owner::is_elsewhere(header.namespace)
}

/// Whatever in the file only a gateway can do.
fn needing_the_gateway(configuration: &Configuration) -> Vec<String> {
    let settings = &configuration.gateway.settings;
    let mut wrong = Vec::new();
    if !settings.signed.headers.is_empty() || !settings.signed.cookies.is_empty() {
        wrong.push("signed headers and cookies are checked by the gateway only; leave them out, or put the gateway in front".into());
    }
    if !settings.trusted_headers.is_empty() {
        wrong.push(
            "headers that count only from trusted proxies need the gateway; leave `trusted_headers` out"
                .into(),
        );
    }
    wrong
}
