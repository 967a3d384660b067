//! A deadline before a server that is given more requests at once than it has workers. Part of the queue is in the server then,
//! where the gateway keeps no order.

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

/// Where requests are few times the deadline long, so many are late by themselves.
#[test]
fn a_deadline_is_kept_behind_the_queue_in_the_server() {
    let laws =
        [(Law::Deterministic, 0.001), (Law::Exponential, 0.013), (Law::Lognormal { variation: 2.0 }, 0.03)];
    for (law, most) in &laws {
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
                    assert!(late <= *most, "{law:?} {shared} {times} {load}: {late}");
                    assert!((0.94..=1.02).contains(&in_time), "{law:?} {shared} {times} {load}: {in_time}");
                }
            }
        }
    }
}

#[test]
fn a_higher_priority_is_kept_behind_the_queue_in_the_server() {
    for shared in [false, true] {
        for times in [2, 8, 32] {
            for load in [1.5, 3.0] {
                let flows = || {
                    vec![
                        Flow::new("premium", PREMIUM * CAPACITY).priority(1),
                        Flow::new("others", (load - PREMIUM) * CAPACITY),
                    ]
                };
                let runs = SEEDS.map(|seed| {
                    let premium = settled(&scene((&Law::Exponential, shared, times), flows(), seed), 0);
                    premium.iter().filter(|answer| is_in_time(answer)).count() as f64 / premium.len() as f64
                });
                let in_time = mean(&runs.collect::<Vec<_>>());
                println!("premium, shared {shared}, {times} times, load {load}: in time {in_time:.4}");
                assert!(in_time >= 0.998, "{shared} {times} {load}: {in_time}");
            }
        }
    }
}

/// One download of 10 s every 10 s holds its worker, and is nobody's wait in the server.
#[test]
fn a_long_request_is_not_everybodys_wait_in_the_server() {
    for times in [1, 8] {
        let runs = SEEDS.map(|seed| {
            let mut long = Flow::new("downloads", 0.1);
            long.service = Some(Duration::from_secs(10));
            let mut scene = scene(
                (&Law::Exponential, false, times),
                vec![Flow::new("pages", 0.6 * CAPACITY), long],
                seed,
            );
            scene.flows[1].class.deadline = None;
            let pages = settled(&scene, 0);
            1.0 - pages.iter().filter(|answer| is_in_time(answer)).count() as f64 / pages.len() as f64
        });
        let not = mean(&runs.collect::<Vec<_>>());
        println!("pages beside a download, {times} times: not in time {not:.4}");
        assert!(not <= 0.01, "{times}: {not}");
    }
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
