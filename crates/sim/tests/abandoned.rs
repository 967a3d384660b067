//! Clients that leave before they are answered, in front of a server that does not notice: the server is held at its line by
//! the work that it does, not by the answers that somebody waits for, and who waits is served.
//!
//! Eight workers of 40 ms (200/s). Before requests of clients that had left kept their places, the smallest configuration
//! answered 0.07 % of those with a patience of 100 ms at three times the capacity: the limit of requests in service stayed at
//! 25, so that each took 125 ms, nobody was answered, nothing was learned, and nobody was rejected.

use crate::waits::{Answer, Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: [u64; 4] = [8_401, 8_402, 8_403, 8_404];
const CAPACITY: f64 = 200.0;
/// The loops have settled, and a run ends (s).
const SETTLED: usize = 20;
const END: f64 = 80.0;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// These flows before the server, whose workers are told or to be found.
fn scene(flows: Vec<Flow>, found: bool, seed: u64) -> Scene {
    let mut scene = Scene::new(8, ms(40), flows, END, seed);
    scene.plant.set_point = 0.85;
    scene.finding_workers(found)
}

/// All clients have this patience, at three times the capacity.
fn impatient(patience: Duration, found: bool, seed: u64) -> Scene {
    scene(vec![Flow::new("default", 3.0 * CAPACITY).patience(patience)], found, seed)
}

/// Its own utilization, settled.
fn utilization(heard: &Heard) -> f64 {
    mean(&heard.busy[SETTLED..])
}

/// Answers to a flow per second, settled.
fn answered(heard: &Heard, flow: usize) -> f64 {
    let from = SETTLED as f64;
    let came = |a: &&Answer| a.class == flow && a.completed && a.ended >= from;
    heard.answers.iter().filter(came).count() as f64 / (END - from)
}

/// How many of the server's workers are at work on average is limited by its line, whoever hangs up; most of what it does is
/// for somebody, where the patience lets it.
#[test]
fn the_line_is_held_whenever_clients_leave() {
    for (law, patience, least) in [
        (Law::Exponential, ms(10), 0.0),
        (Law::Deterministic, ms(30), 0.0),
        (Law::Exponential, ms(60), 0.55),
        (Law::Deterministic, ms(100), 0.8),
        (Law::Exponential, ms(300), 0.8),
    ] {
        for (found, most) in [(false, 0.88), (true, 0.97)] {
            for seed in SEEDS {
                let mut scene = impatient(patience, found, seed);
                scene.law = law.clone();
                let heard = scene.run();
                let (used, served) = (utilization(&heard), answered(&heard, 0) / CAPACITY);
                println!(
                    "{law:?}, patience {patience:?}, found {found}, seed {seed}: U {used:.3}, answered {served:.3}"
                );
                assert!((0.8..=most).contains(&used), "{patience:?}, found {found}, seed {seed}: U {used}");
                assert!(served >= least, "{patience:?}, found {found}, seed {seed}: answered {served}");
            }
        }
    }
}

/// The twin is told that the server stops when a connection is closed, which it does not.
#[test]
fn the_twin_that_gives_places_away_overruns_the_server() {
    for found in [false, true] {
        let mut scene = impatient(ms(30), found, SEEDS[0]);
        scene.law = Law::Deterministic;
        scene.plant.stops_when_abandoned = true;
        assert!(utilization(&scene.run()) > 0.99, "found {found}");
    }
}

/// Those that wait are not hurt by those that leave: a class of a higher priority is served, and its delay is kept.
#[test]
fn promises_are_kept_beside_clients_that_leave() {
    for (found, patience) in [(false, ms(20)), (false, ms(150)), (true, ms(20)), (true, ms(150))] {
        let of = |seed| {
            let own = Flow::new("own", 60.0).priority(1).delay(ms(120), None);
            let others = Flow::new("default", 3.0 * CAPACITY - 60.0).patience(patience);
            scene(vec![own, others], found, seed)
        };
        for seed in SEEDS {
            let heard = of(seed).run();
            let (served, took) = (answered(&heard, 0), heard.mean(0, SETTLED as f64));
            println!(
                "found {found}, patience {patience:?}, seed {seed}: {served:.1}/s in {took:.3} s, U {:.3}",
                utilization(&heard)
            );
            assert!((57.0..=63.0).contains(&served), "found {found}, seed {seed}: {served}/s of 60");
            assert!((0.045..=0.08).contains(&took), "found {found}, seed {seed}: {took} s of 120 ms");
        }
        let twin = Scene { mode: Mode::Off, ..of(SEEDS[0]) }.run();
        let (served, took) = (answered(&twin, 0), twin.mean(0, 0.0));
        assert!(served < 30.0 && took > 1.0, "the twin without control: {served}/s in {took} s");
    }
}
