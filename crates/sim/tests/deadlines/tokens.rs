//! Requests to a language model: what one costs is its tokens, spread over three orders of magnitude, and nothing in its
//! path tells. The sizes are the forty quantiles of the Azure trace of `data/` (means of each fortieth of the sorted sums of
//! context and generated tokens, over the mean of 2,076). Two times the capacity, a deadline of three mean services.

use crate::scene::{Flow, Heard, Kind, Scene};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;
use std::time::Duration;

const QUANTILES: [f64; 40] = [
    0.019, 0.038, 0.052, 0.071, 0.090, 0.113, 0.142, 0.181, 0.224, 0.272, 0.315, 0.364, 0.408, 0.447, 0.482,
    0.514, 0.547, 0.591, 0.645, 0.693, 0.745, 0.801, 0.850, 0.907, 0.970, 1.031, 1.090, 1.154, 1.215, 1.295,
    1.381, 1.485, 1.626, 1.796, 2.024, 2.295, 2.765, 3.172, 3.583, 3.599,
];
const MEAN: f64 = 0.2;
const DEADLINE: f64 = 3.0 * MEAN;
const SECONDS: f64 = 400.0;

fn scene(workers: u32, announced: bool, seed: u64) -> Scene {
    let kind = |quantile: &f64| {
        let seconds = quantile * MEAN;
        let path: &'static str = Box::leak(format!("/generate/{quantile}-").into_boxed_str());
        let mut kind = Kind::new(path, 1.0, Duration::from_secs_f64(seconds), Law::Deterministic);
        if announced {
            kind.headers.push(("x-cost".to_owned(), format!("{seconds:.6}")));
        }
        kind
    };
    let rate = 2.0 * f64::from(workers) / MEAN;
    let flow = Flow::new("all", rate, QUANTILES.iter().map(kind).collect());
    let flow = flow.within(Some(Duration::from_secs_f64(DEADLINE)));
    let mut scene = Scene::new(workers, vec![flow], SECONDS, seed);
    scene.site.cost_header = Some("x-cost".to_owned());
    scene
}

struct Tokens {
    /// Work answered in time, over the capacity.
    goodput: f64,
    /// The part of each decile of sizes that was answered in time.
    deciles: Vec<f64>,
    missed: f64,
}

fn tokens(name: &str, workers: u32, heard: &Heard) -> Tokens {
    let place = |path: &str| QUANTILES.iter().position(|quantile| path == format!("/generate/{quantile}-"));
    let (mut work, mut asked, mut served) = (0.0, [0.0; 10], [0.0; 10]);
    for answer in heard.of(0, 20.0) {
        let place = place(answer.path).expect("one of them");
        asked[place / 4] += 1.0;
        if answer.is_in_time(DEADLINE) {
            served[place / 4] += 1.0;
            work += QUANTILES[place] * MEAN;
        }
    }
    let goodput = work / (SECONDS - 20.0) / f64::from(workers);
    let deciles: Vec<f64> = served.iter().zip(asked).map(|(served, asked)| served / asked).collect();
    let missed = heard.missed(0, DEADLINE, (20.0, SECONDS - 1.0));
    println!("{name}, {workers} workers: goodput {goodput:.3}, missed {missed:.4}, deciles {deciles:.2?}");
    Tokens { goodput, deciles, missed }
}

/// Half of the mean over all, for each of the first so many deciles.
fn none_starves(found: &Tokens, deciles: usize) -> bool {
    let mean = found.deciles.iter().sum::<f64>() / 10.0;
    found.deciles[..deciles].iter().all(|part| *part >= 0.5 * mean)
}

#[test]
fn announced_costs_are_packed_tightly() {
    for workers in [4, 8, 16] {
        let found = tokens("announced", workers, &scene(workers, true, 1).run());
        assert!((0.85..=0.98).contains(&found.goodput) && found.missed <= 0.001, "{}", found.goodput);
        // In the largest tenth three quarters take longer than the deadline even alone, and the rest nine tenths of it.
        assert!(none_starves(&found, 9), "{:?}", found.deciles);
    }
}

#[test]
fn costs_that_nobody_tells_are_worse_than_announced_and_better_than_nothing() {
    for workers in [8, 16] {
        let found = tokens("learned", workers, &scene(workers, false, 1).run());
        assert!((0.65..0.85).contains(&found.goodput) && none_starves(&found, 9), "{:?}", found.deciles);
        assert!(found.missed <= 0.1, "{}", found.missed);
    }
}

/// The twin.
#[test]
fn without_control_no_token_is_in_time() {
    let found = tokens("off", 8, &Scene { mode: Mode::Off, ..scene(8, true, 1) }.run());
    assert!(found.goodput < 0.05);
}
