//! `make live`: the figures of the scenes in real time, beside those in virtual time and the bounds that are asked of them; then the agent,
//! the profiler and the laws of promised means. It prints, and fails nothing: what a figure is in real time depends on what else the
//! machine does. The tests judge the same figures in virtual time.

mod agent;
mod profile;
mod queueing_model;

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
    println!("  {:<36} {:>9}  {:>9}  asked", "", "live", "simulated");
    for scene in scenes::all() {
        show(&scene, false);
        show(&scene, true);
    }
    agent::show();
    profile::show();
    queueing_model::show();
}
