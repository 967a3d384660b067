//! A server that refuses what is more than a few beyond its workers, from the first moment of an overload: with workers found,
//! and with twice as many told as there are. And one of whose pages one is broken, which no limit would mend.

use crate::waits::{Answer, Flow, Heard, Scene, mean};
use plimsoll_core::promises::{Mode, Site, WorkerBounds};
use plimsoll_core::request::{Outcome, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::{LimitReason, Status};
use plimsoll_core::time::Instant;
use plimsoll_sim::Request;
use plimsoll_sim::front::{Arriving, Decision, Front, Gateway, Order};
use plimsoll_sim::workload::Process;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9301..=9308;
const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(40);
/// Requests a second that the server answers at most.
const CAPACITY: f64 = 200.0;
const END: f64 = 60.0;
/// A few seconds after the beginning.
const SETTLED: f64 = 5.0;

/// Sixteen workers are what the search begins with, and what the operator tells.
fn scene(told: bool, flows: Vec<Flow>, seed: u64) -> Scene {
    let mut scene = Scene::new(WORKERS, SERVICE, flows, END, seed);
    scene.site = Site::new("site", &["full"]);
    scene.plant.set_point = 0.85;
    (scene.plant.workers, scene.plant.max_connections) = (16, 16);
    if !told {
        scene.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
        scene.plant.max_connections = 1024;
    }
    scene
}

fn refusing(told: bool, load: f64, listen_queue: usize, seed: u64) -> Scene {
    let mut scene = scene(told, vec![Flow::new("default", load * CAPACITY)], seed);
    scene.listen_queue = listen_queue;
    scene
}

/// The share of the arrivals of a time that the server refused.
fn refused(heard: &Heard, time: Range<f64>) -> f64 {
    let own: Vec<&Answer> = heard.answers.iter().filter(|answer| time.contains(&answer.arrived)).collect();
    own.iter().filter(|answer| answer.level > 0 && !answer.completed).count() as f64 / own.len() as f64
}

fn limit(heard: &Heard) -> u32 {
    heard.status.as_ref().expect("the engine ran").plants[0].limit
}

fn reason(heard: &Heard) -> Option<LimitReason> {
    heard.status.as_ref().expect("the engine ran").plants[0].limit_reason
}

/// The limit comes down to what the server takes, and the server stays busy.
#[test]
fn a_server_that_refuses_from_the_first_moment_is_given_what_it_takes() {
    for told in [false, true] {
        for (load, listen_queue) in [(1.7, 2), (2.6, 2), (3.4, 5), (5.0, 1)] {
            let heard: Vec<Heard> =
                SEEDS.map(|seed| refusing(told, load, listen_queue, seed).run()).collect();
            let at_first: Vec<f64> = heard.iter().map(|heard| refused(heard, 0.0..SETTLED)).collect();
            let later: Vec<f64> = heard.iter().map(|heard| refused(heard, SETTLED..END)).collect();
            let busy: Vec<f64> = heard.iter().map(|heard| mean(&heard.busy[SETTLED as usize..])).collect();
            let limits: Vec<u32> = heard.iter().map(limit).collect();
            println!(
                "told {told}, {load} times the capacity, queue of {listen_queue}: refused {at_first:.3?}, then {later:.4?}"
            );
            println!("    busy {busy:.3?}, limits {limits:?}");
            // To find out costs the refusals of the first samples.
            assert!((0.02..=0.12).contains(&mean(&at_first)), "{told} {load}: {at_first:?}");
            assert!(mean(&later) <= 0.001, "{told} {load}: {later:?}");
            assert!((0.8..=1.0).contains(&mean(&busy)), "{told} {load}: {busy:?}");
            let most = WORKERS + listen_queue as u32 + 2;
            assert!(
                limits.iter().all(|limit| (WORKERS - 1..=most).contains(limit)),
                "{told} {load}: {limits:?}"
            );
            let reasons: Vec<Option<LimitReason>> = heard.iter().map(reason).collect();
            // A search that has found the workers stays below what the server takes by itself.
            let expected = |own: &Option<LimitReason>| match own {
                Some(LimitReason::Refusals) => true,
                Some(LimitReason::Search) => !told,
                _ => false,
            };
            assert!(reasons.iter().all(expected), "{told} {load}: {reasons:?}");
        }
    }
}

/// Outcomes of more than sixteen in service are counted for several numbers together, of which some may be answered.
#[test]
fn a_server_with_many_workers_is_given_what_it_takes() {
    for (workers, listen_queue, load) in [(32, 6, 1.5), (48, 3, 2.5), (100, 20, 1.3)] {
        let of = |mode: Mode, seed: u64| {
            let rate = load * f64::from(workers) / SERVICE.as_secs_f64();
            let mut scene = scene(true, vec![Flow::new("default", rate)], seed);
            (scene.workers, scene.listen_queue, scene.mode) = (workers, listen_queue, mode);
            (scene.plant.workers, scene.plant.max_connections) = (2 * workers, 2 * workers);
            scene.run()
        };
        for seed in SEEDS {
            let heard = of(Mode::Control, seed);
            let (at_first, later) = (refused(&heard, 0.0..SETTLED), refused(&heard, SETTLED..END));
            let (busy, limit) = (mean(&heard.busy[SETTLED as usize..]), limit(&heard));
            println!(
                "{workers} workers, queue of {listen_queue}, {load} times: {at_first:.3}, {later:.4}, busy {busy:.3}, limit {limit}"
            );
            assert!((0.01..0.15).contains(&at_first) && later <= 0.002, "{workers}: {at_first} {later}");
            assert!((0.84..=0.97).contains(&busy), "{workers}: {busy}");
            assert!(
                (workers * 7 / 8..=workers + listen_queue as u32 + 2).contains(&limit),
                "{workers}: {limit}"
            );
            assert_eq!(reason(&heard), Some(LimitReason::Refusals));
        }
        let twin = refused(&of(Mode::Off, *SEEDS.start()), SETTLED..END);
        assert!((twin - (1.0 - 1.0 / load)).abs() < 0.05, "{twin}");
    }
}

/// The twin that takes all is given as many as were told, or as the search has found.
#[test]
fn where_nothing_is_refused_the_limit_is_the_one_told_or_that_of_the_search() {
    for (told, expected) in [(true, None), (false, Some(LimitReason::Search))] {
        let heard = refusing(told, 2.6, 100_000, *SEEDS.start()).run();
        assert_eq!(reason(&heard), expected);
        assert!(!told || limit(&heard) == 16);
    }
}

/// Without control the twin is refused all that it cannot take.
#[test]
fn the_twin_without_control_is_refused_most() {
    let mut scene = refusing(false, 2.6, 2, *SEEDS.start());
    scene.mode = Mode::Off;
    let share = refused(&scene.run(), SETTLED..END);
    assert!((0.58..0.65).contains(&share), "{share}");
}

/// The gateway before a server that answers each request of one class with 503, however few it has.
struct OneBroken {
    gateway: Gateway,
    /// The number of the class, and its requests.
    class: u16,
    broken: BTreeSet<u64>,
}

impl Front for OneBroken {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.gateway.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        if arrival.target.class == self.class {
            self.broken.insert(arrival.token.0);
        }
        self.gateway.arrive(now, arrival, orders)
    }

    fn release(&mut self, now: Instant, token: Token, mut service: Service, orders: &mut Vec<Order>) {
        if self.broken.contains(&token.0) {
            self.gateway.refused(token);
            service.representative = false;
        }
        self.gateway.release(now, token, service, orders);
    }

    fn refused(&mut self, token: Token) {
        self.gateway.refused(token);
    }

    fn depart(&mut self, now: Instant, token: Token, mut outcome: Outcome, orders: &mut Vec<Order>) {
        if self.broken.remove(&token.0) {
            outcome = Outcome::Failed;
        }
        self.gateway.depart(now, token, outcome, orders);
    }

    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        self.gateway.tick(now, readings, orders)
    }

    fn status(&self) -> Option<Status> {
        self.gateway.status()
    }
}

/// A page that takes a while to fail, asked for one by one or in bursts, beside healthy ones.
fn one_broken(told: bool, load: f64, bursts: bool, seed: u64) -> Scene {
    let mut broken = Flow::new("broken", 30.0);
    broken.service = Some(Duration::from_millis(15));
    if bursts {
        let (burst, calm) = (Duration::from_millis(300), Duration::from_millis(2700));
        broken.process = Process::Modulated { ratio: 1e9, burst, calm };
    }
    let mut scene = scene(told, vec![broken, Flow::new("default", load * CAPACITY)], seed);
    if told {
        (scene.plant.workers, scene.plant.max_connections) = (WORKERS, WORKERS);
    }
    scene
}

/// The share of the healthy requests that were answered, and the mean number of workers that the engine reckons with.
fn healthy(scene: &Scene, is_broken: bool) -> [f64; 2] {
    let gateway = Gateway::new(&scene.promises(), scene.seed).expect("the promises are valid");
    // The class of the first flow, or none.
    let class = if is_broken { 0 } else { u16::MAX };
    let heard = scene.run_with(&mut OneBroken { gateway, class, broken: BTreeSet::new() });
    let own: Vec<&Answer> = heard.answers.iter().filter(|answer| answer.class == 1).collect();
    let answered = own.iter().filter(|answer| answer.completed).count() as f64 / own.len() as f64;
    let workers: Vec<f64> = heard.workers.iter().map(|workers| f64::from(*workers)).collect();
    [answered, mean(&workers[SETTLED as usize..])]
}

/// What a broken page refuses says nothing of how much the server takes.
#[test]
fn a_broken_page_takes_nothing_from_the_others() {
    for told in [true, false] {
        for (load, bursts) in [(0.7, false), (0.7, true), (1.6, false), (1.6, true)] {
            let scenes = || SEEDS.map(|seed| one_broken(told, load, bursts, seed));
            let of = |is_broken: bool| -> [f64; 2] {
                let all: Vec<[f64; 2]> = scenes().map(|scene| healthy(&scene, is_broken)).collect();
                [0, 1].map(|figure| mean(&all.iter().map(|own| own[figure]).collect::<Vec<_>>()))
            };
            let ([answered, workers], [unbroken, _]) = (of(true), of(false));
            println!(
                "told {told}, {load} times, bursts {bursts}: answered {answered:.4} of {unbroken:.4}, {workers:.2} workers"
            );
            assert!(
                (0.98..=1.03).contains(&(answered / unbroken)),
                "{told} {load}: {answered} of {unbroken}"
            );
            assert!(workers >= 0.98 * f64::from(WORKERS), "{told} {load}: {workers}");
        }
    }
}

/// Its twin: a server that takes four at once refuses as many, and is given no more than those.
#[test]
fn the_twin_that_takes_four_is_given_four() {
    let mut scene = one_broken(true, 0.7, false, *SEEDS.start());
    (scene.workers, scene.listen_queue) = (4, 0);
    let [_, workers] = healthy(&scene, false);
    assert!((3.5..5.0).contains(&workers), "{workers}");
}
