//! A server that does not answer connections beyond its listen queue, as Linux does not: each is tried again after 1 and 3 s,
//! and given up after the gateway's `connect` time-out.

use crate::waits::{Answer, Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::FullQueue;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9401..=9404;
const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(40);
/// Requests a second that the server answers at most.
const CAPACITY: f64 = 200.0;
const END: f64 = 60.0;
/// A few seconds after the beginning.
const SETTLED: f64 = 10.0;
const CONNECT: Duration = Duration::from_secs(2);

/// Sixteen workers are told for eight.
fn scene(load: f64, listen_queue: usize, seed: u64) -> Scene {
    let mut scene = Scene::new(WORKERS, SERVICE, vec![Flow::new("default", load * CAPACITY)], END, seed);
    scene.plant.set_point = 0.85;
    (scene.plant.workers, scene.plant.max_connections) = (16, 16);
    scene.listen_queue = listen_queue;
    scene.full_queue = FullQueue::Drops(CONNECT);
    scene
}

/// The shares of what came after the first seconds that failed, that took about a second or longer at the server, and that
/// were turned away.
fn shares(heard: &Heard) -> [f64; 3] {
    let (from, until) = (SETTLED, END - 5.0);
    let own: Vec<&Answer> = heard.answers.iter().filter(|a| a.arrived >= from && a.arrived < until).collect();
    let share = |of: &dyn Fn(&Answer) -> bool| own.iter().filter(|a| of(a)).count() as f64 / own.len() as f64;
    [
        share(&|a| a.level > 0 && !a.completed),
        share(&|a| a.completed && a.ended - a.started > 0.9),
        share(&|a| a.level == 0),
    ]
}

/// Nothing is told but the address.
fn found(load: f64, listen_queue: usize, seed: u64) -> Scene {
    scene(load, listen_queue, seed).finding_workers(true)
}

/// What is left of a higher limit holds the places of a lower one until it is given up. A search that takes the idle server of
/// that time for the effect of the lower limit raises it with each trial: to 1,000 workers for eight, with a quarter failed.
#[test]
fn the_workers_of_a_server_that_drops_connections_are_found() {
    for (load, queue) in [(1.3, 2), (1.8, 2), (3.2, 2), (1.8, 5), (3.2, 5), (3.2, 20)] {
        let heard: Vec<Heard> = (9431..=9446).map(|seed| found(load, queue, seed).run()).collect();
        let lost: Vec<f64> = heard.iter().map(|heard| shares(heard)[..2].iter().sum()).collect();
        let busy: Vec<f64> = heard.iter().map(|heard| mean(&heard.busy[SETTLED as usize..])).collect();
        let settled = heard.iter().flat_map(|heard| heard.workers[2 * SETTLED as usize..].iter().copied());
        let settled: Vec<u32> = settled.collect();
        let (least, most) =
            (settled.iter().min().copied().unwrap_or(0), settled.iter().max().copied().unwrap_or(0));
        let own = mean(&settled.into_iter().map(f64::from).collect::<Vec<_>>());
        println!(
            "{load} times, queue {queue}: workers {least} to {most}, {own:.1} on average, failed or late {:.4}, busy {:.3}",
            mean(&lost),
            mean(&busy)
        );
        assert!(least >= 6 && most <= 128 && own <= 20.0, "{load} {queue}: {least} to {most}");
        assert!(mean(&lost) <= 0.012, "{load} {queue}: {lost:?}");
        assert!((0.84..=0.94).contains(&mean(&busy)), "{load} {queue}: {busy:?}");
        let twin = Scene { mode: Mode::Off, ..found(load, queue, 9431) }.run();
        let lost: f64 = shares(&twin)[..2].iter().sum();
        assert!(lost > 0.2, "the twin without control, {load} {queue}: {lost}");
    }
}

/// Connections that are not answered hold places of the gateway until they are given up, so few are begun: with sixteen workers
/// told for eight, 0.5 % of what comes fails, where 61 % would fail and 17 % be late without control.
#[test]
fn a_server_that_drops_connections_is_given_little_more_than_it_takes() {
    for (load, queue) in [(2.5, 2), (2.5, 5), (2.5, 20), (5.0, 2)] {
        for seed in SEEDS {
            let heard = scene(load, queue, seed).run();
            let [failed, late, _] = shares(&heard);
            let busy = mean(&heard.busy[SETTLED as usize..]);
            println!("{load} times, queue {queue}: failed {failed:.4}, late {late:.4}, busy {busy:.3}");
            assert!(failed <= 0.008 && late <= 0.005, "{load} {queue}: {failed} {late}");
            assert!((0.88..=0.98).contains(&busy), "{load} {queue}: {busy}");
        }
        let mut twin = scene(load, queue, *SEEDS.start());
        twin.mode = Mode::Off;
        let [failed, late, _] = shares(&twin.run());
        assert!(failed > 0.5 && late > 0.05, "{load} {queue}: {failed} {late}");
    }
}
