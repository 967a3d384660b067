//! Ratios of delays beside requests that have none: best effort, and another site's ratios, in any order of declaration.
//!
//! Classes with a ratio exchange places among themselves. So the ratio holds whatever else waits in the same queue, and
//! what else waits gets what it would get if the whole queue were first come, first served.

mod waits;

use plimsoll_core::promises::{Mode, Site};
use plimsoll_sim::workload::Process;
use std::time::Duration;
use waits::{Flow, Scene};

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 301..=306;
const SERVICE: Duration = Duration::from_millis(10);
const SECONDS: f64 = 1200.0;

/// One worker of 10 ms, exponential, with these flows.
fn scene(flows: Vec<Flow>, seed: u64) -> Scene {
    Scene::new(1, SERVICE, flows, SECONDS, seed)
}

/// The mean response time over all seeds of each class (s), after a quarter of the time, in a scene that `change` has
/// changed.
fn means_of(flows: &[Flow], change: impl Fn(&mut Scene)) -> Vec<f64> {
    let mut sums = vec![0.0; flows.len()];
    for seed in SEEDS {
        let mut scene = scene(flows.to_vec(), seed);
        change(&mut scene);
        let heard = scene.run();
        for (class, sum) in sums.iter_mut().enumerate() {
            *sum += heard.mean(class, 0.25 * SECONDS) / SEEDS.count() as f64;
        }
    }
    sums
}

/// Three streams of this rate, gold : silver = 1 : 2, and best effort, in the order of `names`.
fn three(names: [&str; 3], rate: f64) -> Vec<Flow> {
    let flow = |name: &&str| {
        let flow = Flow::new(name, rate);
        match *name {
            "gold" => flow.ratio(1.0),
            "silver" => flow.ratio(2.0),
            _ => flow,
        }
    };
    names.iter().map(flow).collect()
}

#[test]
fn a_ratio_holds_beside_best_effort_in_any_order_of_declaration() {
    const LOAD: f64 = 0.85;
    let rate = LOAD / SERVICE.as_secs_f64() / 3.0;
    // The mean response time of the same arrivals, first come, first served: E[S] / (1 - rho).
    let fair = SERVICE.as_secs_f64() / (1.0 - LOAD);
    for names in [
        ["gold", "silver", "other"],
        ["gold", "other", "silver"],
        ["silver", "gold", "other"],
        ["silver", "other", "gold"],
        ["other", "gold", "silver"],
        ["other", "silver", "gold"],
    ] {
        let means = means_of(&three(names, rate), |_| ());
        let mean = |name| means[names.iter().position(|own| *own == name).expect("a class")];
        let (gold, silver, other) = (mean("gold"), mean("silver"), mean("other"));
        println!("{names:?}: gold {gold:.4} silver {silver:.4} other {other:.4}, fair {fair:.4}");
        assert!((1.9..=2.1).contains(&(silver / gold)), "{names:?}: 1 : {:.2}", silver / gold);
        let beside = other / (0.5 * (gold + silver));
        assert!((0.9..=1.1).contains(&beside), "{names:?}: best effort at {beside:.2} of the others' mean");
    }
    let twin = means_of(&three(["gold", "silver", "other"], rate), |scene| scene.mode = Mode::Off);
    assert!(twin[1] / twin[0] < 1.1, "without control: 1 : {:.2}", twin[1] / twin[0]);
}

/// A site with the host of its name.
fn site(name: &str) -> Site {
    Site { hosts: vec![name.to_owned()], ..Site::new(name, &["full"]) }
}

#[test]
fn ratios_of_two_sites_do_not_mix_whatever_numbers_they_are_written_in() {
    const LOAD: f64 = 0.85;
    let rate = LOAD / SERVICE.as_secs_f64() / 4.0;
    let flow = |name: &str, site: usize, delta: f64| Flow::new(name, rate).at_site(site).ratio(delta);
    for turned in [false, true] {
        let mut flows = vec![
            flow("gold", 0, 1.0),
            flow("silver", 0, 2.0),
            flow("small", 1, 10.0),
            flow("large", 1, 20.0),
        ];
        if turned {
            flows.swap(0, 1);
            flows.swap(2, 3);
            flows.rotate_left(2);
        }
        let name = |flow: &Flow| flow.class.name.clone();
        let names: Vec<String> = flows.iter().map(name).collect();
        let means = means_of(&flows, |scene| {
            scene.site = site("first");
            scene.more_sites = vec![site("second")];
        });
        let mean = |name: &str| means[names.iter().position(|own| own == name).expect("a class")];
        let (first, second) = ((mean("gold"), mean("silver")), (mean("small"), mean("large")));
        println!("{names:?}: {first:.4?} {second:.4?}");
        for (fast, slow) in [first, second] {
            assert!((1.9..=2.1).contains(&(slow / fast)), "{names:?}: 1 : {:.2}", slow / fast);
        }
        let sites = (first.0 + first.1) / (second.0 + second.1);
        assert!((0.93..=1.07).contains(&sites), "{names:?}: one site waits {sites:.2} times as long");
    }
}

#[test]
fn a_ratio_holds_with_weights_and_with_bursts_beside_it() {
    // Best effort comes in bursts of three times the rate of its calm.
    let (burst, calm) = (Duration::from_secs(1), Duration::from_secs(2));
    let bursts = Process::Modulated { ratio: 3.0, burst, calm };
    let load = 0.8 / SERVICE.as_secs_f64() / 3.0;
    for names in [["gold", "silver", "other"], ["other", "silver", "gold"]] {
        let mut flows = three(names, load);
        flows.iter_mut().filter(|flow| flow.class.name == "other").for_each(|flow| flow.process = bursts);
        let means = means_of(&flows, |scene| scene.site.weight = 3.0);
        let mean = |name| means[names.iter().position(|own| *own == name).expect("a class")];
        let ratio = mean("silver") / mean("gold");
        println!("{names:?}: {means:.4?}");
        assert!((1.9..=2.1).contains(&ratio), "{names:?}: 1 : {ratio:.2}");
    }
}
