//! The thread that runs the control loops: it calls the engine's `tick` when the engine says so, with readings.
//!
//! A panic of a loop ends no request: levels stand still, which `/healthz` and the supervisor's watchdog see, waiting requests
//! are still answered, and the loops are tried again.

use crate::background::Background;
use crate::runtime::processors::Processors;
use crate::sync::lock;
use crate::worker::shared::Shared;
use crate::worker::tables::PlantRow;
use plimsoll_core::Engine;
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::SystemTime;

/// The longest sleep: the thread sees within this time that it shall stop, even if its wake-up is lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep after a panic, since each panic writes a message.
const SLEEP_AFTER_PANIC: Duration = Duration::from_millis(100);

pub(crate) fn start(engine: Arc<Mutex<Engine>>, shared: Arc<Shared>) -> std::io::Result<Background> {
    Background::start("plimsoll-tick", move |ending| {
        let mut senses = Senses::new(&shared);
        let mut verdicts = Vec::new();
        while !ending.load(Relaxed) {
            let now = shared.clock.now();
            let readings = senses.read(&shared, now);
            // A panic leaves the engine's lock usable, since the data that it guards is consistent after each single write.
            let ticked = catch_unwind(AssertUnwindSafe(|| lock(&engine).tick(now, &readings, &mut verdicts)));
            let least = if ticked.is_err() { SLEEP_AFTER_PANIC } else { Duration::ZERO };
            let answer = || lock(&engine).answer_waiting(now, &mut verdicts);
            let next = ticked.or_else(|_| catch_unwind(AssertUnwindSafe(answer)));
            shared.deliver(verdicts.drain(..));
            let sleep = next.map_or(LONGEST_SLEEP, |next| next.since(shared.clock.now()));
            thread::park_timeout(sleep.clamp(least, LONGEST_SLEEP));
        }
    })
}

struct Senses {
    cores: u32,
    cpu: Duration,
    at: Instant,
    processors: Processors,
}

impl Senses {
    fn new(shared: &Shared) -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Senses { cores, cpu: process_cpu(), at: shared.clock.now(), processors: Processors::new(cores) }
    }

    fn read(&mut self, shared: &Shared, now: Instant) -> Readings {
        let cpu = process_cpu();
        let elapsed = now.since(self.at).as_secs_f64();
        let own = if elapsed > 0.0 { cpu.saturating_sub(self.cpu).as_secs_f64() / elapsed } else { 0.0 };
        (self.cpu, self.at) = (cpu, now);
        let mut readings = Readings { gateway_cpu: Some(cpu / self.cores), ..Readings::default() };
        readings.workers = std::mem::take(&mut *lock(&shared.reported_workers));
        readings.unix_time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
        let tables = shared.tables.current();
        if tables.plants.iter().any(|row| row.same_host) {
            readings.host_cpu = self.processors.worked(elapsed);
        }
        let share = |row: &PlantRow| row.upstream.as_ref().map_or(1.0, |own| own.pool.roster().share(now));
        readings.available.extend(tables.plants.iter().map(share).enumerate());
        for (plant, row) in tables.plants.iter().enumerate().filter(|(_, row)| row.reported) {
            let utilization = match &row.upstream {
                Some(upstream) => upstream.pool.reports.take(),
                // A folder's server is this process, whose processor time is compared with as many cores as the plant has
                // workers.
                None => (elapsed > 0.0).then(|| (own / f64::from(row.workers.max(1))).clamp(0.0, 1.0)),
            };
            readings.utilization.extend(utilization.map(|value| (plant, value)));
        }
        readings
    }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
}
