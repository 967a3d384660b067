//! Room: runs the loops.
//!
//! *In*: promises, ticks with readings, and through lanes the requests. *Out*: verdicts for requests that waited, and the
//! published state that lanes read.
//!
//! - `lane`: one thread's side of the engine: what happens to a request at its arrival, start, release and departure
//! - `timers`, `control_period`, `loops`, `idle_periods`: which loop is due when, what runs then, the loops, idle periods
//! - `published_state`, `processes`: what loops write and lanes read; the same for the processes of a server, in a mapping
//! - `reload`, `learned_state`: brings new promises into force; what is kept for the engine after this one
//! - `status`: what the status shows

mod control_period;
mod idle_periods;
mod lane;
mod learned_state;
mod loops;
pub mod processes;
pub(crate) mod published_state;
mod reload;
mod status;
mod timers;

pub use lane::Lane;
pub use learned_state::{LearnedClass, LearnedLevel, LearnedPart, LearnedPlant, LearnedSite, LearnedState};
pub use reload::{Names, Reload};

use crate::admission::aces::RateForecasts;
use crate::promises::Promises;
use crate::promises::registry::Registry;
use crate::random::Random;
use crate::request::Verdicts;
use crate::sync::published::{Published, Reader};
use crate::telemetry::Readings;
use crate::telemetry::counters::LaneCounters;
use crate::time::Instant;
use alloc::{string::String, sync::Arc, vec::Vec};
use core::marker::PhantomData;
use core::net::IpAddr;
use idle_periods::IdlePeriods;
use loops::{Loops, Sensors};
use processes::SharedWords;
use published_state::{PublishedPlant, PublishedState};
use reload::ClassNames;
use timers::{Timer, Timers};

/// The engine: built from promises, and driven by [`tick`](Engine::tick), which alone moves service levels and quotas
/// between reloads. One thread at a time drives it.
pub struct Engine {
    registry: Registry,
    /// By class number.
    class_names: Vec<ClassNames>,
    /// The key of the client hash.
    seed: u64,
    /// The words that the engine shares with the processes of a server.
    words: Option<SharedWords>,
    published: Arc<Published<PublishedState>>,
    /// The lane of `tick` itself: its counters take what `tick` accounts, and clients that were turned away without a lane.
    lane: Lane,
    sensors: Sensors,
    loops: Loops,
    timers: Timers,
    idle: IdlePeriods,
    /// Set by a reload, since it may make room for requests that wait.
    reloaded: bool,
}

impl Engine {
    /// Builds the engine and `lanes` lanes, one for each thread that is to decide; there can be no more later. `seed` keys the
    /// client hash and the random choice: the same seed gives the same choice of clients on every instance.
    ///
    /// # Errors
    /// What in `promises` cannot be, one sentence each.
    pub fn new(promises: &Promises, lanes: usize, seed: u64) -> Result<(Engine, Vec<Lane>), Vec<String>> {
        Engine::over(promises, alloc::vec![LaneCounters::default(); lanes], None, seed)
    }

    /// Builds the engine, and a lane over each of these counters. `words` are those that it shares with other processes.
    fn over(
        promises: &Promises,
        counters: Vec<LaneCounters>,
        words: Option<SharedWords>,
        seed: u64,
    ) -> Result<(Engine, Vec<Lane>), Vec<String>> {
        let own = LaneCounters::default();
        let counters: Vec<_> = counters.into_iter().chain([own]).map(Arc::new).collect();
        let published = Arc::new(Published::new(Arc::new(PublishedState::empty(counters.clone()))));
        let mut seeds = Random::new(seed ^ 0x6c61_6e65);
        let lane = |number: usize| Lane {
            published: Reader::new(published.clone()),
            number,
            counters: counters[number].clone(),
            random: Random::new(seeds.bits()),
            not_sync: PhantomData,
        };
        let mut all: Vec<Lane> = (0..counters.len()).map(lane).collect();
        let Some(lane) = all.pop() else { unreachable!("one lane more than asked for") };
        let mut engine = Engine {
            registry: Registry::default(),
            class_names: Vec::new(),
            seed,
            words,
            published,
            lane,
            sensors: Sensors { counters, ..Sensors::default() },
            loops: Loops::default(),
            timers: Timers::new(promises.control.period),
            idle: IdlePeriods::default(),
            reloaded: false,
        };
        engine.reload(promises)?;
        all.iter_mut().for_each(Lane::follow);
        Ok((engine, all))
    }

    /// The generation in force.
    fn published(&self) -> &PublishedState {
        &self.lane.published
    }

    /// Runs what is due at `now` and answers requests that have waited too long; returns when it must be called again. It
    /// runs on a thread of its own: if it stalls, service levels and quotas stand still and lanes go on. The first call
    /// starts the clock.
    pub fn tick(&mut self, now: Instant, readings: &Readings, verdicts: &mut Verdicts) -> Instant {
        if !self.timers.running {
            self.published().plants.iter().for_each(|plant| plant.gate.start_clock(now));
            self.timers.start(now);
        }
        self.read(now, readings);
        let unix_time = readings.unix_time.unwrap_or(now.since(Instant::ZERO));
        if self.timers.ends_sample(now) {
            self.sample(now, readings.queue_waiting);
        }
        if self.timers.is_due(Timer::Departures, now) {
            self.step_departures(now);
        }
        if self.timers.is_due(Timer::Period, now) {
            self.turn_clients(unix_time);
            self.end_period(now, readings);
            self.timers.ended_period(now);
        }
        if self.timers.is_due(Timer::Budget, now) {
            self.turn_budgets(now, unix_time);
        }
        self.timers.next().min(self.serve_waiting(now, verdicts))
    }

    /// Answers waiting requests as [`tick`](Engine::tick) does last, and runs no loop. It is for a shell in which `tick` has
    /// panicked. Returns when to call it again.
    pub fn answer_waiting(&mut self, now: Instant, verdicts: &mut Verdicts) -> Instant {
        // Whatever the loops had changed before the panic may make room.
        self.reloaded = true;
        self.serve_waiting(now, verdicts)
    }

    /// Takes the readings that plants report.
    fn read(&mut self, now: Instant, readings: &Readings) {
        for (plant, utilization) in &readings.utilization {
            if let Some(monitor) = self.sensors.plants.get_mut(*plant) {
                monitor.reported.add(now, *utilization);
            }
        }
        for (plant, share) in &readings.available {
            let Some(PublishedPlant { capacity, .. }) = self.published().plants.get(*plant) else { continue };
            if capacity.set_available(*share) {
                let share = capacity.available();
                self.loops.utilization[*plant].set_available(share);
            }
        }
        for (plant, workers) in &readings.workers {
            if let Some(Some(search)) = self.loops.searches.get_mut(*plant) {
                search.report(*workers);
            }
        }
    }

    /// Starts waiting requests for which there may be room and answers those that have waited too long; returns when to
    /// look again.
    fn serve_waiting(&mut self, now: Instant, verdicts: &mut Verdicts) -> Instant {
        let reloaded = core::mem::take(&mut self.reloaded);
        if !reloaded && !self.has_waiting() {
            return now + self.timers.shortest_look;
        }
        let (answered, mut next) = (verdicts.len(), Instant::FAR);
        for plant in 0..self.loops.utilization.len() {
            if reloaded || self.may_have_room(plant) {
                self.lane.dispatch(now, plant, verdicts);
            }
            let expiry = self.lane.expire(now, plant, verdicts);
            // A request that arrives meanwhile may be the next to expire.
            next = next.min(expiry).min(now + self.timers.look_every[plant]);
        }
        self.sensors.has_counted |= verdicts.len() > answered;
        next
    }

    fn has_waiting(&self) -> bool {
        self.published().plants.iter().any(|plant| plant.gate.is_waited_at())
    }

    /// Whether there may be room for a waiting request although none was released: a limit was raised, or a request that
    /// was held may start now.
    fn may_have_room(&self, plant: usize) -> bool {
        let PublishedPlant { gate, capacity, .. } = &self.published().plants[plant];
        gate.is_waited_at() && gate.in_service() < capacity.limit()
    }

    /// Whether each request from an address would be rejected now, as [`Lane::reject_client`] has it; nothing is counted.
    pub fn rejects_client(&mut self, client: IpAddr) -> bool {
        self.lane.rejects_client(client)
    }

    /// Counts a request from an address that was turned away where no lane is asked. It counts for no class if, after a reload,
    /// addresses do not determine classes any more.
    pub fn count_rejected_client(&mut self, now: Instant, client: IpAddr) {
        self.lane.count_rejected_client(now, client);
        self.sensors.has_counted = true;
    }

    /// The counted changes of rates, by hour of the day, where admission by budget forecasts them.
    pub fn rate_forecasts(&self) -> RateForecasts {
        self.loops.budgets.rate_forecasts()
    }

    /// Takes over what was learned before. What was learned since is added.
    pub fn restore_rate_forecasts(&mut self, forecasts: RateForecasts) {
        self.loops.budgets.restore_rate_forecasts(forecasts);
    }
}
