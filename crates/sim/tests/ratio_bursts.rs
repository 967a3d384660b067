//! Ratios of delays where a class comes in bursts that fill the server for a second.
//!
//! Between the bursts hardly anybody waits, so the ratio is to be made up in them. The means over all requests have it where
//! the bursts are so short that the law sees a burst and the calm after it together, in a window of a thousand departures.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Process;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: [u64; 6] = [731, 732, 733, 734, 735, 736];
const SECONDS: f64 = 600.0;
/// Four times as fast for one second of three.
const BURSTS: Process =
    Process::Modulated { ratio: 4.0, burst: Duration::from_secs(1), calm: Duration::from_secs(2) };

/// Two classes at `1:delta` before four workers of 10 ms, at three quarters of what these do; some come in bursts.
fn scene(delta: f64, in_bursts: [bool; 2], seed: u64) -> Scene {
    let flow = |n: usize| {
        let flow = Flow::new(["gold", "silver"][n], 150.0).ratio([1.0, delta][n]);
        Flow { process: if in_bursts[n] { BURSTS } else { flow.process }, ..flow }
    };
    Scene::new(4, Duration::from_millis(10), vec![flow(0), flow(1)], SECONDS, seed)
}

/// The mean response time of the second class over that of the first.
fn ratio(heard: &Heard) -> f64 {
    heard.mean(1, 0.25 * SECONDS) / heard.mean(0, 0.25 * SECONDS)
}

fn is_infeasible(heard: &Heard) -> bool {
    let status = heard.status.as_ref().expect("the gateway's");
    status.classes[0].response.expect("a promise").infeasible
}

#[test]
fn a_ratio_holds_over_bursts() {
    for (delta, in_bursts) in [(2.0, [true, false]), (2.0, [false, true])] {
        let heard: Vec<Heard> = SEEDS.iter().map(|seed| scene(delta, in_bursts, *seed).run()).collect();
        let ratios: Vec<f64> = heard.iter().map(ratio).collect();
        let infeasible = heard.iter().filter(|heard| is_infeasible(heard)).count();
        println!("1 : {delta}, in bursts {in_bursts:?}: {ratios:.3?}, infeasible {infeasible} of 6");
        let part = mean(&ratios) / delta;
        assert!((0.9..=1.1).contains(&part), "1 : {delta}, in bursts {in_bursts:?}: {part:.3} of it");
        assert!(infeasible <= 1, "1 : {delta}, in bursts {in_bursts:?}: infeasible {infeasible} of 6");
    }
    let twin = Scene { mode: Mode::Off, ..scene(2.0, [true, false], SEEDS[0]) };
    assert!(ratio(&twin.run()) < 1.1, "without control");
}
