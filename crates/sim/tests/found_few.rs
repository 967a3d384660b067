//! One or two workers, which nobody told: there is hardly a smaller number to compare with, so throughput tells it late.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_sim::workload::Law;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 12_301..=12_312;
const DEADLINE: Duration = Duration::from_millis(500);
/// When the load steps to three times the capacity, from when on the search has had time, and the end (s).
const STEP: f64 = 60.0;
const SETTLED: f64 = STEP + 30.0;
const END: f64 = STEP + 90.0;

/// Requests of a tenth of a second with a deadline, at half of the capacity and then at three times of it.
fn deadline(workers: u32, seed: u64) -> Scene {
    let capacity = f64::from(workers) * 10.0;
    let mut flow = Flow::new("own", 0.5 * capacity).then(STEP, 3.0 * capacity);
    flow.class.deadline = Some(DEADLINE);
    let mut scene = Scene::new(workers, Duration::from_millis(100), vec![flow], END, seed);
    scene.law = Law::Deterministic;
    scene
}

/// The share of the answers that was late, and what was in time as a part of the capacity, once all has settled.
fn late_and_good(heard: &Heard, workers: u32) -> [f64; 2] {
    let own = heard.answers.iter().filter(|one| one.arrived >= SETTLED && one.completed);
    let late: Vec<f64> =
        own.map(|one| f64::from(u8::from(one.response() > DEADLINE.as_secs_f64()))).collect();
    let good = late.iter().filter(|late| **late == 0.0).count() as f64;
    [mean(&late), good / (f64::from(workers) * 10.0 * (END - SETTLED))]
}

/// Requests are refused for the time that they would take themselves, too, so that none waits: that is a load of which the
/// search is told. Before, the workers of three of twelve servers stayed unknown, and each answer of theirs was late.
#[test]
fn a_deadline_is_kept_before_few_workers_that_are_found_under_way() {
    for workers in [1, 2] {
        let of = |found: bool| {
            let run = |seed| late_and_good(&deadline(workers, seed).finding_workers(found).run(), workers);
            SEEDS.map(run).collect::<Vec<_>>()
        };
        let (found, told) = (of(true), of(false));
        println!("{workers} workers: late and in time: found {found:.3?}, told {told:.3?}");
        let worst = |runs: &[[f64; 2]]| runs.iter().map(|run| run[0]).fold(0.0, f64::max);
        assert!(worst(&told) < 0.1 && worst(&found) < 0.2, "{workers} workers");
        assert!(found.iter().all(|run| run[1] > 0.55), "{workers} workers");
    }
}

/// Two workers of 40 ms with very different requests, at 0.7 of the capacity: the share that was turned away.
fn turned_away(seed: u64) -> f64 {
    let flow = Flow::new("own", 0.7 * 50.0);
    let mut scene = Scene::new(2, Duration::from_millis(40), vec![flow], 600.0, seed).finding_workers(true);
    scene.plant.set_point = 0.85;
    scene.law = Law::Lognormal { variation: 3.0 };
    let answers = scene.run().answers;
    mean(&answers.iter().map(|one| f64::from(u8::from(!one.completed))).collect::<Vec<_>>())
}

/// Before, one of twenty servers was taken for one of a single worker and stayed so: below that limit there is nothing to
/// compare it with, and a quarter to two fifths of its requests were turned away.
#[test]
fn a_limit_of_one_is_left_again() {
    let runs: Vec<f64> = (12_321..=12_440).map(turned_away).collect();
    let worst = runs.iter().copied().fold(0.0, f64::max);
    println!("turned away at 0.7 of two workers: {:.4}, at worst {worst:.4}: {runs:.3?}", mean(&runs));
    assert!(mean(&runs) < 0.01 && worst < 0.1);
}
