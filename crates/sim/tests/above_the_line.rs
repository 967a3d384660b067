//! A class with a deadline above the load line is not rejected for the load, so the classes beside it cannot lower the load to
//! the line. Once it is below the line again they are served again.

use crate::waits::{Flow, Scene};
use plimsoll_core::promises::Mode;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 12_401..=12_412;
/// When the promised class asks for 0.95 of the server (s).
const ABOVE: Range<f64> = 20.0..80.0;
const END: f64 = 140.0;

/// Eight workers of 40 ms, 200/s in all, with a line of 0.85.
fn scene(seed: u64, mode: Mode) -> Scene {
    let mut own = Flow::new("own", 40.0).then(ABOVE.start, 190.0).then(ABOVE.end, 110.0).priority(1);
    own.class.deadline = Some(Duration::from_millis(500));
    let mut scene =
        Scene::new(8, Duration::from_millis(40), vec![own, Flow::new("default", 20.0)], END, seed);
    scene.plant.set_point = 0.85;
    scene.site.default_priority = 2;
    scene.mode = mode;
    scene
}

/// How many of best effort were turned away during the peak, and from five seconds after it on.
fn turned_away(scene: &Scene) -> [usize; 2] {
    let answers = scene.run().answers;
    let lost = |span: Range<f64>| {
        answers.iter().filter(|one| one.class == 1 && !one.completed && span.contains(&one.arrived)).count()
    };
    [lost(ABOVE), lost(ABOVE.end + 5.0..END)]
}

/// Before, the bias wound up while nothing more could be taken from best effort, which was shut out for 22 to 44 s more.
#[test]
fn best_effort_comes_back_once_a_deadline_class_leaves_it_room() {
    let runs: Vec<[usize; 2]> = SEEDS.map(|seed| turned_away(&scene(seed, Mode::Control))).collect();
    println!("of 1,200 turned away in the peak, and of 1,100 after it: {runs:?}");
    assert!(runs.iter().all(|[peak, after]| *peak > 600 && *after <= 5), "{runs:?}");
}
