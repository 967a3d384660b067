//! Arrivals and services that are not Poisson's and exponential, through the engine: the queue alone waits as theory says, and
//! a promised mean is kept by about as many workers as Allen and Cunneen's approximation takes.

use crate::waits::{Flow, Scene, mean};
use plimsoll_core::model::Traffic;
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::{Law, Process};
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: std::ops::RangeInclusive<u64> = 6501..=6508;

fn lognormal(squared: f64) -> Law {
    Law::Lognormal { variation: f64::sqrt(squared) }
}

/// c^2 of the bounded Pareto of these tests: `E X^k` is `alpha (r^(k - alpha) - 1) / ((k - alpha) (1 - r^-alpha))`.
const PARETO: Law = Law::BoundedPareto { shape: 1.5, ratio: 100.0 };

fn squared_variation(law: &Law) -> f64 {
    match law {
        Law::Exponential => 1.0,
        Law::Lognormal { variation } => variation * variation,
        Law::BoundedPareto { shape, ratio } => {
            let moment = |k: f64| shape * (ratio.powf(k - shape) - 1.0) / (k - shape);
            moment(2.0) * (1.0 - ratio.powf(-shape)) / moment(1.0).powi(2) - 1.0
        }
        _ => 0.0,
    }
}

/// One worker of 1 ms at a load of 0.7, through the engine's queue and with nothing else in it: the mean response time (ms).
fn alone(process: Process, law: &Law) -> f64 {
    let runs = SEEDS.map(|seed| {
        let mut flow = Flow::new("default", 700.0).delay(Duration::from_secs(5), None);
        flow.process = process;
        let mut scene = Scene::new(1, Duration::from_millis(1), vec![flow], 200.0, seed);
        scene.site.default_delay = scene.flows[0].class.delay;
        scene.law = law.clone();
        let heard = scene.run();
        assert!(heard.answers.iter().all(|answer| answer.completed), "nobody is turned away");
        1e3 * heard.mean(0, 5.0)
    });
    mean(&runs.collect::<Vec<_>>())
}

const LOAD: f64 = 0.7;

/// M/G/1 by Pollaczek and Khinchine (ms).
fn mg1(squared: f64) -> f64 {
    1.0 + LOAD / (1.0 - LOAD) * 0.5 * (1.0 + squared)
}

/// GI/M/1: `1 / (1 - sigma)`, where `sigma = E exp(-(1 - sigma) A)` for gaps A in units of service (Kleinrock I, 6.4). `gap` is
/// the quantile function of gaps with mean 1.
fn gim1(gap: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 20_000;
    let quantiles: Vec<f64> =
        (0..STEPS).map(|step| gap((f64::from(step) + 0.5) / f64::from(STEPS)) / LOAD).collect();
    let transform = |sigma: f64| quantiles.iter().map(|gap| (-(1.0 - sigma) * gap).exp()).sum::<f64>();
    let sigma = (0..40).fold(0.5, |sigma, _| transform(sigma) / f64::from(STEPS));
    1.0 / (1.0 - sigma)
}

#[test]
fn the_engines_queue_waits_as_theory_says() {
    let pareto = |shape: f64| move |u: f64| (shape - 1.0) / shape * (1.0 - u).powf(-1.0 / shape);
    // Bursts of 20 us are batches: geometric, of five on average. M^X/M/1: `b / (1 - rho)`.
    let batches = Process::Modulated {
        ratio: 1e9,
        burst: Duration::from_micros(20),
        calm: Duration::from_secs_f64(4.0 / 700.0),
    };
    for (name, process, law, theory, within) in [
        ("M/D/1", Process::Poisson, Law::Deterministic, mg1(0.0), 0.02),
        ("M/LN/1, c^2 = 0.25", Process::Poisson, lognormal(0.25), mg1(0.25), 0.02),
        ("M/M/1", Process::Poisson, Law::Exponential, mg1(1.0), 0.02),
        ("M/LN/1, c^2 = 4", Process::Poisson, lognormal(4.0), mg1(4.0), 0.06),
        ("M/LN/1, c^2 = 8", Process::Poisson, lognormal(8.0), mg1(8.0), 0.1),
        ("M/Pareto/1", Process::Poisson, PARETO, mg1(squared_variation(&PARETO)), 0.06),
        ("D/M/1", Process::Deterministic, Law::Exponential, gim1(|_| 1.0), 0.02),
        ("Pareto 2.5/M/1", Process::Pareto { shape: 2.5 }, Law::Exponential, gim1(pareto(2.5)), 0.03),
        ("Pareto 1.5/M/1", Process::Pareto { shape: 1.5 }, Law::Exponential, gim1(pareto(1.5)), 0.06),
        ("M^X/M/1", batches, Law::Exponential, 5.0 / (1.0 - LOAD), 0.04),
    ] {
        let found = alone(process, &law);
        println!("{name}: {found:.3} ms, theory {theory:.3}");
        assert!((found / theory - 1.0).abs() <= within, "{name}: {found} ms, theory {theory}");
    }
}

/// 60/s before eight workers of 40 ms, promised 80 ms, beside so much best effort.
fn beside(law: &Law, best_effort: f64, seed: u64) -> Scene {
    let premium = Flow::new("premium", 60.0).delay(Duration::from_millis(80), None).priority(1);
    let flows = vec![premium, Flow::new("default", best_effort)];
    let scene = Scene::new(8, Duration::from_millis(40), flows, 400.0, seed);
    Scene { law: law.clone(), ..scene }
}

/// The mean (ms), and the quota that it took.
fn promised(law: &Law, best_effort: f64) -> (f64, f64) {
    let (mut means, mut quotas) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let heard = beside(law, best_effort, seed).run();
        means.push(1e3 * heard.mean(0, 60.0));
        let status = heard.status.expect("the engine ran").classes[0].response.expect("a promise");
        quotas.push(status.quota.expect("a quota"));
    }
    (mean(&means), mean(&quotas))
}

#[test]
fn a_mean_is_kept_by_as_many_workers_as_the_approximation_takes_whatever_the_service() {
    // Best effort of 150/s leaves a worker idle at times, the more often the more services vary, and the class may use it.
    // Beside 400/s no worker is idle, and what is left is the law's: the more services vary, the more a window of a thousand
    // does, and a class that is too quick is given up more slowly than one that is too slow is helped.
    for (name, law, least, least_beside_more) in [
        ("deterministic", Law::Deterministic, 76.5, 78.0),
        ("lognormal, c^2 = 0.25", lognormal(0.25), 76.5, 78.0),
        ("exponential", Law::Exponential, 75.7, 78.0),
        ("Pareto", PARETO, 73.5, 77.0),
        ("lognormal, c^2 = 4", lognormal(4.0), 73.5, 77.0),
        ("lognormal, c^2 = 8", lognormal(8.0), 72.0, 76.5),
    ] {
        let traffic = Traffic {
            rate: 60.0,
            service_seconds: 0.04,
            arrival_variability: 1.0,
            service_variability: squared_variation(&law),
        };
        let takes = traffic.servers_for_mean(0.08, 8.0);
        let (found, quota) = promised(&law, 150.0);
        let (beside_more, _) = promised(&law, 400.0);
        println!(
            "{name}: mean {found:.1} ms, quota {quota:.2}, by the approximation {takes:.2}; never idle {beside_more:.1} ms"
        );
        assert!((least..=78.5).contains(&found), "{name}: {found} ms");
        assert!((least_beside_more..=80.0).contains(&beside_more), "{name}: {beside_more} ms");
        assert!(
            (0.78..=1.2).contains(&(quota / takes)),
            "{name}: {quota} workers, {takes} by the approximation"
        );
    }
    // The twin without control waits with all others: even beside 150/s the server is more than full.
    let twin = Scene { mode: Mode::Off, ..beside(&Law::Exponential, 150.0, *SEEDS.start()) };
    let found = 1e3 * twin.run().mean(0, 60.0);
    assert!(found > 500.0, "{found} ms");
}
