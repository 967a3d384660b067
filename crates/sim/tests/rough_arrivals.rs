//! Arrivals that were very uneven, and the calm after them: how uneven they were is no reason to follow their end late.
//!
//! The demo's server, 256 workers of 128 ms and 0.15 of that light. It has half of its capacity to do; then for twenty seconds
//! loads from a tenth to nine times the capacity in turns of a quarter of a second each, then a crowd of three times the
//! capacity, and then half of the capacity again.

use crate::scenario::{Period, Run, Scenario};
use plimsoll_core::promises::{Mode, Plant, Promises, Site};
use plimsoll_core::random::Random;
use plimsoll_sim::settling::mean;
use plimsoll_sim::workload::Law;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 8821..=8832;
const WORKERS: u32 = 256;
const CAPACITY: f64 = 2000.0;
const ROUGH: [f64; 5] = [0.1, 0.3, 3.0, 6.0, 9.0];
/// When the crowd's end is.
const OVER: usize = 45;

fn scene(calm: f64, crowd: f64, seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0x7075_6768);
    let mut load = vec![(Duration::ZERO, calm)];
    for turn in 48..124_u64 {
        load.push((Duration::from_millis(250 * turn), ROUGH[random.below(ROUGH.len() as u64) as usize]));
    }
    load.extend([(Duration::from_secs(31), crowd), (Duration::from_secs(OVER as u64), calm)]);
    Scenario {
        load: load.into_iter().map(|(from, load)| (from, load * CAPACITY)).collect(),
        duration: Duration::from_secs(70),
        clients: 4000,
        skew: 0.0,
        seed,
        ..Scenario::new(
            Promises::of(Plant::new("shop", WORKERS), Site::new("shop", &["light", "full"])),
            vec![Duration::from_secs_f64(0.15 * 0.128), Duration::from_millis(128)],
            vec![2 << 10, 16 << 10],
        )
    }
}

fn run(scene: &Scenario) -> Run {
    scene.run().expect("the promises are valid")
}

/// Periods after the crowd's end until all have full pages, and stay so.
fn until_full(periods: &[Period]) -> usize {
    let after = &periods[OVER..];
    after.iter().rposition(|period| period.service_level < 2.0).map_or(0, |last| last + 1)
}

#[test]
fn the_end_of_a_crowd_after_rough_arrivals_is_followed_within_three_periods() {
    for (calm, crowd) in [(0.5, 3.0), (0.3, 3.0), (0.6, 4.0), (0.5, 2.0)] {
        let runs: Vec<Run> = SEEDS.map(|seed| run(&scene(calm, crowd, seed))).collect();
        let late: Vec<usize> = runs.iter().map(|run| until_full(&run.periods)).collect();
        println!("{crowd} times, then {calm}: full pages after {late:?} periods");
        assert!(late.iter().all(|periods| (1..=3).contains(periods)), "{crowd} times, then {calm}: {late:?}");
        for own in runs.iter().map(|run| &run.periods) {
            // What light pages for all take of the crowd is below the load line, so the rest of it goes to full pages.
            let busy = mean(&own[36..OVER].iter().map(|period| period.utilization).collect::<Vec<_>>());
            assert!((0.8..=1.0).contains(&busy), "{busy} of the server while the crowd is there");
            assert!(own[36..OVER].iter().all(|period| (1.0..1.7).contains(&period.service_level)));
            assert!(own[OVER - 5..].iter().all(|period| period.rejected == 0));
        }
    }
}

/// A load that goes on and off at random, in turns of such a mean length (s).
fn turns([low, high]: [f64; 2], mean_turn: f64, seed: u64) -> Scenario {
    let mut random = Random::new(seed ^ 0x7475_726e);
    let mut own = scene(low, high, seed);
    own.load.clear();
    own.duration = Duration::from_secs(120);
    let mut at = 0.0;
    while at < own.duration.as_secs_f64() {
        let load = [low, high][own.load.len() % 2];
        own.load.push((Duration::from_secs_f64(at), load * CAPACITY));
        at += random.exponential(mean_turn);
    }
    own
}

/// A load that is high for a moment and low for a moment has one m: clients do not change level with each turn. A mean that
/// followed each turn would move m by 0.3 to 0.4 of the clients in each period.
#[test]
fn turns_of_a_second_are_averaged() {
    for (loads, mean_turn) in [([0.5, 3.5], 0.5), ([1.0, 3.0], 1.0), ([0.2, 4.0], 1.0)] {
        let moved = |seed| {
            let periods = &run(&turns(loads, mean_turn, seed)).periods[40..];
            let moved = periods.windows(2).map(|pair| (pair[1].service_level - pair[0].service_level).abs());
            mean(&moved.collect::<Vec<_>>())
        };
        let moved = mean(&SEEDS.map(moved).collect::<Vec<_>>());
        println!("{loads:?}, {mean_turn} s each: m moves by {moved:.3} a period");
        assert!((0.05..0.23).contains(&moved), "{loads:?}, {mean_turn} s each: {moved}");
    }
}

/// The twin: everybody has full pages, which the server cannot carry.
#[test]
fn without_control_the_crowd_is_lost() {
    let mut own = scene(0.5, 3.0, *SEEDS.start());
    own.promises.control.mode = Mode::Off;
    let periods = run(&own).periods;
    let lost = periods[36..OVER].iter().map(|period| period.errors).sum::<u64>();
    let arrivals = periods[36..OVER].iter().map(|period| period.arrivals).sum::<u64>();
    assert!(2 * lost > arrivals, "{lost} of {arrivals}");
}

/// Eight workers of 40 ms, and a crowd of thirty times their capacity that becomes one of twice the capacity within three
/// seconds, or within ten. Light pages for all of the latter take 0.3.
fn slope(seconds: u64, seed: u64) -> Scenario {
    const CAPACITY: f64 = 200.0;
    let ends = 30.0 - 28.0 * 0.05 / seconds as f64;
    let steps = 20 * seconds;
    let at = |step: u64| (ends + (2.0 - ends) * step as f64 / steps as f64) * CAPACITY;
    let mut own = scene(0.0, 0.0, seed);
    let sloping = (0..=steps).map(|step| (Duration::from_millis(15_000 + 50 * step), at(step)));
    own.load = [(Duration::ZERO, 30.0 * CAPACITY)].into_iter().chain(sloping).collect();
    own.promises = Promises::of(Plant::new("shop", 8), Site::new("shop", &["light", "full"]));
    own.workers = 8;
    own.service = vec![Duration::from_millis(6), Duration::from_millis(40)];
    own.service_time = Law::Exponential;
    own.duration = Duration::from_secs(15 + seconds + 20);
    own
}

/// Over all runs: what arrived in these periods, what part of it was rejected, and how busy the server was.
fn sums(runs: &[Run], periods: Range<usize>) -> (u64, f64, f64) {
    let own = || runs.iter().flat_map(|run| &run.periods[periods.clone()]);
    let busy = mean(&own().map(|period| period.utilization).collect::<Vec<_>>());
    let arrived: u64 = own().map(|period| period.arrivals).sum();
    let rejected: u64 = own().map(|period| period.rejected).sum();
    (arrived, rejected as f64 / arrived as f64, busy)
}

#[test]
fn the_end_of_a_crowd_that_goes_slowly_is_followed_too() {
    for seconds in [3, 10] {
        let over = 15 + seconds as usize;
        let runs: Vec<Run> = SEEDS.map(|seed| run(&slope(seconds, seed))).collect();
        let [crowd, soon, later] = [5..15, over..over + 3, over + 3..over + 20].map(|own| sums(&runs, own));
        println!("{seconds} s: arrived, rejected, utilization {crowd:?}, {soon:?}, {later:?}");
        // Light pages for 0.85 / 4.5 of the crowd. The samples that tell its end take two seconds.
        assert!((0.79..=0.83).contains(&crowd.1), "{crowd:?}");
        assert!(soon.1 <= 0.3 && later.1 == 0.0, "{soon:?} {later:?}");
        // The bias that the idle seconds left is gone only after twenty more.
        assert!((0.83..=0.95).contains(&later.2), "{later:?}");
    }
    // The twin without control.
    let mut off = slope(3, *SEEDS.start());
    off.promises.control.mode = Mode::Off;
    let periods = run(&off).periods;
    let lost: u64 = periods[21..].iter().map(|period| period.errors).sum();
    assert!(lost > 1000, "the server refuses {lost}");
}
