//! Admission by instantaneous synthetic utilization (UC 3), against admission by unfinished work on the same arrivals.

use crate::scene::{Flow, Kind, Scene, mean, mean_service, mix, ms};
use crate::stress::{found, printed};
use plimsoll_core::promises::{Admission, Mode};
use plimsoll_sim::workload::Law;

/// So many workers, and so much load of these.
fn scene(workers: u32, load: f64, kinds: Vec<Kind>, seed: u64) -> Scene {
    let rate = f64::from(workers) * load / mean_service(&kinds);
    Scene::new(workers, vec![Flow::new("all", rate, kinds)], 70.0, seed)
}

/// What of the work that admission by unfinished work lets through is given away, on average over seeds. Nothing is late.
fn given_away(workers: u32, load: f64, kinds: &[Kind]) -> f64 {
    let one = |seed| {
        let mut scene = scene(workers, load, kinds.to_vec(), seed);
        let work = found(&scene.run());
        scene.admission = Admission::Synthetic;
        let synthetic = found(&scene.run());
        println!(
            "{workers} workers at {load}: busy {:.3} and {:.3}, missed {} of {}, mean delay {:.3} and {:.3} s",
            work.busy, synthetic.busy, synthetic.missed, synthetic.admitted, work.delay, synthetic.delay
        );
        assert_eq!(synthetic.missed, 0);
        1.0 - synthetic.busy / work.busy
    };
    let found = mean([1, 2].map(one).into_iter());
    println!("    {found:.3} of it given away");
    found
}

/// An admitted request waits for at most 0.58 of a deadline's work, and each lull begins anew.
#[test]
fn nothing_is_late_and_about_the_capacity_a_part_of_the_server_is_given_away() {
    let all = [
        (1, 0.5, -0.005..=0.005),
        (1, 1.0, 0.05..=0.1),
        (1, 2.0, 0.0..=0.01),
        (4, 0.5, -0.005..=0.005),
        (4, 1.0, 0.02..=0.07),
        (4, 2.0, 0.01..=0.03),
        (8, 1.0, 0.05..=0.1),
        (8, 2.0, 0.02..=0.05),
    ];
    for (workers, load, part) in all {
        let given_away = given_away(workers, load, &mix());
        assert!(part.contains(&given_away), "{given_away}");
    }
}

/// Two that take a fifth of the deadline each are let in, a third is not until the first one's deadline is past.
#[test]
fn of_dear_requests_more_is_given_away() {
    let dear = [Kind::new("/report", 1.0, ms(200), Law::Lognormal { variation: 0.1 })];
    let given_away = given_away(4, 1.2, &dear);
    assert!((0.2..=0.4).contains(&given_away), "{given_away}");
}

/// The twin: nothing is decided.
#[test]
fn the_twin_without_control_is_late_for_nearly_everybody() {
    let mut scene = scene(4, 2.0, mix(), 1);
    (scene.mode, scene.admission) = (Mode::Off, Admission::Synthetic);
    let found = found(&scene.run());
    printed("off", 2.0, &found);
    assert!(found.missed > found.admitted * 9 / 10);
}
