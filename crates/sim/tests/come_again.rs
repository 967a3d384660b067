//! Clients that were turned away come again: when the answer's `Retry-After` says, or when they like. Obeying helps: no second
//! wave, and as many are answered.
//!
//! Eight workers of 40 ms, exponential, 200/s in all: a crowd of three times that for ten seconds, then a calm of a half.

use crate::waits::{self, Flow, Heard, Scene, mean};
use plimsoll_sim::workload::Retry;
use std::ops::RangeInclusive;
use std::time::Duration;

const SEEDS: RangeInclusive<u64> = 8201..=8205;
const CAPACITY: f64 = 200.0;
const CROWD: [f64; 2] = [20.0, 30.0];
/// The engine has seen that the crowd is over (s).
const OVER: f64 = 33.0;
const END: f64 = 180.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clients {
    /// They come again a second later, more or less.
    Impatient,
    /// All are told five seconds by the operator, and obey.
    ToldFive,
    /// They obey what the gateway forecasts.
    Obedient,
}

/// What turns the crowd away.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// The level, once the load is known.
    Load,
    Deadline,
    /// Until the load is known, a queue of twenty, which a crowd fills in a twentieth of a second.
    FullQueue,
    /// The same queue alone: a crowd of a second every ten is over before the load is known.
    ShortCrowds,
}

impl By {
    fn is_full_queue(self) -> bool {
        matches!(self, By::FullQueue | By::ShortCrowds)
    }
}

fn scene(clients: Clients, by: By, seed: u64) -> Scene {
    let calm = Flow::new("default", 0.5 * CAPACITY);
    let crowd = match by {
        By::ShortCrowds => (2..12)
            .map(|n| f64::from(10 * n))
            .fold(calm, |flow, second| flow.then(second, 3.0 * CAPACITY).then(second + 1.0, 0.5 * CAPACITY)),
        _ => calm.then(CROWD[0], 3.0 * CAPACITY).then(CROWD[1], 0.5 * CAPACITY),
    };
    let mut scene = Scene::new(8, Duration::from_millis(40), vec![crowd], END, seed);
    scene.plant.set_point = if by == By::Deadline { 1.0 } else { 0.85 };
    scene.site.deadline = (by == By::Deadline).then_some(Duration::from_millis(500));
    if by.is_full_queue() {
        scene.plant.queue.max_waiting = 20;
    }
    let obeys = clients != Clients::Impatient;
    scene.retry = Some(Retry { after: Duration::from_secs(1), most: 8, obeys });
    scene.retry_after = (clients == Clients::ToldFive).then_some(Duration::from_secs(5));
    scene
}

/// Over all seeds: clients answered within a second of their last attempt, attempts that were turned away, of them after the
/// crowd, and the most attempts in one second after the crowd.
#[derive(Debug, Default)]
struct Sum {
    answered: f64,
    turned_away: f64,
    after: f64,
    most: f64,
    /// Attempts that found a full queue.
    full: f64,
}

fn sum(clients: Clients, by: By) -> Sum {
    let runs: Vec<Heard> = SEEDS.map(|seed| scene(clients, by, seed).run()).collect();
    let of = |one: &dyn Fn(&Heard) -> f64| mean(&runs.iter().map(one).collect::<Vec<_>>());
    let count = |heard: &Heard, which: &dyn Fn(&waits::Answer) -> bool| {
        heard.answers.iter().filter(|a| which(a)).count() as f64
    };
    let by_second = |heard: &Heard| {
        let mut seconds = vec![0.0_f64; END as usize + 1];
        heard.answers.iter().for_each(|a| seconds[a.arrived as usize] += 1.0);
        seconds[OVER as usize..].iter().copied().fold(0.0, f64::max)
    };
    let sum = Sum {
        answered: of(&|heard| count(heard, &|a| a.completed && a.response() <= 1.0)),
        turned_away: of(&|heard| count(heard, &|a| !a.completed)),
        after: of(&|heard| count(heard, &|a| !a.completed && a.arrived >= OVER)),
        most: of(&by_second),
        full: of(&|heard| count(heard, &|a| a.found_full)),
    };
    println!("{clients:?}, {by:?}: {sum:?}");
    sum
}

#[test]
fn clients_that_obey_are_no_second_wave_and_as_many_are_answered() {
    for by in [By::Load, By::Deadline, By::FullQueue] {
        let [impatient, five, obedient] =
            [Clients::Impatient, Clients::ToldFive, Clients::Obedient].map(|clients| sum(clients, by));
        for other in [&impatient, &five] {
            assert!(obedient.answered >= 0.99 * other.answered, "{obedient:?} {other:?}");
            assert!(obedient.turned_away <= 0.7 * other.turned_away, "{obedient:?} {other:?}");
        }
        assert!(obedient.most <= 1.25 * CAPACITY, "no second wave: {obedient:?}");
        assert!(obedient.after <= 0.02 * obedient.answered, "{obedient:?}");
        assert!(impatient.most > 1.5 * CAPACITY, "the twin has one: {impatient:?}");
        assert_eq!(obedient.full > 100.0, by.is_full_queue(), "{obedient:?}");
    }
}

/// The load of a crowd is known only when it is over, so that some of its clients are told too short a time: about half of them
/// are turned away once more.
#[test]
fn clients_that_found_a_full_queue_for_a_moment_are_no_second_wave() {
    let [impatient, five, obedient] = [Clients::Impatient, Clients::ToldFive, Clients::Obedient]
        .map(|clients| sum(clients, By::ShortCrowds));
    assert!(obedient.full > 100.0, "{obedient:?}");
    for other in [&impatient, &five] {
        assert!(obedient.answered >= 0.99 * other.answered, "{obedient:?} {other:?}");
        assert!(obedient.turned_away <= 0.35 * other.turned_away, "{obedient:?} {other:?}");
        assert!(other.most > 4.5 * CAPACITY, "the twins have one: {other:?}");
    }
    // The crowds themselves are of three times the capacity.
    assert!(obedient.most <= 3.75 * CAPACITY, "{obedient:?}");
}
