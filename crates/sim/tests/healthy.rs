//! Healthy traffic is served: at 0.78 of a server's capacity no request is turned away, whatever is promised.
//!
//! Eight workers of 40 ms, exponential, 200/s in all, for a minute from a cold start. A period of Poisson's noise above the
//! load line is what the queue is for.

mod waits;

use plimsoll_core::promises::{Mode, WorkerBounds};
use std::ops::RangeInclusive;
use std::time::Duration;
use waits::{Flow, Heard, Scene};

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 5001..=5040;
const SEEDS_OF_SEARCHES: RangeInclusive<u64> = 5001..=5120;
const SECONDS: f64 = 60.0;
/// Requests per second, where 200 are the capacity.
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

/// How many of all requests are turned away, over these seeds.
fn turned_away(promise: Promise, found: bool, rate: f64, seeds: RangeInclusive<u64>) -> (usize, usize) {
    let runs = seeds.map(|seed| scene(promise, found, rate, seed).run());
    runs.fold((0, 0), |(lost, all), heard| (lost + refused(&heard), all + heard.answers.len()))
}

fn all_scenes() -> impl Iterator<Item = (Promise, bool)> {
    let promises = [Promise::Nothing, Promise::Mean, Promise::Percentile, Promise::Deadline];
    promises.into_iter().flat_map(|promise| [(promise, false), (promise, true)])
}

#[test]
fn nobody_is_turned_away_at_0_78_of_the_capacity() {
    for (promise, found) in all_scenes() {
        let (lost, all) = turned_away(promise, found, HEALTHY, SEEDS);
        println!("{promise:?}, workers found {found}: {lost} of {all} turned away");
        assert_eq!(lost, 0, "{promise:?}, workers found {found}: of {all}");
    }
}

#[test]
fn at_0_9_the_queue_takes_up_what_comes_unless_a_promise_breaks() {
    for (promise, found) in all_scenes() {
        // One worker too few for a while turns away a few hundred in one run of fifteen: it takes many runs to tell.
        let seeds = if found { SEEDS_OF_SEARCHES } else { SEEDS };
        let (lost, all) = turned_away(promise, found, BUSY, seeds);
        println!("{promise:?}, workers found {found}: {lost} of {all} turned away at 0.9");
        // Under a percentile, requests that would be late are dropped while more are late than may be; and a number of
        // workers that is found is one too low for a while.
        let most = match (promise, found) {
            (Promise::Percentile, _) => all / 800,
            (_, true) => all / 1500,
            (_, false) => all / 2000,
        };
        assert!(lost <= most, "{promise:?}, workers found {found}: {lost} of {all}");
    }
}

/// Workers that only may be there let nobody wait for long where they are not.
#[test]
fn an_overload_does_not_wait_while_workers_are_searched_for() {
    for seed in 4251..=4266 {
        let heard = scene(Promise::Nothing, true, 260.0, seed).run();
        let served = heard.answers.iter().filter(|answer| answer.arrived > 10.0 && answer.completed);
        let slow = waits::percentile(&mut served.map(|answer| answer.response()).collect::<Vec<_>>(), 0.99);
        assert!((0.1..1.0).contains(&slow), "seed {seed}: p99 {slow}");
    }
}

/// What the rule does not do: let in more than the server carries.
#[test]
fn an_overload_is_turned_away_within_a_second_and_nobody_waits_long() {
    for (load, least) in [(1.3, 0.15), (3.0, 0.6)] {
        for found in [false, true] {
            let heard = scene(Promise::Nothing, found, load * 200.0, 4242).run();
            let late: Vec<&waits::Answer> = heard.answers.iter().filter(|a| a.arrived > 10.0).collect();
            let lost = late.iter().filter(|a| !a.completed).count() as f64 / late.len() as f64;
            let mut responses: Vec<f64> = late.iter().filter(|a| a.completed).map(|a| a.response()).collect();
            let slow = waits::percentile(&mut responses, 0.99);
            println!(
                "{load} times the capacity, workers found {found}: {lost:.3} turned away, p99 {slow:.3} s"
            );
            assert!(lost > least && lost < least + 0.25, "{load}: {lost}");
            assert!(slow < 1.0, "{load}: p99 {slow}");
            let mut twin = scene(Promise::Nothing, found, load * 200.0, 4242);
            twin.mode = Mode::Off;
            let twin = twin.run().responses(1, 10.0);
            assert!(waits::mean(&twin) > 2.0, "without control: {} s", waits::mean(&twin));
        }
    }
}
