//! The number of workers is found beside a promise too, where the other requests take ten times as long as those that have it.
//! Whether service is healthy is a question of the promised requests alone: judged by all of them, it never is.

use crate::waits::{Flow, Scene, mean};
use plimsoll_core::promises::Site;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 12_201..=12_208;
const SECONDS: f64 = 60.0;
const SETTLED: usize = 30;
const OWN: Duration = Duration::from_millis(10);
const DEAR: Duration = Duration::from_millis(100);

/// Promised requests take 0.04 of the server, and others of another site three times the whole.
fn scene(workers: u32, delay: Option<(Duration, Option<f64>)>, seed: u64) -> Scene {
    let capacity = |service: Duration| f64::from(workers) / service.as_secs_f64();
    let mut own = Flow::new("own", 0.0375 * capacity(OWN));
    own.service = Some(OWN);
    if let Some((target, percentile)) = delay {
        own = own.delay(target, percentile);
    }
    let mut dear = Flow::new("dear", 3.0 * capacity(DEAR)).at_site(1);
    dear.service = Some(DEAR);
    let mut scene = Scene::new(workers, OWN, vec![own, dear], SECONDS, seed).finding_workers(true);
    let site = |name: &str| Site { hosts: vec![format!("{name}.example")], ..Site::new(name, &["full"]) };
    (scene.site, scene.more_sites) = (site("one"), vec![site("two")]);
    scene
}

/// Before, one of eight workers was found, and the server was 0.12 busy. Without a promise it was found and used as now.
#[test]
fn a_promise_beside_requests_of_ten_times_the_time_leaves_the_server_its_workers() {
    let ms = Duration::from_millis;
    for workers in [4, 8, 32] {
        for delay in [None, Some((ms(30), None)), Some((ms(50), None)), Some((ms(80), Some(95.0)))] {
            let runs: Vec<(f64, f64)> = SEEDS
                .map(|seed| {
                    let heard = scene(workers, delay, seed).run();
                    let found =
                        heard.workers[SETTLED..].iter().map(|own| f64::from(*own)).collect::<Vec<_>>();
                    (mean(&found) / f64::from(workers), mean(&heard.busy[SETTLED..]))
                })
                .collect();
            let [found, busy] = [|run: &(f64, f64)| run.0, |run: &(f64, f64)| run.1].map(|of| {
                let all = runs.iter().map(of).collect::<Vec<_>>();
                (mean(&all), all.iter().copied().fold(f64::INFINITY, f64::min))
            });
            println!("{workers} workers, {delay:?}: found {found:.2?}, busy {busy:.2?} (mean, least)");
            assert!((0.8..=1.35).contains(&found.0) && busy.0 >= 0.82, "{workers} workers, {delay:?}");
            assert!(found.1 >= 0.3 && busy.1 >= 0.4, "{workers} workers, {delay:?}: {runs:.2?}");
        }
    }
}

/// The twin with the number that was found before.
#[test]
fn the_twin_with_one_worker_told_uses_an_eighth_of_the_server() {
    let mut scene = scene(8, Some((Duration::from_millis(30), None)), *SEEDS.start());
    (scene.plant.find_workers, scene.plant.workers, scene.plant.max_connections) = (None, 1, 1);
    let busy = mean(&scene.run().busy[SETTLED..]);
    assert!((0.1..0.15).contains(&busy), "{busy}");
}
