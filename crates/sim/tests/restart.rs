//! A restart in the middle of an overload: an engine that goes on from what another one has learned serves the right shares
//! from its first seconds on, and its twin, which begins with nothing, does not.
//!
//! Eight workers of 40 ms, exponential, at 3 and at 9 times what they carry; light pages take a fifth. With 3 times the load
//! some clients keep the full pages; with 9 times light pages for everybody are too much.

use plimsoll_core::promises::{Plant, Promises, Site, WorkerBounds};
use plimsoll_core::{Engine, LearnedState};
use plimsoll_sim::front::Gateway;
use plimsoll_sim::workload::{
    Arrivals, Discipline, Law, Page, Plant as Server, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Run, Setup};
use std::time::Duration;

const SEEDS: std::ops::RangeInclusive<u64> = 8101..=8110;
const CAPACITY: f64 = 200.0;
/// The seconds after the restart that are judged.
const FIRST: usize = 4;

/// What happens to an engine.
struct Scene {
    promises: Promises,
    workload: Workload,
    seed: u64,
}

fn scene(times: f64, found: bool, seconds: u64, seed: u64) -> Scene {
    let mut plant = Plant::new("server", if found { 16 } else { 8 });
    if found {
        plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
        plant.max_connections = 1024;
    }
    let page = Page { host: "shop.example".to_owned(), ..Page::new("/", 10_000.0) };
    let arrivals = Arrivals::steady(Process::Poisson, times * CAPACITY);
    let server = Server {
        law: Law::Exponential,
        ..Server::new(Discipline::Workers(8), 1024, Duration::from_millis(40))
    };
    let workload = Workload {
        streams: vec![Stream::new("visitors", arrivals, vec![page], 2000)],
        plants: vec![server],
        versions: vec![vec![Version { cost: Some(0.2), bytes: 0.2 }, Version::FULL]],
        duration: Some(Duration::from_secs(seconds)),
        ..Workload::default()
    };
    Scene { promises: Promises::of(plant, Site::new("site", &["light", "full"])), workload, seed }
}

/// Runs a scene with a gateway that goes on from `learned`, and returns what that one has learned.
fn run(scene: &Scene, learned: Option<&LearnedState>) -> (Run, LearnedState) {
    let mut gateway = Gateway::new(&scene.promises, scene.seed).expect("it is possible");
    if let Some(learned) = learned {
        assert_eq!(gateway.restore(learned, true), Vec::<String>::new());
    }
    let setup = Setup { promises: &scene.promises, workload: &scene.workload, seed: scene.seed };
    let run = setup.run_with(&mut gateway, &mut ()).expect("it runs");
    (run, gateway.learned())
}

/// In some seconds: the shares of all arrivals that were served in full and turned away, and the mean response time (s).
fn shares(run: &Run, seconds: std::ops::Range<usize>) -> [f64; 3] {
    let rows = &run.rows[seconds];
    let sum =
        |of: &dyn Fn(&plimsoll_sim::ClassRow) -> f64| rows.iter().map(|row| of(&row.classes[0])).sum::<f64>();
    let arrivals = sum(&|class| class.arrivals as f64);
    let full = sum(&|class| class.completed[2] as f64);
    let answered = sum(&|class| class.response.count() as f64);
    let waited = sum(&|class| class.response.mean().as_secs_f64() * class.response.count() as f64);
    [full / arrivals, sum(&|class| class.rejected as f64) / arrivals, waited / answered]
}

/// The means over all seeds of the last seconds before a restart, of the first ones after it, and of those of the twin.
fn restarted(times: f64, found: bool) -> [[f64; 3]; 3] {
    let mut means = [[0.0; 3]; 3];
    for seed in SEEDS {
        let (before, learned) = run(&scene(times, found, 60, seed), None);
        let next = scene(times, found, FIRST as u64 + 1, seed + 1000);
        let (after, _) = run(&next, Some(&learned));
        let (twin, _) = run(&next, None);
        let of = [shares(&before, 50..60), shares(&after, 0..FIRST), shares(&twin, 0..FIRST)];
        for (mean, value) in means.iter_mut().flatten().zip(of.into_iter().flatten()) {
            *mean += value / SEEDS.count() as f64;
        }
    }
    println!("{times} times the load, workers found {found}: before, after, twin {means:.3?}");
    means
}

#[test]
fn the_shares_are_right_within_the_first_seconds_and_the_twin_is_worse() {
    for found in [false, true] {
        for times in [3.0, 9.0] {
            let [before, after, twin] = restarted(times, found);
            let off = |own: [f64; 3]| (own[0] - before[0]).abs().max((own[1] - before[1]).abs());
            assert!(off(after) < 0.05, "{times}, {found}: {before:?}, {after:?}");
            // Until the workers are found pages are lighter if much waits, and so as many as the server carries at three times
            // its capacity: that twin is late only.
            let is_late_only = found && times < 5.0;
            assert!(
                if is_late_only {
                    twin[2] > 5.0 * after[2]
                } else {
                    off(twin) > 0.02 && off(twin) > 2.0 * off(after)
                },
                "{times}, {found}: {before:?}, {after:?}, {twin:?}"
            );
            assert!(
                after[2] < 1.5 * before[2] && twin[2] > 1.5 * after[2],
                "{times}, {found}: {before:?}, {after:?}, {twin:?}"
            );
        }
    }
}

/// What does not hold any more is left out, in a sentence, and nothing else is lost.
#[test]
fn what_does_not_fit_is_left_out() {
    let own = scene(3.0, true, 20, 1);
    let (_, learned) = run(&own, None);
    let mut other = own.promises.clone();
    other.sites[0].levels[0].name = "lighter".to_owned();
    let restored = |promises: &Promises, learned: &LearnedState| {
        let (mut engine, _) = Engine::new(promises, 1, 1).expect("it is possible");
        (engine.restore(learned, true), engine.learned())
    };
    let (left_out, kept) = restored(&own.promises, &learned);
    assert!(left_out.is_empty() && kept.plants == learned.plants, "{left_out:?}");
    assert_eq!(kept.classes, learned.classes, "nothing is lost on the way");
    let (left_out, kept) = restored(&other, &learned);
    assert!(
        left_out
            .iter()
            .any(|text| text == "class default of site site has other levels, or other servers for them")
    );
    assert_eq!(kept.plants[0].workers, learned.plants[0].workers, "the plant is the same");
    let mut renamed = own.promises.clone();
    renamed.plants[0].name = "another".to_owned();
    let (left_out, _) = restored(&renamed, &learned);
    assert!(left_out.iter().any(|text| text == "there is no upstream or folder server"), "{left_out:?}");
    let mut bounded = own.promises.clone();
    bounded.plants[0].find_workers = Some(WorkerBounds { least: 64, most: 128 });
    let (left_out, _) = restored(&bounded, &learned);
    assert_eq!(left_out, ["the workers of server lie outside what is promised"]);
    let mut damaged = learned.clone();
    damaged.classes[0].levels[1].cost.seconds = -1.0;
    damaged.plants[0].bias = f64::NAN;
    let (left_out, _) = restored(&own.promises, &damaged);
    assert_eq!(left_out.len(), 2, "{left_out:?}");
}
