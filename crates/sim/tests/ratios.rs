//! Ratios of delays (PR): probe.

mod waits;

use std::time::Duration;
use waits::{Flow, Scene, mean, percentile};

fn scene(workers: u32, load: f64, shares: &[f64], deltas: &[f64], seed: u64) -> Scene {
    let service = Duration::from_millis(40);
    let all = load * f64::from(workers) / 0.04;
    let total: f64 = shares.iter().sum();
    let flows = shares.iter().zip(deltas).enumerate();
    let flows =
        flows.map(|(n, (share, delta))| Flow::new(&format!("c{n}"), all * share / total).ratio(*delta));
    let seconds = 40_000.0 / all;
    Scene::new(workers, service, flows.collect(), seconds, seed)
}

#[test]
fn probe() {
    for (workers, shares, deltas) in [(1, &[3.0, 1.0][..], &[1.0, 3.0][..])] {
        for load in [0.8, 0.9] {
            let (mut ratios, mut spreads, mut infeasible) = (vec![], vec![], 0);
            for seed in 1..=6 {
                let scene = scene(workers, load, shares, deltas, seed);
                let heard = scene.run();
                let from = scene.seconds * 0.3;
                let last = deltas.len() - 1;
                ratios.push(heard.mean(last, from) / heard.mean(0, from));
                let mut both: Vec<_> = heard.answers.iter().filter(|a| a.arrived > from).collect();
                both.sort_by(|a, b| a.ended.total_cmp(&b.ended));
                let mut windows: Vec<f64> = both
                    .chunks(1000)
                    .filter_map(|w| {
                        let of = |c: usize| {
                            mean(&w.iter().filter(|a| a.class == c).map(|a| a.response()).collect::<Vec<_>>())
                        };
                        (w.len() == 1000).then(|| of(last) / of(0))
                    })
                    .collect();
                spreads.push(percentile(&mut windows, 0.95) - percentile(&mut windows, 0.05));
                if seed == 1 {
                    for c in &heard.status.as_ref().unwrap().classes {
                        println!("   {} {:?}", c.class, c.response);
                    }
                    for q in 0..5 {
                        let lo = from + (scene.seconds - from) * q as f64 / 5.0;
                        let hi = lo + (scene.seconds - from) / 5.0;
                        let m = |c: usize| {
                            mean(
                                &heard
                                    .answers
                                    .iter()
                                    .filter(|a| a.class == c && a.arrived >= lo && a.arrived < hi)
                                    .map(|a| a.response())
                                    .collect::<Vec<_>>(),
                            )
                        };
                        println!("    {q}: {:.3} {:.3} {:.3}", m(0), m(last), m(last) / m(0));
                    }
                }
                infeasible += u32::from(
                    heard.status.as_ref().unwrap().classes[0].response.is_some_and(|r| r.infeasible),
                );
            }
            println!(
                "s={workers} {deltas:?} load {load}: ratio {:.3} spread {:.2} infeasible {infeasible}/6",
                mean(&ratios),
                mean(&spreads)
            );
        }
    }
}
