//! The engine: built from promises, driven by `tick`, which alone moves set points.

mod idle;
mod lane;
mod reload;
pub(crate) mod state;

pub use lane::Lane;
pub use reload::Reload;

use crate::admission::aces::RateForecasts;
use crate::control::cost::class::ClassCosts;
use crate::control::cost::rejection::RejectionCost;
use crate::control::deadline::Deadlines;
use crate::control::response::{Now, ResponseLoops};
use crate::control::utilization::{PlantInput, UtilizationLoop};
use crate::control::workers::Search;
use crate::engine::state::{PublishedPlant, PublishedState};
use crate::promises::plan::plan;
use crate::promises::registry::Registry;
use crate::promises::{Mode, Promises};
use crate::random::Random;
use crate::request::Verdicts;
use crate::scheduling::rank::Standing;
use crate::sync::published::{Published, Reader};
use crate::telemetry::Readings;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_hitters::{HeavyHitters, Scratch};
use crate::telemetry::measurement::Measurement;
use crate::telemetry::monitor::{Monitors, PlantMonitor};
use crate::telemetry::snapshot::{ClassSnapshot, durations, sum_over};
use crate::telemetry::status::{ClassStatus, DeadlineStatus, ModelStatus, SiteStatus, Status};
use crate::time::{Duration, Instant};
use alloc::{string::String, sync::Arc, vec::Vec};
use core::marker::PhantomData;

/// Requests that expire are looked for no more often than this.
pub(crate) const SHORTEST_LOOK: Duration = Duration::from_millis(1);

/// Crowds that are looked at in one period. With five hundred busy classes each has its turn every fourth period, and
/// then shows at its first look who is heavy: its notes hold as many arrivals as tell.
const MOST_LOOKS: usize = 128;

/// The loops of all plants. Owned by the thread that ticks.
pub struct Engine {
    pub(crate) registry: Registry,
    /// By class number.
    pub(crate) rows: Vec<ClassRow>,
    /// The key of the client hash.
    pub(crate) seed: u64,
    pub(crate) published: Arc<Published<PublishedState>>,
    /// By lane, the ticker's own last.
    pub(crate) counters: Vec<Arc<LaneCounters>>,
    /// The ticker's own lane: its counters take what `tick` itself accounts.
    pub(crate) lane: Lane,
    pub(crate) loops: Vec<UtilizationLoop>,
    /// Of promised delays and ratios.
    pub(crate) responses: ResponseLoops,
    pub(crate) responses_due: Instant,
    /// What requests cost and how fast work comes, where deadlines are promised.
    pub(crate) deadlines: Deadlines,
    /// When a period of admission by budget ends next.
    pub(crate) periods_due: Instant,
    /// By plant: where the number of workers is looked for.
    pub(crate) searches: Vec<Option<Search>>,
    /// It is nowhere, nor are deadlines promised: a sample learns rates and nothing else.
    pub(crate) samples_only_rates: bool,
    /// By plant: service that takes longer is not healthy; no more requests are started at once then.
    pub(crate) guards: Vec<Duration>,
    pub(crate) monitors: Monitors,
    /// By plant.
    pub(crate) plant_monitors: Vec<PlantMonitor>,
    /// By class.
    pub(crate) costs: Vec<ClassCosts>,
    pub(crate) applied: Vec<f64>,
    pub(crate) crowds: Vec<HeavyHitters>,
    scratch: Scratch,
    /// Whose crowd is looked at first in the next period.
    next_crowd: usize,
    /// Some were left for the next period.
    has_looks: bool,
    /// The ticker's own lane has counted requests: it started or dropped some that waited. Most never do.
    has_counted: bool,
    /// Set by the first tick: what lies before it is no period.
    pub(crate) running: bool,
    /// Set by a reload: there may be room now for those who wait.
    pub(crate) reloaded: bool,
    /// Length of the last period.
    seconds: f64,
    pub(crate) last_run: Instant,
    pub(crate) last_sample: Instant,
    pub(crate) due: Instant,
    /// The shell was told that it may come later.
    is_put_off: bool,
    /// Nobody is degraded: while nothing comes either, the loops have nothing to do.
    pub(crate) may_rest: bool,
    /// Periods of rest that the loops were not told of yet.
    rested: u32,
    /// How often rates are sampled.
    pub(crate) sample_every: Duration,
    /// By plant: how often those who wait are looked at.
    pub(crate) look_every: Vec<Duration>,
    /// The shortest of them.
    pub(crate) shortest_look: Duration,
    pub(crate) gateway: RejectionCost,
    /// By class: how many wait at the plant whose loop runs.
    pub(crate) waiting: Vec<u32>,
}

/// What the status says of a class, whether it is promised still or not.
#[derive(Clone, Default)]
pub(crate) struct ClassRow {
    pub(crate) site: String,
    pub(crate) class: String,
    pub(crate) plant: usize,
    /// Names of the levels 1..=M.
    pub(crate) levels: Vec<String>,
    /// Their plants.
    pub(crate) plants: Vec<usize>,
    pub(crate) removed: bool,
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
            counters,
            lane,
            loops: Vec::new(),
            responses: ResponseLoops::default(),
            responses_due: Instant::FAR,
            deadlines: Deadlines::default(),
            periods_due: Instant::FAR,
            searches: Vec::new(),
            samples_only_rates: false,
            guards: Vec::new(),
            monitors: Monitors::default(),
            plant_monitors: Vec::new(),
            costs: Vec::new(),
            applied: Vec::new(),
            crowds: Vec::new(),
            scratch: Scratch::default(),
            next_crowd: 0,
            has_looks: false,
            has_counted: false,
            running: false,
            reloaded: false,
            seconds: promises.control.period.as_secs_f64(),
            last_run: Instant::ZERO,
            last_sample: Instant::ZERO,
            due: Instant::FAR,
            is_put_off: false,
            may_rest: false,
            rested: 0,
            sample_every: Duration::ZERO,
            look_every: Vec::new(),
            shortest_look: Duration::MAX,
            gateway: RejectionCost::default(),
            waiting: Vec::new(),
        };
        engine.reload(promises)?;
        all.iter_mut().for_each(Lane::follow);
        Ok((engine, all))
    }

    /// The generation in force.
    pub(crate) fn shared(&self) -> &PublishedState {
        &self.lane.shared
    }

    /// Runs what is due at `now` and answers those who have waited too long; returns when to come again. On a thread of
    /// its own; if it stalls, the knobs stand still and everything else goes on. The first call starts the clock.
    pub fn tick(&mut self, now: Instant, readings: &Readings, verdicts: &mut Verdicts) -> Instant {
        if !self.running {
            self.start_clock(now);
        }
        for (plant, utilization) in &readings.utilization {
            if let Some(monitor) = self.plant_monitors.get_mut(*plant) {
                monitor.reported.add(*utilization);
            }
        }
        for (plant, workers) in &readings.workers {
            if let Some(Some(search)) = self.searches.get_mut(*plant) {
                search.finder.tell(*workers);
            }
        }
        let part_ns = self.sample_every.as_nanos() as u64;
        let sampled_ns = now.nanos_since(self.last_sample);
        // A sliver of a sample would be all noise.
        if sampled_ns >= part_ns || (now >= self.due && sampled_ns >= part_ns / 2) {
            self.sample(now, sampled_ns, part_ns);
        }
        if now >= self.responses_due {
            let shared: &PublishedState = &self.lane.shared;
            let workers = |plant: usize| shared.plants[plant].capacity.workers();
            let line = |plant: usize| self.registry.promises.plants[plant].set_point;
            let (lanes, monitors) = (&self.counters, &self.monitors);
            let seen = Now { at: now, lanes, monitors, workers: &workers, line: &line };
            // A rate that has just begun is not known yet.
            self.responses_due = self.responses.run(&seen).min(now + self.sample_every);
        }
        if now >= self.due {
            let period = self.registry.promises.control.period;
            self.run(now, readings.gateway_cpu);
            // After a late tick the next period is not cut to a sliver either.
            self.due = (self.due + period).max(now + period / 2);
        }
        if now >= self.periods_due {
            let day = readings.time_of_day.unwrap_or(now.since(Instant::ZERO));
            let keeping = self.lane.shared.plants.iter().enumerate().filter(|(_, plant)| plant.has_deadlines);
            let backlogs = keeping.map(|(number, plant)| (number, &plant.unfinished));
            self.periods_due = self.deadlines.turn(now, day, backlogs);
        }
        let mut next = self.due.min(self.last_sample + self.sample_every).min(self.responses_due);
        next = next.min(self.periods_due);
        let reloaded = core::mem::take(&mut self.reloaded);
        if !reloaded && !self.somebody_waits() {
            return next.min(now + self.shortest_look);
        }
        let told = verdicts.len();
        for plant in 0..self.loops.len() {
            if reloaded || self.may_have_room(plant) {
                self.lane.dispatch(now, plant, verdicts);
            }
            let expiry = self.lane.expire(now, plant, verdicts);
            // Who arrives meanwhile may be the next to expire.
            next = next.min(expiry).min(now + self.look_every[plant]);
        }
        self.has_counted |= verdicts.len() > told;
        next
    }

    /// An idle lane's counters are as many as another's, and would be fetched from far memory for nothing.
    fn counting_lanes(&self) -> &[Arc<LaneCounters>] {
        &self.counters[..self.counters.len() - usize::from(!self.has_counted)]
    }

    fn somebody_waits(&self) -> bool {
        self.shared().plants.iter().any(|plant| plant.gate.is_waited_at())
    }

    /// Whether there may be room for one who waits although nothing was released: a limit was raised, or one who was
    /// held may start.
    fn may_have_room(&self, plant: usize) -> bool {
        let PublishedPlant { gate, capacity, .. } = &self.shared().plants[plant];
        gate.is_waited_at() && gate.in_service() < capacity.limit()
    }

    fn start_clock(&mut self, now: Instant) {
        self.running = true;
        self.shared().plants.iter().for_each(|plant| plant.gate.start_clock(now));
        (self.last_run, self.last_sample) = (now, now);
        self.due = now + self.registry.promises.control.period;
    }

    fn sample(&mut self, now: Instant, sampled_ns: u64, part_ns: u64) {
        self.last_sample = now;
        if sampled_ns == 0 {
            return;
        }
        // Nothing arrives at the ticker's own lane.
        let Some((_, lanes)) = self.counters.split_last() else { return };
        // Nobody came but in the last part.
        let whole = core::mem::take(&mut self.is_put_off) && sampled_ns.is_multiple_of(part_ns);
        let empty = if whole { sampled_ns / part_ns - 1 } else { 0 };
        let (seconds, part_seconds) = (sampled_ns as f64 / 1e9, part_ns as f64 / 1e9);
        let last_seconds = if whole { part_seconds } else { seconds };
        self.monitors.sample(lanes, empty, part_seconds, last_seconds);
        if !self.samples_only_rates {
            self.search(now);
            self.deadlines.learn(seconds);
            for (number, plant) in self.lane.shared.plants.iter().enumerate() {
                if plant.has_deadlines {
                    self.deadlines.follow(number, &plant.unfinished, seconds, plant.capacity.workers());
                }
            }
        }
    }

    /// Looks for the number of workers, where it is not known.
    fn search(&mut self, now: Instant) {
        for plant in 0..self.searches.len() {
            if self.searches[plant].is_none() {
                continue;
            }
            self.lane.touch(now, plant);
            let PublishedPlant { gate, capacity, .. } = &self.lane.shared.plants[plant];
            let Some(search) = &mut self.searches[plant] else { continue };
            let slow = self.loops[plant].service_time() > self.guards[plant];
            // Nothing limits what is in service then, and a slow server looks like one of few workers.
            if self.registry.promises.control.mode != Mode::Off {
                search.observe(&self.counters, plant, gate.is_waited_at(), slow);
            }
            let (was, workers) = (capacity.workers(), search.finder.workers());
            capacity.set(workers, search.finder.limit());
            // What a request takes was measured as a share of other workers.
            if workers.abs_diff(was) * 4 > was {
                let Engine { monitors, costs, counters, .. } = self;
                self.loops[plant].forget_costs(|class, level| {
                    costs[class].forget(level);
                    monitors.pass_over(class, level, counters);
                });
            }
        }
    }

    fn run(&mut self, now: Instant, gateway_cpu: Option<Duration>) {
        let elapsed = now.since(self.last_run);
        if elapsed.is_zero() {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        (self.last_run, self.seconds) = (now, seconds);
        if self.rests() {
            self.rest(1);
            return self.gateway.learn(self.monitors.measurements(), gateway_cpu);
        }
        let rested = core::mem::take(&mut self.rested);
        let lanes = &self.counters[..self.counters.len() - usize::from(!self.has_counted)];
        let something_came = self.monitors.observe(lanes);
        let classes = self.monitors.measurements();
        self.costs.iter_mut().zip(classes).for_each(|(costs, measured)| costs.learn(measured));
        self.gateway.learn(classes, gateway_cpu);
        for plant in 0..self.loops.len() {
            self.lane.touch(now, plant);
            let state: &PublishedState = &self.lane.shared;
            let PublishedPlant { gate, queue, capacity, has_deadlines, .. } = &state.plants[plant];
            gate.waiting_by_class(&mut self.waiting);
            let (counted, reported) = self.plant_monitors[plant].observe(&self.counters, plant);
            let measured = Measurement {
                seconds,
                nominal_seconds: self.registry.promises.control.period.as_secs_f64(),
                classes: self.monitors.measurements(),
                counted,
                reported,
                in_service: gate.in_service(),
                waiting: &self.waiting,
                workers: capacity.workers(),
            };
            let input = PlantInput {
                measured,
                rejection_cost: self.gateway.per_rejection_seconds().unwrap_or(0.0),
                max_wait: queue.max_wait,
                capacity_known: self.searches[plant].as_ref().is_none_or(|search| search.finder.found()),
                set_point_reduction: self.responses.pressure(plant),
                sheds: self.responses.sheds(plant) || *has_deadlines,
            };
            if rested > 0 {
                self.loops[plant].end_rest(rested);
            }
            for (class, m) in self.loops[plant].step(&input, &mut self.costs) {
                if self.applied[*class] != *m {
                    state.classes[*class].words.level.set(*m);
                    self.applied[*class] = *m;
                }
            }
        }
        if something_came || self.has_looks {
            self.find_heavy();
        }
        self.may_rest = !self.has_looks && self.loops.iter().all(UtilizationLoop::is_at_top);
    }

    /// Looks for heavy clients in the classes where enough came since the last look; of hundreds in turn, so that the
    /// step stays short.
    fn find_heavy(&mut self) {
        let Some((_, lanes)) = self.counters.split_last() else { return };
        let classes = self.crowds.len();
        let mut looks = 0;
        self.has_looks = false;
        for _ in 0..classes {
            let class = self.next_crowd % classes;
            self.next_crowd = class + 1;
            let crowd = &mut self.crowds[class];
            if crowd.observe(lanes, class, &mut self.scratch) {
                let shared = &self.lane.shared.classes[class];
                shared.words.set_heavy(crowd.heavy(), crowd.note_shift());
                looks += 1;
                if looks == MOST_LOOKS {
                    self.has_looks = true;
                    return;
                }
            }
        }
    }

    /// What was learned of how rates go on, by the hour of day, where admission by budget predicts them.
    pub fn trends(&self) -> RateForecasts {
        self.deadlines.trends()
    }

    /// Takes over what was learned before. What was learned since is added.
    pub fn remember(&mut self, trends: RateForecasts) {
        self.deadlines.remember(trends);
    }

    /// A snapshot.
    pub fn status(&self) -> Status {
        let plants = self.loops.iter().enumerate().map(|(number, one)| {
            let mut status = one.status().clone();
            let PublishedPlant { gate, capacity, has_deadlines, unfinished, .. } =
                &self.shared().plants[number];
            (status.workers, status.limit) = (capacity.workers(), capacity.limit());
            status.pressure = self.responses.pressure(number);
            status.workers_found = self.searches[number].as_ref().map(|search| search.finder.found());
            let mut waiting = alloc::vec![0; self.monitors.len()];
            gate.waiting_by_class(&mut waiting);
            status.in_service = gate.in_service();
            status.unfinished_seconds = has_deadlines.then(|| unfinished.unfinished_seconds());
            status.waiting = waiting.iter().sum();
            status.removed = !self.registry.plant_present[number];
            status
        });
        let rows = self.rows.iter().enumerate();
        let mut classes: Vec<_> = rows.map(|(class, row)| self.class_status(class, row)).collect();
        for (class, costs) in self.loops.iter().flat_map(|one| one.level_costs(&self.costs)) {
            classes[class].level_cost_seconds = costs;
        }
        for (class, status) in self.responses.status() {
            classes[class].response = Some(status);
        }
        for (class, m) in self.loops.iter().flat_map(UtilizationLoop::site_levels) {
            classes[class].site_level = Some(m);
        }
        let mut sites = alloc::vec![SiteStatus::default(); self.registry.promises.sites.len()];
        for (number, site) in self.loops.iter().flat_map(UtilizationLoop::sites) {
            sites[number].clone_from(site);
        }
        for (site, numbers) in sites.iter_mut().zip(&self.registry.sites) {
            site.types = self.deadlines.status(numbers.site);
        }
        let known = |site: usize| {
            self.loops[self.registry.promises.sites[site].plant]
                .known_of(site, &self.costs, |class| self.monitors.rate(class))
        };
        Status {
            at: self.last_run,
            mode: self.registry.promises.control.mode,
            period: self.registry.promises.control.period,
            plants: plants.collect(),
            sites,
            plan: plan(&self.registry.promises, known),
            classes,
            rejection_cost_seconds: self.gateway.per_rejection_seconds(),
        }
    }

    /// m as applied to a class (its number as in [`Target::class`](crate::request::Target::class)), 0..=M.
    pub fn service_level(&self, class: u16) -> f64 {
        self.applied[usize::from(class)]
    }

    fn class_status(&self, class: usize, row: &ClassRow) -> ClassStatus {
        let (costs, window) = (&self.costs[class], &self.monitors.measurements()[class].window);
        let workers = f64::from(self.shared().plants[row.plant].capacity.workers());
        let (a, b) = costs.line.costs();
        let mean_size = window.counts.bytes as f64 / (window.released.max(1)) as f64;
        let totals = ClassSnapshot::sum(&self.counters, class, row.levels.len());
        let lanes = || self.counters.iter().map(move |lane| &lane.classes[class]);
        let (queue_delays, response_times) =
            (lanes().map(|class| &class.queue_delays), lanes().map(|class| &class.response_times));
        let mean = |sum_ns: u64, count: u64| Duration::from_nanos(sum_ns.checked_div(count).unwrap_or(0));
        ClassStatus {
            site: row.site.clone(),
            class: row.class.clone(),
            removed: row.removed,
            plant: row.plant,
            levels: row.levels.clone(),
            service_level: self.applied[class],
            request_rate: window.counts.arrivals as f64 / self.seconds,
            bandwidth: window.counts.bytes as f64 / self.seconds,
            model: ModelStatus {
                per_request_seconds: a / workers,
                per_byte_seconds: b / workers,
                confidence: costs.line.confidence(mean_size),
                frozen: costs.frozen,
            },
            site_level: None,
            response: None,
            deadline: self.deadline_status(class, row.plant),
            level_cost_seconds: Vec::new(),
            heavy_clients: self.crowds[class].heavy().len() as u32,
            counts: totals.counts,
            queue_delays: durations(queue_delays, totals.started, totals.queue_delay_ns),
            response_times: durations(response_times, totals.released, totals.response_ns),
            queue_delay: mean(window.queue_delay_ns, window.started),
            response_time: mean(window.response_ns, window.released),
        }
    }

    /// The deadline of a class, at the plant that serves it.
    fn deadline_status(&self, class: usize, plant: usize) -> Option<DeadlineStatus> {
        let (own, plant) = (&self.shared().classes[class], &self.shared().plants[plant]);
        let deadline = own.terms.deadline?;
        let missed = sum_over(&self.counters, class, |counters| &counters.timing.late);
        let wait = plant.unfinished.wait_of(own.rank(Standing::Ordinary), plant.workers(None));
        Some(DeadlineStatus { deadline, wait, missed })
    }
}
