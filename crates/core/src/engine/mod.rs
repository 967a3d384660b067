//! Room: runs the loops.
//!
//! *In*: promises, ticks with readings, and through lanes the requests. *Out*: verdicts for requests that waited, and the
//! published state that lanes read. The engine holds the loops, the timers, the sensors and that state; `lane` is one
//! thread's side of it; `period` is what the timers run; `reload` brings new promises into force.

mod idle;
mod lane;
mod parts;
mod period;
mod reload;
pub(crate) mod state;
mod status;
mod timers;

pub use lane::Lane;
pub use reload::Reload;

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
use parts::{ClassRow, Idle, Loops, Sensors};
use state::{PublishedPlant, PublishedState};
use timers::{Timer, Timers};

/// The engine: built from promises, driven by [`tick`](Engine::tick), which alone moves set points. One thread
/// at a time drives it.
pub struct Engine {
    registry: Registry,
    /// By class number.
    rows: Vec<ClassRow>,
    /// The key of the client hash.
    seed: u64,
    published: Arc<Published<PublishedState>>,
    /// The ticker's own lane: its counters take what `tick` itself accounts.
    lane: Lane,
    sensors: Sensors,
    loops: Loops,
    timers: Timers,
    idle: Idle,
    /// Set by a reload: there may be room now for requests that wait.
    reloaded: bool,
}

impl Engine {
    /// Builds the engine and `lanes` lanes. `seed` keys the client hash and the random choice: the same seed gives the
    /// same choice of clients on every instance.
    ///
    /// # Errors
    /// What in `promises` cannot be, one sentence each.
    pub fn new(promises: &Promises, lanes: usize, seed: u64) -> Result<(Engine, Vec<Lane>), Vec<String>> {
        let counters: Vec<_> = (0..=lanes).map(|_| Arc::new(LaneCounters::default())).collect();
        let published = Arc::new(Published::new(Arc::new(PublishedState::empty(counters.clone()))));
        let mut seeds = Random::new(seed ^ 0x6c61_6e65);
        let lane = |number: usize| Lane {
            shared: Reader::new(published.clone()),
            number,
            counters: counters[number].clone(),
            random: Random::new(seeds.bits()),
            not_sync: PhantomData,
        };
        let mut all: Vec<Lane> = (0..=lanes).map(lane).collect();
        let Some(lane) = all.pop() else { unreachable!("one lane more than asked for") };
        let mut engine = Engine {
            registry: Registry::default(),
            rows: Vec::new(),
            seed,
            published,
            lane,
            sensors: Sensors { counters, ..Sensors::default() },
            loops: Loops::default(),
            timers: Timers::new(promises.control.period),
            idle: Idle::default(),
            reloaded: false,
        };
        engine.reload(promises)?;
        all.iter_mut().for_each(Lane::follow);
        Ok((engine, all))
    }

    /// The generation in force.
    fn shared(&self) -> &PublishedState {
        &self.lane.shared
    }

    /// Runs what is due at `now` and answers requests that have waited too long; returns when to come again. It runs on a
    /// thread of its own; if it stalls, set points stand still and everything else goes on. The first call starts the
    /// clock.
    pub fn tick(&mut self, now: Instant, readings: &Readings, verdicts: &mut Verdicts) -> Instant {
        if !self.timers.running {
            self.shared().plants.iter().for_each(|plant| plant.gate.start_clock(now));
            self.timers.start(now);
        }
        self.read(readings);
        if self.timers.ends_sample(now) {
            self.sample(now);
        }
        if self.timers.is_due(Timer::Departures, now) {
            self.step_departures(now);
        }
        if self.timers.is_due(Timer::Period, now) {
            self.end_period(now, readings.gateway_cpu);
            self.timers.ended_period(now);
        }
        if self.timers.is_due(Timer::Budget, now) {
            self.turn_budgets(now, readings.time_of_day.unwrap_or(now.since(Instant::ZERO)));
        }
        self.timers.next().min(self.answer_waiting(now, verdicts))
    }

    /// Takes what plants report.
    fn read(&mut self, readings: &Readings) {
        for (plant, utilization) in &readings.utilization {
            if let Some(monitor) = self.sensors.plants.get_mut(*plant) {
                monitor.reported.add(*utilization);
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
    fn answer_waiting(&mut self, now: Instant, verdicts: &mut Verdicts) -> Instant {
        let reloaded = core::mem::take(&mut self.reloaded);
        if !reloaded && !self.any_request_waits() {
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

    fn any_request_waits(&self) -> bool {
        self.shared().plants.iter().any(|plant| plant.gate.is_waited_at())
    }

    /// Whether there may be room for a waiting request although nothing was released: a limit was raised, or one that was
    /// held may start.
    fn may_have_room(&self, plant: usize) -> bool {
        let PublishedPlant { gate, capacity, .. } = &self.shared().plants[plant];
        gate.is_waited_at() && gate.in_service() < capacity.limit()
    }

    /// What was learned of how rates go on, by the hour of day, where admission by budget predicts them.
    pub fn rate_forecasts(&self) -> RateForecasts {
        self.loops.budgets.rate_forecasts()
    }

    /// Takes over what was learned before. What was learned since is added.
    pub fn restore_rate_forecasts(&mut self, forecasts: RateForecasts) {
        self.loops.budgets.restore_rate_forecasts(forecasts);
    }
}
