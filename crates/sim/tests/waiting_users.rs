//! Users that wait for their answers before they ask again: a closed loop, whose rate falls as the server slows.

use crate::waits::{self, Answer, Flow, Heard, Scene};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Process;
use std::time::Duration;

const USERS: u32 = 200;
const SECONDS: f64 = 600.0;
/// The rate of all users together, if each answer came at once.
const RATE: f64 = 100.0;

/// The users before so many workers of 50 ms, for one seed.
fn heard(workers: u32, waits: bool, seed: u64) -> Heard {
    let mut flow = Flow::new("default", RATE);
    flow.process = Process::Surge { users: USERS, waits };
    let mut scene = Scene::new(workers, Duration::from_millis(50), vec![flow], SECONDS, seed);
    scene.mode = Mode::Off;
    scene.run()
}

/// The most requests that were under way together.
fn most_together(answers: &[Answer]) -> i32 {
    let mut turns: Vec<(f64, i32)> =
        answers.iter().flat_map(|answer| [(answer.arrived, 1), (answer.ended, -1)]).collect();
    turns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut together = 0;
    turns
        .iter()
        .map(|(_, turn)| {
            together += turn;
            together
        })
        .max()
        .unwrap_or(0)
}

/// N = X (R + Z): the users are as many as come per second, times a response and the time until the next request (Denning and
/// Buzen, "The Operational Analysis of Queueing Network Models", 1978). Z is N / RATE.
#[test]
fn users_come_as_the_response_time_law_says() {
    for workers in [20, 8, 3, 1] {
        for seed in 9101..=9103 {
            let heard = heard(workers, true, seed);
            let settled = heard.answers.iter().filter(|answer| answer.arrived > 0.2 * SECONDS);
            let responses: Vec<f64> = settled.map(Answer::response).collect();
            let rate = responses.len() as f64 / (0.8 * SECONDS);
            let expected = f64::from(USERS) / (waits::mean(&responses) + f64::from(USERS) / RATE);
            println!("{workers} workers: {rate:.1}/s, {expected:.1}/s by the law");
            assert!((0.94..1.02).contains(&(rate / expected)), "{rate}, {expected}");
            assert!(most_together(&heard.answers) <= USERS as i32);
        }
    }
}

/// The twin: as the paper QM changed them, users ask whatever becomes of their requests, and as many wait as the load leaves.
#[test]
fn users_that_do_not_wait_pile_up() {
    let heard = heard(1, false, 9104);
    assert!(most_together(&heard.answers) > 10 * USERS as i32);
}
