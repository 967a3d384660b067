//! What all clones of a layer share: the engine, its lanes, its clock and its thread.
//!
//! *In*: requests, through the lanes. *Out*: verdicts, delivered to the requests that wait, and control periods on time.
//!
//! - `lanes`: the engine's lanes, each behind a lock, and the delivery of verdicts
//! - `waiting`: the requests of a lane that wait
//! - `ticker`: the thread that runs the loops
//! - `names`: the name and prefix of each level, which requests are given
//! - `clock`: the current time

pub(crate) mod clock;
pub(crate) mod lanes;
pub(crate) mod names;
pub(crate) mod ticker;
pub(crate) mod waiting;

use crate::builder::ClientAddress;
use clock::Clock;
use lanes::{Lanes, MOST_LANES};
use names::{PrefixedNames, Prefixes};
use plimsoll_core::promises::Promises;
use plimsoll_core::request::Verdicts;
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use plimsoll_core::{Changes, Engine, Lane};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::SystemTime;

/// What all clones of a layer share.
pub(crate) struct Running {
    engine: Mutex<Engine>,
    pub(crate) lanes: Lanes,
    pub(crate) clock: Clock,
    pub(crate) client: Option<ClientAddress>,
    /// The thread that runs the control loops; the drop of this value wakes it, so that it ends.
    pub(crate) ticker: OnceLock<Thread>,
    /// The loops have panicked when they last ran, so that levels stand still.
    pub(crate) has_panicked: AtomicBool,
    /// When the loops last ran (ns).
    pub(crate) ticked_ns: AtomicU64,
    /// The loops panic.
    #[cfg(test)]
    pub(crate) are_loops_broken: AtomicBool,
}

impl Running {
    pub(crate) fn new(
        promises: &Promises,
        prefixes: &Prefixes,
        seed: u64,
        (clock, client): (Clock, Option<ClientAddress>),
    ) -> Result<Self, Vec<String>> {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(MOST_LANES);
        let (engine, lanes) = Engine::new(promises, processors, seed)?;
        let names = Arc::new(PrefixedNames::default().next(promises, prefixes, &engine.prepare(promises)?));
        let lanes = Lanes::new(lanes, &names);
        let (ticker, has_panicked) = (OnceLock::new(), AtomicBool::new(false));
        let ticked_ns = AtomicU64::new(clock.now().as_nanos());
        Ok(Running {
            engine: Mutex::new(engine),
            lanes,
            clock,
            client,
            ticker,
            has_panicked,
            ticked_ns,
            #[cfg(test)]
            are_loops_broken: AtomicBool::new(false),
        })
    }

    /// Calls the engine through this thread's lane.
    pub(crate) fn call<T>(&self, call: impl FnOnce(&mut Lane, &mut Verdicts) -> T) -> T {
        self.lanes.call(|| self.clock.now(), call)
    }

    /// Runs the loops that are due; returns when they are due next.
    fn tick(&self, verdicts: &mut Verdicts) -> Instant {
        let unix_time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let readings = Readings { unix_time, ..Readings::default() };
        #[cfg(test)]
        assert!(!self.are_loops_broken.load(std::sync::atomic::Ordering::Relaxed), "the loops are broken");
        lock(&self.engine).tick(self.clock.now(), &readings, verdicts)
    }

    /// Answers waiting requests if the loops have panicked; returns when to do so next.
    fn answer_waiting(&self, verdicts: &mut Verdicts) -> Instant {
        lock(&self.engine).answer_waiting(self.clock.now(), verdicts)
    }

    pub(crate) fn deliver(&self, verdicts: Verdicts) {
        self.lanes.deliver(|| self.clock.now(), verdicts);
    }

    pub(crate) fn status(&self) -> Status {
        lock(&self.engine).status()
    }

    /// Brings new promises into force. No request comes between them and the names of their numbers.
    pub(crate) fn reload(&self, promises: &Promises, prefixes: &Prefixes) -> Result<Changes, Vec<String>> {
        let mut engine = lock(&self.engine);
        let reload = engine.prepare(promises)?;
        let names = self.lanes.lock(0).names.next(promises, prefixes, &reload);
        Ok(self.lanes.set_names(&Arc::new(names), || engine.apply(reload)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(ticker) = self.ticker.get() {
            ticker.unpark();
        }
    }
}

/// Takes a lock, even if a thread panicked while it held it: the guarded data is consistent after each single write.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
