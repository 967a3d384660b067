//! `make live`: the figures of the scenes in real time, beside those in virtual time and the bounds that are asked of them;
//! then a site with its lighter trees, promises that change, the agent, the papers' experiments inside a server, the
//! profiler, the laws of promised means, what a rejection costs, and the dashboard. It prints, and fails nothing: what a
//! figure is in real time depends on what else the machine does. The tests judge the same figures in virtual time. With names
//! as arguments (`cargo bench -p plimsoll-e2e --bench live -- queueing-model`) only those parts run: scenes, shop, reload,
//! agent, wire, module, module-again, before-module, module-contracts, module-alone, service-times, response-times, payoff,
//! payoff-again, profile, queueing-model, rejections, rejections-inside, served-rate, dashboard. Unnamed, module-alone and
//! payoff-again do not run: module-contracts and payoff have all of them, once.

mod agent;
mod dashboard;
mod module;
mod papers_server;
mod profile;
mod queueing_model;
mod rejections;
mod reload;
mod served_rate;
mod shop;
mod wire;

use plimsoll_e2e::scenes::{self, Scene};
use std::path::Path;
use std::time::Duration;

const PAGE: &str = env!("CARGO_BIN_EXE_page");
/// How long a client waits where the scene does not say it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A row of the table.
fn row(what: &str, live: f64, simulated: &str, asked: &str) {
    println!("  {what:<36} {live:>9.3}  {simulated:>9}  {asked}");
}

/// The mean of figures, and the standard deviation of one of them.
fn mean_and_spread(figures: &[f64]) -> (f64, f64) {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

fn show(scene: &Scene, twin: bool) {
    println!("{}{}", scene.name, if twin { ", the twin without control" } else { "" });
    let (gateway, live) = scene.live(Path::new(PAGE), twin, scene.patience.unwrap_or(PATIENCE));
    drop(gateway);
    let simulated = scene.simulated(2, twin);
    for figure in &scene.figures {
        let bounds = if twin { figure.twin.as_ref() } else { Some(&figure.bounds) };
        let Some(bounds) = bounds else { continue };
        let asked = format!("{:.3} to {:.3}", bounds.start(), bounds.end());
        row(figure.what, (figure.of)(&live), &format!("{:.3}", (figure.of)(&simulated)), &asked);
    }
}

fn main() {
    // Cargo adds options of its own.
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    if runs("scenes") {
        println!("  {:<36} {:>9}  {:>9}  asked", "", "live", "simulated");
        for scene in scenes::all() {
            show(&scene, false);
            show(&scene, true);
        }
    }
    if named.iter().any(|name| name == "module-alone") {
        module::show_alone();
    }
    if named.iter().any(|name| name == "payoff-again") {
        (1..=2).for_each(papers_server::show_payoff_again);
    }
    for (part, show) in [
        ("shop", shop::show as fn()),
        ("reload", reload::show),
        ("agent", agent::show),
        ("wire", wire::show),
        ("module", module::show_overloads),
        ("module-again", module::show_again),
        ("before-module", module::show_before_module),
        ("module-contracts", module::show_contracts),
        ("service-times", papers_server::show_service_times),
        ("response-times", papers_server::show_response_times),
        ("payoff", papers_server::show_payoff),
        ("profile", profile::show),
        ("queueing-model", queueing_model::show),
        ("rejections", rejections::show),
        ("rejections-inside", rejections::show_inside),
        ("served-rate", served_rate::show),
        ("dashboard", dashboard::show),
    ] {
        if runs(part) {
            show();
        }
    }
}
