//! Healthy traffic is served: at 0.78 of a server's capacity nobody is turned away, whatever is promised.
//!
//! Eight workers of 40 ms, exponential, 200/s in all: 156/s for a minute from a cold start. A period of Poisson's noise
//! above the load line is what the queue is for.

mod waits;

use plimsoll_core::promises::WorkerBounds;
use std::time::Duration;
use waits::{Flow, Heard, Scene};

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 4001..=4040;
const SECONDS: f64 = 60.0;
/// Of 200/s.
const HEALTHY: f64 = 156.0;
const BUSY: f64 = 180.0;

/// What is promised to a third of the requests.
#[derive(Clone, Copy, Debug)]
enum Promise {
    Nothing,
    Mean,
    Percentile,
    Deadline,
}

fn scene(promise: Promise, found: bool, rate: f64, seed: u64) -> Scene {
    let own = Flow::new("own", rate / 3.0);
    let own = match promise {
        Promise::Nothing => own,
        Promise::Mean => own.delay(Duration::from_millis(100), None),
        Promise::Percentile => own.delay(Duration::from_millis(250), Some(95.0)),
        Promise::Deadline => {
            let mut own = own;
            own.class.deadline = Some(Duration::from_millis(500));
            own
        }
    };
    let flows = vec![own, Flow::new("default", rate * 2.0 / 3.0)];
    let mut scene = Scene::new(8, Duration::from_millis(40), flows, SECONDS, seed);
    scene.plant.set_point = 0.85;
    if found {
        // As the configuration has it where no workers are given.
        scene.plant.workers = 16;
        scene.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
        scene.plant.max_connections = 1024;
    }
    scene
}

fn refused(heard: &Heard) -> usize {
    heard.answers.iter().filter(|answer| !answer.completed).count()
}

/// How many of all requests are turned away, over all seeds.
fn turned_away(promise: Promise, found: bool, rate: f64) -> (usize, usize) {
    let runs = SEEDS.map(|seed| scene(promise, found, rate, seed).run());
    runs.fold((0, 0), |(lost, all), heard| (lost + refused(&heard), all + heard.answers.len()))
}

fn all_scenes() -> impl Iterator<Item = (Promise, bool)> {
    let promises = [Promise::Nothing, Promise::Mean, Promise::Percentile, Promise::Deadline];
    promises.into_iter().flat_map(|promise| [(promise, false), (promise, true)])
}

#[test]
fn nobody_is_turned_away_at_0_78_of_the_capacity() {
    for (promise, found) in all_scenes() {
        let (lost, all) = turned_away(promise, found, HEALTHY);
        println!("{promise:?}, workers found {found}: {lost} of {all} turned away");
        assert_eq!(lost, 0, "{promise:?}, workers found {found}: of {all}");
    }
}

#[test]
fn at_0_9() {
    for (promise, found) in all_scenes() {
        let (lost, all) = turned_away(promise, found, BUSY);
        println!("{promise:?}, workers found {found}: {lost} of {all} turned away at 0.9");
    }
}
