//! Requests that take far longer than the others of their class.

use crate::waits::{Flow, Scene, mean};
use plimsoll_core::promises::Mode;
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Two classes with a delay beside best effort, 20 ms each, and downloads of 5 s at these paths. Returns the share of the
/// second class's windows of a thousand whose mean misses its 80 ms by a tenth.
fn missed(path: &str, mode: Mode, seed: u64) -> f64 {
    let mut downloads = Flow::new("default", 0.1);
    downloads.class.condition.paths = vec![path.to_owned()];
    downloads.service = Some(MS(5000));
    let flows = vec![
        Flow::new("first", 120.0).delay(MS(60), None).priority(1),
        Flow::new("second", 80.0).delay(MS(80), None).priority(2),
        downloads,
        Flow::new("default", 300.0),
    ];
    let scene = Scene::new(8, MS(20), flows, 400.0, seed);
    let heard = Scene { mode, ..scene }.run();
    let responses = heard.responses(1, 75.0);
    let windows = responses.windows(1000).step_by(50);
    mean(&windows.map(|window| f64::from(u8::from(mean(window) > 0.088))).collect::<Vec<_>>())
}

#[test]
fn a_download_in_one_class_does_not_take_the_workers_of_the_next() {
    let share =
        |path: &str| mean(&(7101..=7112).map(|seed| missed(path, Mode::Control, seed)).collect::<Vec<_>>());
    let (within, beside) = (share("/first"), share("/default"));
    println!("second missed {within:.3} of the time, {beside:.3} with the downloads in best effort");
    assert!(within < beside + 0.05, "{within} of the time instead of {beside}");
    assert!((0.01..=0.06).contains(&beside), "{beside} of the time");
    let twin = missed("/default", Mode::Off, 7101);
    assert!(twin > 0.99, "the twin without control: {twin} of the time");
}
