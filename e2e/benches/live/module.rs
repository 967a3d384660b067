//! The paper's experiments UC 7 on one prefork server: its own processes decide, the gateway decides before it, in virtual time
//! the same engine decides, and the server as it is.

use super::{PAGE, PATIENCE};
use plimsoll_e2e::flows::Flown;
use plimsoll_e2e::scenes::{self, Promise, Scene};
use std::path::Path;

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
    let inside = scene.for_module();
    let simulated: Vec<_> = (1..=3).map(|seed| inside.simulated(seed, false)).collect();
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

/// The gateway's promise before a server that decides itself; in virtual time: `crates/sim/tests/both_engines.rs`.
fn show_before(scene: &Scene) {
    println!("{:<42} {:>9} {:>15}", scene.name, "both", "gateway alone");
    let (page, patience) = (Path::new(PAGE), scene.patience.unwrap_or(PATIENCE));
    let (gateway, control, apache, both) = scene.before_inside(page, patience);
    let both_clock = scene.utilization(&apache);
    drop((gateway, apache, control));
    let (apache, alone) = scene.behind_gateway(page, patience);
    let clocks = [both_clock, scene.utilization(&apache)];
    drop(apache);
    for figure in &scene.figures {
        let [both, alone] = [&both, &alone].map(|flown| (figure.of)(flown));
        println!("  {:<40} {both:>9.3} {alone:>15.3}  {:?}", figure.what, figure.bounds);
    }
    println!("  {:<40} {:>9.3} {:>15.3}", "U by the server's own clock", clocks[0], clocks[1]);
}

fn head(name: &str) {
    let columns = ["module", "simulated", "gateway", "simulated", "bare"].map(|word| format!("{word:>9}"));
    println!("{name:<42} {}", columns.join(" "));
}

pub(super) fn show() {
    for multiple in [3.0, 2.0, 1.0] {
        head(&format!("prefork at {multiple} of its capacity"));
        show_scene(&scenes::overload_of(multiple));
    }
    for promise in [Promise::Ratio, Promise::Delay, Promise::Nothing] {
        show_before(&scenes::before_module(promise));
    }
    for scene in [scenes::contracts(), scenes::priorities(), scenes::excess(), scenes::bandwidth()] {
        head(scene.name);
        show_scene(&scene.on_prefork());
    }
}
