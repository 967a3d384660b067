//! Pages that would be late at the full level are served at a lighter one, and refused only where they would be late at all.

use crate::waits::{Answer, Flow, Scene};
use plimsoll_core::promises::{Guarantee, Mode, Site};
use plimsoll_sim::workload::{Law, Process};
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 9_501..=9_504;
const DEADLINE: Duration = Duration::from_millis(200);
const SETTLED: f64 = 20.0;
const END: f64 = 120.0;
const BURSTS: Process =
    Process::Modulated { ratio: 2.0, burst: Duration::from_secs(1), calm: Duration::from_secs(3) };

/// Pages of a deadline that cost a tenth at the lighter level.
fn scene(workers: u32, full: Duration, rate: f64, levels: &[&str], seed: u64) -> Scene {
    let mut own = Flow::new("own", rate);
    own.class.deadline = Some(DEADLINE);
    let mut scene = Scene::new(workers, full, vec![own], END, seed);
    scene.site = Site::new("site", levels);
    if levels.len() > 1 {
        scene.site.levels[0].cost_ratio = Some(0.1);
    }
    scene.law = Law::Deterministic;
    scene
}

/// The shares of a flow that were refused or dropped, late, and served at the lighter level, once all has settled.
fn shares(scene: &Scene, flow: usize) -> [f64; 3] {
    let heard = scene.run();
    let own: Vec<&Answer> =
        heard.answers.iter().filter(|answer| answer.class == flow && answer.arrived >= SETTLED).collect();
    let share = |is: &dyn Fn(&Answer) -> bool| {
        own.iter().filter(|answer| is(answer)).count() as f64 / own.len() as f64
    };
    [
        share(&|answer| !answer.completed),
        share(&|answer| answer.completed && answer.response() > DEADLINE.as_secs_f64()),
        share(&|answer| answer.completed && answer.level == 1),
    ]
}

/// Full pages take half as long again as the deadline, on a server that is three eighths full of them.
#[test]
fn pages_that_are_too_slow_at_full_are_lighter_pages_and_not_refusals() {
    for seed in SEEDS {
        for process in [Process::Poisson, BURSTS] {
            let with = |levels: &[&str], mode| {
                let mut scene = scene(8, Duration::from_millis(300), 10.0, levels, seed);
                scene.flows[0].process = process;
                scene.mode = mode;
                shares(&scene, 0)
            };
            let [refused, late, light] = with(&["light", "full"], Mode::Control);
            println!("{seed} {process:?}: refused {refused:.4}, late {late:.4}, light {light:.4}");
            assert!(
                refused == 0.0 && late <= 0.02 && light >= 0.98,
                "{seed} {process:?}: {refused} {late} {light}"
            );
        }
    }
    let [refused, ..] = shares(&scene(8, Duration::from_millis(300), 10.0, &["full"], 9_501), 0);
    println!("without a lighter level: refused {refused:.4}");
    assert!(refused >= 0.4, "the twin without a lighter level: {refused}");
}

/// Full pages would be in time but for their wait.
#[test]
fn a_wait_that_is_too_long_for_a_full_page_is_short_enough_for_a_lighter_one() {
    for seed in SEEDS {
        let own = |levels| shares(&scene(2, Duration::from_millis(110), 0.8 * 2.0 / 0.11, levels, seed), 0);
        let [refused, late, light] = own(&["light", "full"]);
        let [alone, ..] = own(&["full"]);
        println!("{seed}: refused {refused:.4}, late {late:.4}, light {light:.4}; without it {alone:.4}");
        assert!(refused <= 0.02 && late <= 0.01, "{seed}: {refused} {late}");
        assert!((0.1..0.25).contains(&light) && alone >= 8.0 * refused.max(0.01), "{seed}: {light} {alone}");
    }
}

/// Inside its contract a site has full quality, but for pages that would be late.
#[test]
fn a_contract_is_kept_with_lighter_pages_where_full_ones_would_be_late() {
    for seed in SEEDS {
        let mut scene = scene(8, Duration::from_millis(300), 15.0, &["light", "full"], seed);
        let guarantee = Guarantee { rate: 20.0, bandwidth_bytes_per_second: None, burst: Guarantee::BURST };
        scene.site.guarantee = Some(guarantee);
        (scene.site.hosts, scene.plant.set_point) = (vec!["site.example".to_owned()], 0.85);
        scene.flows.push(Flow::new("default", 40.0).at_site(1));
        scene.flows[1].service = Some(Duration::from_millis(50));
        scene.more_sites =
            vec![Site { hosts: vec!["rest.example".to_owned()], ..Site::new("rest", &["full"]) }];
        let [refused, late, light] = shares(&scene, 0);
        println!("{seed}: refused {refused:.4}, late {late:.4}, light {light:.4}");
        assert!(refused <= 0.001 && late <= 0.02 && light >= 0.98, "{seed}: {refused} {late} {light}");
    }
}
