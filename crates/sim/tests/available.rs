//! One of four servers of an upstream is gone for twenty seconds, in an overload: the other three get no more than their own
//! share from that moment on, and are held at the load line.
//!
//! Four servers of eight workers of 40 ms, exponential, as one plant: 800 requests a second. One and a half times as many come.

use crate::waits::{Answer, Flow, Heard, Scene};
use plimsoll_core::promises::{Mode, WorkerBounds};
use plimsoll_core::telemetry::status::LimitReason;
use plimsoll_sim::workload::{Fault, FaultKind};
use std::time::Duration;

const SEEDS: std::ops::RangeInclusive<u64> = 9401..=9410;
const WORKERS: u32 = 32;
const CAPACITY: f64 = 800.0;
const GONE: std::ops::Range<u64> = 20..40;

fn scene(reported: bool, found: bool, seed: u64) -> Scene {
    let flows = vec![Flow::new("default", 1.5 * CAPACITY)];
    let mut scene = Scene::new(WORKERS, Duration::from_millis(40), flows, 60.0, seed);
    scene.plant.set_point = 0.85;
    if found {
        scene.plant.workers = 16;
        scene.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
        scene.plant.max_connections = 1024;
    }
    let [from, until] = [GONE.start, GONE.end].map(Duration::from_secs);
    scene.faults = vec![Fault { from, until, kind: FaultKind::Gone { part: 0.25, reported } }];
    scene
}

/// What was seen of the answers that came in these seconds: how many a second, and how late the tenth slowest of a hundred was.
#[derive(Debug)]
struct Seen {
    a_second: f64,
    p90: f64,
}

fn seen(answers: &[Answer], from: f64, until: f64) -> Seen {
    let own = answers.iter().filter(|one| one.level > 0 && (from..until).contains(&one.ended));
    let mut times: Vec<f64> = own.map(Answer::response).collect();
    times.sort_unstable_by(f64::total_cmp);
    Seen { a_second: times.len() as f64 / (until - from), p90: times[times.len() * 9 / 10] }
}

/// The mean over seeds: in the first two seconds without the server, in its last ten, and from two seconds after its return on.
fn three(reported: bool, found: bool, mode: Mode) -> [Seen; 3] {
    let spans = [(20.0, 22.0), (30.0, 40.0), (42.0, 60.0)];
    let runs: Vec<Vec<Answer>> = SEEDS
        .map(|seed| {
            let mut scene = scene(reported, found, seed);
            scene.mode = mode;
            scene.run().answers
        })
        .collect();
    spans.map(|(from, until)| {
        let all: Vec<Seen> = runs.iter().map(|answers| seen(answers, from, until)).collect();
        let mean = |of: &dyn Fn(&Seen) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Seen { a_second: mean(&|one| one.a_second), p90: mean(&|one| one.p90) }
    })
}

#[test]
fn the_others_get_no_more_than_their_share() {
    let reported = three(true, false, Mode::Control);
    let twin = three(false, false, Mode::Control);
    println!("reported: {reported:.3?}\ntwin without a report: {twin:.3?}");
    // The line is at 510/s while the server is gone, and at 680/s with all four.
    assert!((485.0..520.0).contains(&reported[0].a_second) && reported[0].p90 < 0.105, "{reported:?}");
    assert!((500.0..520.0).contains(&reported[1].a_second) && reported[1].p90 < 0.105, "{reported:?}");
    assert!(twin[..2].iter().all(|one| one.a_second > 550.0 && one.p90 > 0.108), "{twin:?}");
    for whole in [&reported[2], &twin[2]] {
        assert!((665.0..695.0).contains(&whole.a_second) && whole.p90 < 0.105, "{whole:?}");
    }
}

#[test]
fn the_same_where_workers_are_found() {
    let reported = three(true, true, Mode::Control);
    let twin = three(false, true, Mode::Control);
    println!("reported: {reported:.3?}\ntwin without a report: {twin:.3?}");
    // The number that is found is a little above 32.
    assert!(
        reported[..2].iter().all(|one| (500.0..545.0).contains(&one.a_second) && one.p90 < 0.112),
        "{reported:?}"
    );
    // Levels stay while the number is not known for some periods, which the twin's is not either.
    assert!(twin[0].a_second > 560.0 && twin[0].p90 > 0.12, "{twin:?}");
    assert!((670.0..725.0).contains(&reported[2].a_second) && reported[2].p90 < 0.112, "{reported:?}");
}

/// The status says that a server is out, while it is; the twin's loop does not know of it.
#[test]
fn the_status_says_that_the_limit_is_lower_for_a_server_that_is_out() {
    for (reported, found, seconds, expected) in [
        (true, false, 30.0, Some(LimitReason::Outage)),
        (true, false, 50.0, None),
        (false, false, 30.0, None),
        (true, true, 30.0, Some(LimitReason::Outage)),
        (true, true, 50.0, Some(LimitReason::Search)),
    ] {
        let status = Scene { seconds, ..scene(reported, found, *SEEDS.start()) }.run().status;
        let reason = status.expect("the engine ran").plants[0].limit_reason;
        assert_eq!(reason, expected, "reported {reported}, found {found}, after {seconds} s");
    }
}

/// The share of the arrivals of these seconds that the servers refused.
fn refused(answers: &[Answer], from: f64, until: f64) -> f64 {
    let own: Vec<&Answer> = answers.iter().filter(|one| (from..until).contains(&one.arrived)).collect();
    own.iter().filter(|one| one.level > 0 && !one.completed).count() as f64 / own.len() as f64
}

/// Four servers of two workers with short listen queues, and twice as many workers configured as there are.
fn refusing(reported: bool, mode: Mode, seed: u64) -> Scene {
    let mut own = scene(reported, false, seed);
    own.flows = vec![Flow::new("default", 300.0)];
    (own.workers, own.listen_queue, own.mode) = (8, 2, mode);
    (own.plant.workers, own.plant.max_connections) = (16, 16);
    own
}

/// The limit that was found from refusals with all servers holds again once all are back, and in between the others get
/// their share of it. To a twin the outage is not reported, so that it is refused for some seconds; another has no control.
#[test]
fn what_servers_refuse_while_one_is_out_says_nothing_of_all() {
    for (reported, mode) in [(true, Mode::Control), (false, Mode::Control), (true, Mode::Off)] {
        for seed in SEEDS {
            let Heard { answers, status, busy, .. } = refusing(reported, mode, seed).run();
            let limit = status.expect("the engine ran").plants[0].limit;
            let [whole, at_first, after] =
                [(5.0, 20.0), (20.0, 22.0), (42.0, 60.0)].map(|(a, b)| refused(&answers, a, b));
            let busy = busy[42..60].iter().sum::<f64>() / 18.0;
            let scene = format!("reported {reported}, {mode:?}: {whole} {at_first} {after} {busy} {limit}");
            if mode == Mode::Off {
                assert!(whole > 0.3 && at_first > 0.4 && after > 0.3, "{scene}");
                continue;
            }
            assert!(whole < 0.02 && after < 0.02 && (9..=11).contains(&limit), "{scene}");
            assert!((0.82..0.97).contains(&busy), "{scene}");
            assert!(if reported { at_first < 0.02 } else { at_first > 0.08 }, "{scene}");
        }
    }
}
