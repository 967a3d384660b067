//! A ratio before a server of which only the address is told, overloaded from the first request on: while workers are found,
//! requests are answered within a second. A ratio needs the order of arrival, and a queue that fills while no request is
//! rejected yet would let all of them wait for too long.

use crate::waits::{Answer, Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 9301..=9308;
/// How many workers, and how long a request takes (ms).
const SERVERS: [(u32, u64); 4] = [(2, 10), (4, 20), (8, 40), (32, 40)];
/// The load, as a part of the capacity, and the parts of it that come for gold and silver.
const LOAD: f64 = 2.3;
const PARTS: [f64; 2] = [0.25, 0.35];
const PROMISED: f64 = 1.5;

/// The capacity (requests/s), and what was heard.
fn run((workers, ms): (u32, u64), mode: Mode, seed: u64) -> (f64, Heard) {
    let capacity = f64::from(workers) * 1e3 / ms as f64;
    let rate = |part: f64| part * LOAD * capacity;
    let flows = vec![
        Flow::new("gold", rate(PARTS[0])).ratio(2.0),
        Flow::new("silver", rate(PARTS[1])).ratio(2.0 * PROMISED),
        Flow::new("rest", rate(1.0 - PARTS[0] - PARTS[1])),
    ];
    let mut scene = Scene::new(workers, Duration::from_millis(ms), flows, 180.0, seed).finding_workers(true);
    scene.mode = mode;
    (capacity, scene.run())
}

/// The answers within a second, of arrivals between two seconds, as a part of what the server can do.
fn in_time((capacity, heard): &(f64, Heard), (from, until): (f64, f64)) -> f64 {
    let good = |a: &&Answer| a.completed && a.response() <= 1.0 && a.arrived >= from && a.arrived < until;
    heard.answers.iter().filter(good).count() as f64 / (until - from) / capacity
}

#[test]
fn requests_are_answered_in_time_while_workers_are_found_beside_a_ratio() {
    for server in SERVERS {
        let (runs, off): (Vec<_>, Vec<_>) =
            SEEDS.map(|seed| (run(server, Mode::Control, seed), run(server, Mode::Off, seed))).unzip();
        let share = |runs: &[(f64, Heard)], span| {
            mean(&runs.iter().map(|run| in_time(run, span)).collect::<Vec<_>>())
        };
        let (first, then) = (share(&runs, (2.0, 8.0)), share(&runs, (8.0, 20.0)));
        println!("{server:?}: {first:.2} of the capacity from 2 s to 8 s, {then:.2} to 20 s");
        assert!(
            (0.4..=1.02).contains(&first) && (0.75..=1.02).contains(&then),
            "{server:?}: {first:.2} {then:.2}"
        );
        assert!(share(&off, (2.0, 20.0)) < 0.05, "{server:?}: without control none is");
        let ratio = mean(
            &runs.iter().map(|(_, heard)| heard.mean(1, 60.0) / heard.mean(0, 60.0)).collect::<Vec<_>>(),
        );
        println!("{server:?}: ratio {ratio:.3}");
        assert!((0.95 * PROMISED..=1.05 * PROMISED).contains(&ratio), "{server:?}: {ratio:.3}");
    }
}
