//! The engine: built from promises, driven by `tick`, which alone moves set points.

use crate::classify::{Rules, class_count, class_names};
use crate::control::utilization::{Period, UtilizationLoop};
use crate::crowd::Crowd;
use crate::door::{Readings, Verdicts};
use crate::gate::{Gate, MOST_IN_SERVICE};
use crate::knob::Knob;
use crate::lane::Lane;
use crate::model::{LinearModel, Served, Tracker};
use crate::monitor::{ClassMonitor, ClassTotals, PlantTotals};
use crate::promises::{MAX_LEVELS, Promises, Site};
use crate::random::Random;
use crate::shared::{LaneCounters, Shared, SharedClass, SharedPlant};
use crate::status::{ClassStatus, ModelStatus, Status};
use crate::time::{Duration, Instant};
use alloc::{string::String, sync::Arc, vec::Vec};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// Requests that expire are looked for no more often than this.
const SHORTEST_LOOK: Duration = Duration::from_millis(1);

/// The loops of all plants. Owned by the thread that ticks.
pub struct Engine {
    promises: Promises,
    shared: Arc<Shared>,
    /// The ticker's own lane: its counters take what `tick` itself accounts.
    lane: Lane,
    loops: Vec<UtilizationLoop>,
    monitors: Vec<ClassMonitor>,
    applied: Vec<f64>,
    crowds: Vec<Crowd>,
    /// Set by the first tick: what lies before it is no period.
    running: bool,
    /// Length of the last period.
    seconds: f64,
    last_run: Instant,
    last_sample: Instant,
    due: Instant,
    /// How often rates are sampled.
    sample_every: Duration,
    /// By plant: how often those who wait are looked at.
    look_every: Vec<Duration>,
    gateway: GatewayCost,
    reported: Vec<Mean>,
    /// By class: how many wait at the plant whose loop runs.
    waiting: Vec<u32>,
    /// By class: its rate or a cost stepped in the period.
    stepped: Vec<bool>,
}

impl Engine {
    /// Builds the engine and `lanes` lanes. `seed` keys the client hash and the random choice: the same seed gives the
    /// same choice of clients on every instance.
    ///
    /// # Errors
    /// What in `promises` cannot be, one sentence each.
    pub fn new(promises: &Promises, lanes: usize, seed: u64) -> Result<(Engine, Vec<Lane>), Vec<String>> {
        promises.validate()?;
        let classes: Vec<SharedClass> = promises.sites.iter().flat_map(shared_classes).collect();
        let count = classes.len();
        let plants = promises.plants.iter().map(|plant| SharedPlant {
            gate: Gate::new(count),
            workers: plant.workers,
            limit: plant.max_connections.min(MOST_IN_SERVICE),
            queue: plant.queue,
        });
        let counters =
            (0..=lanes).map(|_| Arc::new(LaneCounters::new(count, promises.plants.len()))).collect();
        let shared = Arc::new(Shared {
            mode: promises.control.mode,
            retry_after: promises.control.retry_after,
            classes,
            plants: plants.collect(),
            lanes: counters,
        });
        let rules = Arc::new(Rules::new(promises, seed));
        let mut seeds = Random::new(seed ^ 0x6c61_6e65);
        let mut all: Vec<Lane> = (shared.lanes.iter())
            .map(|counters| Lane {
                shared: shared.clone(),
                rules: rules.clone(),
                counters: counters.clone(),
                random: Random::new(seeds.bits()),
                not_sync: PhantomData,
            })
            .collect();
        let Some(lane) = all.pop() else { unreachable!("one lane more than asked for") };

        let line = |site: &Site| {
            let costs = promises.plants[site.plant].costs;
            costs.map_or_else(LinearModel::default, |c| {
                let workers = f64::from(promises.plants[site.plant].workers);
                LinearModel::known(c.per_request_seconds * workers, c.per_byte_seconds * workers)
            })
        };
        let monitors = promises.sites.iter().flat_map(|site| {
            let monitor = |_| ClassMonitor::new(line(site), site.levels.len());
            (0..class_count(site)).map(monitor).collect::<Vec<_>>()
        });
        let known = promises.plants.iter().filter_map(|p| p.costs).map(|c| c.per_rejection_seconds);
        let engine = Engine {
            monitors: monitors.collect(),
            loops: (0..promises.plants.len()).map(|plant| UtilizationLoop::new(promises, plant)).collect(),
            applied: shared.classes.iter().map(|class| f64::from(class.top_level)).collect(),
            crowds: (0..count).map(|_| Crowd::new(lanes + 1)).collect(),
            running: false,
            seconds: promises.control.period.as_secs_f64(),
            last_run: Instant::ZERO,
            last_sample: Instant::ZERO,
            due: Instant::FAR,
            sample_every: promises.control.period / Tracker::SAMPLES_PER_PERIOD,
            look_every: promises.plants.iter().map(|p| (p.queue.max_wait / 2).max(SHORTEST_LOOK)).collect(),
            gateway: GatewayCost::new(known.reduce(f64::max)),
            reported: alloc::vec![Mean::default(); promises.plants.len()],
            waiting: alloc::vec![0; count],
            stepped: alloc::vec![false; count],
            promises: promises.clone(),
            shared,
            lane,
        };
        Ok((engine, all))
    }

    /// Runs what is due at `now` and answers those who have waited too long; returns when to come again. On a thread of
    /// its own; if it stalls, the knobs stand still and everything else goes on. The first call starts the clock.
    pub fn tick(&mut self, now: Instant, readings: &Readings, verdicts: &mut Verdicts) -> Instant {
        if !self.running {
            self.start_clock(now);
        }
        for (plant, utilization) in &readings.utilization {
            if let Some(reported) = self.reported.get_mut(*plant) {
                reported.add(*utilization);
            }
        }
        let part = self.sample_every;
        let sampled = now.since(self.last_sample);
        // A sliver of a sample would be all noise.
        if sampled >= part || (now >= self.due && sampled >= part / 2) {
            self.sample(now);
        }
        if now >= self.due {
            let period = self.promises.control.period;
            self.run(now, readings.gateway_cpu);
            // After a late tick the next period is not cut to a sliver either.
            self.due = (self.due + period).max(now + period / 2);
        }
        let mut next = self.due.min(self.last_sample + part);
        for plant in 0..self.loops.len() {
            let expiry = self.lane.expire(now, plant, verdicts);
            // Who arrives meanwhile may be the next to expire.
            next = next.min(expiry).min(now + self.look_every[plant]);
        }
        next
    }

    fn start_clock(&mut self, now: Instant) {
        self.running = true;
        self.shared.plants.iter().for_each(|plant| plant.gate.start_clock(now));
        (self.last_run, self.last_sample) = (now, now);
        self.due = now + self.promises.control.period;
    }

    fn sample(&mut self, now: Instant) {
        let seconds = now.since(self.last_sample).as_secs_f64();
        self.last_sample = now;
        if seconds > 0.0 {
            for (class, monitor) in self.monitors.iter_mut().enumerate() {
                let arrivals = self.shared.lanes.iter().map(|lane| lane.classes[class].arrivals.get());
                monitor.sample(arrivals.fold(0, u64::wrapping_add), seconds);
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
        for (class, monitor) in self.monitors.iter_mut().enumerate() {
            self.stepped[class] = monitor.observe(&self.shared.lanes, class);
        }
        self.gateway.learn(&self.monitors, gateway_cpu);
        for plant in 0..self.loops.len() {
            self.lane.touch(now, plant);
            self.shared.plants[plant].gate.waiting_by_class(&mut self.waiting);
            let in_service = self.shared.plants[plant].gate.in_service();
            let period = Period {
                seconds,
                nominal_seconds: self.promises.control.period.as_secs_f64(),
                in_service,
                monitors: &self.monitors,
                totals: PlantTotals::sum(&self.shared.lanes, plant),
                waiting: &self.waiting,
                reported: self.reported[plant].take(),
                rejection_cost: self.gateway.per_rejection_seconds().unwrap_or(0.0),
                stepped: &self.stepped,
                max_wait: self.shared.plants[plant].queue.max_wait,
            };
            for (class, m) in self.loops[plant].run(&period) {
                self.shared.classes[class].knob.set(m);
                self.applied[class] = m;
            }
            self.loops[plant].doubt(&mut self.monitors, in_service);
        }
        for (class, crowd) in self.crowds.iter_mut().enumerate() {
            if !crowd.observe(&self.shared.lanes, class) {
                continue;
            }
            self.shared.classes[class].set_heavy(crowd.heavy());
            self.shared.classes[class].note_shift.store(crowd.note_shift(), Ordering::Relaxed);
        }
    }

    /// A snapshot.
    pub fn status(&self) -> Status {
        let plants = self.loops.iter().enumerate().map(|(number, one)| {
            let mut status = one.status.clone();
            let gate = &self.shared.plants[number].gate;
            let mut waiting = alloc::vec![0; self.monitors.len()];
            gate.waiting_by_class(&mut waiting);
            status.in_service = gate.in_service();
            status.waiting = waiting.iter().sum();
            status
        });
        let mut classes = Vec::with_capacity(self.monitors.len());
        for site in &self.promises.sites {
            for name in class_names(site) {
                classes.push(self.class_status(classes.len(), site, name));
            }
        }
        for (class, costs) in self.loops.iter().flat_map(|one| one.level_costs(&self.monitors)) {
            classes[class].level_cost_seconds = costs;
        }
        Status {
            at: self.last_run,
            mode: self.promises.control.mode,
            period: self.promises.control.period,
            plants: plants.collect(),
            classes,
            rejection_cost_seconds: self.gateway.per_rejection_seconds(),
        }
    }

    /// m as applied to a class (its number as in [`Target::class`](crate::door::Target::class)), 0..=M.
    pub fn service_level(&self, class: u16) -> f64 {
        self.applied[usize::from(class)]
    }

    fn class_status(&self, class: usize, site: &Site, name: &str) -> ClassStatus {
        let monitor = &self.monitors[class];
        let window = &monitor.window;
        let workers = f64::from(self.promises.plants[site.plant].workers);
        let (a, b) = monitor.line.costs();
        let mean_size = window.counts.bytes as f64 / (window.released.max(1)) as f64;
        let mean = |sum_ns: u64, count: u64| Duration::from_nanos(sum_ns.checked_div(count).unwrap_or(0));
        ClassStatus {
            site: site.name.clone(),
            class: name.into(),
            plant: site.plant,
            levels: site.levels.iter().map(|level| level.name.clone()).collect(),
            service_level: self.applied[class],
            request_rate: window.counts.arrivals as f64 / self.seconds,
            bandwidth: window.counts.bytes as f64 / self.seconds,
            model: ModelStatus {
                per_request_seconds: a / workers,
                per_byte_seconds: b / workers,
                confidence: monitor.line.confidence(mean_size),
                frozen: monitor.frozen,
            },
            level_cost_seconds: Vec::new(),
            heavy_clients: self.crowds[class].heavy().len() as u32,
            counts: ClassTotals::sum(&self.shared.lanes, class, site.levels.len()).counts,
            queue_delay: mean(window.queue_delay_ns, window.started),
            response_time: mean(window.response_ns, window.released),
        }
    }
}

fn shared_classes(site: &Site) -> Vec<SharedClass> {
    let mut plant_of_level = [site.plant as u16; MAX_LEVELS + 1];
    for (level, promise) in site.levels.iter().enumerate() {
        plant_of_level[level + 1] = promise.plant.unwrap_or(site.plant) as u16;
    }
    let top_level = site.levels.len() as u8;
    let class = |_| SharedClass {
        knob: Knob::new(f64::from(top_level)),
        top_level,
        choice: site.choice,
        plant_of_level,
        heavy: Default::default(),
        heavy_count: AtomicU32::new(0),
        note_shift: AtomicU32::new(0),
    };
    (0..class_count(site)).map(class).collect()
}

/// The mean of what was reported since the last period.
#[derive(Clone, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn take(&mut self) -> Option<f64> {
        let mean = core::mem::take(self);
        (mean.count > 0).then(|| mean.sum / f64::from(mean.count))
    }
}

/// c, the cost of a rejection, from the gateway's own CPU time: `CPU = x served + c rejected`, by the same recursive
/// least squares, with rejections in the place of bytes.
struct GatewayCost {
    line: LinearModel,
    /// From the promises, until enough was rejected to tell.
    known: Option<f64>,
    last_cpu: Option<Duration>,
    rejected: f64,
}

impl GatewayCost {
    /// The model counts its second column in KiB.
    const COLUMN: f64 = 1024.0;
    /// Fewer rejections carry more of the noise than of the cost.
    const ENOUGH: f64 = 100.0;

    fn new(known: Option<f64>) -> Self {
        GatewayCost { line: LinearModel::default(), known, last_cpu: None, rejected: 0.0 }
    }

    fn learn(&mut self, monitors: &[ClassMonitor], cpu: Option<Duration>) {
        let Some(cpu) = cpu else { return };
        if let Some(last) = self.last_cpu {
            let sum = |count: fn(&ClassMonitor) -> u64| monitors.iter().map(count).sum::<u64>() as f64;
            let rejected = sum(|m| m.window.counts.rejected());
            let served = sum(|m| m.window.started);
            self.rejected += rejected;
            let work_seconds = cpu.saturating_sub(last).as_secs_f64();
            let sample = Served { requests: served, bytes: rejected * Self::COLUMN, work_seconds };
            self.line.learn([sample].into_iter());
        }
        self.last_cpu = Some(cpu);
    }

    /// c [s of the whole machine]; `None` while it is not known. Never more than it costs to serve: that would be noise.
    fn per_rejection_seconds(&self) -> Option<f64> {
        let (served, rejected) = self.line.costs();
        if self.rejected < Self::ENOUGH { self.known } else { Some((rejected * Self::COLUMN).min(served)) }
    }
}
