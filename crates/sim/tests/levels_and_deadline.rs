//! A deadline and lighter levels at a load line of 1: while lighter pages for more clients would fit, the level loop degrades
//! before the deadline refuses anybody.

use crate::waits::{Answer, Flow, Scene, mean};
use plimsoll_core::promises::{Site, WorkerBounds};
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9401..=9424;
const CAPACITY: f64 = 200.0;
const LIGHT_COST: f64 = 0.15;
const DEADLINE: Duration = Duration::from_millis(500);
const SETTLED: f64 = 20.0;
const END: f64 = 80.0;

/// Everybody has a deadline, before eight workers of 40 ms.
fn scene(told: bool, levels: &[&str], load: f64, seed: u64) -> Scene {
    let mut own = Flow::new("own", load * CAPACITY);
    own.class.deadline = Some(DEADLINE);
    let mut scene = Scene::new(8, Duration::from_millis(40), vec![own], END, seed);
    scene.site = Site::new("site", levels);
    if levels.len() > 1 {
        scene.site.levels[0].cost_ratio = Some(LIGHT_COST);
    }
    scene.plant.set_point = 1.0;
    if !told {
        scene.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
        (scene.plant.workers, scene.plant.max_connections) = (16, 1024);
    }
    scene
}

/// Once it has settled: the shares of arrivals that were refused, late and served full, and how busy the server is.
fn settled(scene: &Scene) -> [f64; 4] {
    let heard = scene.run();
    let own: Vec<&Answer> = heard.answers.iter().filter(|answer| answer.arrived >= SETTLED).collect();
    let share = |is: &dyn Fn(&Answer) -> bool| {
        own.iter().filter(|answer| is(answer)).count() as f64 / own.len() as f64
    };
    let is_late = |answer: &Answer| answer.completed && answer.response() > DEADLINE.as_secs_f64();
    let is_full = |answer: &Answer| answer.completed && answer.level == 2;
    [
        share(&|answer| !answer.completed),
        share(&is_late),
        share(&is_full),
        mean(&heard.busy[SETTLED as usize..]),
    ]
}

/// The means over all seeds.
fn means(told: bool, levels: &[&str], load: f64) -> [f64; 4] {
    let all: Vec<[f64; 4]> = SEEDS.map(|seed| settled(&scene(told, levels, load, seed))).collect();
    [0, 1, 2, 3].map(|figure| mean(&all.iter().map(|own| own[figure]).collect::<Vec<_>>()))
}

#[test]
fn requests_are_degraded_before_the_deadline_refuses_any() {
    for told in [true, false] {
        for load in [1.15, 1.5, 1.9, 3.1] {
            let [refused, late, full, busy] = means(told, &["light", "full"], load);
            println!(
                "told {told}, {load} times the capacity: refused {refused:.4}, late {late:.4}, full {full:.3}, busy {busy:.3}"
            );
            // Chance while the number of workers is found costs a little more.
            let most = if told { 0.001 } else { 0.009 };
            assert!(refused <= most && late <= 0.2 * most, "{told} at {load}: {refused} {late}");
            assert!((0.935..=0.955).contains(&busy), "{told} at {load}: {busy}");
            // As many as fit beside light pages for the rest.
            let wanted = (0.95 / load - LIGHT_COST) / (1.0 - LIGHT_COST);
            assert!((full - wanted).abs() <= 0.015, "{told} at {load}: {full} instead of {wanted}");
        }
    }
}

/// The twin without a lighter level: the deadline refuses what is too much, and as much as that.
#[test]
fn the_twin_without_a_lighter_level_refuses_what_is_too_much() {
    for load in [1.5, 3.1] {
        let [refused, late, _, busy] = means(true, &["full"], load);
        println!("{load} times the capacity: refused {refused:.4}, late {late:.4}, busy {busy:.3}");
        let excess = 1.0 - 1.0 / load;
        assert!((excess..=excess + 0.02).contains(&refused) && busy > 0.99, "{load}: {refused} {busy}");
    }
}
