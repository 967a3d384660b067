//! A server that was slow is fast again: requests are turned away for as long as the costs of the slow time are believed, so a
//! fall of the costs must be known soon, from one class as from many of which each has few requests.
//!
//! Eight workers of 40 ms, exponential, 140/s of 200/s in all, twice or four times as slow for twenty seconds.

use crate::waits::{Flow, Scene};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::{Fault, FaultKind};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 7101..=7120;
const RATE: f64 = 140.0;
const SLOW: Range<u64> = 20..40;

fn scene(classes: usize, found: bool, slower: f64, seed: u64) -> Scene {
    let rate = RATE / classes as f64;
    let named = (1..classes).map(|number| Flow::new(&format!("class-{number}"), rate));
    let flows = named.chain([Flow::new("default", rate)]).collect();
    let mut scene = Scene::new(8, Duration::from_millis(40), flows, 60.0, seed);
    scene.plant.set_point = 0.85;
    let [from, until] = [SLOW.start, SLOW.end].map(Duration::from_secs);
    scene.faults = vec![Fault { from, until, kind: FaultKind::Slower(slower) }];
    scene.finding_workers(found)
}

/// Premium and the others were promised half a second, and nothing is told but the address; twice as slow for ten seconds.
fn percentiles(seed: u64) -> Scene {
    let half_a_second = Duration::from_millis(500);
    let flows = vec![
        Flow::new("premium", 50.0).delay(half_a_second, Some(99.9)).priority(1),
        Flow::new("others", 90.0).delay(half_a_second, Some(95.0)).priority(2),
    ];
    let mut scene = Scene { flows, seconds: 24.0, ..scene(1, true, 2.0, seed) };
    scene.plant.set_point = 1.0;
    let [from, until] = [6, 16].map(Duration::from_secs);
    scene.faults = vec![Fault { from, until, kind: FaultKind::Slower(2.0) }];
    scene
}

/// The share of the requests of each second that was turned away, from the tenth second of the slow time on.
fn turned_away(scenes: impl Iterator<Item = Scene>) -> Vec<f64> {
    let from = SLOW.start + 10;
    let (mut lost, mut all) = (vec![0.0; 30], vec![0.0; 30]);
    for answer in scenes.flat_map(|scene| scene.run().answers) {
        if let Some(second) = (answer.arrived as u64).checked_sub(from) {
            all[second as usize] += 1.0;
            lost[second as usize] += f64::from(u8::from(answer.level == 0));
        }
    }
    lost.iter().zip(all).map(|(lost, all)| lost / all).collect()
}

/// The share turned away in the slow time, and in each of six seconds after it.
fn before_and_after(classes: usize, found: bool, slower: f64) -> (f64, Vec<f64>) {
    let shares = turned_away(SEEDS.map(|seed| scene(classes, found, slower, seed)));
    let (slow, after) = shares.split_at(10);
    (slow.iter().sum::<f64>() / 10.0, after[..6].to_vec())
}

#[test]
fn a_server_that_has_recovered_is_known_to_have() {
    // Where workers are found, each class alone tells that the server has recovered.
    let cases = [1, 2, 4, 8, 12].map(|classes| (false, classes)).into_iter().chain([(true, 1), (true, 2)]);
    // The load line leaves 85/s and 42/s of 140 while it is slow.
    for (slower, bounds) in [(2.0, 0.36..0.42), (4.0, 0.67..0.725)] {
        for (found, classes) in cases.clone() {
            let (slow, after) = before_and_after(classes, found, slower);
            let case = format!("{classes} classes, {slower} times as slow, workers found {found}");
            println!("{case}: {slow:.3} turned away while slow, then {after:.3?}");
            assert!(bounds.contains(&slow), "{case}: {slow}");
            assert!(after[2] < 0.1 && after[3..].iter().sum::<f64>() < 0.06, "{case}: {after:?}");
        }
    }
}

/// What services took in the slow time is no reason to drop requests after it: the window of a promise holds them for a
/// thousand departures.
#[test]
fn what_a_slow_time_took_drops_no_request_three_seconds_after_it() {
    let of = |seed| {
        let answers = percentiles(seed).run().answers;
        let lost = |from: f64, until: f64| {
            answers.iter().filter(|own| own.level == 0 && (from..until).contains(&own.arrived)).count()
        };
        (lost(6.0, 16.0), lost(19.0, 24.0))
    };
    let lost: Vec<(usize, usize)> = (7201..=7280).map(of).collect();
    println!("turned away while slow, and from three seconds after it on: {lost:?}");
    assert!(lost.iter().all(|(slow, after)| *slow > 100 && *after == 0), "{lost:?}");
}

/// The twin: nobody is turned away.
#[test]
fn the_twin_without_control_turns_nobody_away() {
    let off = SEEDS.map(|seed| {
        let mut scene = scene(2, false, 2.0, seed);
        scene.mode = Mode::Off;
        scene
    });
    assert!(turned_away(off).iter().all(|share| *share == 0.0));
}
