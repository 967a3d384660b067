//! A kept state whose numbers were damaged: nothing ends, no request is unaccounted for, and what the engine publishes are
//! numbers.
//!
//! Two plants, the workers of one to be found; a site with a level at each, and one with a deadline whose types are found. What
//! they have learned in twenty seconds is damaged at some places, with numbers that a file can hold, and another engine goes on
//! from it for some seconds of the same load.

use plimsoll_core::LearnedState;
use plimsoll_core::promises::{Guarantee, Plant, Promises, Site, WorkerBounds};
use plimsoll_core::random::Random;
use plimsoll_sim::front::Gateway;
use plimsoll_sim::workload::{
    Arrivals, Discipline, Law, Page, Plant as Server, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Run, Setup};
use std::time::Duration;

const ROUNDS: u64 = 250;
/// The numbers that take the place of others.
const NUMBERS: [f64; 10] = [0.0, -1.0, 0.5, 3.0, -0.0, 1e-308, 1e19, -1e19, 1e308, -1e308];
const WHOLE_NUMBERS: [u32; 7] = [0, 1, 7, 255, 65_535, 1 << 24, u32::MAX];

fn promises() -> Promises {
    let mut searched = Plant::new("searched", 16);
    searched.find_workers = Some(WorkerBounds { least: 1, most: 256 });
    searched.max_connections = 256;
    let mut shop = Site::new("shop", &["light", "middle", "full"]);
    (shop.hosts, shop.levels[0].plant) = (vec!["shop.example".to_owned()], Some(1));
    shop.guarantee = Some(Guarantee::new(50.0, 1e9));
    let mut api = Site::new("api", &["full"]);
    (api.hosts, api.deadline) = (vec!["api.example".to_owned()], Some(Duration::from_millis(500)));
    Promises { plants: vec![searched, Plant::new("other", 4)], sites: vec![shop, api], ..Promises::default() }
}

fn stream(host: &str, pages: &[(&str, u64)], rate: f64) -> Stream {
    let page = |(path, ms): &(&str, u64)| Page {
        host: host.to_owned(),
        weight: 1.0 / *ms as f64,
        service: Some(Duration::from_millis(*ms)),
        service_law: Some(Law::Exponential),
        ..Page::new(*path, 10_000.0)
    };
    Stream::new(host, Arrivals::steady(Process::Poisson, rate), pages.iter().map(page).collect(), 500)
}

/// Twice what the servers carry, more or less.
fn run(learned: Option<&LearnedState>, at_once: bool, seconds: u64, seed: u64) -> (Run, LearnedState) {
    let promises = promises();
    let server = |workers| Server::new(Discipline::Workers(workers), 256, Duration::from_millis(40));
    let workload = Workload {
        streams: vec![
            stream("shop.example", &[("/", 40)], 300.0),
            stream("api.example", &[("/page", 40), ("/report", 400)], 60.0),
        ],
        plants: vec![server(8), server(4)],
        versions: vec![
            [0.2, 0.5, 1.0].map(|cost| Version { cost: Some(cost), bytes: cost }).into(),
            vec![Version::FULL],
        ],
        duration: Some(Duration::from_secs(seconds)),
        ..Workload::default()
    };
    let mut gateway = Gateway::new(&promises, seed).expect("it is possible");
    if let Some(learned) = learned {
        gateway.restore(learned, at_once);
    }
    let setup = Setup { promises: &promises, workload: &workload, seed };
    let run = setup.run_with(&mut gateway, &mut ()).expect("it runs");
    (run, gateway.learned())
}

/// Every number with a fraction.
fn numbers(state: &mut LearnedState) -> Vec<&mut f64> {
    let mut all = Vec::new();
    for class in &mut state.classes {
        all.extend(&mut class.service_level);
        all.push(&mut class.calibration);
        for level in &mut class.levels {
            let cost = &mut level.cost;
            all.extend([&mut cost.weight, &mut cost.seconds, &mut cost.bytes, &mut cost.variance]);
        }
        all.extend(class.line.theta.iter_mut().chain(&mut class.line.information));
        all.push(&mut class.line.residual_variance);
        for part in &mut class.lower {
            all.extend(&mut part.service_level);
            all.push(&mut part.calibration);
        }
    }
    for plant in &mut state.plants {
        all.extend([&mut plant.service_level, &mut plant.bias]);
        all.extend(plant.workers.iter_mut().flat_map(|workers| &mut workers.evidence));
        all.extend(plant.contracts.iter_mut().flat_map(|own| own.planned.iter_mut().chain(&mut own.claimed)));
    }
    for cost in state.sites.iter_mut().flat_map(|site| &mut site.types.costs) {
        all.extend([&mut cost.mean, &mut cost.variance, &mut cost.weight, &mut cost.block]);
    }
    all
}

/// Every whole number that is not told by its type.
fn whole_numbers(state: &mut LearnedState) -> Vec<&mut u32> {
    let mut all: Vec<&mut u32> = state.classes.iter_mut().map(|class| &mut class.line.periods).collect();
    for own in state.plants.iter_mut().filter_map(|plant| plant.workers.as_mut()) {
        all.extend([&mut own.workers, &mut own.limit, &mut own.possible, &mut own.highest]);
    }
    for site in &mut state.sites {
        all.extend(site.types.crowded.iter_mut().chain(&mut site.types.apart));
        all.extend(site.types.found.iter_mut().map(|rule| &mut rule.token));
    }
    all
}

/// The kinds, numbers and places of types, their counts, and lists of another length.
fn damage_types(state: &mut LearnedState, random: &mut Random) {
    let Some(types) = state.sites.first_mut().map(|site| &mut site.types) else { return };
    let small = [0, 1, 4, 5, 12, 200, 255][random.below(7) as usize];
    if let Some(rule) = types.found.first_mut() {
        match random.below(4) {
            0 => rule.number = small,
            1 => rule.parent = small,
            2 => rule.kind = small,
            _ => rule.name.push(char::from(small)),
        }
    }
    let at = random.below(types.costs.len().max(1) as u64) as usize;
    if let Some(cost) = types.costs.get_mut(at) {
        match random.below(3) {
            0 => cost.requests = u64::MAX,
            1 => cost.times.push((u16::from(small) << random.below(9), 1e30)),
            _ => cost.times.clear(),
        }
    }
    if random.below(4) == 0 {
        types.crowded.resize(random.below(40) as usize, 7);
    }
}

fn pick<T: Copy>(all: &[T], random: &mut Random) -> T {
    all[random.below(all.len() as u64) as usize]
}

#[test]
fn numbers_that_cannot_be_end_nothing() {
    let (_, learned) = run(None, true, 20, 1);
    assert!(learned.plants[0].workers.is_some() && !learned.classes[0].lower.is_empty(), "{learned:?}");
    assert!(!learned.sites[0].types.costs.is_empty(), "{learned:?}");
    assert!(learned.plants[0].contracts[0].planned[0] > 0.0, "{learned:?}");
    let mut random = Random::new(5);
    for round in 0..ROUNDS {
        let mut damaged = learned.clone();
        for _ in 0..=random.below(3) {
            let (number, whole) = (pick(&NUMBERS, &mut random), pick(&WHOLE_NUMBERS, &mut random));
            match random.below(4) {
                0 => {
                    let mut all = whole_numbers(&mut damaged);
                    let at = random.below(all.len() as u64) as usize;
                    *all[at] = whole;
                }
                1 => damage_types(&mut damaged, &mut random),
                _ => {
                    let mut all = numbers(&mut damaged);
                    // Evidence has many numbers, and the others few: each kind has its turns.
                    let few = if random.below(2) == 0 { 40 } else { all.len() as u64 };
                    let at = random.below(few) as usize;
                    *all[at] = number;
                }
            }
        }
        // Shown if it fails.
        println!("round {round}: {damaged:?}");
        let (run, kept) = run(Some(&damaged), round % 3 != 0, 4, round);
        for class in &run.status.as_ref().expect("a status").classes {
            assert!(class.service_level.is_finite(), "round {round}: {class:?}");
        }
        assert!(run.requests > 1000, "round {round}: {} requests came", run.requests);
        for level in kept.classes.iter().flat_map(|class| class.service_level) {
            assert!((0.0..=3.0).contains(&level), "round {round}: {level} is no service level");
        }
    }
}
