//! Promised percentiles near 100: what is promised for 999 in 1,000 is kept for 999 in 1,000, with its interval.

use crate::waits::{self, Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 6301..=6320;
const MS: fn(u64) -> Duration = Duration::from_millis;
/// Mean service time (ms).
const SERVICE: f64 = 40.0;

/// Eight workers; `rate` of a class with a promised percentile, within so many milliseconds, beside best effort.
fn scene(rate: f64, (percentile, target): (f64, u64), best_effort: f64, seed: u64) -> Scene {
    let premium = Flow::new("premium", rate).delay(MS(target), Some(percentile)).priority(1);
    Scene::new(8, MS(SERVICE as u64), vec![premium, Flow::new("default", best_effort)], 300.0, seed)
}

/// The share of the class that was answered too late, or not.
fn late(heard: &Heard, target: u64) -> f64 {
    let own = heard.answers.iter().filter(|answer| answer.class == 0 && answer.arrived >= 75.0);
    let is_late = |a: &waits::Answer| !a.completed || a.response() > 1e-3 * target as f64;
    mean(&own.map(|answer| f64::from(u8::from(is_late(answer)))).collect::<Vec<_>>())
}

/// The mean of the shares of all seeds, and half of its 95 % interval (Student's, of 19 degrees of freedom).
fn interval(shares: &[f64]) -> (f64, f64) {
    let (n, centre) = (shares.len() as f64, mean(shares));
    let variance = shares.iter().map(|share| (share - centre).powi(2)).sum::<f64>() / (n - 1.0);
    (centre, 2.093 * (variance / n).sqrt())
}

#[test]
fn a_high_percentile_is_kept_with_its_interval() {
    // The last: how much of what may be late has to be, or workers would be taken from best effort for nothing.
    for (rate, best_effort, percentile, target, used) in [
        (100.0, 400.0, 99.9, 400, 0.18),
        (60.0, 140.0, 99.9, 400, 0.12),
        (150.0, 300.0, 99.9, 400, 0.33),
        (100.0, 400.0, 99.0, 300, 0.68),
        (60.0, 150.0, 99.0, 300, 0.48),
    ] {
        let runs = SEEDS.map(|seed| scene(rate, (percentile, target), best_effort, seed).run());
        let shares: Vec<f64> = runs.map(|heard| late(&heard, target)).collect();
        let (share, half) = interval(&shares);
        println!(
            "{percentile} % of {rate}/s within {target} ms beside {best_effort}/s: {:.4} +- {:.4} % late",
            100.0 * share,
            100.0 * half
        );
        let may = 1.0 - percentile / 100.0;
        assert!(share + half <= may, "{percentile} %: {share} +- {half} late");
        println!("    {:.3} of what may be late", share / may);
        assert!(share >= used * may, "{percentile} %: {share} late of {may}");
    }
}

/// Service alone takes longer than 200 ms for 7 in 1,000. Status says so, and that nothing is missed where 1 % may be late.
#[test]
fn a_percentile_that_service_alone_breaks_is_reported() {
    for (percentile, wanted) in [(99.9, true), (98.0, false)] {
        let heard = scene(60.0, (percentile, 200), 20.0, *SEEDS.start()).run();
        let status = heard.status.expect("the engine ran").classes[0].response.expect("a promise");
        assert_eq!(status.missed, wanted, "{percentile} %: {}", status.late);
    }
}

/// The twin without control.
#[test]
fn without_control_a_percentile_is_missed() {
    let mut scene = scene(100.0, (99.9, 400), 400.0, *SEEDS.start());
    scene.mode = Mode::Off;
    assert!(late(&scene.run(), 400) > 0.5);
}

/// Service times of which three in a hundred are thirteen times as long as the others.
fn mixed() -> Law {
    Law::Empirical((0..100).map(|place| if place < 3 { 400.0 } else { 30.0 }).collect())
}

/// The share of a class's requests that was turned away.
fn refused(heard: &Heard, class: usize) -> f64 {
    let own = heard.answers.iter().filter(|answer| answer.class == class && answer.arrived >= 75.0);
    mean(&own.map(|answer| f64::from(u8::from(!answer.completed))).collect::<Vec<_>>())
}

/// More than 1 in 100 of these service times are longer than 200 ms, so no quota keeps 99 %. Then best effort is not turned
/// away, since that would keep nothing; premium is late for its own service only.
#[test]
fn what_no_quota_can_keep_costs_best_effort_nothing() {
    for (name, law, alone) in [
        ("a mixture", mixed(), 0.03),
        ("lognormal, c^2 = 2", Law::Lognormal { variation: 1.414 }, 0.02),
        ("lognormal, c^2 = 4", Law::Lognormal { variation: 2.0 }, 0.029),
        ("lognormal, c^2 = 8", Law::Lognormal { variation: 2.83 }, 0.034),
    ] {
        let runs = [6341, 6342]
            .map(|seed| Scene { law: law.clone(), ..scene(40.0, (99.0, 200), 120.0, seed) }.run());
        let away = mean(&runs.each_ref().map(|heard| refused(heard, 1)));
        let late = mean(&runs.each_ref().map(|heard| late(heard, 200)));
        println!(
            "{name}: {:.2} % of best effort refused, {:.2} % of premium late",
            100.0 * away,
            100.0 * late
        );
        assert!(away < 0.05, "{name}: {away} of best effort refused");
        assert!((0.6 * alone..alone + 0.015).contains(&late), "{name}: {late} late, {alone} by service");
    }
}

/// Service takes longer than 200 ms for 3.5 in 100, and 10 may be late: enough is left for requests that wait, and those
/// that still have a chance are started.
#[test]
fn the_lowest_class_keeps_a_percentile_that_service_leaves_room_for() {
    let runs = [6351, 6352, 6353, 6354].map(|seed| {
        let law = Law::Lognormal { variation: 2.83 };
        let mut scene = scene(185.0, (90.0, 200), 0.0, seed);
        scene.flows.truncate(1);
        Scene { law, ..scene }.run()
    });
    let (late, away) =
        (runs.each_ref().map(|heard| late(heard, 200)), runs.each_ref().map(|heard| refused(heard, 0)));
    let (late, away) = (mean(&late), mean(&away));
    println!("{:.2} % late, of these {:.2} % refused", 100.0 * late, 100.0 * away);
    assert!(late < 0.105, "{late} late");
    assert!((0.001..0.08).contains(&away), "{away} refused");
}
