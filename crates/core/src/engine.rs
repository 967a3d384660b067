//! The engine: built from promises, driven by `tick`, which alone moves set points.

use crate::classify::{Rules, class_count, class_names};
use crate::control::utilization::{Period, UtilizationLoop};
use crate::door::{Readings, Verdicts};
use crate::gate::{Gate, MOST_IN_SERVICE};
use crate::knob::Knob;
use crate::lane::Lane;
use crate::model::{LinearModel, Served, Tracker};
use crate::monitor::{ClassMonitor, ClassTotals, PlantTotals};
use crate::promises::{MAX_LEVELS, Promises, Site};
use crate::random::Random;
use crate::shared::{LaneCounters, RECENT, Shared, SharedClass, SharedPlant};
use crate::status::{ClassStatus, ModelStatus, Status};
use crate::time::{Duration, Instant};
use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// The loops of all plants. Owned by the thread that ticks.
pub struct Engine {
    promises: Promises,
    shared: Arc<Shared>,
    /// The ticker's own lane: its counters take what `tick` itself accounts.
    lane: Lane,
    loops: Vec<UtilizationLoop>,
    monitors: Vec<ClassMonitor>,
    applied: Vec<f64>,
    arrivals_by_lane: Vec<Vec<u64>>,
    heavy: Vec<Vec<u64>>,
    last_run: Instant,
    last_sample: Instant,
    due: Instant,
    gateway: GatewayCost,
    reported: Vec<Mean>,
    waiting: Vec<u32>,
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
            (0..class_count(site)).map(|_| ClassMonitor::new(line(site))).collect::<Vec<_>>()
        });
        let known = promises.plants.iter().filter_map(|p| p.costs).map(|c| c.per_rejection_seconds);
        let engine = Engine {
            monitors: monitors.collect(),
            loops: (0..promises.plants.len()).map(|plant| UtilizationLoop::new(promises, plant)).collect(),
            applied: shared.classes.iter().map(|class| f64::from(class.top_level)).collect(),
            arrivals_by_lane: alloc::vec![alloc::vec![0; count]; lanes + 1],
            heavy: alloc::vec![Vec::new(); count],
            last_run: Instant::ZERO,
            last_sample: Instant::ZERO,
            due: Instant::ZERO + promises.control.period,
            gateway: GatewayCost { known: known.fold(0.0, f64::max), ..GatewayCost::default() },
            reported: alloc::vec![Mean::default(); promises.plants.len()],
            waiting: Vec::new(),
            promises: promises.clone(),
            shared,
            lane,
        };
        Ok((engine, all))
    }

    /// Runs what is due at `now` and answers those who have waited too long; returns when to come again. On a thread of
    /// its own; if it stalls, the knobs stand still and everything else goes on.
    pub fn tick(&mut self, now: Instant, readings: &Readings, verdicts: &mut Verdicts) -> Instant {
        let part = self.promises.control.period / Tracker::SAMPLES_PER_PERIOD;
        for (plant, utilization) in &readings.utilization {
            if let Some(reported) = self.reported.get_mut(*plant) {
                reported.add(*utilization);
            }
        }
        // A sliver of a sample would be all noise.
        if now >= self.last_sample + part || (now >= self.due && now >= self.last_sample + part / 2) {
            self.sample(now);
        }
        if now >= self.due {
            self.run(now, readings.gateway_cpu);
            self.last_run = now;
            let period = self.promises.control.period;
            self.due += period;
            if self.due <= now {
                self.due = now + period;
            }
        }
        let mut next = self.due.min(self.last_sample + part);
        for plant in 0..self.loops.len() {
            let expiry = self.lane.expire(now, plant, verdicts);
            // Who arrives meanwhile may be the next to expire.
            let arriving = now + self.shared.plants[plant].queue.max_wait / 2;
            next = next.min(expiry).min(arriving);
        }
        next
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
        let observe = |(class, monitor): (usize, &mut ClassMonitor)| {
            monitor.observe(ClassTotals::sum(&self.shared.lanes, class))
        };
        let stepped: Vec<bool> = self.monitors.iter_mut().enumerate().map(observe).collect();
        self.gateway.learn(&self.monitors, gateway_cpu);
        for plant in 0..self.loops.len() {
            self.lane.touch(now, plant);
            self.shared.plants[plant].gate.waiting_by_class(&mut self.waiting);
            let period = Period {
                seconds,
                monitors: &self.monitors,
                totals: PlantTotals::sum(&self.shared.lanes, plant),
                waiting: &self.waiting,
                reported: self.reported[plant].take(),
                rejection_cost: self.gateway.per_rejection_seconds(),
                stepped: &stepped,
                max_wait: self.shared.plants[plant].queue.max_wait,
            };
            for (class, m) in self.loops[plant].run(&period) {
                self.shared.classes[class].knob.set(m);
                self.applied[class] = m;
            }
        }
        for class in 0..self.heavy.len() {
            self.find_heavy(class);
        }
    }

    /// Clients that carry more than a tenth of a class's load: one hash for everybody behind one address would make
    /// the fraction a switch. From the latest arrivals of each lane, weighted by the lane's traffic.
    fn find_heavy(&mut self, class: usize) {
        const ENTER: f64 = 0.1;
        const STAY: f64 = 0.07;
        const FEWEST: f64 = 32.0;
        let mut shares: BTreeMap<u64, f64> = BTreeMap::new();
        let mut total = 0.0;
        for (lane, before) in self.shared.lanes.iter().zip(&mut self.arrivals_by_lane) {
            let counters = &lane.classes[class];
            let arrivals = counters.arrivals.get();
            let came = arrivals.wrapping_sub(before[class]);
            before[class] = arrivals;
            let seen = came.min(RECENT as u64);
            for back in 1..=seen {
                let client =
                    counters.recent[(arrivals.wrapping_sub(back)) as usize % RECENT].load(Ordering::Relaxed);
                *shares.entry(client).or_default() += came as f64 / seen as f64;
            }
            total += came as f64;
        }
        if total < FEWEST {
            return;
        }
        let known = &self.heavy[class];
        let heavy = |(client, share): (u64, f64)| {
            let bound = if known.contains(&client) { STAY } else { ENTER };
            (share > bound * total).then_some(client)
        };
        let heavy: Vec<u64> = shares.into_iter().filter_map(heavy).collect();
        self.shared.classes[class].set_heavy(&heavy);
        self.heavy[class] = heavy;
    }

    /// A snapshot.
    pub fn status(&self) -> Status {
        let plants = self.loops.iter().enumerate().map(|(number, one)| {
            let mut status = one.status.clone();
            let gate = &self.shared.plants[number].gate;
            let mut waiting = Vec::new();
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
            rejection_cost_seconds: self
                .gateway
                .rejections_seen
                .then(|| self.gateway.per_rejection_seconds()),
        }
    }

    fn class_status(&self, class: usize, site: &Site, name: &str) -> ClassStatus {
        let monitor = &self.monitors[class];
        let window = &monitor.window;
        let workers = f64::from(self.promises.plants[site.plant].workers);
        let (a, b) = monitor.line.costs();
        let mean_size = window.counts.bytes as f64 / (window.released.max(1)) as f64;
        let period = self.promises.control.period.as_secs_f64();
        let mean = |sum_ns: u64, count: u64| Duration::from_nanos(sum_ns.checked_div(count).unwrap_or(0));
        ClassStatus {
            site: site.name.clone(),
            class: name.into(),
            plant: site.plant,
            levels: site.levels.iter().map(|level| level.name.clone()).collect(),
            service_level: self.applied[class],
            request_rate: window.counts.arrivals as f64 / period,
            bandwidth: window.counts.bytes as f64 / period,
            model: ModelStatus {
                per_request_seconds: a / workers,
                per_byte_seconds: b / workers,
                confidence: monitor.line.confidence(mean_size),
                frozen: monitor.frozen,
            },
            level_cost_seconds: Vec::new(),
            heavy_clients: self.heavy[class].len() as u32,
            counts: ClassTotals::sum(&self.shared.lanes, class).counts,
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
#[derive(Default)]
struct GatewayCost {
    line: LinearModel,
    known: f64,
    last_cpu: Option<Duration>,
    rejections_seen: bool,
}

impl GatewayCost {
    /// The model counts its second column in KiB.
    const COLUMN: f64 = 1024.0;

    fn learn(&mut self, monitors: &[ClassMonitor], cpu: Option<Duration>) {
        let Some(cpu) = cpu else { return };
        if let Some(last) = self.last_cpu {
            let sum = |count: fn(&ClassMonitor) -> u64| monitors.iter().map(count).sum::<u64>() as f64;
            let rejected = sum(|m| m.window.counts.rejected());
            let served = sum(|m| m.window.started);
            self.rejections_seen |= rejected > 0.0;
            let work_seconds = cpu.saturating_sub(last).as_secs_f64();
            let sample = Served { requests: served, bytes: rejected * Self::COLUMN, work_seconds };
            self.line.learn([sample].into_iter());
        }
        self.last_cpu = Some(cpu);
    }

    fn per_rejection_seconds(&self) -> f64 {
        if self.rejections_seen { self.line.costs().1 * Self::COLUMN } else { self.known }
    }
}
