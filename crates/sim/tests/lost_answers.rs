//! A promised mean is judged over delivered answers, and is not kept by failing, dropping or refusing requests.

use crate::waits::{self, Flow, Heard, Scene};
use plimsoll_sim::workload::{Fault, FaultKind};
use std::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Eight workers of 40 ms; `rate` of a class that was promised a mean of 80 ms, beside best effort.
fn scene(rate: f64, best_effort: f64, seed: u64) -> Scene {
    let premium = Flow::new("premium", rate).delay(MS(80), None).priority(1);
    Scene::new(8, MS(40), vec![premium, Flow::new("default", best_effort)], 200.0, seed)
}

/// Whether status says that the promise is missed, the mean that it shows (s), and the share that was lost.
fn status(heard: &Heard) -> (bool, f64, f64) {
    let response = heard.status.as_ref().expect("the engine ran").classes[0].response.expect("a promise");
    (response.missed, response.response, response.lost)
}

#[test]
fn quick_failures_are_no_quick_answers() {
    for seed in 6401..=6405 {
        let calm = scene(60.0, 100.0, seed);
        let (missed, without, lost) = status(&calm.run());
        assert!(!missed && lost == 0.0, "{lost}");
        // A tenth of the time all requests fail at once.
        let fails = |second: u64| Fault {
            from: Duration::from_secs(10 * second),
            until: Duration::from_secs(10 * second + 1),
            kind: FaultKind::Fails(MS(1)),
        };
        let failing = Scene { faults: (1..20).map(fails).collect(), ..calm };
        let (missed, mean, lost) = status(&failing.run());
        println!("without {without}, with {mean}, {lost} lost");
        assert!(missed && (0.05..=0.2).contains(&lost), "{lost} lost");
        assert!((mean / without - 1.0).abs() < 0.1, "a mean of answers: {mean}, without failures {without}");
    }
}

#[test]
fn a_mean_that_is_kept_by_dropping_is_missed() {
    for seed in 6401..=6405 {
        // A tenth more than the server can do; none waits longer than 30 ms.
        let mut scene = scene(220.0, 1.0, seed);
        scene.plant.queue.max_wait = Some(MS(30));
        let heard = scene.run();
        let (missed, mean, lost) = status(&heard);
        println!("mean {mean}, {lost} lost");
        assert!(mean < 0.08 && lost > 0.05 && missed, "{mean} s, {lost} lost, missed {missed}");
        // Its twin has as little patience with a load that need not wait.
        let mut twin = self::scene(60.0, 1.0, seed);
        twin.plant.queue.max_wait = Some(MS(30));
        let (missed, mean, lost) = status(&twin.run());
        assert!(mean < 0.05 && lost == 0.0 && !missed, "{mean} s, {lost} lost, missed {missed}");
    }
}

/// A request that is turned away at its arrival, because the queue is full or for the load, waits for nothing and is no quick
/// answer.
#[test]
fn a_mean_that_is_kept_by_refusing_is_missed() {
    for seed in 6411..=6415 {
        // A tenth more than the server can do, and next to nobody may wait.
        let mut full = scene(220.0, 1.0, seed);
        full.plant.queue.max_waiting = 2;
        // Half more than the load line.
        let mut loaded = scene(255.0, 1.0, seed);
        loaded.plant.set_point = 0.85;
        for (why, scene) in [("a full queue", full), ("the load", loaded)] {
            let heard = scene.run();
            let own: Vec<_> = heard.answers.iter().filter(|a| a.class == 0 && a.arrived > 60.0).collect();
            let refused = own.iter().filter(|a| !a.completed && a.response() == 0.0).count();
            let refused = refused as f64 / own.len() as f64;
            let (missed, mean, lost) = status(&heard);
            println!("{why}: mean {mean}, {lost} lost, {refused} refused at their arrival");
            assert!(refused > 0.05, "{why}: {refused}");
            assert!((lost / refused - 1.0).abs() < 0.25, "{why}: {lost} lost of {refused} refused");
            assert!(missed, "{why}: a mean of {mean} s with {lost} lost");
        }
    }
}

/// Without it the loop saw the mean of those that were not dropped, and dropped 8 %.
#[test]
fn the_loop_gives_workers_where_requests_are_dropped() {
    let dropped = |promised: bool, seed: u64| {
        let mut scene = scene(100.0, 150.0, seed);
        scene.plant.queue.max_wait = Some(MS(70));
        if !promised {
            let priority = scene.flows[1].class.priority;
            (scene.flows[0].class.delay, scene.flows[0].class.priority) = (None, priority);
        }
        let heard = scene.run();
        let own: Vec<_> = heard.answers.iter().filter(|a| a.class == 0 && a.arrived > 60.0).collect();
        own.iter().filter(|a| !a.completed).count() as f64 / own.len() as f64
    };
    let [own, twin] = [true, false]
        .map(|promised| waits::mean(&(6401..=6410).map(|seed| dropped(promised, seed)).collect::<Vec<_>>()));
    println!("dropped {own:.4}, {twin:.4} without the promise");
    assert!((0.008..=0.014).contains(&own) && twin > 0.1, "{own}, {twin}");
}
