//! UC 7.2 to 7.4: the paper's server by its own numbers, with the module, behind the gateway, and as it is.

use super::PAGE;
use plimsoll_e2e::flows::Flown;
use plimsoll_e2e::scenes::{self, Scene};
use plimsoll_e2e::{Apache, Control, Plimsoll, ServerModel};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// What a row is called and its figures: the module live and in virtual time, the gateway live and in virtual time, bare.
fn row(what: &str, figures: &[f64]) {
    let figures: String = figures.iter().map(|figure| format!("{figure:>10.3}")).collect();
    println!("  {what:<44}{figures}");
}

fn head(name: &str) {
    let columns = ["module", "simulated", "gateway", "simulated", "bare", "by eq. 9"];
    println!("{name:<46}{}", columns.map(|word| format!("{word:>10}")).concat());
}

/// The module live and in virtual time, the gateway live, if that is asked for, and in virtual time.
fn controlled(scene: &Scene, by_gateway: bool) -> [Vec<Flown>; 4] {
    let (page, patience) = (Path::new(PAGE), scene.patience.unwrap_or(super::PATIENCE));
    let (control, apache, module) = scene.inside(page, patience);
    drop((apache, control));
    let gateway = if by_gateway { scene.behind_gateway(page, patience).1 } else { vec![Flown::default()] };
    [module, scene.simulated_inside(1, Duration::ZERO), gateway, scene.simulated(2, false)]
}

/// Fig. 8 and 9: median response times (s) at half, nine tenths and twice the capacity. Behind the gateway requests wait in its
/// own queue, so that the length of the listen queue is nothing to it.
pub(super) fn show_response_times() {
    for (kib, queue, by_gateway) in [(64, 48, true), (64, 768, false), (8, 48, true), (8, 511, false)] {
        let scene = scenes::listen_queue(kib, queue);
        head(&format!("7.3: pages of {kib} KB, a listen queue of {queue}"));
        let (apache, bare) = scene.bare(Path::new(PAGE), scene.patience.unwrap_or(super::PATIENCE));
        drop(apache);
        let mut all: Vec<_> = controlled(&scene, by_gateway).map(|flown| scenes::medians(&flown)).into();
        all.push(scenes::medians(&bare));
        let full = scene.model.full().as_secs_f64();
        let knee = f64::from(queue) / scene.model.capacity() + full;
        all.push([full, full, knee]);
        for (rate, what) in ["at half of the capacity", "at 0.9 of it", "at twice"].into_iter().enumerate() {
            let medians: Vec<f64> = all.iter().map(|medians| medians[rate]).collect();
            row(&format!("median response {what} (s)"), &medians);
        }
    }
}

/// Fig. 10: the highest rate with light pages over that without, less 1. The server is four times as slow as the paper's, so
/// that this machine's own processors have next to nothing to do; a script takes 256 ms more of its worker.
pub(super) fn show_payoff() {
    head("7.4: gain of degradation");
    for (what, model) in payoff_models() {
        let [with, without] =
            [true, false].map(|has_levels| controlled(&scenes::payoff(model, has_levels), true));
        let gains = with
            .iter()
            .zip(&without)
            .map(|(with, without)| scenes::served(with) / scenes::served(without) - 1.0);
        let gains: Vec<f64> = gains.chain([f64::NAN, 1.0 / model.light_cost() - 1.0]).collect();
        row(&what, &gains);
    }
}

fn payoff_models() -> Vec<(String, ServerModel)> {
    let slower = |kib, more| {
        let model = scenes::papers_server(kib, 511);
        ServerModel { fixed: 4 * model.fixed + more, per_kib: 4 * model.per_kib, ..model }
    };
    let files = [8, 32, 128].map(|kib| (format!("files of {kib} KB"), slower(kib, Duration::ZERO)));
    let script = ("a script's 32 KB".to_owned(), slower(32, Duration::from_millis(256)));
    files.into_iter().chain([script]).collect()
}

/// Fig. 10 by the module alone: a live run with arrivals of its own, and the mean and the spread of twenty seeds in virtual
/// time. Both are pages of six seconds, so that chance has its part in each.
pub(super) fn show_payoff_again(run: u32) {
    println!("7.4: gain of degradation, the module alone, run {run}");
    let gain = |with: &[Flown], without: &[Flown]| scenes::served(with) / scenes::served(without) - 1.0;
    for (what, model) in payoff_models() {
        let pair = [true, false].map(|has_levels| {
            let mut scene = scenes::payoff(model, has_levels);
            scene.flows.iter_mut().for_each(|flow| flow.seed = run);
            scene
        });
        let [with, without] = pair.each_ref().map(|scene| {
            let (control, apache, flown) =
                scene.inside(Path::new(PAGE), scene.patience.unwrap_or(super::PATIENCE));
            drop((apache, control));
            flown
        });
        let simulated = (1..=20).map(|seed| {
            let [with, without] = pair.each_ref().map(|scene| scene.simulated_inside(seed, Duration::ZERO));
            gain(&with, &without)
        });
        let (mean, spread) = super::mean_and_spread(&simulated.collect::<Vec<_>>());
        println!(
            "  {what:<44}{:>10.3}{mean:>10.3} +- {spread:.3}, by eq. 9 {:.3}",
            gain(&with, &without),
            1.0 / model.light_cost() - 1.0
        );
    }
}

/// Table 1 to 3: the profiler's service times by size, and what it fits to them.
pub(super) fn show_service_times() {
    println!("7.2: service time by size (ms), and its fit");
    let model = scenes::papers_server(64, 511);
    let by_sizes = [1, 8, 32, 64].map(|kib| 1e3 / scenes::papers_server(kib, 511).capacity());
    println!("  {:<20} {by_sizes:.3?}", "by eq. 9");
    // What is measured is the server at its limit, so nothing is turned away or lighter.
    let file = |upstream: SocketAddr| {
        format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n[upstream.server]\naddress = \"{upstream}\"\n\
             max_connections = 512\ncapacity = {{ workers = {} }}\n[[site]]\nname = \"site\"\nexempt = [{{ path = \"/*\" }}]\n",
            model.workers
        )
    };
    let control = Control::start(&file(([127, 0, 0, 1], 9).into()));
    let apache = Apache::deciding(Path::new(PAGE), model, model.workers, &control);
    profile("the module", apache.direct);
    drop((apache, control));
    let apache = Apache::holding(Path::new(PAGE), model);
    profile("bare", apache.direct);
    let gateway = Plimsoll::run(&file(apache.upstream));
    profile("behind the gateway", gateway.address);
}

fn profile(what: &str, server: SocketAddr) {
    let page = format!("http://{server}/page/{{size}}");
    let arguments =
        ["profile", &page, "--sizes", "1K,8K,32K,64K", "--seconds-per-size", "3", "--no-overload", "--json"];
    let found: Value = serde_json::from_slice(&Plimsoll::output(&arguments).stdout).unwrap_or_default();
    let figure =
        |value: &Value, name: &str, times: f64| value[name].as_f64().map_or(f64::NAN, |value| times * value);
    let sizes = found["sizes"].as_array().into_iter().flatten();
    let sizes = sizes.map(|size| {
        let [took, error] =
            [("service_seconds", 1e3), ("fit_error", 100.0)].map(|(name, times)| figure(size, name, times));
        format!("{took:.3} ({error:+.1} %)")
    });
    println!("  {what:<20} {}", sizes.collect::<Vec<_>>().join("  "));
    println!("  {:<20} {}", "", found["costs"]);
}
