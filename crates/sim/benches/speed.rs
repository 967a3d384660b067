//! How many requests are simulated in a second on one core: the single-class utilization loop at three times the load.
//!
//! `cargo bench -p plimsoll-sim --bench speed`; the number of requests, in millions, may follow after `--`, and after
//! that how many of them come in a second: at 0.684 it is two months of a small site, where control periods are what
//! takes the time.

#[expect(dead_code, reason = "tests run scenarios; here one is only built")]
#[path = "../tests/scenario/mod.rs"]
mod scenario;

use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_sim::Setup;
use scenario::Scenario;
use std::time::Duration;

/// Requests a second, virtual: three times what the plant carries at full quality.
const RATE: f64 = 24_000.0;

#[expect(clippy::disallowed_methods, reason = "what is measured here is real time")]
fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<f64>().ok());
    let millions = numbers.next().unwrap_or(4.0);
    let rate = numbers.next().unwrap_or(RATE);
    let scenario = Scenario {
        load: vec![(Duration::ZERO, rate)],
        duration: Duration::from_secs_f64(millions * 1e6 / rate),
        ..Scenario::new(
            Promises::of(Plant::new("origin", 64), Site::new("site", &["light", "full"])),
            vec![Duration::from_micros(1200), Duration::from_millis(8)],
            vec![8 << 10, 64 << 10],
        )
    };
    let workload = scenario.workload();
    let setup = Setup { promises: &scenario.promises, workload: &workload, seed: scenario.seed };
    let started = std::time::Instant::now();
    let run = setup.run().expect("the scenario is right");
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} requests in {seconds:.2} s: {:.2} million a second, {:.0} ns each; {} rows",
        run.requests,
        run.requests as f64 / seconds / 1e6,
        seconds / run.requests as f64 * 1e9,
        run.rows.len()
    );
}
