//! A shared server's load line: sites and priorities that are served by different levels do not move it, and a site within
//! its share is not turned away by chance.
//!
//! Eight workers of 40 ms, exponential. Loads are in units of their capacity. The first site has a light level, the others
//! have not.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::{Mode, Site};
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 7101..=7106;
const CAPACITY: f64 = 200.0;
const LIGHT_COST: f64 = 0.15;
const LINE: f64 = 0.85;
const SECONDS: f64 = 180.0;
const SETTLED: f64 = 30.0;

fn site(name: &str, levels: &[&str]) -> Site {
    let mut site = Site { hosts: vec![format!("{name}.example")], ..Site::new(name, levels) };
    if levels.len() > 1 {
        site.levels[0].cost_ratio = Some(LIGHT_COST);
    }
    site
}

/// The first site, and others beside it, with these loads.
fn sites(first: f64, others: &[f64], seed: u64) -> Scene {
    let loads = [first].into_iter().chain(others.iter().copied());
    let flows = loads.enumerate().map(|(n, load)| Flow::new(&format!("flow{n}"), load * CAPACITY).at_site(n));
    let mut scene = Scene::new(8, Duration::from_millis(40), flows.collect(), SECONDS, seed);
    scene.plant.set_point = LINE;
    scene.site = site("first", &["light", "full"]);
    scene.more_sites = (1..=others.len()).map(|n| site(&format!("other{n}"), &["full"])).collect();
    scene
}

/// The work that a flow gets at full quality and at the light level, and the part of its requests that is turned away.
fn work(heard: &Heard, flow: usize) -> [f64; 2] {
    let own = || heard.answers.iter().filter(|answer| answer.class == flow && answer.arrived >= SETTLED);
    let is_light = |level: u8| level == 1 && flow == 0;
    let taken = own().filter(|answer| answer.completed);
    let taken: f64 = taken.map(|answer| if is_light(answer.level) { LIGHT_COST } else { 1.0 }).sum();
    let refused = own().filter(|answer| !answer.completed).count();
    [taken / CAPACITY / (SECONDS - SETTLED), refused as f64 / own().count().max(1) as f64]
}

/// Means over the seeds: the utilization, and by flow its work and the part that is turned away.
fn means(flows: usize, scene: impl Fn(u64) -> Scene) -> (f64, Vec<[f64; 2]>) {
    let runs: Vec<Heard> = SEEDS.map(|seed| scene(seed).run()).collect();
    let over = |of: &dyn Fn(&Heard) -> f64| mean(&runs.iter().map(of).collect::<Vec<_>>());
    let busy = over(&|heard| mean(&heard.busy[SETTLED as usize..]));
    (busy, (0..flows).map(|flow| [0, 1].map(|n| over(&|heard| work(heard, flow)[n]))).collect())
}

#[test]
fn the_line_holds_where_one_site_is_degraded_and_another_turned_away() {
    for load in [0.6, 0.7, 0.8, 0.9, 1.6] {
        let (busy, flows) = means(2, |seed| sites(1.05, &[load], seed));
        println!("{load} beside 1.05: busy {busy:.3}, work and turned away {flows:.3?}");
        assert!((0.84..=0.86).contains(&busy), "{load}: {busy}");
        // Each has half of the line.
        for [work, _] in &flows {
            assert!((0.415..=0.435).contains(work), "{load}: {flows:?}");
        }
    }
    let off = |seed| Scene { mode: Mode::Off, ..sites(1.05, &[0.7], seed) };
    let (busy, _) = means(2, off);
    assert!(busy > 0.98, "the twin without control: {busy}");
}

#[test]
fn the_line_holds_where_one_priority_is_degraded_and_another_turned_away() {
    let scene = |seed| {
        let premium = Flow::new("premium", 0.75 * CAPACITY).priority(1);
        let mut scene = sites(0.0, &[], seed);
        scene.flows = vec![Flow::new("default", 5.4 * CAPACITY), premium];
        scene
    };
    let (busy, _) = means(2, scene);
    println!("priorities: busy {busy:.3}");
    assert!((0.84..=0.86).contains(&busy), "{busy}");
    let (busy, _) = means(2, |seed| Scene { mode: Mode::Off, ..scene(seed) });
    assert!(busy > 0.98, "the twin without control: {busy}");
}

#[test]
fn a_site_within_its_share_is_not_turned_away_by_chance() {
    // Half of the line is 0.425. It may count on half of the capacity; 0.45 is nine tenths of that.
    for load in [0.38, 0.41, 0.45] {
        let (busy, flows) = means(2, |seed| sites(1.05, &[load], seed));
        println!("{load} beside 1.05: busy {busy:.3}, work and turned away {flows:.4?}");
        assert!((0.84..=0.86).contains(&busy), "{load}: {busy}");
        assert!(flows[1][1] <= 0.001, "{load}: {flows:?}");
    }
    // The twin whose share is a quarter.
    let less = |seed| {
        let mut scene = sites(1.05, &[0.38], seed);
        scene.site.weight = 3.0;
        scene
    };
    let (_, flows) = means(2, less);
    assert!((0.4..=0.5).contains(&flows[1][1]), "{flows:?}");
    // Beside a crowd that is turned away.
    let (busy, flows) = means(3, |seed| sites(0.6, &[0.27, 3.0], seed));
    println!("0.27 beside 0.6 and 3: busy {busy:.3}, work and turned away {flows:.4?}");
    assert!((0.84..=0.86).contains(&busy) && flows[1][1] <= 0.001 && flows[2][1] > 0.8, "{busy} {flows:?}");
}

/// Nobody has to leave the other what it has not: together they are below the capacity, and the large one beyond the line.
#[test]
fn a_small_site_is_not_turned_away_beside_a_large_one_while_the_server_carries_both() {
    for large in [0.8, 0.85, 0.9] {
        for (first, others) in [(0.05, vec![large]), (0.0, vec![0.05, large])] {
            let (busy, flows) = means(1 + others.len(), |seed| sites(first, &others, seed));
            println!("{first} beside {others:?}: busy {busy:.3}, work and turned away {flows:.4?}");
            assert!(flows.iter().all(|[_, turned_away]| *turned_away <= 0.002), "{large}: {flows:?}");
        }
    }
    // A large one that is an overload by itself is turned away.
    let (_, flows) = means(2, |seed| sites(0.05, &[1.3], seed));
    assert!(flows[0][1] <= 0.002 && flows[1][1] > 0.3, "{flows:?}");
}
