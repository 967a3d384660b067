//! Bad days of a small plant: what went wrong is over, and the loop must find its way back. And days that only look
//! bad: nobody may suffer from them.
//!
//! Eight workers, 40 ms at full quality (200 requests per second), 6 ms light.

use crate::scenario::{Period, Run, Scenario};
use plimsoll_core::promises::{Mode, Plant, Promises, Site};
use plimsoll_sim::settling::mean;
use plimsoll_sim::workload::{Fault, FaultKind, Law};
use std::time::Duration;

const CAPACITY: f64 = 200.0;

fn scenario(levels: &[&str], load: f64) -> Scenario {
    Scenario {
        load: vec![(Duration::ZERO, load * CAPACITY)],
        duration: Duration::from_secs(200),
        clients: 2000,
        ..Scenario::new(
            Promises::of(Plant::new("origin", 8), Site::new("site", levels)),
            [Duration::from_millis(6), Duration::from_millis(40)][2 - levels.len()..].to_vec(),
            [2 << 10, 16 << 10][2 - levels.len()..].to_vec(),
        )
    }
}

fn from_to(from: u64, until: u64, kind: FaultKind) -> Fault {
    Fault { from: Duration::from_secs(from), until: Duration::from_secs(until), kind }
}

fn run(scenario: &Scenario) -> Run {
    scenario.run().expect("the promises are valid")
}

fn sum(periods: &[Period], of: impl Fn(&Period) -> u64) -> f64 {
    periods.iter().map(of).sum::<u64>() as f64
}

/// The twin without control: the same load puts the same server far over the line.
fn melts_without_control(mut scenario: Scenario, from: usize) {
    scenario.promises.control.mode = Mode::Off;
    let twin = utilization(&run(&scenario).periods[from..]);
    assert!(twin > 0.97, "the twin without control must fail: U = {twin}");
}

fn rejected(periods: &[Period]) -> f64 {
    sum(periods, |p| p.rejected) / sum(periods, |p| p.arrivals)
}

fn utilization(periods: &[Period]) -> f64 {
    mean(&periods.iter().map(|p| p.utilization).collect::<Vec<_>>())
}

#[test]
fn one_slow_episode_locks_nobody_out() {
    for levels in [&["full"][..], &["light", "full"]] {
        for clients in [50, 200, 1000] {
            for (load, seed) in [(0.5, 1), (0.5, 2), (3.0, 3)] {
                let mut scenario = Scenario { clients, seed, ..scenario(levels, load) };
                scenario.faults.push(from_to(30, 50, FaultKind::Takes(Duration::from_secs(8))));
                let late = &run(&scenario).periods[120..];
                let told = format!("{levels:?}, {clients} clients, load {load}");
                if load < 1.0 {
                    assert!(rejected(late) < 0.005, "{told}: {} rejected", rejected(late));
                    assert!((utilization(late) - load).abs() < 0.05, "{told}: U = {}", utilization(late));
                } else {
                    assert!(utilization(late) > 0.75, "{told}: U = {}", utilization(late));
                }
            }
        }
    }
}

#[test]
fn a_plant_that_fails_fast_and_returns_is_held_at_the_line_again() {
    for levels in [&["full"][..], &["light", "full"]] {
        let mut scenario = scenario(levels, 3.0);
        scenario.faults.push(from_to(30, 90, FaultKind::Fails(Duration::from_micros(500))));
        let run = run(&scenario);
        assert!(sum(&run.periods, |p| p.failures) > 1000.0);
        let again = utilization(&run.periods[105..]);
        assert!((again - 0.85).abs() < 0.03, "{levels:?}: U = {again}");
        melts_without_control(scenario, 105);
    }
}

#[test]
fn after_the_response_time_override_calm_returns_soon() {
    let mut scenario = scenario(&["full"], 0.5);
    scenario.promises.plants[0].response_time_limit = Some(Duration::from_millis(150));
    scenario.faults.push(from_to(30, 45, FaultKind::Takes(Duration::from_millis(300))));
    let run = run(&scenario);
    assert!(rejected(&run.periods[32..44]) > 0.3, "while it lasts the load is shed");
    let after = sum(&run.periods[46..], |p| p.rejected);
    assert!(after < 500.0, "{after} rejected after it was over");
    assert_eq!(sum(&run.periods[80..], |p| p.rejected), 0.0);
}

#[test]
fn observing_does_not_wind_up() {
    let mut scenario = scenario(&["full"], 0.5);
    scenario.promises.control.mode = Mode::Observe;
    scenario.promises.plants[0].response_time_limit = Some(Duration::from_millis(150));
    scenario.faults.push(from_to(30, 60, FaultKind::Takes(Duration::from_millis(300))));
    let run = run(&scenario);
    assert!(run.periods[40].service_level < 1.0, "what would have been is shown");
    // The plant's own queue is full of what came meanwhile; that takes it twenty seconds.
    assert_eq!(run.periods[100].service_level, 1.0, "and is over when it is over");
    assert_eq!(sum(&run.periods, |p| p.rejected), 0.0);
}

#[test]
fn calm_stays_calm_where_a_service_takes_as_long_as_a_period() {
    // Two workers and services of a whole period, exponential: one client in three waits even at half the load (Erlang
    // C), and the loop may take the longest of these queues for what they look like.
    let most = [(2, 1.0, 0.5, 0.1), (4, 1.0, 0.6, 0.1), (8, 0.2, 0.6, 0.01), (1, 0.2, 0.5, 0.05)];
    for (workers, seconds, load, most) in most {
        let mut scenario = scenario(&["light", "full"], 0.0);
        scenario.load = vec![(Duration::ZERO, load * f64::from(workers) / seconds)];
        scenario.duration = Duration::from_secs(1000);
        scenario.service = vec![Duration::from_secs_f64(0.15 * seconds), Duration::from_secs_f64(seconds)];
        scenario.service_time = Law::Exponential;
        scenario.workers = workers;
        scenario.promises.plants[0].workers = workers;
        scenario.promises.plants[0].max_connections = workers;
        let run = run(&scenario);
        let late = &run.periods[20..];
        let degraded = sum(late, |p| p.completed[1]) / sum(late, |p| p.arrivals);
        assert_eq!(rejected(late), 0.0);
        assert!(degraded < most, "{workers} workers, {seconds} s: {degraded} degraded");
    }
}

#[test]
fn bursts_of_a_calm_day_are_waited_out() {
    let mut scenario = scenario(&["full"], 0.2);
    // Eighty requests in a twentieth of a second (a load of 8), every seven seconds and a bit.
    for burst in 1..25_u64 {
        let at = Duration::from_millis(7_130 * burst);
        scenario.load.push((at, 8.0 * CAPACITY));
        scenario.load.push((at + Duration::from_millis(50), 0.2 * CAPACITY));
    }
    let run = run(&scenario);
    assert!(rejected(&run.periods) < 0.005, "{} rejected", rejected(&run.periods));
    scenario.promises.plants[0].queue.max_waiting = 0;
    assert!(rejected(&self::run(&scenario).periods) > 0.1, "its twin that cannot wait fails");
}

#[test]
fn clients_keep_their_level_on_a_small_plant_too() {
    // Chance alone makes 4 % more or fewer of 600 arrivals, and the law answers with a part of that: half a percent of
    // the clients on average, so that a period in ten may move more than one, and in 180 periods none moves two.
    for seed in 1..=10 {
        let scenario = Scenario { seed, ..scenario(&["light", "full"], 3.0) };
        let run = run(&scenario);
        let steady = &run.periods[20..];
        // A client comes every third period here, so its change shows late: by m, which is what changes it.
        let moved: Vec<f64> =
            steady.windows(2).map(|w| (w[1].service_level - w[0].service_level).abs()).collect();
        let most = moved.iter().copied().fold(0.0, f64::max);
        assert!(mean(&moved) < 0.006 && most < 0.02, "{} of the clients, at most {most}", mean(&moved));
        assert!((utilization(steady) - 0.85).abs() < 0.02, "{}", utilization(steady));
        melts_without_control(scenario, 20);
    }
}

#[test]
fn clients_that_differ_are_held_at_the_line_too() {
    for seed in 1..=5 {
        // A hundred clients; the heaviest sends a tenth of all, and the fraction of clients is not that of requests.
        let scenario = Scenario { clients: 100, skew: 2.0, seed, ..scenario(&["light", "full"], 3.0) };
        let held = utilization(&run(&scenario).periods[40..]);
        assert!((held - 0.85).abs() < 0.03, "seed {seed}: {held}");
        melts_without_control(scenario, 40);
    }
}
