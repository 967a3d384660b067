//! A class with a ratio that falls silent for some minutes has no part in the ratio: nothing becomes infeasible by its silence,
//! and the ratio holds when it is back.

use crate::waits::{self, Flow, Heard, Scene};
use plimsoll_sim::workload::Process;
use std::time::Duration;

const SEEDS: [u64; 4] = [8_301, 8_302, 8_303, 8_304];
const RATIO: f64 = 1.6;
const SERVICE: Duration = Duration::from_millis(10);

/// One class goes on while the other, `silent`, has no traffic from second 600 until `back`. The load of the one that goes on
/// changes meanwhile, and is the same as before at the end.
fn scene(silent: usize, back: f64, seconds: f64, seed: u64) -> Scene {
    let going = Flow::new("going", 35.0).then(600.0, 93.0).then(back, 35.0);
    let gone = Flow::new("gone", 35.0).then(600.0, 0.0).then(back, 35.0);
    let ratio = [1.0, RATIO];
    let mut flows = vec![going.ratio(ratio[1 - silent]), gone.ratio(ratio[silent])];
    flows.iter_mut().for_each(|flow| flow.process = Process::Poisson);
    Scene::new(1, SERVICE, flows, seconds, seed)
}

fn says_infeasible(heard: &Heard) -> bool {
    let classes = &heard.status.as_ref().expect("the engine ran").classes;
    classes.iter().any(|class| class.response.is_some_and(|response| response.infeasible))
}

/// As long as the law compared a class with what it reached before it fell silent, 7 of these 48 runs said so.
#[test]
fn silence_makes_no_ratio_infeasible() {
    for seed in SEEDS {
        for silent in [0, 1] {
            for until in [610.0, 620.0, 640.0, 700.0, 1000.0, 1190.0] {
                let heard = scene(silent, 2000.0, until, seed).run();
                assert!(!says_infeasible(&heard), "seed {seed}, {silent} silent, at {until} s");
            }
        }
    }
    // The test can fail: at this load no order of service gives a ratio of nine.
    let mut twin = scene(0, 2000.0, 590.0, SEEDS[0]);
    twin.flows[0].class.ratio = Some(14.4);
    assert!(says_infeasible(&twin.run()));
}

#[test]
fn the_ratio_holds_when_the_class_is_back() {
    let ratios = |scene: &Scene, silent: usize| {
        let heard = scene.run();
        [(200.0, 600.0), (900.0, 1000.0), (900.0, 1500.0)].map(|(from, to)| {
            let mean = |class: usize| {
                let own = heard.answers.iter().filter(|answer| answer.class == class);
                let own = own.filter(|answer| (from..to).contains(&answer.arrived));
                waits::mean(&own.map(waits::Answer::response).collect::<Vec<_>>())
            };
            mean(silent) / mean(1 - silent)
        })
    };
    let mut twin = scene(0, 900.0, 1500.0, SEEDS[0]);
    twin.flows.iter_mut().for_each(|flow| flow.class.ratio = None);
    let found = ratios(&twin, 0);
    assert!(found.iter().all(|ratio| (0.85..1.15).contains(ratio)), "the twin without a ratio: {found:?}");
    for seed in SEEDS {
        for silent in [0, 1] {
            let [before, at_once, after] = ratios(&scene(silent, 900.0, 1500.0, seed), silent);
            println!("seed {seed}, {silent} silent: {before:.2}, {at_once:.2}, {after:.2}");
            assert!((RATIO * 0.97..RATIO * 1.03).contains(&before), "seed {seed}: {before}");
            // It was 1.25 to 1.78 at once, and 1.49 to 1.66 over ten minutes.
            assert!((RATIO * 0.9..RATIO * 1.1).contains(&at_once), "seed {seed}: {at_once}");
            assert!((RATIO * 0.97..RATIO * 1.03).contains(&after), "seed {seed}: {after}");
        }
    }
}
