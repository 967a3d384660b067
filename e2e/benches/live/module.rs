//! The paper's experiments UC 7 on one prefork server: its own processes decide, the gateway decides before it, in virtual time
//! the same engine decides, and the server as it is.

use super::{PAGE, PATIENCE};
use plimsoll_e2e::flows::Flown;
use plimsoll_e2e::scenes::{self, Promise, Scene};
use std::path::Path;
use std::time::Duration;

fn show_scene(scene: &Scene) {
    let (page, patience) = (Path::new(PAGE), scene.patience.unwrap_or(PATIENCE));
    let (control, apache, module) = scene.inside(page, patience);
    let mut clocks = vec![scene.utilization(&apache)];
    drop((apache, control));
    let (apache, gateway) = scene.behind_gateway(page, patience);
    clocks.push(scene.utilization(&apache));
    drop(apache);
    let (apache, bare) = scene.bare(page, patience);
    clocks.push(scene.utilization(&apache));
    drop(apache);
    let simulated: Vec<_> = (1..=3).map(|seed| scene.simulated_inside(seed, Duration::ZERO)).collect();
    let simulated_gateway = scene.simulated(2, false);
    for figure in &scene.figures {
        let of = |flown: &[Flown]| (figure.of)(flown);
        let mean = simulated.iter().map(|flown| of(flown)).sum::<f64>() / simulated.len() as f64;
        println!(
            "  {:<40} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3}",
            figure.what,
            of(&module),
            mean,
            of(&gateway),
            of(&simulated_gateway),
            of(&bare)
        );
    }
    println!(
        "  {:<40} {:>9.3} {:>9} {:>9.3} {:>9} {:>9.3}",
        "U by the server's own clock", clocks[0], "", clocks[1], "", clocks[2]
    );
}

/// What became of the flows, and the server's utilization by its own clock.
struct Ran {
    flown: Vec<Flown>,
    clock: f64,
}

/// The gateway's promise before a server that decides itself, with as many processes as the application has workers, and with
/// more; in virtual time: `crates/sim/tests/both_engines.rs`.
fn show_before(promise: Promise) {
    const WIDER: [u32; 3] = [1, 2, 3];
    let (page, scene) = (Path::new(PAGE), scenes::before_module(promise, 1));
    let patience = scene.patience.unwrap_or(PATIENCE);
    let mut ran = Vec::new();
    for wider in WIDER {
        let scene = scenes::before_module(promise, wider);
        let (gateway, control, apache, flown) = scene.before_inside(page, patience);
        ran.push(Ran { flown, clock: scene.utilization(&apache) });
        drop((gateway, apache, control));
    }
    let (apache, flown) = scene.behind_gateway(page, patience);
    ran.push(Ran { flown, clock: scene.utilization(&apache) });
    drop(apache);
    let heads = WIDER.map(|wider| format!("both, {wider}x"));
    let heads = heads.iter().map(String::as_str).chain([" gateway alone"]);
    println!("{:<62} {}", scene.name, heads.map(|head| format!("{head:>14}")).collect::<String>());
    let row = |what: &str, of: &dyn Fn(&Ran) -> f64, asked: &str| {
        let values: String = ran.iter().map(|ran| format!("{:>14.3}", of(ran))).collect();
        println!("  {what:<60} {values}  {asked}");
    };
    for figure in &scene.figures {
        row(figure.what, &|ran| (figure.of)(&ran.flown), &format!("{:?}", figure.bounds));
    }
    row("time in Apache's processes, of the workers'", &|ran| ran.clock, "");
}

fn head(name: &str) {
    let columns = ["module", "simulated", "gateway", "simulated", "bare"].map(|word| format!("{word:>9}"));
    println!("{name:<42} {}", columns.join(" "));
}

/// Up to three times the capacity.
pub(super) fn show_overloads() {
    for multiple in [3.0, 2.0, 1.0] {
        head(&format!("prefork at {multiple} of its capacity"));
        show_scene(&scenes::overload_of(multiple));
    }
}

/// Three times the capacity, the module alone: how much the figures differ from run to run, each with arrivals of its own.
pub(super) fn show_again() {
    println!("prefork at 3 of its capacity, the module in three runs");
    for run in 1..=3 {
        let mut scene = scenes::overload_of(3.0);
        scene.flows.iter_mut().for_each(|flow| flow.seed = run);
        let (control, apache, flown) = scene.inside(Path::new(PAGE), scene.patience.unwrap_or(PATIENCE));
        let clock = scene.utilization(&apache);
        drop((apache, control));
        let figures =
            scene.figures.iter().map(|figure| format!("{} {:.3}", figure.what, (figure.of)(&flown)));
        println!("  {run}: {}, by its clock {clock:.3}", figures.collect::<Vec<_>>().join(", "));
    }
    let scene = scenes::overload_of(3.0);
    let simulated: Vec<_> = (1..=20).map(|seed| scene.simulated_inside(seed, Duration::ZERO)).collect();
    for figure in &scene.figures {
        let figures: Vec<_> = simulated.iter().map(|flown| (figure.of)(flown)).collect();
        let (mean, spread) = super::mean_and_spread(&figures);
        println!("  in virtual time, twenty seeds: {} {mean:.3} +- {spread:.3}", figure.what);
    }
}

/// Isolation, priorities, excess and bandwidth by the module alone, beside the mean and the spread of twenty seeds in virtual
/// time: whether a live figure differs by more than chance.
pub(super) fn show_alone() {
    for scene in [scenes::priorities(), scenes::excess(), scenes::contracts(), scenes::bandwidth()] {
        let scene = scene.on_prefork();
        let (control, apache, module) = scene.inside(Path::new(PAGE), scene.patience.unwrap_or(PATIENCE));
        println!("{}, U by the server's own clock {:.3}", scene.name, scene.utilization(&apache));
        drop((apache, control));
        let simulated: Vec<_> = (1..=20).map(|seed| scene.simulated_inside(seed, Duration::ZERO)).collect();
        for figure in &scene.figures {
            let of = |flown: &[Flown]| (figure.of)(flown);
            let (mean, spread) =
                super::mean_and_spread(&simulated.iter().map(|flown| of(flown)).collect::<Vec<_>>());
            println!(
                "  {:<40} {:>9.3} {mean:>9.3} +- {spread:.3} {:?}",
                figure.what,
                of(&module),
                figure.bounds
            );
        }
    }
}

/// Behind a gateway that keeps a ratio, a mean, or nothing.
pub(super) fn show_before_module() {
    [Promise::Ratio, Promise::Delay, Promise::Nothing].into_iter().for_each(show_before);
}

/// Isolation, priorities, excess and bandwidth.
pub(super) fn show_contracts() {
    for scene in [scenes::contracts(), scenes::priorities(), scenes::excess(), scenes::bandwidth()] {
        head(scene.name);
        show_scene(&scene.on_prefork());
    }
}
