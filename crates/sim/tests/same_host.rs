//! Rejections on the server's own machine (UC 7.5): c is processor time, and takes of the workers' time only where these use
//! the processors. Where they mostly wait, the load line is that of the workers, and none of them idles for rejections that
//! take nothing of it.

use crate::scenario::Scenario;
use plimsoll_core::promises::{Mode, Plant, Promises, Sense, Site};
use plimsoll_sim::settling::mean;
use plimsoll_sim::workload::{Arrivals, Law, Process};
use plimsoll_sim::{Setup, workload::Workload};
use std::time::Duration;

const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(40);
const LINE: f64 = 0.85;
/// What a rejection takes of a processor, of as many as there are workers: at three times the capacity 0.2 of them all.
const REJECTION: Duration = Duration::from_millis(4);
/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 6601..=6608;

/// Three times what the server can carry, before workers that use their processor so much of the time.
fn overloaded(processor: f64, rejection: Duration, seed: u64) -> (Scenario, Workload) {
    let plant = Plant { same_host: true, set_point: LINE, ..Plant::new("origin", WORKERS) };
    let scenario = Scenario {
        load: vec![(Duration::ZERO, 600.0)],
        duration: Duration::from_secs(90),
        service_time: Law::Exponential,
        seed,
        ..Scenario::new(Promises::of(plant, Site::new("site", &["full"])), vec![SERVICE], vec![1000])
    };
    let mut workload = scenario.workload();
    (workload.plants[0].processor, workload.plants[0].rejection) = (processor, rejection);
    (scenario, workload)
}

/// The workers' utilization, charges for rejections included, the share of the arrivals that was rejected, and c as learned, of
/// what it is.
fn held((scenario, workload): &(Scenario, Workload)) -> (f64, f64, f64) {
    let setup = Setup { promises: &scenario.promises, workload, seed: scenario.seed };
    let run = setup.run().expect("the promises are valid");
    let rows = run.rows;
    let late = &rows[30..rows.len() - 1];
    let busy: Vec<f64> = late.iter().map(|row| row.plants[0].utilization).collect();
    let sum = |of: fn(&plimsoll_sim::Row) -> u64| late.iter().map(of).sum::<u64>() as f64;
    let c = run.status.and_then(|status| status.rejection_cost_seconds).unwrap_or(0.0);
    let true_c = workload.plants[0].rejection.as_secs_f64() / f64::from(WORKERS);
    (mean(&busy), sum(|row| row.classes[0].rejected) / sum(|row| row.classes[0].arrivals), c / true_c)
}

#[test]
fn workers_that_mostly_wait_are_filled_to_the_line_beside_rejections() {
    for (processor, seed) in [0.05, 0.15].into_iter().flat_map(|part| SEEDS.map(move |seed| (part, seed))) {
        let (busy, rejected, _) = held(&overloaded(processor, 2 * REJECTION, seed));
        println!("processors used {processor} of the time: workers {busy:.3}, rejected {rejected:.3}");
        assert!((LINE - 0.02..=LINE + 0.015).contains(&busy), "{busy} with seed {seed}");
        assert!((0.7..=0.735).contains(&rejected), "{rejected} with seed {seed}");
    }
}

/// UC's server: what rejections take is not there for requests, and the line counts both.
#[test]
fn workers_that_use_the_processors_leave_room_for_rejections() {
    for seed in SEEDS {
        let (busy, rejected, c) = held(&overloaded(1.0, REJECTION, seed));
        println!("processors used all the time: workers {busy:.3}, rejected {rejected:.3}, c {c:.3} of c");
        assert!((0.95..=1.03).contains(&c), "{c} with seed {seed}");
        assert!((LINE - 0.02..=LINE + 0.015).contains(&busy), "{busy} with seed {seed}");
        assert!((0.785..=0.815).contains(&rejected), "{rejected} with seed {seed}");
    }
}

/// The twin: nobody is rejected, and no worker is free.
#[test]
fn the_twin_without_control_is_full() {
    let (mut scenario, workload) = overloaded(0.15, REJECTION, *SEEDS.start());
    scenario.promises.control.mode = Mode::Off;
    let (busy, rejected, _) = held(&(scenario, workload));
    assert!(busy > 0.98 && rejected == 0.0, "{busy} {rejected}");
}

/// A plant that reports what its machine does, rejections included: their part of it is charged once, and not to the requests
/// too, of which fewer and fewer would be served.
#[test]
fn what_a_plant_reports_of_rejections_is_not_taken_for_a_cost_of_requests() {
    for seed in SEEDS.take(3) {
        let (mut scenario, mut workload) = overloaded(1.0, SERVICE.mul_f64(0.35), seed);
        (scenario.promises.plants[0].sense, workload.plants[0].reports) = (Sense::Reported, true);
        // At 1.5 times the capacity `a R f + c R (1 - f)` is the line at this f.
        workload.streams[0].arrivals = Arrivals::steady(Process::Poisson, 300.0);
        let long = Duration::from_secs(330);
        (scenario.duration, workload.duration) = (long, Some(long));
        let could = (LINE - 1.5 * 0.35) / (1.5 * (1.0 - 0.35));
        let setup = Setup { promises: &scenario.promises, workload: &workload, seed };
        let rows = setup.run().expect("the promises are valid").rows;
        for begin in [30, 130, 230] {
            let part = &rows[begin..begin + 90];
            let sum = |of: fn(&plimsoll_sim::Row) -> u64| part.iter().map(of).sum::<u64>() as f64;
            let rejected = sum(|row| row.classes[0].rejected) / sum(|row| row.classes[0].arrivals);
            let busy = mean(&part.iter().map(|row| row.plants[0].utilization).collect::<Vec<_>>());
            println!("from {begin} s: served {:.3} of {could:.3}, workers {busy:.3}", 1.0 - rejected);
            assert!((1.0 - rejected - could).abs() < 0.025, "{} from {begin} s, seed {seed}", 1.0 - rejected);
            assert!((LINE - 0.015..=LINE + 0.02).contains(&busy), "{busy} from {begin} s, seed {seed}");
        }
    }
}
