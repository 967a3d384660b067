//! How many workers a slow server has is found too: two to eight workers of 50 to 200 ms, some tens of requests a second, and
//! nothing told but the address. A hundred departures, which a fast server has in half a second, take it ten.

use crate::waits::{Answer, Flow, Heard, Scene, mean, percentile};
use plimsoll_sim::workload::{Law, Process};
use std::ops::RangeInclusive;
use std::time::Duration;

const END: f64 = 60.0;
/// When the number that was found is read (s).
const READ: [usize; 5] = [5, 10, 20, 30, 60];
/// Longer than this nobody waits for an answer (s).
const PATIENCE: f64 = 1.0;

/// A server of so many workers, each of which takes so long (ms), by this law.
#[derive(Clone)]
struct Server {
    workers: u32,
    service_ms: u64,
    law: Law,
}

impl Server {
    fn capacity(&self) -> f64 {
        f64::from(self.workers) * 1e3 / self.service_ms as f64
    }

    /// Loads as parts of the capacity; the second from the 20th second on.
    fn scene(&self, [before, then]: [f64; 2], seed: u64) -> Scene {
        let flow = Flow::new("default", before * self.capacity()).then(20.0, then * self.capacity());
        let service = Duration::from_millis(self.service_ms);
        let mut scene = Scene::new(self.workers, service, vec![flow], END, seed).finding_workers(true);
        scene.plant.set_point = 0.85;
        scene.law = self.law.clone();
        scene
    }
}

fn within(heard: &Heard, from: f64, until: f64) -> impl Iterator<Item = &Answer> {
    heard.answers.iter().filter(move |answer| (from..until).contains(&answer.arrived))
}

/// The answers in time to what came between two seconds, as a part of the capacity.
fn goodput(heard: &Heard, server: &Server, from: f64, until: f64) -> f64 {
    let good = within(heard, from, until).filter(|answer| answer.completed && answer.response() <= PATIENCE);
    good.count() as f64 / (until - from) / server.capacity()
}

fn median(heard: &Heard, from: f64, until: f64) -> f64 {
    let mut own: Vec<f64> =
        within(heard, from, until).filter(|answer| answer.completed).map(Answer::response).collect();
    if own.is_empty() { f64::NAN } else { percentile(&mut own, 0.5) }
}

fn laws() -> [(&'static str, Law); 3] {
    [
        ("deterministic", Law::Deterministic),
        ("exponential", Law::Exponential),
        ("lognormal, 4", Law::Lognormal { variation: 2.0 }),
    ]
}

/// Overloads of these are judged, each over all seeds.
const SERVERS: [(u32, u64); 5] = [(2, 100), (2, 200), (3, 150), (4, 100), (4, 200)];
/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9701..=9708;

/// What is found at a second as a part of the workers, what is in time from then on as a part of the capacity, and the median
/// of the responses in services.
fn judged(server: &Server, loads: [f64; 2], found_at: usize) -> [f64; 3] {
    let heard: Vec<Heard> = SEEDS.map(|seed| server.scene(loads, seed).run()).collect();
    let over = |of: &dyn Fn(&Heard) -> f64| mean(&heard.iter().map(of).collect::<Vec<_>>());
    let from = found_at as f64 - 10.0;
    [
        over(&|heard| f64::from(heard.workers[found_at - 1]) / f64::from(server.workers)),
        over(&|heard| goodput(heard, server, from, from + 20.0)),
        over(&|heard| median(heard, from, from + 20.0)) * 1e3 / server.service_ms as f64,
    ]
}

fn all_judged(law: &Law, loads: [f64; 2], found_at: usize) -> [f64; 3] {
    let each = SERVERS.map(|(workers, service_ms)| {
        judged(&Server { workers, service_ms, law: law.clone() }, loads, found_at)
    });
    println!("{law:?}, {loads:?}: found, in time, median in services {each:.2?}");
    for [found, in_time, _] in each {
        assert!((0.75..=5.0).contains(&found) && in_time >= 0.4, "{law:?}, {loads:?}: {each:.2?}");
    }
    [0, 1, 2].map(|figure| mean(&each.map(|own| own[figure])))
}

/// Without regard to how slowly departures come, up to fourteen workers were found for one of these in the 20th second.
#[test]
fn an_overload_from_the_first_second_on_is_answered_in_time_after_ten() {
    for (_, law) in laws() {
        let [found, in_time, median] = all_judged(&law, [2.6; 2], 20);
        println!("found {found:.2}, in time {in_time:.2}, median {median:.2}");
        assert!((1.0..=2.2).contains(&found) && (0.76..=1.0).contains(&in_time), "{law:?}");
        assert!((1.0..=2.2).contains(&median), "{law:?}");
    }
}

#[test]
fn an_overload_after_a_calm_is_answered_in_time_after_ten_seconds() {
    for (_, law) in laws() {
        let [found, in_time, median] = all_judged(&law, [0.4, 2.3], 35);
        println!("found {found:.2}, in time {in_time:.2}, median {median:.2}");
        assert!((1.0..=2.2).contains(&found) && (0.76..=1.0).contains(&in_time), "{law:?}");
        assert!((1.0..=2.2).contains(&median), "{law:?}");
    }
}

/// The twin with the number that the search begins with: what it lets into the server waits there.
#[test]
fn the_twin_with_sixteen_workers_told_is_later() {
    let server = Server { workers: 4, service_ms: 200, law: Law::Deterministic };
    let mut scene = server.scene([2.6; 2], *SEEDS.start());
    (scene.plant.find_workers, scene.plant.max_connections) = (None, 16);
    let median = median(&scene.run(), 10.0, 30.0) / 0.2;
    assert!(median > 3.5, "{median} services");
}

/// Nothing is urgent while nobody waits.
#[test]
fn what_a_slow_server_carries_is_not_turned_away() {
    for law in [Law::Deterministic, Law::Exponential] {
        for (workers, service_ms) in [(4, 100), (4, 200), (8, 100), (8, 200)] {
            let server = Server { workers, service_ms, law: law.clone() };
            let heard = SEEDS.map(|seed| server.scene([0.66; 2], seed).run());
            let lost = heard.map(|heard| heard.answers.iter().filter(|answer| !answer.completed).count());
            let lost: usize = lost.sum();
            assert_eq!(lost, 0, "{law:?}, {workers} workers of {service_ms} ms");
        }
        // The twin of which half of the workers are told.
        let mut twin = Server { workers: 8, service_ms: 100, law }.scene([0.66; 2], *SEEDS.start());
        (twin.plant.find_workers, twin.plant.workers, twin.plant.max_connections) = (None, 4, 4);
        let heard = twin.run();
        let lost = heard.answers.iter().filter(|answer| !answer.completed).count();
        assert!(10 * lost > heard.answers.len(), "{lost} of {}", heard.answers.len());
    }
}

/// Clients that each ask again at once, whose requests start together and end together, before as many workers.
fn clients(users: u32, service_ms: u64, seed: u64) -> Scene {
    let server = Server { workers: 8, service_ms, law: Law::Deterministic };
    let mut scene = server.scene([1.0; 2], seed);
    scene.flows[0].process = Process::Surge { users, waits: true };
    scene.flows[0].rate.truncate(1);
    scene.flows[0].rate[0].rate = 2000.0;
    scene
}

#[test]
fn clients_that_ask_together_of_a_slow_server_neither_wait_nor_are_turned_away() {
    for (users, service_ms) in [(4, 40), (4, 100), (3, 200), (6, 100)] {
        let heard: Vec<Heard> = (9101..=9116).map(|seed| clients(users, service_ms, seed).run()).collect();
        let least = heard.iter().flat_map(|heard| heard.workers.iter().copied()).min().unwrap_or(0);
        let lost = heard.iter().flat_map(|heard| &heard.answers).filter(|answer| !answer.completed).count();
        let slowest = heard.iter().map(|heard| heard.mean(0, 0.0)).fold(0.0, f64::max);
        println!(
            "{users} clients, {service_ms} ms: workers {least} and more, {lost} turned away, {slowest:.4} s"
        );
        let service = service_ms as f64 / 1e3;
        assert_eq!(lost, 0, "{users} clients, {service_ms} ms");
        assert!((0.999..1.001).contains(&(slowest / service)), "{users} clients, {service_ms} ms: {slowest}");
    }
}

/// The figures of docs/measurements.md.
#[test]
#[ignore = "prints a table"]
fn the_table() {
    let seeds = 1..=6;
    for (name, law) in laws() {
        for (workers, service_ms) in [2, 4, 8].into_iter().flat_map(|own| [50, 100, 200].map(|ms| (own, ms)))
        {
            for loads in [[0.7; 2], [1.0; 2], [1.5; 2], [3.0; 2], [0.5, 2.0]] {
                let server = Server { workers, service_ms, law: law.clone() };
                let text = format!("{name}, {workers} x {service_ms} ms, {loads:?}");
                let heard: Vec<Heard> = seeds.clone().map(|seed| server.scene(loads, seed).run()).collect();
                let found = READ.map(|second| {
                    let own: Vec<f64> =
                        heard.iter().map(|heard| f64::from(heard.workers[second - 1])).collect();
                    let most = own.iter().copied().fold(0.0, f64::max);
                    format!("{:.1}({most})", mean(&own))
                });
                let over = |of: &dyn Fn(&Heard) -> f64| mean(&heard.iter().map(of).collect::<Vec<_>>());
                let lost =
                    |heard: &Heard| within(heard, 0.0, END).filter(|answer| !answer.completed).count() as f64;
                println!(
                    "{text}: found {}; in time {:.2} {:.2} {:.2}; p50 {:.2} {:.2}; turned away {:.1}",
                    found.join(" "),
                    over(&|heard| goodput(heard, &server, 0.0, 10.0)),
                    over(&|heard| goodput(heard, &server, 10.0, 30.0)),
                    over(&|heard| goodput(heard, &server, 30.0, 58.0)),
                    over(&|heard| median(heard, 5.0, 30.0)),
                    over(&|heard| median(heard, 30.0, 58.0)),
                    over(&lost),
                );
            }
        }
    }
}
