//! A promised mean after a calm: while workers are idle and lent, responses are short whatever the quota is, and the delay
//! loop learns nothing from them. So a step of best effort after minutes of calm is held like one without any.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 6201..=6210;
const MS: fn(u64) -> Duration = Duration::from_millis;
const AFTER: f64 = 120.0;

/// Before eight workers of 40 ms: `rate` of a class with a promise, in milliseconds, beside 20/s of best effort for `calm`
/// seconds and 150/s from then on.
fn scene((rate, promised): (f64, u64), calm: f64, seed: u64) -> Scene {
    let premium = Flow::new("premium", rate).delay(MS(promised), None).priority(1);
    let best_effort = Flow::new("default", if calm > 0.0 { 20.0 } else { 150.0 });
    let best_effort = if calm > 0.0 { best_effort.then(calm, 150.0) } else { best_effort };
    Scene::new(8, MS(40), vec![premium, best_effort], calm + AFTER, seed)
}

/// Windows of a thousand answers after the calm.
fn windows(heard: &Heard, calm: f64) -> Vec<f64> {
    heard.responses(0, calm).windows(1000).step_by(50).map(mean).collect()
}

/// The share of the windows after the calm that miss the promise by a tenth, and the mean of the first 10 s after it.
fn after((rate, promised): (f64, u64), calm: f64) -> (f64, f64) {
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let heard = scene((rate, promised), calm, seed).run();
        let own = heard.answers.iter().filter(|a| a.class == 0 && (calm..calm + 10.0).contains(&a.arrived));
        first.extend(own.map(|answer| answer.response()));
        all.extend(windows(&heard, calm));
    }
    let limit = 1.1e-3 * promised as f64;
    let missed = all.iter().filter(|window| **window > limit).count() as f64 / all.len() as f64;
    let first = mean(&first);
    println!(
        "{rate}/s, {promised} ms, after {calm} s of calm: the first 10 s {:.1} ms, missed {:.1} %",
        1e3 * first,
        100.0 * missed
    );
    (missed, first)
}

#[test]
fn a_step_after_minutes_of_calm_is_held_like_one_without() {
    for case in [(60.0, 80), (100.0, 80), (100.0, 60)] {
        let (without, _) = after(case, 0.0);
        for calm in [30.0, 300.0] {
            let (missed, first) = after(case, calm);
            assert!(missed <= without + 0.03, "{case:?}: {missed} after {calm} s of calm, {without} without");
            assert!(first <= 1.15e-3 * case.1 as f64, "{case:?}: {first} s at first, after {calm} s of calm");
        }
    }
}

/// The twin without control: best effort takes what it wants.
#[test]
fn without_control_a_step_after_calm_is_not_held() {
    let mut scene = scene((100.0, 80), 30.0, *SEEDS.start());
    scene.mode = Mode::Off;
    let windows = windows(&scene.run(), 60.0);
    assert!(windows.iter().all(|window| *window > 0.5), "{windows:?}");
}
