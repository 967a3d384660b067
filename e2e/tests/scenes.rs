//! The scenes of the papers through the binary: every figure in virtual time, within bounds that the twin without control
//! breaks; and in real time, in a part of the time, that no request is lost or accounted for twice.

use crate::page;
use plimsoll_e2e::flows::{End, Flown, drive};
use plimsoll_e2e::scenes::{self, Scene};
use plimsoll_e2e::{Apache, Plimsoll, SLOW_PAGES};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The seeds of every figure.
const SEEDS: RangeInclusive<u64> = 1..=20;
/// The seeds of what is judged over all of them.
const MANY: RangeInclusive<u64> = 101..=180;
/// The seeds of every twin.
const TWINS: RangeInclusive<u64> = 2..=4;
/// How long a client waits in real time: a stall of the machine makes no client leave.
const PATIENCE: Duration = Duration::from_secs(20);

/// The figures of a scene that are out of bounds, in virtual time.
fn out_of_bounds(scene: &Scene, seed: u64, twin: bool) -> Vec<String> {
    let flown = scene.simulated(seed, twin);
    let judge = |figure: &scenes::Figure| {
        let bounds = if twin { figure.twin.as_ref()? } else { &figure.bounds };
        let value = (figure.of)(&flown);
        let line = format!("{}, seed {seed}: {}: {value:.4}, not in {bounds:?}", scene.name, figure.what);
        (!bounds.contains(&value)).then_some(line)
    };
    scene.figures.iter().filter_map(judge).collect()
}

#[test]
fn every_figure_is_within_its_bounds_in_virtual_time() {
    let judge = |scene: &Scene| SEEDS.flat_map(|seed| out_of_bounds(scene, seed, false)).collect::<Vec<_>>();
    let found: Vec<String> = scenes::all().iter().flat_map(judge).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// A promise of 99.9 % is one of ten thousand requests and more, so all seeds together judge it: the lower end of the mean's
/// 95 % interval.
#[test]
fn what_is_promised_surely_is_kept_as_surely_over_all_seeds() {
    let mut judged = 0;
    for scene in scenes::all().iter().filter(|scene| scene.figures.iter().any(|figure| figure.mean.is_some()))
    {
        judged += 1;
        let runs: Vec<Vec<Flown>> = MANY.map(|seed| scene.simulated(seed, false)).collect();
        for figure in &scene.figures {
            let Some(least) = figure.mean else { continue };
            let (values, n) = (runs.iter().map(|flown| (figure.of)(flown)), runs.len() as f64);
            let mean = values.clone().sum::<f64>() / n;
            let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let half = 1.99 * (variance / n).sqrt();
            println!("{}: {}: {mean:.5} +- {half:.5}, at least {least}", scene.name, figure.what);
            assert!(mean - half >= least, "{}: {}: {mean} +- {half}", scene.name, figure.what);
        }
    }
    assert!(judged > 0, "a promise is sure");
}

/// A server that has recovered is known to have after three periods at most, on seeds that no bound was chosen on.
#[test]
fn no_request_is_turned_away_once_a_slow_server_has_recovered() {
    let scenes = scenes::all();
    let slow = scenes.iter().find(|scene| scene.slow.is_some()).unwrap_or_else(|| panic!("a server is slow"));
    let of_interest = |line: &String| line.contains("turned away after it");
    let found: Vec<String> =
        (5..=40).flat_map(|seed| out_of_bounds(slow, seed, false)).filter(of_interest).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_twin_fails_in_virtual_time() {
    for scene in scenes::all() {
        assert!(scene.figures.iter().any(|figure| figure.twin.is_some()), "{}", scene.name);
        let found: Vec<String> = TWINS.flat_map(|seed| out_of_bounds(&scene, seed, true)).collect();
        assert!(found.is_empty(), "the twin must fail: {found:#?}");
    }
}

/// Every request of the flows was answered with a page or turned away, and the gateway has accounted for each once, by the
/// answer that its client got.
fn assert_accounted(name: &str, gateway: &Plimsoll, flown: &[Flown]) {
    for (number, flow) in flown.iter().enumerate() {
        assert_eq!(flow.all().count(End::Lost), 0, "{name}: flow {number}");
    }
    let requests: usize = flown.iter().map(|flow| flow.all().requests()).sum();
    assert!(requests > 100, "{requests}");
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), requests as f64, "{name}");
    for gauge in ["plimsoll_in_service", "plimsoll_waiting"] {
        gateway.wait_for_metric(gauge, 0.0);
    }
    let rejected: usize = flown.iter().map(|flow| flow.all().count(End::Rejected)).sum();
    for (code, count) in [("2xx", requests - rejected), ("5xx", rejected)] {
        let told = gateway.metric_of("plimsoll_responses_total", &format!("code=\"{code}\""));
        assert_eq!(told, count as f64, "{name}: {code}");
    }
}

#[test]
fn in_real_time_every_request_is_answered_and_accounted_for_once() {
    let run = |scene: &Scene| {
        let scene = scene.clone().shorter(5.0 / scene.lasts().as_secs_f64());
        let (gateway, flown) = scene.live(page(), false, PATIENCE);
        assert_accounted(scene.name, &gateway, &flown);
    };
    std::thread::scope(|scope| {
        for scenes in scenes::all().chunks(2) {
            let scenes = scenes.to_vec();
            scope.spawn(move || scenes.iter().for_each(run));
        }
    });
}

/// The load of the first scene before Apache instead of nginx. How many requests fail there, and how many with control off,
/// `make live module` shows.
#[test]
fn a_crowd_before_a_real_apache_is_answered_and_accounted_for_once() {
    let scene = scenes::overload().shorter(0.4);
    let apache = Apache::pages(page(), SLOW_PAGES);
    let gateway = Plimsoll::run(&scene.file(apache.upstream, false));
    let flown = drive(gateway.address, &scene.flows, PATIENCE, || ());
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert_accounted("a crowd before Apache", &gateway, &flown);
}
