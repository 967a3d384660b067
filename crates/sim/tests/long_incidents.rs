//! A server of eight workers, of which nothing was told, is slow for twelve minutes and comes back. What is found of its
//! workers must neither run away meanwhile nor stay what the incident made it: within forty seconds everybody is answered
//! again.

use crate::waits::{self, Flow, Heard, Scene, mean};
use plimsoll_sim::workload::{Fault, FaultKind};
use std::time::Duration;

const RATE: f64 = 140.0;
/// The incident ends, and the search has settled (s).
const OVER: usize = 720;
const SETTLED: usize = 760;
const END: usize = 900;

fn scene(kind: FaultKind, from: u64, seed: u64) -> Scene {
    let flows = vec![Flow::new("default", RATE)];
    let mut scene = Scene::new(8, Duration::from_millis(40), flows, END as f64, seed).finding_workers(true);
    scene.plant.set_point = 0.9;
    let (from, until) = (Duration::from_secs(from), Duration::from_secs(OVER as u64));
    scene.faults = vec![Fault { from, until, kind }];
    scene
}

/// Answers a second, from the end of the search on.
fn answered(heard: &Heard) -> f64 {
    let after = |a: &&waits::Answer| a.completed && (SETTLED as f64..END as f64).contains(&a.ended);
    heard.answers.iter().filter(after).count() as f64 / (END - SETTLED) as f64
}

fn recovers(kind: FaultKind) {
    // From the start on, and after a calm minute.
    for (from, shared, seed) in [0, 60].into_iter().flat_map(|from| {
        [false, true].into_iter().flat_map(move |shared| (101..=105).map(move |seed| (from, shared, seed)))
    }) {
        let heard = Scene { shared, ..scene(kind, from, seed) }.run();
        let most = heard.workers.iter().max().copied().unwrap_or(0);
        let after = &heard.workers[SETTLED..];
        let found = mean(&after.iter().map(|workers| f64::from(*workers)).collect::<Vec<_>>());
        let rate = answered(&heard);
        println!(
            "{kind:?} from {from} s on, shared {shared}: at most {most} workers, then {found:.1}, {rate:.0}/s"
        );
        assert!((6.5..=11.0).contains(&found), "{found}");
        assert!(most < 100, "{most}");
        assert!((0.96..=1.05).contains(&(rate / RATE)), "{rate}");
    }
}

#[test]
fn a_server_a_quarter_as_quick() {
    recovers(FaultKind::Slower(4.0));
}

#[test]
fn a_server_a_twentieth_as_quick() {
    recovers(FaultKind::Slower(20.0));
}

/// Eight in service fill it for two seconds each, all alike: after it, at fewer in service than in all of the incident, nothing
/// could be compared with what is known, and rates that fall with the number in service looked like one worker (54/s).
#[test]
fn a_server_that_waits_two_seconds_for_something_else() {
    recovers(FaultKind::Takes(Duration::from_secs(2)));
}

/// Ten seconds at half speed, with percentiles promised to all, leave no number behind that is too low for a minute or more.
#[test]
fn ten_seconds_at_half_speed() {
    for seed in 9701..=9760 {
        let [mut own, mut other] =
            [("own", 50.0, 99.9), ("other", 90.0, 95.0)].map(|(name, rate, percentile)| {
                Flow::new(name, rate).delay(Duration::from_millis(500), Some(percentile))
            });
        (own.class.priority, other.class.priority) = (1, 2);
        let mut scene = scene(FaultKind::Slower(2.0), 6, seed);
        (scene.flows, scene.plant.set_point, scene.seconds) = (vec![own, other], 1.0, 80.0);
        scene.faults[0].until = Duration::from_secs(16);
        let heard = scene.run();
        let found: Vec<f64> = heard.workers[20..].iter().map(|workers| f64::from(*workers)).collect();
        let means: Vec<f64> = found.chunks(10).map(mean).collect();
        assert!(means.iter().all(|workers| *workers >= 6.5), "seed {seed}: {means:.1?}");
        assert!(means[2..].iter().all(|workers| *workers <= 12.0), "seed {seed}: {means:.1?}");
        let after = || heard.answers.iter().filter(|answer| answer.arrived >= 19.0);
        let lost = after().filter(|answer| !answer.completed).count();
        assert!(1000 * lost <= after().count(), "seed {seed}: {lost} turned away after it");
    }
}

/// The twin: who keeps to the number that such an incident left behind answers a part.
#[test]
fn the_twin_that_stays_with_one_worker_answers_a_part() {
    let mut scene = scene(FaultKind::Takes(Duration::from_secs(2)), 60, 101);
    (scene.plant.find_workers, scene.plant.workers) = (None, 1);
    let rate = answered(&scene.run());
    assert!(rate < 0.5 * RATE, "{rate}");
}

/// With a limit on the response time the search does not go up while service takes longer; without, it does.
#[test]
fn a_guard_keeps_the_limit_where_it_was() {
    let most = |guard: Option<Duration>| {
        let found = (101..=105).map(|seed| {
            let mut scene = scene(FaultKind::Slower(20.0), 0, seed);
            scene.plant.response_time_limit = guard;
            scene.seconds = OVER as f64;
            scene.run().workers.iter().max().copied().unwrap_or(0)
        });
        found.collect::<Vec<_>>()
    };
    let (guarded, free) = (most(Some(Duration::from_millis(200))), most(None));
    println!("workers found at most with a guard {guarded:?}, without {free:?}");
    assert!(
        guarded.iter().all(|most| *most <= 16) && free.iter().any(|most| *most > 16),
        "{guarded:?} {free:?}"
    );
}
