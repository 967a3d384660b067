//! A restart in the middle of an overload: an engine that goes on from what another one has learned of the types of requests
//! admits the right ones from its first second on, and its twin, which is told everything else, does not.
//!
//! Eight workers; premium 60/s and others 120/s of 40 ms, and 24/s of ten times that, exponential: 2.1 times what they carry.
//! All within 500 ms, and no type is told.

use crate::scene::{Flow, Heard, Kind, Scene, ms};
use plimsoll_core::LearnedState;
use plimsoll_sim::front::Gateway;
use plimsoll_sim::workload::Law;

const DEADLINE: f64 = 0.5;
const SEEDS: std::ops::RangeInclusive<u64> = 8301..=8312;
/// The seconds after the restart that are judged.
const FIRST: f64 = 4.0;

fn scene(seconds: f64, seed: u64) -> Scene {
    let kind = |path, service| Kind::new(path, 1.0, ms(service), Law::Exponential);
    let flow = |name, rate, kind: Kind, priority| {
        Flow::new(name, rate, vec![kind]).priority(priority).within(Some(ms(500)))
    };
    let flows = vec![
        flow("premium", 60.0, kind("/page", 40), 1),
        flow("others", 120.0, kind("/list", 40), 2),
        flow("others", 24.0, kind("/report", 400), 2),
    ];
    Scene::new(8, flows, seconds, seed)
}

fn run(scene: &Scene, learned: Option<&LearnedState>) -> (Heard, LearnedState) {
    let mut gateway = Gateway::new(&scene.promises(), scene.seed).expect("it is possible");
    if let Some(learned) = learned {
        assert_eq!(gateway.restore(learned, true), Vec::<String>::new());
    }
    let heard = scene.run_with(&mut gateway);
    (heard, gateway.learned())
}

/// The part of those admitted in the first seconds that missed the deadline, and the answers in time over the capacity of short
/// requests.
fn judged(heard: &Heard, from: f64) -> [f64; 2] {
    let own = || heard.answers.iter().filter(move |one| (from..from + FIRST).contains(&one.arrived));
    let admitted = own().filter(|one| one.is_admitted()).count() as f64;
    let missed = own().filter(|one| one.misses(DEADLINE)).count() as f64;
    let in_time = own().filter(|one| one.is_in_time(DEADLINE)).count() as f64;
    [missed / admitted, in_time / FIRST / 200.0]
}

#[test]
fn the_first_seconds_after_a_restart_are_as_those_before_it_and_the_twins_are_not() {
    let mut means = [[0.0; 2]; 3];
    for seed in SEEDS {
        let (before, learned) = run(&scene(70.0, seed), None);
        let next = scene(FIRST + 4.0, seed + 1000);
        let (after, _) = run(&next, Some(&learned));
        let without = LearnedState { sites: Vec::new(), ..learned };
        let (twin, _) = run(&next, Some(&without));
        let of = [judged(&before, 60.0), judged(&after, 0.0), judged(&twin, 0.0)];
        for (mean, value) in means.iter_mut().flatten().zip(of.into_iter().flatten()) {
            *mean += value / SEEDS.count() as f64;
        }
    }
    let [before, after, twin] = means;
    println!("missed of the admitted, and goodput: before {before:.3?}, after {after:.3?}, twin {twin:.3?}");
    // By the promise one in a hundred admitted requests may be late.
    assert!(before[0] < 0.01 && after[0] < 0.015 && twin[0] > 0.05, "{before:?}, {after:?}, {twin:?}");
    assert!(
        (after[1] - before[1]).abs() < 0.05 && twin[1] < 0.8 * after[1],
        "{before:?}, {after:?}, {twin:?}"
    );
}

/// What is learned is kept whole, and what cannot be is left out in a sentence.
#[test]
fn what_is_kept_of_types_is_what_was_learned() {
    let own = scene(40.0, 1);
    let (_, learned) = run(&own, None);
    let types = &learned.sites[0].types;
    assert!(types.found.iter().any(|rule| rule.value.contains("report")), "{types:?}");
    let restored = |learned: &LearnedState| {
        let mut gateway = Gateway::new(&own.promises(), 1).expect("it is possible");
        let left_out = gateway.restore(learned, true);
        (left_out, gateway.learned())
    };
    let (left_out, kept) = restored(&learned);
    assert_eq!((left_out, &kept.sites), (Vec::new(), &learned.sites));
    let mut damaged = learned.clone();
    damaged.sites[0].types.costs[0].mean = f64::NAN;
    let (left_out, kept) = restored(&damaged);
    assert_eq!(left_out, ["the types of site site cannot be"]);
    assert!(kept.sites[0].types.found.is_empty());
    let mut other = learned.clone();
    other.sites[0].site = "another".to_owned();
    assert_eq!(restored(&other).0, ["site another is not promised"]);
    let mut looped = learned;
    looped.sites[0].types.found[0].parent = looped.sites[0].types.found[0].number;
    assert_eq!(restored(&looped).0, ["the types of site site cannot be"]);
}
