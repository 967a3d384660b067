//! PR's experiments (5.1) with its own controller, `--against pools`, and with the engine, before the same servers: two classes
//! at 1:2 and 1:3, three at 1:2:3, arrivals 3:1 and 3:2:1, exponential service.
//!
//! Where processes share a processor, the engine lets one request at a time into it. zeta (eq. 11) is what feedback takes away
//! of the error of the queueing-theoretical allocation alone. `--nocapture` prints the figures of docs/papers.md.

mod waits;

use std::time::Duration;
use waits::{Flow, Heard, Scene, mean, percentile};

const SEEDS: std::ops::RangeInclusive<u64> = 201..=208;
/// So fast a server that the load line, which looks at seconds, turns nobody away: PR has no admission control.
const SERVICE: f64 = 0.001;
/// Windows of so many requests: a sampling period.
const WINDOW: usize = 1000;
const ENGINE: &str = "engine";
const ALONE: &str = "pools,gain=0";
const PID: &str = "pools";

/// What stands in front, and what it gave.
struct Found {
    /// The ratio of each class's mean to the first's.
    ratios: Vec<f64>,
    /// From the 5th to the 95th percentile of the windows' ratio of the last class to the first; the mean over the seeds.
    spread: f64,
    /// Each window's ratio from the start on, the median over the seeds.
    settling: Vec<f64>,
    /// Mean responses over the service time: the first class's, and all.
    slowdown: [f64; 2],
}

#[derive(Clone, Copy)]
struct Server {
    workers: u32,
    shared: bool,
}

const SHARED: Server = Server { workers: 1, shared: true };
const EIGHT: Server = Server { workers: 8, shared: false };

fn scene(server: Server, deltas: &[f64], load: f64, seed: u64) -> Scene {
    let all = load * f64::from(server.workers) / SERVICE;
    let arrivals: &[f64] = if deltas.len() == 2 { &[3.0, 1.0] } else { &[3.0, 2.0, 1.0] };
    let total: f64 = arrivals.iter().sum();
    let flow = |(n, (share, delta)): (usize, (&f64, &f64))| {
        Flow::new(&format!("class{n}"), all * share / total).ratio(*delta)
    };
    let flows = arrivals.iter().zip(deltas).enumerate().map(flow).collect();
    let mut scene = Scene::new(server.workers, Duration::from_secs_f64(SERVICE), flows, 30_000.0 / all, seed);
    scene.shared = server.shared;
    scene
}

fn windows(heard: &Heard, last: usize) -> Vec<f64> {
    let mut all: Vec<_> = heard.answers.iter().filter(|answer| answer.completed).collect();
    all.sort_by(|a, b| a.ended.total_cmp(&b.ended));
    let ratio = |window: &[&waits::Answer]| {
        let of = |class: usize| {
            let own = window.iter().filter(|answer| answer.class == class);
            mean(&own.map(|answer| answer.response()).collect::<Vec<_>>())
        };
        of(last) / of(0)
    };
    all.chunks_exact(WINDOW).map(ratio).filter(|ratio| ratio.is_finite()).collect()
}

fn found(front: &str, server: Server, deltas: &[f64], load: f64) -> Found {
    let last = deltas.len() - 1;
    let (mut ratios, mut spreads, mut series) = (vec![Vec::new(); deltas.len()], Vec::new(), Vec::new());
    let mut slowdown = [Vec::new(), Vec::new()];
    for seed in SEEDS {
        let scene = scene(server, deltas, load, seed);
        let heard = if front == ENGINE { scene.run() } else { scene.run_against(front) };
        assert!(heard.answers.iter().all(|answer| answer.completed), "somebody was turned away");
        let from = 0.25 * scene.seconds;
        let first = heard.mean(0, from);
        ratios.iter_mut().enumerate().for_each(|(class, own)| own.push(heard.mean(class, from) / first));
        let all: Vec<f64> =
            heard.answers.iter().filter(|a| a.arrived >= from).map(|a| a.response()).collect();
        slowdown[0].push(first / SERVICE);
        slowdown[1].push(mean(&all) / SERVICE);
        let windows = windows(&heard, last);
        let mut settled = windows[windows.len() / 4..].to_vec();
        spreads.push(percentile(&mut settled, 0.95) - percentile(&mut settled, 0.05));
        series.push(windows);
    }
    let shortest = series.iter().map(Vec::len).min().unwrap_or(0);
    let settling = (0..shortest)
        .map(|n| percentile(&mut series.iter().map(|windows| windows[n]).collect::<Vec<_>>(), 0.5))
        .collect();
    let ratios: Vec<f64> = ratios.iter().map(|own| mean(own)).collect();
    let found =
        Found { ratios, spread: mean(&spreads), settling, slowdown: slowdown.each_ref().map(|s| mean(s)) };
    println!(
        "{} {}, {deltas:?} at {load}, {front:12}: {:.2?}, spread {:.2}, slowdown {:.2?}, first windows {:.1?}",
        server.workers,
        if server.shared { "shared" } else { "workers" },
        found.ratios,
        found.spread,
        found.slowdown,
        &found.settling[..8]
    );
    found
}

/// zeta (eq. 11), for each class beside the first.
fn zeta(integrated: &Found, alone: &Found, deltas: &[f64]) -> Vec<f64> {
    let off = |found: &Found, class: usize| (found.ratios[class] - deltas[class]).abs();
    let zeta: Vec<f64> =
        (1..deltas.len()).map(|class| 1.0 - off(integrated, class) / off(alone, class)).collect();
    println!("    zeta {zeta:.2?}");
    zeta
}

/// Fig. 4 to 6: what the allocation alone misses, feedback mends for the most part, and turns mend nearly all of it. Below 80 %
/// no order of requests gives these ratios (`ratios.rs`).
#[test]
fn feedback_mends_what_the_allocation_misses() {
    for (deltas, load) in [(&[1.0, 2.0][..], 0.8), (&[1.0, 2.0], 0.9), (&[1.0, 2.0, 3.0], 0.9)] {
        let [alone, pid, engine] = [ALONE, PID, ENGINE].map(|front| found(front, SHARED, deltas, load));
        for (class, of_pid) in (1..).zip(zeta(&pid, &alone, deltas)) {
            assert!((0.3..=1.0).contains(&of_pid), "{of_pid} of class {class} at {load}");
        }
        for (class, of_engine) in (1..).zip(zeta(&engine, &alone, deltas)) {
            assert!((0.9..=1.0).contains(&of_engine), "{of_engine} of class {class} at {load}");
        }
        // Fig. 7 and 8: windows of 1,000 requests. The paper has 1.7 at 1:2 and 3.1 at 1:3, both at 80 %.
        let over = pid.spread / engine.spread;
        assert!((2.5..=14.0).contains(&over), "{} beside {} at {load}", pid.spread, engine.spread);
    }
}

/// The load axis of fig. 4 to 6, 40 to 90 %, for the allocation alone and with PID: what is reached of the ratio, by load.
#[test]
fn along_the_load_axis_feedback_is_nearer_to_the_ratio_than_the_allocation_alone() {
    const LOADS: [f64; 6] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    for deltas in [&[1.0, 2.0][..], &[1.0, 3.0], &[1.0, 2.0, 3.0]] {
        let axis = |front: &str| LOADS.map(|load| found(front, SHARED, deltas, load).ratios);
        let [alone, pid] = ["pools:4,gain=0", "pools:4"].map(axis);
        for class in 1..deltas.len() {
            let off = |ratios: &Vec<f64>| (ratios[class] / deltas[class] - 1.0).abs();
            let [of_alone, of_pid] = [&alone, &pid].map(|axis| axis.each_ref().map(off));
            let over = of_pid.iter().sum::<f64>() / of_alone.iter().sum::<f64>();
            println!(
                "{deltas:?}, class {class}: off by {of_alone:.2?} alone, {of_pid:.2?} with PID, {over:.2} of it"
            );
            assert!((0.4..0.9).contains(&over), "{over} of class {class} of {deltas:?}");
            // Close to the capacity the allocation alone is "very poor" for the last class, and feedback is not.
            assert!(of_pid[5] < 0.35 && of_pid[5] < of_alone[5], "{of_pid:?} beside {of_alone:?}");
            assert!(class + 1 < deltas.len() || of_alone[5] > 0.4, "{of_alone:?}");
            // In light load nobody waits, so that there is nothing to differentiate by.
            assert!(of_pid[0] > 0.4 && of_alone[0] > 0.4, "{of_pid:?} beside {of_alone:?}");
        }
    }
}

/// Fig. 9: the windows from the start on. PID takes some to find its processes; turns have the ratio from the first window on.
#[test]
fn turns_need_no_time_to_settle() {
    let [pid, engine] = [PID, ENGINE].map(|front| found(front, SHARED, &[1.0, 2.0], 0.9));
    let settled = |found: &Found| {
        let is_close = |ratio: &f64| (ratio / 2.0 - 1.0).abs() <= 0.2;
        found.settling.len() - found.settling.iter().rev().take_while(|ratio| is_close(ratio)).count()
    };
    println!("windows until within a fifth of the ratio: {}, {}", settled(&pid), settled(&engine));
    assert!(settled(&engine) <= 1 && settled(&pid) >= 3, "{}, {}", settled(&pid), settled(&engine));
}

#[test]
fn the_papers_pools_hold_it_with_several_times_the_spread() {
    let [alone, pid, engine] = [ALONE, PID, ENGINE].map(|front| found(front, SHARED, &[1.0, 3.0], 0.9));
    assert!((2.55..=3.45).contains(&pid.ratios[1]), "{}", pid.ratios[1]);
    let [of_pid, of_engine] = [&pid, &engine].map(|found| zeta(found, &alone, &[1.0, 3.0])[0]);
    assert!((0.6..=1.0).contains(&of_pid) && (0.95..=1.0).contains(&of_engine), "{of_pid}, {of_engine}");
    assert!((3.0..=12.0).contains(&(pid.spread / engine.spread)), "{} beside {}", pid.spread, engine.spread);
    assert!((0.9..=1.5).contains(&alone.ratios[1]), "{}", alone.ratios[1]);
}

/// With few processes the allocation alone is the paper's: too much close to the capacity (4.13 instead of 3 at 90 %).
#[test]
fn few_processes_overshoot_as_the_papers_do() {
    let few = |load| found("pools:4,gain=0", SHARED, &[1.0, 3.0], load).ratios[1];
    let [at_60, at_80, at_90] = [0.6, 0.8, 0.9].map(few);
    assert!((1.0..1.3).contains(&at_60) && (1.5..2.5).contains(&at_80), "{at_60}, {at_80}");
    assert!((3.4..5.5).contains(&at_90), "{at_90}");
}

/// Before workers, with a process for each: pools are partitions. They reach a ratio that no order of requests gives, by
/// leaving processes idle while others wait: requests are slower for it in the mean, and the first class gains nothing.
#[test]
fn before_workers_pools_pay_by_idle_processes() {
    for deltas in [&[1.0, 2.0], &[1.0, 3.0]] {
        let [pid, engine] = [PID, ENGINE].map(|front| found(front, EIGHT, deltas, 0.8));
        assert!(engine.ratios[1] < 0.95 * deltas[1] && engine.spread < 0.5 * pid.spread);
        let [first, all] = [0, 1].map(|which| pid.slowdown[which] / engine.slowdown[which]);
        println!("{deltas:?}: the first class {first:.2} and all {all:.2} times as slow");
        assert!((0.95..6.0).contains(&first), "the first class is {first} times as slow");
        assert!((1.05..6.0).contains(&all), "all are {all} times as slow");
    }
}
