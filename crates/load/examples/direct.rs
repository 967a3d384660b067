//! What the origin and the open loop cost by themselves: CPU per request, and how late their timers are.
//!
//! `cargo run --release -p plimsoll-load --example direct -- [requests per second] [seconds] [clients]`

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_load::{OpenLoop, Origin, OriginSettings, Target};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<f64>());
    let mut number = |default: f64| numbers.next().unwrap_or(Ok(default));
    let (rate, seconds, clients) = (number(6000.0)?, number(5.0)?, number(1000.0)? as u32);
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    // 64 workers of 8 ms: 8000 full pages a second.
    let origin = Origin::start(OriginSettings { workers: 64, ..OriginSettings::default() })?;
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "path", "requests/s", "origin us", "client us", "pair us", "U offered", "U exact", "U held"
    );
    for (path, service_ns) in [("/light/", 1.2e6), ("/", 8e6)] {
        let mut load =
            OpenLoop::new(Target::new(origin.address()), vec![(Duration::from_secs_f64(seconds), rate)]);
        load.path = path.into();
        load.clients = clients;
        let (cpu, busy, held) = (cpu_ns("origin")?, origin.busy(), origin.held());
        let load = load.start(None)?;
        // Read before the load ends: a thread's clock ends with it.
        std::thread::sleep(Duration::from_secs_f64(seconds - 0.2));
        let (origin_ns, client_ns) = (cpu_ns("origin")? - cpu, cpu_ns("open-loop")?);
        let (later, later_held) = (origin.busy(), origin.held());
        let requests = load.with_tally(|tally| tally.requests) as f64;
        let tally = load.join();
        let (origin_us, client_us) = (origin_ns / requests / 1e3, client_ns / requests / 1e3);
        let span = (later.at - busy.at).as_secs_f64();
        println!(
            "{path:>8} {:10.0} {origin_us:10.1} {client_us:10.1} {:10.1} {:9.4} {:9.4} {:9.4}",
            requests / span,
            origin_us + client_us,
            requests / span * service_ns / 64e9,
            later.utilization_since(&busy),
            later_held.utilization_since(&held)
        );
        println!(
            "         latency p50 {:?} p99 {:?}, dispatched late p50 {:?} p99 {:?}, errors {:?}",
            tally.latency.quantile(0.5),
            tally.latency.quantile(0.99),
            tally.lateness.quantile(0.5),
            tally.lateness.quantile(0.99),
            tally.errors
        );
    }
    let lateness = origin.served().lateness;
    println!(
        "answers late p50 {:?} p99 {:?} max {:?}",
        lateness.quantile(0.5),
        lateness.quantile(0.99),
        lateness.max()
    );
    Ok(())
}

/// CPU time of the threads of this process that are named `name`, from the scheduler's own books.
fn cpu_ns(name: &str) -> std::io::Result<f64> {
    let mut sum = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == name {
            let books = std::fs::read_to_string(task.join("schedstat"))?;
            sum += books.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
        }
    }
    Ok(sum)
}
