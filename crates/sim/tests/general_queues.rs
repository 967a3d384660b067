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

/// Workers of so many ms as there are, at a load of 0.7, through the engine's queue and with nothing else in it: the mean
/// response time (ms).
fn alone(workers: u32, process: Process, law: &Law) -> f64 {
    let runs = SEEDS.map(|seed| {
        let mut flow = Flow::new("default", RATE).delay(Duration::from_secs(5), None);
        flow.process = process;
        let mut scene = Scene::new(workers, Duration::from_millis(workers.into()), vec![flow], 200.0, seed);
        scene.site.default_delay = scene.flows[0].class.delay;
        scene.law = law.clone();
        let heard = scene.run();
        assert!(heard.answers.iter().all(|answer| answer.completed), "nobody is turned away");
        1e3 * heard.mean(0, 5.0)
    });
    mean(&runs.collect::<Vec<_>>())
}

const LOAD: f64 = 0.7;
/// Requests per second.
const RATE: f64 = 1000.0 * LOAD;

/// M/G/1 by Pollaczek and Khinchine (ms).
fn mg1(squared: f64) -> f64 {
    1.0 + LOAD / (1.0 - LOAD) * 0.5 * (1.0 + squared)
}

/// GI/M/s by Takács (Introduction to the Theory of Queues, 1962, chapter 2), in ms: services of s ms, and `gaps(z)` is
/// `E exp(-z A)` for gaps of A ms. A request waits with probability `p / (1 - sigma)`, where `sigma = gaps(1 - sigma)`, and an
/// exponential time of mean `1 / (1 - sigma)` then.
fn gims(workers: u32, gaps: impl Fn(f64) -> f64) -> f64 {
    let s = f64::from(workers);
    let sigma = (0..200).fold(0.5, |sigma, _| gaps(1.0 - sigma));
    let (mut among, mut product, mut sum) = (1.0, 1.0, 1.0 / (1.0 - sigma));
    for j in 1..=workers {
        let (j, gap) = (f64::from(j), gaps(f64::from(j) / s));
        among *= (s - j + 1.0) / j;
        product *= gap / (1.0 - gap);
        sum += among / (product * (1.0 - gap)) * (s * (1.0 - gap) - j) / (s * (1.0 - sigma) - j);
    }
    s + 1.0 / (sum * (1.0 - sigma).powi(2))
}

/// The same for gaps by their quantile function, with mean 1.
fn gaps_of(quantile: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
    const STEPS: u32 = 20_000;
    let quantiles: Vec<f64> =
        (0..STEPS).map(|step| quantile((f64::from(step) + 0.5) / f64::from(STEPS)) / LOAD).collect();
    move |z| quantiles.iter().map(|gap| (-z * gap).exp()).sum::<f64>() / f64::from(STEPS)
}

/// Poisson's arrivals in bursts, and none between them; the means of both in ms.
fn bursts(burst: f64, calm: f64) -> Process {
    let time = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    Process::Modulated { ratio: 1e9, burst: time(burst), calm: time(calm) }
}

/// Their gaps: an interrupted Poisson process is a renewal process (Kuczura 1973).
fn gaps_of_bursts(burst: f64, calm: f64) -> impl Fn(f64) -> f64 {
    let (rate, ends, begins) = (LOAD * (burst + calm) / burst, 1.0 / burst, 1.0 / calm);
    move |z| rate * (z + begins) / ((z + rate + ends) * (z + begins) - ends * begins)
}

#[test]
fn the_engines_queue_waits_as_theory_says() {
    let pareto = |shape: f64| gaps_of(move |u: f64| (shape - 1.0) / shape * (1.0 - u).powf(-1.0 / shape));
    let poisson = |z: f64| LOAD / (LOAD + z);
    let constant = || gaps_of(|_| 1.0);
    for (name, workers, process, law, theory, within) in [
        ("M/D/1", 1, Process::Poisson, Law::Deterministic, mg1(0.0), 0.02),
        ("M/LN/1, c^2 = 0.25", 1, Process::Poisson, lognormal(0.25), mg1(0.25), 0.02),
        ("M/M/1", 1, Process::Poisson, Law::Exponential, mg1(1.0), 0.02),
        ("M/LN/1, c^2 = 4", 1, Process::Poisson, lognormal(4.0), mg1(4.0), 0.06),
        ("M/LN/1, c^2 = 8", 1, Process::Poisson, lognormal(8.0), mg1(8.0), 0.1),
        ("M/Pareto/1", 1, Process::Poisson, PARETO, mg1(squared_variation(&PARETO)), 0.06),
        ("D/M/1", 1, Process::Deterministic, Law::Exponential, gims(1, constant()), 0.02),
        ("Pareto 2.5/M/1", 1, Process::Pareto { shape: 2.5 }, Law::Exponential, gims(1, pareto(2.5)), 0.03),
        ("Pareto 1.5/M/1", 1, Process::Pareto { shape: 1.5 }, Law::Exponential, gims(1, pareto(1.5)), 0.06),
        // Bursts of 20 us are batches: geometric, of five on average. M^X/M/1: `b / (1 - rho)`.
        ("M^X/M/1", 1, bursts(0.02, 4.0 / LOAD), Law::Exponential, 5.0 / (1.0 - LOAD), 0.04),
        ("on-off/M/1", 1, bursts(5.0, 10.0), Law::Exponential, gims(1, gaps_of_bursts(5.0, 10.0)), 0.04),
        (
            "on-off/M/1, longer",
            1,
            bursts(40.0, 20.0),
            Law::Exponential,
            gims(1, gaps_of_bursts(40.0, 20.0)),
            0.06,
        ),
        ("M/M/8", 8, Process::Poisson, Law::Exponential, gims(8, poisson), 0.01),
        ("D/M/8", 8, Process::Deterministic, Law::Exponential, gims(8, constant()), 0.01),
        ("Pareto 2.5/M/8", 8, Process::Pareto { shape: 2.5 }, Law::Exponential, gims(8, pareto(2.5)), 0.02),
        ("on-off/M/8", 8, bursts(5.0, 10.0), Law::Exponential, gims(8, gaps_of_bursts(5.0, 10.0)), 0.04),
    ] {
        let found = alone(workers, process, &law);
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
