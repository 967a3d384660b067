//! Servers that finish only a few requests a second. What waits on a healthy day are requests, not seconds: a queue that is
//! right for a fast server turns away what a slow one would have served.

use crate::waits::{Flow, Scene, mean};
use plimsoll_core::promises::Mode;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 12_601..=12_606;
const SECONDS: f64 = 3600.0;
const SETTLED: f64 = 120.0;

/// What was turned away as a part of what came, what was answered as a part of the capacity, and the mean response in services:
/// over all seeds.
fn seen(workers: u32, service: Duration, load: f64, mode: Mode) -> [f64; 3] {
    let capacity = f64::from(workers) / service.as_secs_f64();
    let run = |seed| {
        let mut scene = Scene::new(workers, service, vec![Flow::new("own", load * capacity)], SECONDS, seed);
        scene.plant.set_point = 0.85;
        scene.mode = mode;
        let heard = scene.run();
        let own = || heard.answers.iter().filter(|one| one.arrived >= SETTLED);
        let answered: Vec<f64> = own().filter(|one| one.completed).map(|one| one.response()).collect();
        let turned_away = 1.0 - answered.len() as f64 / own().count() as f64;
        let good = answered.len() as f64 / (capacity * (SECONDS - SETTLED));
        [turned_away, good, mean(&answered) / service.as_secs_f64()]
    };
    let runs = SEEDS.map(run).collect::<Vec<_>>();
    [0, 1, 2].map(|of| mean(&runs.iter().map(|run| run[of]).collect::<Vec<_>>()))
}

/// Before, 0.024 and 0.012 of the calm load were turned away, and 0.7 of the capacity was used in the overload.
#[test]
fn a_few_requests_a_second_wait_as_long_as_is_right_for_them() {
    for (workers, service, most) in [(1, 1000, 0.015), (2, 2000, 0.012), (4, 5000, 0.012)] {
        let service = Duration::from_millis(service);
        let [turned_away, _, _] = seen(workers, service, 0.5, Mode::Control);
        let [_, good, response] = seen(workers, service, 3.0, Mode::Control);
        let [.., without] = seen(workers, service, 3.0, Mode::Off);
        println!(
            "{workers} workers of {service:?}: turned away at 0.5 {turned_away:.4}; at 3.0 answered {good:.3} of the capacity, \
             responses of {response:.2} services, {without:.0} without control"
        );
        assert!(turned_away < most, "{workers} workers of {service:?}: {turned_away}");
        assert!(
            (0.8..1.0).contains(&good) && response < 5.0,
            "{workers} workers of {service:?}: {good} {response}"
        );
        assert!(without > 100.0, "the twin without control: {without}");
    }
}
