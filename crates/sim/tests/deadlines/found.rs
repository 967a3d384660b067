//! Types that nobody told are found by what requests show, while they are served.
//!
//! An origin of eight workers and requests of 40 ms, exponential: 200/s. Premium 60/s, others 120/s, and 12/s of ten times
//! the cost; all within 500 ms.

use crate::scene::{Flow, Heard, Kind, Scene, ms};
use plimsoll_core::promises::{Condition, DEFAULT_TYPES, Mode, RequestType};
use plimsoll_sim::workload::Law;

const DEADLINE: f64 = 0.5;
/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 6101..=6104;

/// Where the requests of a mixed load go.
#[derive(Clone, Copy)]
struct Paths {
    premium: &'static str,
    others: &'static str,
    dear: &'static str,
}

const OWN_PATH: Paths = Paths { premium: "/page", others: "/list", dear: "/report" };

fn mixed(paths: Paths, seed: u64) -> Scene {
    let kind = |path, service| Kind::new(path, 1.0, ms(service), Law::Exponential);
    let flow = |name, rate, kind: Kind, priority| {
        Flow::new(name, rate, vec![kind]).priority(priority).within(Some(ms(500)))
    };
    let flows = vec![
        flow("premium", 60.0, kind(paths.premium, 40), 1),
        flow("others", 120.0, kind(paths.others, 40), 2),
        flow("others", 12.0, kind(paths.dear, 400), 2),
    ];
    Scene::new(8, flows, 70.0, seed)
}

/// Answers in time over the capacity, and the part of premium that was answered in time, from the tenth second on.
fn kept(heard: &Heard) -> (f64, f64) {
    let in_time = |answer: &&crate::scene::Answer| answer.arrived >= 10.0 && answer.is_in_time(DEADLINE);
    let rate = heard.answers.iter().filter(in_time).count() as f64 / 60.0;
    (rate / 200.0, heard.in_time(0, DEADLINE, (10.0, 69.0)))
}

/// Goodput and premium, the mean and the least over the seeds.
fn over_seeds(name: &str, scene: impl Fn(u64) -> Scene) -> (f64, f64) {
    let all: Vec<(f64, f64)> = SEEDS.map(|seed| kept(&scene(seed).run())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let (good, premium) = (mean(|one| one.0), mean(|one| one.1));
    println!("{name}: goodput {good:.3}, premium {premium:.4}, by seed {all:.3?}");
    (good, premium)
}

fn told(mut scene: Scene, pattern: &str) -> Scene {
    let condition = Condition { paths: vec![pattern.to_owned()], ..Condition::default() };
    scene.site.types = vec![RequestType { name: "report".to_owned(), condition, quantum: 100.0 }];
    scene
}

/// What was found, without the default types.
fn found(heard: &Heard) -> Vec<String> {
    let types = heard.status.iter().flat_map(|status| &status.sites[0].types);
    let found = types.filter(|own| DEFAULT_TYPES.iter().all(|(name, _)| *name != own.name));
    found.map(|own| own.name.clone()).collect()
}

#[test]
fn the_dear_ones_are_found_by_path_identifier_or_query() {
    let items = Paths { premium: "/item/*", others: "/item/*", dear: "/item/*/report" };
    let told_path = over_seeds("a path, told", |seed| told(mixed(OWN_PATH, seed), "/report*"));
    let told_item = over_seeds("below identifiers, told", |seed| told(mixed(items, seed), "/item/*/report"));
    let query = Paths { premium: "/search", others: "/search", dear: "/search?deep=1" };
    for (name, paths, told) in [
        ("a path", OWN_PATH, told_path),
        ("below identifiers", items, told_item),
        ("a query", query, told_path),
    ] {
        let own = over_seeds(&format!("{name}, found"), |seed| mixed(paths, seed));
        assert!((0.87..0.92).contains(&own.0) && own.1 >= 0.999, "{name}: {own:?}");
        assert!((own.0 - told.0).abs() < 0.01 && told.1 - own.1 < 0.005, "{name}: {own:?}, told {told:?}");
    }
}

/// The same where the workers are found too.
#[test]
fn the_dear_ones_are_found_while_workers_are_searched_for() {
    let items = Paths { premium: "/item/*", others: "/item/*", dear: "/item/*/report" };
    for (name, paths) in [("a path", OWN_PATH), ("below identifiers", items)] {
        let all: Vec<(f64, f64)> =
            (6121..=6132).map(|seed| kept(&mixed(paths, seed).finding_workers(true).run())).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let (good, premium) = (mean(|one| one.0), mean(|one| one.1));
        println!("{name}, workers found too: goodput {good:.3}, premium {premium:.4}, by seed {all:.4?}");
        assert!((0.87..0.92).contains(&good) && premium >= 0.999, "{name}: {good} {premium}");
    }
}

/// The dear ones begin after two minutes without them, when much is known of the others.
#[test]
fn a_type_that_comes_late_is_found_as_soon() {
    for seed in SEEDS {
        let mut scene = mixed(OWN_PATH, seed);
        let [premium, others, dear] = scene.flows.as_mut_slice() else { panic!("three flows") };
        premium.rate[0].rate = 40.0;
        others.rate[0].rate = 60.0;
        *premium = premium.clone().then(120.0, 60.0);
        *others = others.clone().then(120.0, 120.0);
        dear.rate[0].rate = 0.0;
        *dear = dear.clone().then(120.0, 12.0);
        scene.seconds = 190.0;
        let heard = scene.run();
        let in_time = |answer: &&crate::scene::Answer| answer.arrived >= 130.0 && answer.is_in_time(DEADLINE);
        let good = heard.answers.iter().filter(in_time).count() as f64 / 60.0 / 200.0;
        let premium = heard.in_time(0, DEADLINE, (130.0, 189.0));
        println!("late, seed {seed}: {:?}, goodput {good:.3}, premium {premium:.4}", found(&heard));
        assert!((0.87..0.92).contains(&good) && premium >= 0.999, "{good} {premium}");
    }
}

/// The twin: no request shows what it costs.
#[test]
fn the_twin_whose_requests_look_alike_answers_fewer() {
    let alike = Paths { premium: "/page", others: "/page", dear: "/page" };
    let own = over_seeds("all alike", |seed| mixed(alike, seed));
    assert!(own.0 < 0.8, "{own:?}");
}

/// The twin without control: twelve workers' work waits for eight.
#[test]
fn the_twin_without_control_keeps_nothing_of_premium() {
    for paths in [OWN_PATH, Paths { premium: "/item/*", others: "/item/*", dear: "/item/*/report" }] {
        let off = over_seeds("without control", |seed| Scene { mode: Mode::Off, ..mixed(paths, seed) });
        assert!(off.0 < 0.1 && off.1 < 0.1, "{off:?}");
    }
}

/// Twenty-six paths that cost the same.
fn same_costs(law: &Law, load: f64, seed: u64) -> Scene {
    let kinds = (0..26_u8).map(|n| {
        let path = format!("/{}/{}", ["shop", "news", "api"][usize::from(n % 3)], char::from(b'a' + n));
        Kind::new(Box::leak(path.into_boxed_str()), 1.0 / f64::from(n + 1), ms(40), law.clone())
    });
    let flow = Flow::new("all", 200.0 * load, kinds.collect()).within(Some(ms(500)));
    Scene::new(8, vec![flow], 60.0, seed)
}

/// The same arrivals where a type is told that no request has, so that none is searched for.
#[test]
fn where_costs_do_not_depend_on_the_path_nothing_is_found_and_nothing_lost() {
    for law in [Law::Exponential, Law::BoundedPareto { shape: 1.2, ratio: 1000.0 }, Law::Deterministic] {
        for (load, seed) in SEEDS.flat_map(|seed| [(0.78, seed), (1.5, seed)]) {
            let scene = same_costs(&law, load, seed);
            let heard = scene.run();
            assert!(found(&heard).is_empty(), "{law:?}: {:?}", found(&heard));
            let in_time = |heard: &Heard| heard.in_time(0, DEADLINE, (0.0, 59.0));
            let (own, without) = (in_time(&heard), in_time(&told(scene, "/none").run()));
            assert_eq!(own, without, "{law:?} at {load}");
        }
    }
}

/// Reports cost as much as pages from the sixtieth second on.
#[test]
fn a_type_that_costs_like_the_others_is_merged() {
    let before = mixed(OWN_PATH, 6111);
    let page = |path| vec![Kind::new(path, 1.0, ms(40), Law::Exponential)];
    let mut scene = before.clone();
    scene.flows[2] = scene.flows[2].clone().then(60.0, 0.0);
    scene
        .flows
        .push(Flow::new("others", 0.0, page("/report")).priority(2).within(Some(ms(500))).then(60.0, 30.0));
    scene.flows[1] = scene.flows[1].clone().then(60.0, 60.0);
    assert_eq!(found(&before.run()), ["report"]);
    scene.seconds = 400.0;
    let heard = scene.run();
    assert!(found(&heard).is_empty(), "{:?}", found(&heard));
}

/// Four hundred names, a page and a report of each, and as many titles beside them.
#[test]
fn names_of_things_are_told_from_names_of_functions() {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    let name = |n: usize| format!("{}{}{}", letter(n), letter(n / 26 + 7), letter(n / 3));
    let kinds = |prefix: &str, suffix: &str, service: u64| -> Vec<Kind> {
        let path = |n| leak(format!("/{prefix}/{}{suffix}", name(n)));
        (0..400).map(|n| Kind::new(path(n), 1.0, ms(service), Law::Exponential)).collect()
    };
    let within = Some(ms(500));
    let flows = vec![
        Flow::new("premium", 60.0, kinds("user", "", 40)).priority(1).within(within),
        Flow::new("others", 120.0, kinds("blog", "", 40)).priority(2).within(within),
        Flow::new("others", 12.0, kinds("user", "/report", 400)).priority(2).within(within),
    ];
    for seed in SEEDS {
        let heard = Scene::new(8, flows.clone(), 70.0, seed).run();
        let (good, premium) = kept(&heard);
        println!("names, seed {seed}: {:?}, goodput {good:.3}, premium {premium:.4}", found(&heard));
        assert!((0.87..0.93).contains(&good) && premium >= 0.999, "{good} {premium}");
    }
}
