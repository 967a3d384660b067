//! Promised means that allow a long queue, and those of classes with thousands of requests a second: they are kept, and leave
//! others what they do not need.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Process;
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
        [(32, 0.6, 5.0, 0.5), (128, 0.3, 5.0, 0.5), (128, 0.6, 2.0, 0.7), (128, 0.6, 5.0, 0.5)]
    {
        let promised = times * 0.04;
        let scene = beside_best_effort(workers, load, promised, SEED);
        let (reached, missed) = held(&scene.run(), 0, promised, 0.25 * scene.seconds);
        println!(
            "{workers} workers at {load}: {times} S is {reached:.3} of it, {:.1} % missed",
            100.0 * missed
        );
        assert!((least..=1.03).contains(&reached) && missed <= 0.05, "{reached}, {missed}");
    }
}

/// Gold with 4 s, silver with little more than its service, and best effort for more than is left.
fn tight_beside_long(priorities: [u8; 2], bursty: bool, seed: u64) -> Scene {
    let flow = |name: &str, load: f64| Flow::new(name, load * 64.0 / 0.1);
    let promised = |name: &str, load, milliseconds, priority| {
        flow(name, load).delay(Duration::from_millis(milliseconds), None).priority(priority)
    };
    let mut silver = promised("silver", 0.15, 130, priorities[1]);
    if bursty {
        silver.process = Process::Pareto { shape: 1.5 };
    }
    let flows = vec![promised("gold", 0.8, 4_000, priorities[0]), silver, flow("default", 0.3).priority(3)];
    Scene::new(64, Duration::from_millis(100), flows, 120.0, seed)
}

#[test]
fn a_long_mean_breaks_no_short_one_beside_it() {
    for (priorities, bursty) in
        [[1, 2], [2, 1], [1, 1]].into_iter().flat_map(|order| [(order, false), (order, true)])
    {
        for seed in SEED..SEED + 3 {
            let heard = tight_beside_long(priorities, bursty, seed).run();
            let (gold, silver) = (held(&heard, 0, 4.0, 30.0), held(&heard, 1, 0.13, 30.0));
            println!("priorities {priorities:?}, bursty {bursty}: gold {gold:.3?}, silver {silver:.3?}");
            // A thousand answers of Pareto's arrivals are some bursts.
            let most = if bursty { 0.2 } else { 0.05 };
            let is_held = (0.75..=1.02).contains(&silver.0) && silver.1 <= most;
            assert!(gold.1 == 0.0 && is_held, "{gold:?}, {silver:?}");
        }
    }
    let twin = Scene { mode: Mode::Off, ..tight_beside_long([1, 2], false, SEED) }.run();
    assert!(held(&twin, 1, 0.13, 30.0).0 > 2.0, "nothing is controlled");
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
