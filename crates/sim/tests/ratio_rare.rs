//! Ratios of delays where one class has a few requests in a hundred: the ratio of the means over two hours is within 5 %.
//!
//! One worker of 10 ms, 84 to 85 requests per second. The rare class has one request in 85 to one in 21; a third class, which
//! comes so rarely that it is silent between its requests, does not keep the others from their ratio.

use crate::waits::{Flow, Scene, mean};
use std::time::Duration;

/// None of these seeds was used to choose the constants of the law.
const SEEDS: std::ops::RangeInclusive<u64> = 9_401..=9_404;

fn scene(rates: [f64; 2], delta: Option<f64>, seed: u64) -> Scene {
    let mut flows = vec![Flow::new("gold", rates[0]), Flow::new("silver", rates[1])];
    if let Some(delta) = delta {
        (flows[0].class.ratio, flows[1].class.ratio) = (Some(1.0), Some(delta));
    }
    Scene::new(1, Duration::from_millis(10), flows, 7_200.0, seed)
}

/// The mean of silver over that of gold, and how many of the four runs called the ratio infeasible.
fn reached(rates: [f64; 2], delta: Option<f64>) -> (f64, usize) {
    let (mut ratios, mut infeasible) = (Vec::new(), 0);
    for seed in SEEDS {
        let scene = scene(rates, delta, seed);
        let heard = scene.run();
        let from = 0.125 * scene.seconds;
        ratios.push(heard.mean(1, from) / heard.mean(0, from));
        let status = &heard.status.as_ref().expect("the engine ran").classes[0];
        infeasible += usize::from(status.response.is_some_and(|response| response.infeasible));
    }
    println!("{rates:?} per second, promised {delta:?}: {ratios:.3?}, infeasible {infeasible} of 4");
    (mean(&ratios), infeasible)
}

fn holds(rates: [f64; 2], delta: f64) {
    let (ratio, infeasible) = reached(rates, Some(delta));
    assert!((ratio / delta - 1.0).abs() <= 0.05, "{ratio:.3} instead of {delta} at {rates:?}");
    assert_eq!(infeasible, 0, "at {rates:?}");
}

#[test]
fn the_slower_class_is_rare() {
    holds([84.0, 1.0], 3.0);
    holds([84.0, 1.0], 2.0);
    holds([80.0, 4.0], 3.0);
}

#[test]
fn the_faster_class_is_rare() {
    holds([1.0, 84.0], 3.0);
    holds([4.0, 80.0], 2.0);
}

#[test]
fn the_twin_without_promises_has_no_ratio() {
    let (ratio, _) = reached([84.0, 1.0], None);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// By seed, the mean of silver over that of gold in the second five minutes, beside a class that has one request in 1,200.
fn beside_a_class_that_is_mostly_silent(delta: Option<f64>) -> Vec<f64> {
    let ratios = SEEDS.map(|seed| {
        let mut scene = scene([60.0, 24.0], delta, seed);
        scene.flows.push(Flow::new("cron", 0.07));
        scene.flows[2].class.ratio = delta.map(|_| 5.0);
        scene.seconds = 600.0;
        let heard = scene.run();
        heard.mean(1, 300.0) / heard.mean(0, 300.0)
    });
    let ratios: Vec<f64> = ratios.collect();
    println!("beside one in 1,200, promised {delta:?}: {ratios:.3?}");
    ratios
}

#[test]
fn a_class_that_is_mostly_silent_does_not_keep_the_others_from_their_ratio() {
    // Where each silence took back what the other two had learned meanwhile, two of these were 1.4 and 2.2 % off.
    let ratios = beside_a_class_that_is_mostly_silent(Some(3.0));
    assert!(ratios.iter().all(|ratio| (ratio / 3.0 - 1.0).abs() <= 0.01), "{ratios:?}");
    let twins = beside_a_class_that_is_mostly_silent(None);
    assert!(twins.iter().all(|ratio| (0.9..1.1).contains(ratio)), "{twins:?}");
}
