//! PR's process pools: keep ratios of response times by a pool of processes for each class, as Apache with a port for each
//! class.
//!
//! ```text
//!           class           limit m mu* + T (+ PID)
//!  arrive --------> line of a pool --------> so many of its processes, P together --> the plant
//! ```
//!
//! X. Zhou and Y. Cai, "An Integrated Approach with Feedback Control for Robust Proportional Responsiveness Differentiation on
//! Web Servers". It is here to be compared with: Plimsoll's own law decides each time that a worker is free which request is
//! next.
//!
//! Every period (Algorithm 1):
//!
//! 1. the active processes of each pool are read, `P = sum p_i`. Apache forks a process when a request finds none idle and
//!    kills idle ones, so a pool's active processes are the most requests, at work and waiting, that it had at once in the
//!    period;
//! 2. mu*: the shares of M/M/1 in small whole numbers (`allocation.rs`);
//! 3. m: the multiplier with `m sum mu* <= P < (m + 1) sum mu*`, at least 1;
//! 4. a pool may have `m mu*_i + T` processes, as long as all pools together have no more than there are. T extra processes are
//!    tolerated because P could never grow otherwise. A process at work when its pool shrinks ends its request first.
//!
//! The integrated approach (eq. 7) adds PID's correction, in whole processes; each pool keeps at least one. `gain=0` is the
//! queueing-theoretical allocation alone.
//!
//! A class without requests (usually `default`) has no part in this. It keeps one process, and waits for it while all are at
//! work.
//!
//! A class without a ratio has the largest delta of its plant. Exempt requests pass and are not counted, as with the other
//! comparators. No request is rejected: the paper leaves that to admission control.

mod allocation;

use super::books::{Asking, Books, Left, Policy, Ruled, Stage, Waiting};
use super::form::{AT_LEAST_ONE, NUMBER, Read, Words};
use super::full_quality::FullQuality;
use crate::workload::{Discipline, Plant, Workload};
use allocation::{Class, Seen, corrections, limits, normalized, sampling_period};
use plimsoll_core::promises::{Promises, Site};
use plimsoll_core::request::Token;
use plimsoll_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// How the pools are set: `pools:16,period=1000,gain=1,idle=2`, or with `gain=0.5/0.5/1` a gain for each class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PoolSettings {
    /// The most processes of all pools together (`MaxClients`). `None`: one for each worker, or 16 before shared cores.
    processes: Option<u32>,
    /// Mean requests that are processed in a sampling period.
    period: u32,
    /// The gains K_P = K_I = K_D, in processes, by class in the order of declaration; the last one holds for further classes
    /// too.
    gains: Vec<f64>,
    /// The tolerated extra processes of a pool, T.
    idle: u32,
}

/// Processes before shared cores: at least this many, and this many for each core. Four could not be divided finely enough for
/// the ratios that PID asks for; with many more, no request would wait for a process.
const SHARED_PROCESSES: u32 = 16;
const PROCESSES_OF_A_CORE: u32 = 2;

impl PoolSettings {
    pub(super) fn read(words: &mut Words<'_>) -> Result<PoolSettings, String> {
        Ok(PoolSettings {
            processes: words.value(AT_LEAST_ONE)?,
            period: words.option("period", AT_LEAST_ONE, 1000)?,
            gains: words.option("gain", GAINS, vec![1.0])?,
            idle: words.option("idle", NUMBER, 2)?,
        })
    }

    fn processes(&self, plant: &Plant) -> u32 {
        self.processes.unwrap_or(match plant.discipline {
            Discipline::Workers(workers) => workers,
            Discipline::Sharing { cores, .. } => SHARED_PROCESSES.max(PROCESSES_OF_A_CORE * cores),
        })
    }
}

/// How strongly each class is corrected; 0 turns the correction off.
const GAINS: Read<Vec<f64>> = Read {
    of: |text| {
        let gain =
            |text: &str| text.trim().parse().ok().filter(|gain: &f64| gain.is_finite() && *gain >= 0.0);
        text.split('/').map(gain).collect()
    },
    expected: "a gain of 0 or more, or one of each class such as 0.5/1",
};

/// Pools in front of the plants.
pub(super) struct Pools {
    /// For each class, the index of its pool at its plant.
    pools: Vec<usize>,
    plants: Vec<PlantPools>,
}

struct PlantPools {
    settings: PoolSettings,
    servers: u32,
    most: u32,
    period: Duration,
    next: Instant,
    classes: Vec<Class>,
    seen: Vec<Seen>,
    pools: Vec<Pool>,
    /// The pool that is tried first when a process is free.
    turn: usize,
}

#[derive(Clone, Debug, Default)]
struct Pool {
    /// The most processes of the pool that may be at work.
    limit: u32,
    busy: u32,
    /// The most processes that were needed at once in this period.
    active: u32,
    /// The waiting requests' tokens and levels, and when they arrived.
    line: VecDeque<((Token, u8), Instant)>,
}

impl Pool {
    /// The processes that Apache would have, because it forks while a request finds none idle.
    fn asked_for(&self) -> u32 {
        self.busy + self.line.len() as u32
    }
}

/// The pool of a request in service, and when it arrived.
type Pooled = (usize, Instant);

impl PlantPools {
    fn new(settings: &PoolSettings, plant: &Plant, deltas: Vec<f64>) -> PlantPools {
        let (servers, most) = (plant.discipline.servers(), settings.processes(plant));
        let service = if plant.service.is_zero() { Duration::from_millis(10) } else { plant.service };
        let period = sampling_period(settings.period, service, servers);
        let classes: Vec<Class> = deltas.into_iter().map(Class::new).collect();
        // A plant that serves lighter levels alone has no pool, because full quality is served elsewhere.
        let each = most.checked_div(classes.len() as u32).unwrap_or(0);
        let pool = Pool { limit: each.max(1), ..Pool::default() };
        let (seen, pools) = (vec![Seen::default(); classes.len()], vec![pool; classes.len()]);
        PlantPools {
            settings: settings.clone(),
            servers,
            most,
            period,
            next: Instant::ZERO + period,
            classes,
            seen,
            pools,
            turn: 0,
        }
    }

    fn has_room(&self, pool: usize) -> bool {
        let busy: u32 = self.pools.iter().map(|pool| pool.busy).sum();
        self.pools[pool].busy < self.pools[pool].limit && busy < self.most
    }

    fn begin(&mut self, pool: usize) {
        let pool = &mut self.pools[pool];
        pool.busy += 1;
        pool.active = pool.active.max(pool.asked_for());
    }

    /// Ends every period up to now.
    fn advance(&mut self, now: Instant) {
        while now >= self.next {
            self.next += self.period;
            self.allocate();
        }
    }

    fn allocate(&mut self) {
        let capacity = self.period.as_secs_f64() * f64::from(self.servers);
        self.classes.iter_mut().zip(&self.seen).for_each(|(class, seen)| class.learn(seen, capacity));
        let corrections = corrections(&mut self.classes, &self.seen, &self.settings.gains);
        let asked_for = (0..self.classes.len()).filter(|class| self.classes[*class].is_asked_for());
        let asked_for: Vec<usize> = asked_for.collect();
        if asked_for.is_empty() {
            return self.seen.fill(Seen::default());
        }
        let of_these = |class: &usize| (self.classes[*class].clone(), corrections[*class]);
        let (classes, corrections): (Vec<Class>, Vec<f64>) = asked_for.iter().map(of_these).unzip();
        // The pools' busiest moments may differ, so their sum is bounded by the number of processes.
        let all: u32 = asked_for.iter().map(|class| self.pools[*class].active).sum::<u32>().min(self.most);
        let normal = normalized(&classes, all, self.settings.idle * classes.len() as u32, self.most);
        let multiplier = (all / normal.iter().sum::<u32>().max(1)).max(1);
        let limits = limits(&normal, multiplier, self.settings.idle, &corrections, self.most);
        for pool in &mut self.pools {
            (pool.limit, pool.active) = (1, pool.asked_for());
        }
        asked_for.iter().zip(limits).for_each(|(class, limit)| self.pools[*class].limit = limit);
        self.seen.fill(Seen::default());
    }
}

impl Pools {
    /// Pools in front of these plants.
    ///
    /// # Errors
    /// Promises that contradict each other, or plants that the workload does not describe.
    pub(super) fn new(
        settings: &PoolSettings,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Books<Self>, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let mut deltas: Vec<Vec<Option<f64>>> = vec![Vec::new(); workload.plants.len()];
        let mut pools = Vec::new();
        // A site's classes are followed by `default` and `exempt`; the pool of `exempt` is never used.
        let own =
            |site: &Site| site.classes.iter().map(|class| class.ratio).chain([None]).collect::<Vec<_>>();
        for site in &promises.sites {
            let at_plant = &mut deltas[site.plant];
            let own = own(site);
            pools.extend((0..=own.len()).map(|n| at_plant.len() + n.min(own.len() - 1)));
            at_plant.extend(own);
        }
        let plant = |(plant, deltas): (&Plant, Vec<Option<f64>>)| {
            let most = deltas.iter().flatten().copied().fold(1.0, f64::max);
            PlantPools::new(settings, plant, deltas.into_iter().map(|delta| delta.unwrap_or(most)).collect())
        };
        let plants = workload.plants.iter().zip(deltas).map(plant).collect();
        Ok(Books::new(full, Pools { pools, plants }))
    }

    /// Starts waiting requests of each pool in turn, while the pool has an idle process.
    fn dispatch(&mut self, plant: usize, waiting: &mut Waiting<'_, Self>) {
        let own = &mut self.plants[plant];
        loop {
            let (pools, first) = (own.pools.len(), own.turn);
            let mut started = false;
            for pool in (0..pools).map(|n| (first + n) % pools) {
                if !own.has_room(pool) {
                    continue;
                }
                let Some((waiter, arrived)) = own.pools[pool].line.pop_front() else { continue };
                own.begin(pool);
                own.turn = (pool + 1) % pools;
                waiting.resume(plant, waiter, Ok(Stage::InService((pool, arrived))));
                started = true;
            }
            if !started {
                return;
            }
        }
    }
}

impl Policy for Pools {
    /// The number of the pool.
    type Place = usize;
    type Kept = Pooled;

    fn arrive(&mut self, now: Instant, asking: Asking<'_>, _waiting: &mut Waiting<'_, Self>) -> Ruled<Self> {
        let pool = self.pools[usize::from(asking.class)];
        let own = &mut self.plants[asking.plant];
        own.advance(now);
        own.seen[pool].arrivals += 1;
        own.seen[pool].work += asking.service.as_secs_f64();
        if own.pools[pool].line.is_empty() && own.has_room(pool) {
            own.begin(pool);
            return Ok(Stage::InService((pool, now)));
        }
        own.pools[pool].line.push_back((asking.waiter, now));
        own.pools[pool].active = own.pools[pool].active.max(own.pools[pool].asked_for());
        Ok(Stage::Waiting(pool))
    }

    fn forget(&mut self, plant: usize, token: Token, pool: usize) {
        self.plants[plant].pools[pool].line.retain(|((waiting, _), _)| *waiting != token);
    }

    /// Frees a process.
    fn leave(&mut self, now: Instant, gone: Left<Pooled>, waiting: &mut Waiting<'_, Self>) {
        let (pool, arrived) = gone.kept;
        let own = &mut self.plants[gone.plant];
        own.advance(now);
        own.pools[pool].busy -= 1;
        let seen = &mut own.seen[pool];
        seen.departures += 1;
        seen.responses += now.since(arrived).as_secs_f64();
        self.dispatch(gone.plant, waiting);
    }

    fn tick(&mut self, now: Instant, waiting: &mut Waiting<'_, Self>) -> Instant {
        for plant in 0..self.plants.len() {
            self.plants[plant].advance(now);
            self.dispatch(plant, waiting);
        }
        self.plants.iter().map(|plant| plant.next).min().unwrap_or(Instant::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::limit::tests::at;
    use crate::front::tests::truth;

    fn settings(gain: f64) -> PoolSettings {
        PoolSettings { processes: Some(16), period: 100, gains: vec![gain], idle: 2 }
    }

    /// Two classes at 1:3 before a shared core, 10 ms a request: periods of a second.
    fn plant(gain: f64) -> PlantPools {
        let plant = Plant {
            discipline: Discipline::Sharing { cores: 1, most: 100 },
            service: Duration::from_millis(10),
            ..truth()
        };
        PlantPools::new(&settings(gain), &plant, vec![1.0, 3.0])
    }

    /// A period with these arrivals of each class, as many answers in this time (s), and this many at work at once.
    fn period(plant: &mut PlantPools, second: f64, classes: [(u32, f64, u32); 2]) -> [u32; 2] {
        for (n, (arrivals, response, active)) in classes.into_iter().enumerate() {
            let work = f64::from(arrivals) * 0.01;
            let responses = f64::from(arrivals) * response;
            plant.seen[n] = Seen { arrivals, work, departures: arrivals, responses };
            plant.pools[n].active = active;
        }
        plant.advance(at(second));
        [0, 1].map(|n| plant.pools[n].limit)
    }

    #[test]
    fn the_multiplier_follows_the_active_processes() {
        let mut plant = plant(0.0);
        assert_eq!(plant.pools[0].limit, 8);
        // 0.6 and 0.2 of the capacity: shares 0.75 and 0.25, and mu* of 3 and 1.
        assert_eq!(period(&mut plant, 1.0, [(60, 0.05, 6), (20, 0.1, 3)]), [2 * 3 + 2, 2 + 2]);
        assert_eq!(period(&mut plant, 2.0, [(60, 0.05, 8), (20, 0.1, 4)]), [3 * 3 + 2, 3 + 2]);
        assert_eq!(period(&mut plant, 3.0, [(60, 0.05, 1), (20, 0.1, 1)]), [3 + 2, 1 + 2]);
        // The pools' busiest moments differ, so together they are bounded by the 16 processes, and none is left for T.
        assert_eq!(period(&mut plant, 4.0, [(60, 0.05, 12), (20, 0.1, 12)]), [12, 4]);
    }

    /// A plant that serves only lighter levels has no pools.
    #[test]
    fn a_plant_without_pools_is_passed_over() {
        let mut plant = PlantPools::new(&settings(1.0), &truth(), Vec::new());
        plant.advance(at(5.0));
        assert!(plant.pools.is_empty() && plant.next > at(5.0));
    }

    #[test]
    fn a_class_that_nobody_asks_for_has_no_part() {
        let found = |deltas: Vec<f64>| {
            let mut plant =
                PlantPools { classes: deltas.into_iter().map(Class::new).collect(), ..plant(0.0) };
            plant.seen.resize(plant.classes.len(), Seen::default());
            plant.pools.resize(plant.classes.len(), Pool::default());
            let limits = period(&mut plant, 1.0, [(60, 0.05, 6), (20, 0.1, 3)]);
            (limits, plant.pools.last().map(|pool| pool.limit))
        };
        assert_eq!(found(vec![1.0, 3.0]), ([8, 4], Some(4)));
        assert_eq!(found(vec![1.0, 3.0, 3.0]), ([8, 4], Some(1)));
    }

    #[test]
    fn feedback_gives_processes_to_the_class_that_is_too_slow() {
        let mut plant = plant(1.0);
        // At the same response times the second class is three times too fast: ln 3 from the first, half of it from the mean,
        // and that once for P and once for D.
        assert_eq!(period(&mut plant, 1.0, [(60, 0.1, 6), (20, 0.1, 3)]), [8 + 1, 4 - 1]);
        // Then the second class is too slow.
        let [first, second] = period(&mut plant, 2.0, [(60, 0.1, 6), (20, 0.4, 3)]);
        assert!(first < 9 && second > 3, "{first}, {second}");
    }

    #[test]
    fn a_pool_that_shrinks_ends_its_requests_first() {
        let mut plant = plant(0.0);
        (0..8).for_each(|_| plant.begin(1));
        assert!(!plant.has_room(1) && plant.has_room(0));
        period(&mut plant, 1.0, [(60, 0.05, 6), (20, 0.1, 3)]);
        assert_eq!((plant.pools[1].limit, plant.pools[1].busy), (4, 8));
        assert!(!plant.has_room(1));
        // All pools together have no more processes than there are.
        plant.pools[0].busy = 8;
        assert!(!plant.has_room(0));
    }
}
