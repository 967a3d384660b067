//! A plan for one plant, one site and one stream, its periods, and what is printed when it fails: seed and commit.

use plimsoll_core::promises::Promises;
use plimsoll_core::request::Outcome;
use plimsoll_sim::workload::{
    Arrivals, Clients, Discipline, Fault, Law, Page, Phase, Plant, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Row, Setup};
use std::cell::Cell;
use std::process::Command;
use std::sync::Once;
use std::time::Duration;

/// What happens to an engine and a plant.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The promises; plant 0 is simulated.
    pub(crate) promises: Promises,
    /// From when on, which arrival rate (1/s). In order of time.
    pub(crate) load: Vec<(Duration, f64)>,
    /// How long.
    pub(crate) duration: Duration,
    /// The plant's true number of workers; what the gateway was told is in the promises.
    pub(crate) workers: u32,
    /// Mean service time on one worker at levels 1..=M.
    pub(crate) service: Vec<Duration>,
    /// Body bytes of a response at levels 1..=M.
    pub(crate) bytes: Vec<u64>,
    /// How service times vary.
    pub(crate) service_time: Law,
    /// The plant's own listen queue.
    pub(crate) listen_queue: usize,
    /// What goes wrong with the plant.
    pub(crate) faults: Vec<Fault>,
    /// The plant reports its own utilization.
    pub(crate) reports: bool,
    /// How many clients share the load.
    pub(crate) clients: u32,
    /// How unevenly.
    pub(crate) skew: f64,
    /// The seed of everything random.
    pub(crate) seed: u64,
}

/// One control period of the only plant and the only class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Period {
    /// The plant's own utilization.
    pub(crate) utilization: f64,
    /// m at its end.
    pub(crate) service_level: f64,
    /// Requests that arrived.
    pub(crate) arrivals: u64,
    /// Requests completed, by level (index 0 is not used).
    pub(crate) completed: Vec<u64>,
    /// Requests turned away by the engine.
    pub(crate) rejected: u64,
    /// Requests that the plant failed.
    pub(crate) failures: u64,
    /// Requests lost at the plant's listen queue.
    pub(crate) errors: u64,
    /// Body bytes delivered.
    pub(crate) bytes: u64,
    /// Sum and largest of response times (s).
    pub(crate) response_seconds: (f64, f64),
    /// Requests of clients that were served another level than at their last request.
    pub(crate) changes: u64,
}

/// A run: its periods in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    /// One per control period.
    pub(crate) periods: Vec<Period>,
    /// Requests in flight at the end, as the engine counts.
    pub(crate) in_flight: u64,
}

impl Scenario {
    /// Nobody comes to a plant of as many workers as are promised, in which nothing varies and nothing goes wrong.
    pub(crate) fn new(promises: Promises, service: Vec<Duration>, bytes: Vec<u64>) -> Self {
        Scenario {
            workers: promises.plants[0].workers,
            promises,
            load: Vec::new(),
            duration: Duration::ZERO,
            service,
            bytes,
            service_time: Law::Deterministic,
            listen_queue: 511,
            faults: Vec::new(),
            reports: false,
            clients: 20_000,
            skew: 1.0,
            seed: 1,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// What cannot be.
    pub(crate) fn run(&self) -> Result<Run, plimsoll_sim::Error> {
        tell_of_failures(self.seed);
        let workload = self.workload();
        let setup = Setup { promises: &self.promises, workload: &workload, seed: self.seed };
        let run = setup.run()?;
        let status = run.status.into_iter().flat_map(|status| status.classes);
        let period = self.promises.control.period;
        let whole = run.rows.iter().filter(|row| row.length == period);
        Ok(Run {
            periods: whole.map(Period::of).collect(),
            in_flight: status.map(|class| class.counts.in_flight()).sum(),
        })
    }

    /// What the simulator is given.
    pub(crate) fn workload(&self) -> Workload {
        let (top, full) = (self.service[self.service.len() - 1], self.bytes[self.bytes.len() - 1]);
        let versions = self.service.iter().zip(&self.bytes).map(|(service, bytes)| Version {
            cost: Some(service.as_secs_f64() / top.as_secs_f64()),
            bytes: *bytes as f64 / full as f64,
        });
        let phase = |(from, rate): &(Duration, f64)| Phase { from: *from, rate: *rate, to: None };
        let rate = self.load.iter().map(phase).collect();
        let arrivals = Arrivals::Process { process: Process::Poisson, rate };
        let visitors = Stream::new("visitors", arrivals, vec![page(full)], self.clients);
        Workload {
            streams: vec![Stream { clients: Clients { skew: self.skew, ..visitors.clients }, ..visitors }],
            plants: vec![Plant {
                law: self.service_time.clone(),
                faults: self.faults.clone(),
                reports: self.reports,
                ..Plant::new(Discipline::Workers(self.workers), self.listen_queue, top)
            }],
            versions: vec![versions.collect()],
            duration: Some(self.duration),
            ..Workload::default()
        }
    }
}

fn page(bytes: u64) -> Page {
    Page { host: "shop.example".to_owned(), ..Page::new("/", bytes as f64) }
}

impl Period {
    fn of(row: &Row) -> Period {
        let (class, plant) = (&row.classes[0], &row.plants[0]);
        let sum = class.response.mean().as_secs_f64() * class.response.count() as f64;
        Period {
            utilization: plant.utilization,
            service_level: class.service_level,
            arrivals: class.arrivals,
            completed: class.completed.to_vec(),
            rejected: class.rejected,
            failures: class.ended(Outcome::Failed) - plant.lost,
            errors: plant.lost,
            bytes: class.bytes,
            response_seconds: (sum, class.response.max().as_secs_f64()),
            changes: class.changes,
        }
    }
}

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A test of this thread that fails says which seed its last scenario had, and at which commit.
fn tell_of_failures(seed: u64) {
    static ONCE: Once = Once::new();
    SEED.set(Some(seed));
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            if let Some(seed) = SEED.get() {
                eprintln!("its last scenario: seed {seed}, commit {}", commit());
            }
        }));
    });
}

pub(crate) fn commit() -> String {
    let found = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let found = found.ok().filter(|output| output.status.success());
    found.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
