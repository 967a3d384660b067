//! Promises that allow a long queue, and means of classes with thousands of requests a second: they are kept, and leave
//! others what they do not need.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::{Law, Process};
use std::time::Duration;

/// None that a constant was chosen on.
const SEED: u64 = 72_003;

/// A promised class with `load` of the workers, beside best effort that brings three times what is left.
fn beside_best_effort(workers: u32, load: f64, promised: f64, seed: u64) -> Scene {
    const SERVICE: f64 = 0.04;
    let capacity = f64::from(workers) / SERVICE;
    let premium = Flow::new("premium", load * capacity).delay(Duration::from_secs_f64(promised), None);
    let flows = vec![premium.priority(1), Flow::new("default", 3.0 * (1.0 - load) * capacity)];
    Scene::new(workers, Duration::from_secs_f64(SERVICE), flows, 24_000.0 / (load * capacity), seed)
}

/// The mean over the promise, and the part of the windows of a thousand answers that miss it.
fn held(heard: &Heard, class: usize, promised: f64, from: f64) -> (f64, f64) {
    let own = heard.responses(class, from);
    let windows: Vec<_> = own.windows(1_000).step_by(100).map(|window| mean(window) / promised).collect();
    let missed = windows.iter().filter(|reached| **reached > 1.1).count();
    (mean(&own) / promised, missed as f64 / windows.len() as f64)
}

#[test]
fn a_long_mean_is_kept_and_less_undercut() {
    for (workers, load, times, least) in
        [(32, 0.6, 5.0, 0.62), (128, 0.3, 5.0, 0.68), (128, 0.6, 2.0, 0.72), (128, 0.6, 5.0, 0.52)]
    {
        let promised = times * 0.04;
        let scene = beside_best_effort(workers, load, promised, SEED);
        let (reached, missed) = held(&scene.run(), 0, promised, 0.25 * scene.seconds);
        println!(
            "{workers} workers at {load}: {times} S is {reached:.3} of it, {:.1} % missed",
            100.0 * missed
        );
        assert!((least..=1.0).contains(&reached) && missed <= 0.01, "{reached}, {missed}");
        let twin = Scene { mode: Mode::Off, ..scene };
        assert!(held(&twin.run(), 0, promised, 0.25 * twin.seconds).0 > 5.0, "nothing is controlled");
    }
}

/// Gold with 4 s, silver with little more than its service, and best effort for more than is left.
fn tight_beside_long(percentile: Option<f64>, priorities: [u8; 2], bursty: bool, seed: u64) -> Scene {
    let flow = |name: &str, load: f64| Flow::new(name, load * 64.0 / 0.1);
    let gold = flow("gold", 0.8).delay(Duration::from_secs(4), percentile).priority(priorities[0]);
    let silver = flow("silver", 0.15).delay(Duration::from_millis(130), None);
    let mut silver = silver.priority(priorities[1]);
    if bursty {
        silver.process = Process::Pareto { shape: 1.5 };
    }
    let flows = vec![gold, silver, flow("default", 0.3).priority(3)];
    Scene::new(64, Duration::from_millis(100), flows, 120.0, seed)
}

#[test]
fn a_long_promise_breaks_no_short_one_beside_it() {
    let runs = [[1, 2], [2, 1], [1, 1]].into_iter().flat_map(|order| [(order, false), (order, true)]);
    for (priorities, bursty) in runs {
        for (percentile, seed) in [(None, SEED), (None, SEED + 1), (Some(90.0), SEED + 2), (Some(99.0), SEED)]
        {
            let heard = tight_beside_long(percentile, priorities, bursty, seed).run();
            let (gold, silver) = (held(&heard, 0, 4.0, 30.0), held(&heard, 1, 0.13, 30.0));
            println!("{percentile:?}, {priorities:?}, bursty {bursty}: gold {gold:.3?}, silver {silver:.3?}");
            // A thousand answers of Pareto's arrivals are some bursts.
            let most = if bursty { 0.2 } else { 0.05 };
            let is_held = (0.75..=1.02).contains(&silver.0) && silver.1 <= most;
            assert!(gold.1 == 0.0 && is_held, "{gold:?}, {silver:?}");
        }
    }
    let twin = Scene { mode: Mode::Off, ..tight_beside_long(None, [1, 2], false, SEED) }.run();
    assert!(held(&twin, 1, 0.13, 30.0).0 > 2.0, "nothing is controlled");
}

/// Requests may wait nearly as long as the promise allows, so that some are late, and no more than may be.
#[test]
fn a_long_percentile_is_kept() {
    for law in [Law::Exponential, Law::Lognormal { variation: 2.0 }] {
        for (workers, load, percentile) in
            [(32, 0.6, 90.0), (128, 0.3, 95.0), (128, 0.9, 90.0), (512, 0.6, 95.0)]
        {
            let promised = 0.32;
            let mut scene = beside_best_effort(workers, load, promised, SEED);
            scene.law = law.clone();
            scene.flows[0] =
                scene.flows[0].clone().delay(Duration::from_secs_f64(promised), Some(percentile));
            let own = scene.run().responses(0, 0.25 * scene.seconds);
            let late = own.iter().filter(|response| **response > promised).count() as f64 / own.len() as f64;
            println!("{workers} workers at {load}, {percentile}: {late:.4}");
            assert!((0.001..=1.0 - percentile / 100.0).contains(&late), "{late}");
            let twin = Scene { mode: Mode::Off, ..scene };
            assert!(held(&twin.run(), 0, promised, 0.25 * twin.seconds).0 > 1.5, "nothing is controlled");
        }
    }
}

/// A window of a thousand departures passes in less than a tenth of a second, and holds too few blocks for the index of
/// dispersion.
#[test]
fn a_class_of_thousands_a_second_keeps_its_mean_beside_best_effort() {
    for (workers, service) in [(1000, 0.04), (64, 0.002)] {
        let (capacity, promised) = (f64::from(workers) / service, 1.1 * service);
        let premium = Flow::new("premium", 0.5 * capacity);
        let process = Process::SelfSimilar { hurst: 0.8, sources: 50 };
        let premium = Flow { process, ..premium.delay(Duration::from_secs_f64(promised), None).priority(1) };
        let flows = vec![premium, Flow::new("default", capacity)];
        let seconds = 150_000.0 / capacity;
        let scene = Scene::new(workers, Duration::from_secs_f64(service), flows, seconds, SEED);
        let (reached, missed) = held(&scene.run(), 0, promised, 0.25 * seconds);
        println!("{capacity}/s: {reached:.3}, {missed:.3}");
        assert!((0.9..=1.03).contains(&reached) && missed <= 0.05, "{reached}, {missed}");
        let twin = Scene { mode: Mode::Off, ..scene };
        assert!(held(&twin.run(), 0, promised, 0.25 * seconds).0 > 2.0, "nothing is controlled");
    }
}
