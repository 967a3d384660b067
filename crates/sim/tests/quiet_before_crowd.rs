//! A crowd after a quiet time in which only health checks came: what they take tells nothing of what the crowd will take, so
//! the server is given no more requests at once than its workers and the promised times leave room for.

use crate::waits::{Answer, Flow, Scene, mean};
use plimsoll_core::promises::Mode;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 13_201..=13_206;
/// When the first load ends, when the crowd comes, and the end (s).
const QUIET: f64 = 30.0;
const CROWD: f64 = 60.0;
const END: f64 = CROWD + 4.0;
const PROMISED: Duration = Duration::from_millis(300);

/// Requests of 40 ms before 8 workers, some of them with a promised time, and two checks of 1 ms in a second.
fn scene(deadline: bool, mode: Mode, seed: u64) -> Scene {
    let mut premium = Flow::new("premium", 40.0).then(QUIET, 1e-9).then(CROWD, 40.0).priority(1);
    if deadline {
        premium.class.deadline = Some(PROMISED);
    } else {
        premium = premium.delay(PROMISED, None);
    }
    let mut checks = Flow::new("health", 2.0);
    checks.service = Some(Duration::from_millis(1));
    let others = Flow::new("default", 60.0).then(QUIET, 1e-9).then(CROWD, 500.0);
    let mut scene = Scene::new(8, Duration::from_millis(40), vec![premium, checks, others], END, seed);
    scene.site.default_priority = 2;
    scene.plant.max_connections = 256;
    scene.mode = mode;
    scene
}

/// Premium requests of the crowd: their mean time in the server and their mean response (s), and the part of them that is
/// answered within the promised time.
fn premium(deadline: bool, mode: Mode) -> [f64; 3] {
    let run = |seed| {
        let heard = scene(deadline, mode, seed).run();
        let own: Vec<_> =
            heard.answers.into_iter().filter(|one| one.class == 0 && one.arrived >= CROWD).collect();
        let answered = || own.iter().filter(|one| one.completed);
        let of = |each: &dyn Fn(&Answer) -> f64| mean(&answered().map(each).collect::<Vec<_>>());
        let in_time = answered().filter(|one| one.response() <= PROMISED.as_secs_f64());
        [of(&|one| one.ended - one.started), of(&Answer::response), in_time.count() as f64 / own.len() as f64]
    };
    let runs = SEEDS.map(run).collect::<Vec<_>>();
    [0, 1, 2].map(|of| mean(&runs.iter().map(|run| run[of]).collect::<Vec<_>>()))
}

/// Before, 0.18 s in the server and responses of 0.5 s where a mean was promised, and half of the requests with a deadline were
/// refused.
#[test]
fn health_checks_in_a_quiet_time_let_no_crowd_into_the_server() {
    let [delay, deadline] = [false, true].map(|deadline| premium(deadline, Mode::Control));
    let without = premium(false, Mode::Off);
    println!(
        "in the server (s), response (s), in time: delay {delay:.3?}, deadline {deadline:.3?}, without control {without:.3?}"
    );
    assert!((0.04..0.1).contains(&delay[0]) && (0.25..0.4).contains(&delay[1]), "{delay:.3?}");
    assert!(deadline[0] < 0.07 && deadline[2] >= 0.99, "{deadline:.3?}");
    assert!(without[0] > 1.0 && without[2] < 0.2, "{without:.3?}");
}
