//! Promised times before a server that takes more requests at once than it has workers. Part of the queue may be in the server
//! then, where the gateway keeps no order.

use crate::waits::{Answer, Flow, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9701..=9704;
const WORKERS: u32 = 8;
/// Requests of 40 ms.
const CAPACITY: f64 = 200.0;
const DEADLINE: f64 = 0.5;
const SETTLED: f64 = 10.0;
const END: f64 = 50.0;
/// Where a loop has a window to learn from.
const LONG: f64 = 120.0;
/// What premium takes of the server, where there is such a class.
const PREMIUM: f64 = 0.5;

/// `times` as many at once as there are workers, which have either a request each or share their time.
fn scene((law, shared, times): (&Law, bool, u32), flows: Vec<Flow>, seed: u64) -> Scene {
    let flows = flows.into_iter().map(|mut flow| {
        flow.class.deadline = Some(Duration::from_secs_f64(DEADLINE));
        flow
    });
    let mut scene = Scene::new(WORKERS, Duration::from_millis(40), flows.collect(), END, seed);
    (scene.law, scene.shared) = (law.clone(), shared);
    scene.plant.max_connections = times * WORKERS;
    scene
}

fn settled(scene: &Scene, class: usize) -> Vec<Answer> {
    let mut answers = scene.run().answers;
    answers.retain(|answer| answer.arrived >= SETTLED && answer.class == class);
    answers
}

fn is_in_time(answer: &Answer) -> bool {
    answer.completed && answer.response() <= DEADLINE
}

/// The part of the admitted that are late or dropped.
fn late(answers: &[Answer]) -> f64 {
    let admitted = answers.iter().filter(|answer| answer.completed || answer.ended > answer.arrived).count();
    1.0 - answers.iter().filter(|answer| is_in_time(answer)).count() as f64 / admitted as f64
}

/// The part of the capacity that is in time.
fn of_the_capacity(answers: &[Answer]) -> f64 {
    answers.iter().filter(|answer| is_in_time(answer)).count() as f64 / (END - SETTLED) / CAPACITY
}

/// With as many connections as workers 0, 0.7 and 1.4 % are late; where workers are shared, long requests take longer still.
#[test]
fn a_deadline_is_kept_behind_the_queue_in_the_server() {
    let laws = [
        (Law::Deterministic, 0.0..=0.001, 0.98),
        (Law::Exponential, 0.003..=0.008, 0.97),
        (Law::Lognormal { variation: 2.0 }, 0.008..=0.02, 0.95),
    ];
    for (law, may_be_late, least) in &laws {
        for shared in [false, true] {
            for times in [2, 4, 32] {
                for load in [1.5, 3.0] {
                    let runs = SEEDS.map(|seed| {
                        let flows = vec![Flow::new("all", load * CAPACITY)];
                        settled(&scene((law, shared, times), flows, seed), 0)
                    });
                    let runs: Vec<[f64; 2]> = runs.map(|run| [late(&run), of_the_capacity(&run)]).collect();
                    let [late, in_time] =
                        [0, 1].map(|n| mean(&runs.iter().map(|run| run[n]).collect::<Vec<_>>()));
                    println!(
                        "{law:?}, shared {shared}, {times} times, load {load}: late {late:.4}, in time {in_time:.4}"
                    );
                    assert!(may_be_late.contains(&late), "{law:?} {shared} {times} {load}: {late}");
                    assert!((*least..=1.01).contains(&in_time), "{law:?} {shared} {times} {load}: {in_time}");
                }
            }
        }
    }
}

#[test]
fn a_higher_priority_is_kept_behind_the_queue_in_the_server() {
    let in_time = |shared: bool, times: u32, load: f64, mode: Mode, seed: u64| {
        let flows = vec![
            Flow::new("premium", PREMIUM * CAPACITY).priority(1),
            Flow::new("others", (load - PREMIUM) * CAPACITY),
        ];
        let scene = scene((&Law::Exponential, shared, times), flows, seed);
        let premium = settled(&Scene { mode, ..scene }, 0);
        premium.iter().filter(|answer| is_in_time(answer)).count() as f64 / premium.len() as f64
    };
    for (shared, least) in [(false, 0.9995), (true, 0.999)] {
        for load in [1.5, 3.0] {
            for times in [2, 8, 32] {
                let runs = SEEDS.map(|seed| in_time(shared, times, load, Mode::Control, seed));
                let in_time = mean(&runs.collect::<Vec<_>>());
                println!("premium, shared {shared}, {times} times, load {load}: in time {in_time:.4}");
                assert!(in_time >= least, "{shared} {times} {load}: {in_time}");
            }
            let twin = in_time(shared, 2, load, Mode::Off, *SEEDS.start());
            assert!(twin < 0.2, "the twin without control, {shared} {load}: {twin}");
        }
    }
}

/// Requests without a deadline fill the server, and others with a higher priority go first.
#[test]
fn a_deadline_is_kept_beside_requests_without_one() {
    let own = || {
        let mut own = Flow::new("own", 60.0);
        own.class.deadline = Some(Duration::from_millis(400));
        own
    };
    let in_time = |times: u32, load: f64, mode: Mode, seed: u64| {
        let others = Flow::new("others", load * CAPACITY - 100.0);
        let flows = vec![Flow::new("first", 40.0).priority(1), own(), others];
        let mut scene = Scene::new(WORKERS, Duration::from_millis(40), flows, END, seed);
        (scene.plant.max_connections, scene.mode) = (times * WORKERS, mode);
        let answers = settled(&scene, 1);
        let in_time = answers.iter().filter(|answer| answer.completed && answer.response() <= 0.4);
        in_time.count() as f64 / answers.len() as f64
    };
    for load in [1.5, 3.0] {
        for times in [1, 2, 32] {
            let runs = SEEDS.map(|seed| in_time(times, load, Mode::Control, seed));
            let in_time = mean(&runs.collect::<Vec<_>>());
            println!("beside others, {times} times, load {load}: in time {in_time:.4}");
            assert!(in_time >= 0.999, "{times} {load}: {in_time}");
        }
        let twin = in_time(1, load, Mode::Off, *SEEDS.start());
        assert!(twin < 0.1, "the twin without control, {load}: {twin}");
    }
}

/// One download of 10 s every 10 s holds its worker, and is nobody's wait in the server.
#[test]
fn a_long_request_is_not_everybodys_wait_in_the_server() {
    for (times, load, most) in [(1, 0.6, 0.002), (8, 0.6, 0.002), (1, 0.85, 0.015), (8, 0.85, 0.015)] {
        let runs = SEEDS.map(|seed| {
            let mut long = Flow::new("downloads", 0.1);
            long.service = Some(Duration::from_secs(10));
            let mut scene = scene(
                (&Law::Exponential, false, times),
                vec![Flow::new("pages", load * CAPACITY), long],
                seed,
            );
            scene.flows[1].class.deadline = None;
            let pages = settled(&scene, 0);
            1.0 - pages.iter().filter(|answer| is_in_time(answer)).count() as f64 / pages.len() as f64
        });
        let not = mean(&runs.collect::<Vec<_>>());
        println!("pages beside a download, {times} times, load {load}: not in time {not:.4}");
        assert!(not <= most, "{times} {load}: {not}");
    }
}

/// A class of 60/s with a promise, beside others that overload the server. One request takes 40 ms.
fn promised(own: Flow, others: Flow, (shared, times): (bool, u32), seed: u64) -> Scene {
    let mut scene = Scene::new(WORKERS, Duration::from_millis(40), vec![own, others], LONG, seed);
    scene.shared = shared;
    scene.plant.max_connections = times * WORKERS;
    scene
}

/// The mean response time of a class, and the part of its requests that took longer than `late` (s).
fn times_of(scene: &Scene, class: usize, late: f64) -> [f64; 2] {
    let times = scene.run().responses(class, SETTLED);
    [mean(&times), times.iter().filter(|time| **time > late).count() as f64 / times.len() as f64]
}

fn mean_times(of: impl Fn(u64) -> [f64; 2]) -> [f64; 2] {
    let runs: Vec<[f64; 2]> = SEEDS.map(of).collect();
    [0, 1].map(|n| mean(&runs.iter().map(|run| run[n]).collect::<Vec<_>>()))
}

#[test]
fn a_delay_is_kept_since_few_wait_in_the_server() {
    let others = |load: f64| Flow::new("others", load * CAPACITY - 60.0);
    let ms = Duration::from_millis;
    for shared in [false, true] {
        for times in [2, 8, 32] {
            for load in [1.4, 2.6] {
                for (target, percentile, bounds) in
                    [(90, None, 0.93..=1.0), (140, None, 0.87..=0.97), (320, Some(95.0), 0.015..=0.042)]
                {
                    let own = || Flow::new("own", 60.0).delay(ms(target), percentile);
                    let late_by = target as f64 * 1e-3;
                    let [response, late] = mean_times(|seed| {
                        times_of(&promised(own(), others(load), (shared, times), seed), 0, late_by)
                    });
                    println!(
                        "{target} ms, {percentile:?}, shared {shared}, {times} times, load {load}: {response:.3} s, late {late:.4}"
                    );
                    // The part of its mean, or of its requests that is late.
                    let reached = if percentile.is_some() { late } else { response / late_by };
                    let kept = bounds.contains(&reached);
                    assert!(kept, "{target} {percentile:?} {shared} {times} {load}: {response} {late}");
                }
                let own = Flow::new("own", 60.0).delay(ms(320), Some(95.0));
                let twin = promised(own, others(load), (shared, times), *SEEDS.start());
                if times == 2 {
                    let [response, late] = times_of(&Scene { mode: Mode::Off, ..twin }, 0, 0.32);
                    assert!(response > 1.0 && late > 0.5, "the twin without control: {response} {late}");
                }
            }
        }
    }
}

#[test]
fn a_ratio_is_kept_since_none_wait_in_the_server() {
    for times in [2, 8, 32] {
        let flows = || [Flow::new("own", 85.0).ratio(1.0), Flow::new("others", 100.0).ratio(1.5)];
        let [own, others] = [0, 1].map(|class| {
            let [response, _] = mean_times(|seed| {
                let [own, others] = flows();
                times_of(&promised(own, others, (false, times), seed), class, 1.0)
            });
            response
        });
        println!("a ratio of 1.5, {times} times: {own:.3} and {others:.3} s");
        assert!((others / own / 1.5 - 1.0).abs() <= 0.02, "{times}: {own} {others}");
    }
    let twin = promised(Flow::new("own", 85.0), Flow::new("others", 100.0), (false, 2), *SEEDS.start()).run();
    let ratio = twin.mean(1, SETTLED) / twin.mean(0, SETTLED);
    assert!((0.9..=1.1).contains(&ratio), "the twin without a ratio: {ratio}");
}

/// The twin without control: behind the queue of an overload everybody is late.
#[test]
fn the_twin_without_control_is_late_with_all() {
    let mut scene =
        scene((&Law::Exponential, false, 4), vec![Flow::new("all", 1.5 * CAPACITY)], *SEEDS.start());
    scene.mode = Mode::Observe;
    let late = late(&settled(&scene, 0));
    assert!(late > 0.9, "{late}");
}
