//! The beginning of a crowd does not decide what follows it: neither by what waited then, nor by how even the calm before was.

use crate::waits::{Flow, Scene, mean};
use plimsoll_core::promises::{Mode, Site};
use plimsoll_sim::workload::{Law, Process};
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 7201..=7206;
const LINE: f64 = 0.7;
const CROWD: f64 = 30.0;
const SECONDS: f64 = 60.0;

/// The mean utilization from the sixth second of the crowd on, over the seeds.
fn used(scene: impl Fn(u64) -> Scene) -> f64 {
    let busy = |seed| mean(&scene(seed).run().busy[CROWD as usize + 6..]);
    mean(&SEEDS.map(busy).collect::<Vec<_>>())
}

/// Two workers of 20 ms, of which two classes with a delay and others take 0.5, and then 2.9. Nothing is lighter.
fn promised(percentile: Option<f64>, mode: Mode, seed: u64) -> Scene {
    let delay = |name: &str, rate| {
        let target = Duration::from_millis(if percentile.is_some() { 420 } else { 160 });
        Flow::new(name, rate).delay(target, percentile).priority(2)
    };
    let flows =
        vec![delay("first", 20.0), delay("second", 20.0).then(CROWD, 260.0), Flow::new("default", 10.0)];
    let mut scene = Scene::new(2, Duration::from_millis(20), flows, SECONDS, seed);
    (scene.plant.set_point, scene.law) = (LINE, Law::Deterministic);
    Scene { mode, ..scene }
}

/// In the first seconds hundreds of requests are late. The windows of the promises hold them for half a minute, in which
/// lower classes are turned away for nothing.
#[test]
fn what_was_late_when_a_crowd_began_costs_little_after_it() {
    for percentile in [None, Some(95.0)] {
        let control = used(|seed| promised(percentile, Mode::Control, seed));
        let without = used(|seed| promised(percentile, Mode::Observe, seed));
        println!("percentile {percentile:?}: {control:.3} used, {without:.3} without control");
        assert!((0.58..0.75).contains(&control) && without > 0.99, "{percentile:?}: {control}, {without}");
    }
}

/// Eight workers of 100 ms. Premium comes like clockwork, 4/s and then 72/s; others take 0.3.
fn even(mode: Mode, seed: u64) -> Scene {
    let premium = Flow::new("premium", 3.99).priority(1).then(CROWD, 72.2);
    let flows = vec![Flow { process: Process::Deterministic, ..premium }, Flow::new("default", 24.0)];
    let mut scene = Scene::new(8, Duration::from_millis(100), flows, SECONDS, seed);
    scene.plant.set_point = LINE;
    scene.site = Site::new("site", &["light", "full"]);
    scene.site.levels[0].cost_ratio = Some(0.4);
    Scene { mode, ..scene }
}

#[test]
fn a_crowd_that_follows_upon_even_arrivals_is_held_at_the_load_line() {
    let control = used(|seed| even(Mode::Control, seed));
    let without = used(|seed| even(Mode::Observe, seed));
    println!("{control:.3} used, {without:.3} without control");
    assert!((0.63..0.77).contains(&control) && without > 0.99, "{control}, {without}");
}
