//! Scenarios of the load line: bounds on both sides, judged by the plant's own busy time; and the twin of each, with
//! the controller off, fails.

use crate::scenario::{Period, Run, Scenario};
use plimsoll_core::promises::{Mode, Plant, Promises, QueueBounds, Sense, Site, UtilizationLaw};
use plimsoll_sim::settling::{mean, settled_after};
use plimsoll_sim::workload::{self, Fault, FaultKind};
use std::time::Duration;

const WORKERS: u32 = 64;
const FULL: Duration = Duration::from_millis(8);
/// Requests per second at full quality.
const CAPACITY: f64 = 8000.0;
const LIGHT_COST: f64 = 0.15;
const SIZES: [u64; 2] = [8 << 10, 64 << 10];
/// The load comes in the middle of a period.
const STEP: f64 = 5.5;
const STEP_PERIOD: usize = 5;
/// Seeds, and when the load comes [ms]: early, in the middle and late in a period.
const STEPS: [(u64, u64); 6] = [(1, 5_000), (2, 5_100), (3, 5_300), (4, 5_500), (5, 5_800), (6, 5_950)];

fn promises(set_point: f64, levels: &[&str]) -> Promises {
    let queue = QueueBounds { max_waiting: 100_000, max_wait: Some(Duration::from_secs(10)) };
    Promises::of(Plant { set_point, queue, ..Plant::new("origin", WORKERS) }, Site::new("site", levels))
}

/// From nothing to `load` times the capacity.
fn step(promises: Promises, load: f64, seed: u64) -> Scenario {
    let levels = promises.sites[0].levels.len();
    let light = [FULL.mul_f64(LIGHT_COST), FULL];
    Scenario {
        load: vec![(Duration::from_secs_f64(STEP), load * CAPACITY)],
        duration: Duration::from_millis(60_500),
        seed,
        ..Scenario::new(promises, light[2 - levels..].to_vec(), SIZES[2 - levels..].to_vec())
    }
}

fn off(mut scenario: Scenario) -> Scenario {
    scenario.promises.control.mode = Mode::Off;
    scenario
}

fn run(scenario: &Scenario) -> Run {
    scenario.run().expect("the promises are valid")
}

fn utilization(periods: &[Period]) -> Vec<f64> {
    periods.iter().map(|period| period.utilization).collect()
}

fn sum(periods: &[Period], of: impl Fn(&Period) -> u64) -> u64 {
    periods.iter().map(of).sum()
}

/// Where it settled, counted from the period in which the load came.
fn settled(run: &Run, set_point: f64) -> Option<usize> {
    settled_after(&utilization(&run.periods[STEP_PERIOD..]), set_point, 0.02, 5)
}

/// Three times the capacity with a light level: what the issue of the load line asks for, or what is missing.
fn holds_the_line_by_degrading(run: &Run) -> Result<(), String> {
    let set_point = 0.85;
    let lost = sum(&run.periods, |p| p.errors + p.rejected);
    if lost > 0 {
        return Err(format!("{lost} requests rejected or lost"));
    }
    let settled = settled(run, set_point).ok_or("never settled")?;
    if settled > 8 {
        return Err(format!("settled after {settled} periods"));
    }
    let steady = &run.periods[STEP_PERIOD + settled..];
    let mean = mean(&utilization(steady));
    if !(set_point - 0.02..=set_point + 0.02).contains(&mean) {
        return Err(format!("mean utilization {mean}"));
    }
    let changed =
        steady.windows(2).map(|w| (w[1].service_level - w[0].service_level).abs()).fold(0.0, f64::max);
    if changed > 0.01 {
        return Err(format!("{changed} of the clients changed level in one period"));
    }
    let (load, cost, size) = (3.0, LIGHT_COST, SIZES[1] as f64 / SIZES[0] as f64);
    let fraction = (set_point / load - cost) / (1.0 - cost);
    let wanted = (1.0 + fraction * (size - 1.0)) * SIZES[0] as f64 * load * CAPACITY * steady.len() as f64;
    let bandwidth = sum(steady, |p| p.bytes) as f64 / wanted;
    if !(0.95..=1.05).contains(&bandwidth) {
        return Err(format!("bandwidth is {bandwidth} of what the set point allows"));
    }
    Ok(())
}

#[test]
fn three_times_the_capacity_is_served_degraded() {
    for (seed, from) in STEPS {
        let mut scenario = step(promises(0.85, &["light", "full"]), 3.0, seed);
        scenario.load[0].0 = Duration::from_millis(from);
        let run = run(&scenario);
        assert_eq!(holds_the_line_by_degrading(&run), Ok(()), "seed {seed}: {:?}", utilization(&run.periods));
    }
    let twin = run(&off(step(promises(0.85, &["light", "full"]), 3.0, 1)));
    assert!(holds_the_line_by_degrading(&twin).is_err(), "the twin without control must fail");
    assert!(sum(&twin.periods, |p| p.errors) > 0);
}

/// UC 7.1, Fig. 6: the shares of requests that fail and that are rejected, by rate. The server alone fails above its capacity.
/// With two levels none fails, and none is rejected while the server carries light pages for all; beyond, the line is held.
#[test]
fn errors_against_rate() {
    for load in [0.5, 0.9, 1.5, 2.5, 4.0, 5.5, 6.3, 7.0, 9.0] {
        let mut scenario = step(promises(0.85, &["light", "full"]), load, 11);
        scenario.duration = Duration::from_millis(30_500);
        let [held, alone] = [&scenario, &off(scenario.clone())].map(|scenario| {
            let run = run(scenario);
            let steady = &run.periods[STEP_PERIOD + 8..];
            let arrived = load * CAPACITY * steady.len() as f64;
            [sum(steady, |p| p.errors), sum(steady, |p| p.rejected)].map(|count| count as f64 / arrived)
        });
        eprintln!("{load}: failed {:.4}, rejected {:.4}; alone failed {:.4}", held[0], held[1], alone[0]);
        assert_eq!(held[0], 0.0, "failed at {load} times the capacity");
        let light = LIGHT_COST * load;
        let rejected = if light < 1.0 { 0.0 } else { 1.0 - 0.85 / light };
        assert!((held[1] - rejected).abs() <= 0.01, "rejected at {load}: {:.4}, not {rejected:.4}", held[1]);
        let failed = (1.0 - 1.0 / load).max(0.0);
        assert!(
            (alone[0] - failed).abs() <= 0.01,
            "alone at {load}: {:.4} failed, not {failed:.4}",
            alone[0]
        );
    }
}

/// One level only: the line is held by rejecting.
fn holds_the_line_by_rejecting(run: &Run, within: usize) -> Result<(), String> {
    let set_point = 0.58;
    let lost = sum(&run.periods, |p| p.errors);
    if lost > 0 {
        return Err(format!("{lost} requests lost"));
    }
    let settled = settled(run, set_point).ok_or("never settled")?;
    if settled > within {
        return Err(format!("settled after {settled} periods"));
    }
    let mean = mean(&utilization(&run.periods[STEP_PERIOD + settled..]));
    if !(set_point - 0.02..=set_point + 0.02).contains(&mean) {
        return Err(format!("mean utilization {mean}"));
    }
    Ok(())
}

#[test]
fn admission_only_holds_058_within_six_periods() {
    for (seed, from) in STEPS {
        let mut scenario = step(promises(0.58, &["full"]), 3.0, seed);
        scenario.load[0].0 = Duration::from_millis(from);
        let run = run(&scenario);
        assert_eq!(
            holds_the_line_by_rejecting(&run, 6),
            Ok(()),
            "seed {seed}: {:?}",
            utilization(&run.periods)
        );
    }
    let twin = run(&off(step(promises(0.58, &["full"]), 3.0, 1)));
    assert!(holds_the_line_by_rejecting(&twin, 54).is_err(), "the twin without control must fail");
}

/// What the server carries is not rejected for the line: it is held only above the capacity, wherever the queue is.
#[test]
fn between_the_line_and_the_capacity_nobody_is_rejected() {
    for times in [1, 3, 16] {
        for (seed, load, held) in [(71, 0.97, 0.95..=0.99), (72, 0.97, 0.95..=0.99), (73, 1.05, 0.56..=0.6)] {
            let mut scenario = step(promises(0.58, &["full"]), load, seed);
            scenario.promises.plants[0].max_connections = times * WORKERS;
            scenario.listen_queue = 16 * WORKERS as usize;
            let run = run(&scenario);
            let late = &run.periods[STEP_PERIOD + 15..];
            let (busy, rejected) = (mean(&utilization(late)), sum(late, |period| period.rejected));
            println!("{times} times, seed {seed}, load {load}: {busy:.3}, {rejected} rejected");
            assert!(held.contains(&busy), "{times} times, seed {seed}: {busy} at {load}");
            assert_eq!(
                rejected == 0,
                load < 1.0,
                "{times} times, seed {seed}: {rejected} rejected at {load}"
            );
        }
    }
}

/// With fewer connections than workers the server carries what these serve, and no more.
#[test]
fn what_fewer_connections_than_workers_carry_is_the_capacity() {
    for (seed, load, held) in [(74, 0.83, 0.82..=0.84), (75, 0.95, 0.83..=0.87), (76, 1.5, 0.83..=0.87)] {
        let mut scenario = step(promises(0.85, &["full"]), load, seed);
        scenario.promises.plants[0].max_connections = WORKERS * 7 / 8;
        let run = run(&scenario);
        let late = &run.periods[STEP_PERIOD + 15..];
        let (busy, rejected) = (mean(&utilization(late)), sum(late, |period| period.rejected));
        assert!(held.contains(&busy), "seed {seed}: {busy} at {load}");
        assert_eq!(rejected == 0, load < 0.85, "seed {seed}: {rejected} rejected at {load}");
        let longest = late.iter().map(|period| period.response_seconds.1).fold(0.0, f64::max);
        assert!(longest < 2.0, "seed {seed}: {longest} s at {load}");
    }
}

#[test]
fn the_papers_constants_give_the_curve_of_fig_4() {
    let paper = |gain_margin| {
        let mut promises = promises(0.58, &["full"]);
        promises.control.law = UtilizationLaw::Paper { gain_margin };
        // The paper's server had a listen queue, not a gateway's: its loop does not see backlog.
        promises.plants[0].queue.max_waiting = 511;
        run(&step(promises, 3.0, 1))
    };
    let (four, ten) = (paper(4.0), paper(10.0));
    for (run, margin) in [(&four, 4), (&ten, 10)] {
        let u = utilization(&run.periods[STEP_PERIOD..]);
        assert!(u[1] > 0.95, "open loop at first");
        assert_eq!(holds_the_line_by_rejecting(run, 20), Ok(()), "gain margin {margin}: {u:?}");
    }
    let (four, ten) = (settled(&four, 0.58), settled(&ten, 0.58));
    assert!(four < ten, "the smaller margin is faster: {four:?} and {ten:?}");
    let twin = run(&off(step(promises(0.58, &["full"]), 3.0, 1)));
    assert!(holds_the_line_by_rejecting(&twin, 20).is_err(), "the open loop of Fig. 4 stays at one");
}

#[test]
fn calm_is_full_quality_for_everybody() {
    let run = run(&step(promises(0.85, &["light", "full"]), 0.6, 3));
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors + p.completed[1]), 0);
    assert!((mean(&utilization(&run.periods[10..])) - 0.6).abs() < 0.02, "what is offered is served");
}

#[test]
fn back_to_calm_is_full_quality_again() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 3.0, 4);
    scenario.load.push((Duration::from_secs(30), 0.5 * CAPACITY));
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
    assert_eq!(sum(&run.periods[32..], |p| p.completed[1]), 0, "nobody is degraded two periods later");
    let twin = self::run(&off(scenario));
    assert!(sum(&twin.periods[..32], |p| p.errors) > 0, "the twin without control must fail in the crowd");
}

#[test]
fn a_server_that_slows_to_half_is_held_at_the_line() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 2.0, 5);
    scenario.faults.push(Fault {
        from: Duration::from_secs(30),
        until: Duration::MAX,
        kind: FaultKind::Slower(2.0),
    });
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
    let after = mean(&utilization(&run.periods[38..]));
    assert!((after - 0.85).abs() < 0.02, "{after}");
    let twin = self::run(&off(scenario));
    assert!(mean(&utilization(&twin.periods[38..])) > 0.99);
}

#[test]
fn a_burst_is_waited_out_and_nobody_is_rejected() {
    let mut scenario = step(promises(0.85, &["full"]), 0.5, 6);
    // Four times the capacity for a fifth of a second.
    scenario.load.push((Duration::from_millis(20_100), 4.0 * CAPACITY));
    scenario.load.push((Duration::from_millis(20_300), 0.5 * CAPACITY));
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
}

#[test]
fn the_same_seed_gives_the_same_run_and_every_request_is_accounted_for() {
    let scenario = step(promises(0.85, &["light", "full"]), 3.0, 9);
    let (one, two) = (run(&scenario), run(&scenario));
    assert!(one == two);
    let ended = sum(&one.periods, |p| p.completed.iter().sum::<u64>() + p.rejected + p.errors);
    assert!(sum(&one.periods, |p| p.arrivals) - ended <= 2 * u64::from(WORKERS) + CAPACITY as u64);
    assert!(one != run(&Scenario { seed: 10, ..scenario }));
}

/// Mean utilization from period `from` on.
fn held(run: &Run, from: usize) -> f64 {
    mean(&utilization(&run.periods[from..]))
}

/// The twin without control: the same load puts the same server far over the line.
fn melts_without_control(scenario: Scenario, from: usize) {
    let twin = run(&off(scenario));
    assert!(held(&twin, from) > 0.97, "the twin without control must fail: U = {}", held(&twin, from));
}

#[test]
fn a_server_that_reports_its_utilization_needs_no_worker_count() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 0.5, 7);
    scenario.load.push((Duration::from_secs(30), 3.0 * CAPACITY));
    scenario.reports = true;
    // The operator does not know the number of workers, and the gateway's own measure is wrong by four.
    scenario.promises.plants[0].sense = Sense::Reported;
    scenario.promises.plants[0].workers = 4 * WORKERS;
    scenario.promises.plants[0].max_connections = 4 * WORKERS;
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
    let held = held(&run, 38);
    assert!((held - 0.85).abs() < 0.02, "{held}");
    melts_without_control(scenario, 38);
}

#[test]
fn more_connections_than_workers_are_shared_work() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 3.0, 8);
    scenario.promises.plants[0].max_connections = 3 * WORKERS;
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
    let held = held(&run, STEP_PERIOD + 12);
    assert!((held - 0.85).abs() < 0.02, "{held}");
    melts_without_control(scenario, STEP_PERIOD + 12);
}

#[test]
fn eight_workers_with_exponential_service_are_held_too() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 3.0 / 40.0, 9);
    scenario.workers = 8;
    scenario.promises.plants[0].workers = 8;
    scenario.promises.plants[0].max_connections = 8;
    // 200 requests per second at full quality.
    scenario.service = vec![Duration::from_millis(6), Duration::from_millis(40)];
    scenario.service_time = workload::Law::Exponential;
    scenario.duration = Duration::from_secs(300);
    let run = run(&scenario);
    assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
    let held = held(&run, STEP_PERIOD + 12);
    assert!((held - 0.85).abs() < 0.02, "{held}");
    melts_without_control(scenario, STEP_PERIOD + 12);
}

#[test]
fn a_response_time_over_its_limit_counts_as_full_utilization() {
    for load_line in [0.85, 0.95, 1.0] {
        holds_the_response_time(load_line);
    }
}

fn holds_the_response_time(load_line: f64) {
    // The plant is worse than anybody knows: half of its workers are gone, and 64 connections crowd the rest.
    let mut scenario = step(promises(load_line, &["light", "full"]), 0.6, 10);
    scenario.workers = WORKERS / 2;
    let without = run(&scenario);
    scenario.promises.plants[0].response_time_limit = Some(Duration::from_millis(10));
    let with = run(&scenario);
    let worst = |run: &Run| {
        let late = &run.periods[40..];
        let (sum, served) = late.iter().fold((0.0, 0), |(sum, served), period| {
            (sum + period.response_seconds.0, served + period.completed.iter().sum::<u64>())
        });
        sum / served as f64
    };
    let held = held(&with, 40);
    assert!((0.75..0.97).contains(&held), "{load_line}: {held}: neither crowded nor idle");
    let (without, with) = (worst(&without), worst(&with));
    assert!(with < 0.011, "{load_line}: mean response {with} s with the limit of 10 ms");
    assert!(without > with, "{load_line}: {without} s without");
}

#[test]
fn a_light_level_that_is_not_light_is_found_out() {
    let mut scenario = step(promises(0.85, &["light", "full"]), 3.0, 11);
    scenario.service[0] = FULL.mul_f64(0.6);
    let run = run(&scenario);
    assert!(sum(&run.periods, |p| p.rejected) > 0, "the lowest level is not enough");
    assert_eq!(sum(&run.periods, |p| p.errors), 0);
    let held = held(&run, STEP_PERIOD + 12);
    assert!((held - 0.85).abs() < 0.02, "{held}");
    assert_eq!(
        sum(&run.periods[STEP_PERIOD + 12..], |p| p.completed[2]),
        0,
        "nobody is served full while some are rejected"
    );
    melts_without_control(scenario, STEP_PERIOD + 12);
}

#[test]
fn the_second_resource_is_held_at_the_line_where_it_is_the_bottleneck() {
    // A link of half of what the workers could send at full quality (UC 7.2, eq. 9).
    let link = 0.5 * CAPACITY * SIZES[1] as f64;
    for law in [UtilizationLaw::FeedForward, UtilizationLaw::Paper { gain_margin: 4.0 }] {
        let mut scenario = step(promises(0.85, &["light", "full"]), 0.6, 12);
        scenario.promises.control.law = law;
        let unheld = run(&scenario);
        scenario.promises.plants[0].bandwidth_bytes_per_second = Some(link);
        let run = run(&scenario);
        let used = |run: &Run| {
            let late = &run.periods[STEP_PERIOD + 8..];
            sum(late, |p| p.bytes) as f64 / late.len() as f64 / link
        };
        assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
        assert!((used(&run) - 0.85).abs() < 0.02, "{law:?}: {} of the link", used(&run));
        assert!(used(&unheld) > 1.1, "the twin that does not know the link overruns it");
    }
}

/// The demo's server: 256 workers of 128 ms, 2,000 requests per second. A second's mean of its utilization has a
/// standard deviation of sqrt(0.53 / 2000) = 0.016 by Poisson's arrivals alone, five seconds' mean 0.0073, so the bound
/// of 0.02 is 2.8 of them; the proportional term makes it 3.2. Nearly every seed holds it, and every one nearly.
#[test]
fn the_demos_server_is_held_by_nearly_every_seed() {
    let run_of = |seed, mode| {
        let mut scenario = step(promises(0.85, &["light", "full"]), 3.0 / 4.0, seed);
        scenario.load[0].0 = Duration::from_millis(5_020);
        scenario.duration = Duration::from_millis(35_500);
        scenario.workers = 256;
        (scenario.promises.plants[0].workers, scenario.promises.plants[0].max_connections) = (256, 256);
        scenario.service = vec![Duration::from_micros(19_200), Duration::from_millis(128)];
        scenario.clients = 4000;
        scenario.promises.control.mode = mode;
        run(&scenario)
    };
    let mut missed = 0;
    for seed in 0..20 {
        let run = run_of(seed, Mode::Control);
        assert_eq!(sum(&run.periods, |p| p.rejected + p.errors), 0);
        missed += usize::from(settled(&run, 0.85).is_none_or(|periods| periods > 8));
        let nearly = settled_after(&utilization(&run.periods[STEP_PERIOD..]), 0.85, 0.03, 5);
        assert!(nearly.is_some_and(|periods| periods <= 8), "seed {seed}: {:?}", utilization(&run.periods));
    }
    assert!(missed <= 3, "{missed} of 20 seeds leave the bound of 0.02");
    assert!(settled(&run_of(0, Mode::Off), 0.85).is_none(), "the twin without control must fail");
}
