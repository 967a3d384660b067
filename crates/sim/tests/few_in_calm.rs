//! Few workers on a calm day: below its capacity a server turns nobody away for chance, whatever times were promised to whom.
//! Few requests a second tell little of the load, and now and then many of them wait.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::{Delay, Mode};
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 13_101..=13_106;
const SECONDS: f64 = 900.0;

/// What the requests are promised.
#[derive(Clone, Copy, Debug)]
enum Promise {
    Nothing,
    /// All of them a mean.
    Mean(Duration),
    /// One in a hundred a mean, and the others nothing.
    RareMean(Duration),
}

/// So many workers, their service time, and the load as a part of the capacity.
fn scene(workers: u32, service: Duration, load: f64, promise: Promise, seed: u64) -> Scene {
    let rate = load * f64::from(workers) / service.as_secs_f64();
    let mut flows = vec![Flow::new("own", 0.99 * rate), Flow::new("rare", 0.01 * rate)];
    if let Promise::RareMean(target) = promise {
        flows[1] = flows[1].clone().delay(target, None);
    }
    let mut scene = Scene::new(workers, service, flows, SECONDS, seed);
    match promise {
        Promise::Nothing => scene.plant.set_point = 0.85,
        Promise::Mean(target) => scene.site.default_delay = Some(Delay { target, percentile: None }),
        Promise::RareMean(_) => {}
    }
    scene
}

/// The part of all requests that was turned away, or waited for too long.
fn turned_away(heard: &Heard) -> f64 {
    mean(&heard.answers.iter().map(|one| f64::from(u8::from(!one.completed))).collect::<Vec<_>>())
}

/// Before, where a time was promised, 1.5 % of two workers' requests at 0.8 of their capacity were turned away, 1.6 % of four
/// workers' at 0.9, and 4.9 % of two workers' of a second at 0.6.
#[test]
fn few_workers_turn_nobody_away_for_chance() {
    let (ms, seconds) = (Duration::from_millis, Duration::from_secs);
    let rare = |seconds| Promise::RareMean(Duration::from_secs(seconds));
    for (workers, service, load, promise, [told_most, found_most]) in [
        (2, ms(100), 0.7, Promise::Mean(seconds(2)), [0.0002, 0.0002]),
        (2, ms(100), 0.8, Promise::Mean(seconds(2)), [0.003, 0.004]),
        (2, ms(100), 0.8, Promise::RareMean(ms(500)), [0.003, 0.004]),
        (2, ms(100), 0.8, rare(30), [0.003, 0.004]),
        (4, ms(100), 0.8, rare(30), [0.0012, 0.0015]),
        (4, ms(100), 0.9, rare(30), [0.012, 0.014]),
        // Half of ten seconds is five services: so long three in a thousand would wait.
        (2, seconds(1), 0.6, rare(30), [0.015, 0.01]),
        (2, seconds(1), 0.6, Promise::Nothing, [0.007, 0.003]),
        (1, ms(200), 0.7, Promise::Nothing, [0.001, 0.012]),
    ] {
        let of = |mode, found| {
            let run = |seed| {
                let mut scene = scene(workers, service, load, promise, seed).finding_workers(found);
                scene.mode = mode;
                turned_away(&scene.run())
            };
            mean(&SEEDS.map(run).collect::<Vec<_>>())
        };
        let (told, found) = (of(Mode::Control, false), of(Mode::Control, true));
        let line =
            format!("{workers} x {service:?} at {load}, {promise:?}: told {told:.5}, found {found:.5}");
        println!("{line}");
        assert!(told <= told_most && found <= found_most, "{line}");
    }
}

/// The twin: at three times the capacity two thirds are turned away, so it is not that nothing is ever.
#[test]
fn a_true_overload_is_turned_away_all_the_same() {
    for promise in [Promise::Mean(Duration::from_secs(2)), Promise::RareMean(Duration::from_secs(30))] {
        let run = |seed| turned_away(&scene(2, Duration::from_millis(100), 3.0, promise, seed).run());
        let share = mean(&SEEDS.map(run).collect::<Vec<_>>());
        println!("at three times the capacity, {promise:?}: {share:.3}");
        assert!((0.64..0.70).contains(&share), "{promise:?}: {share}");
    }
}
