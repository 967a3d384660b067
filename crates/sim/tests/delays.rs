//! Promised delays: probe.

mod waits;

use plimsoll_core::promises::WorkerBounds;
use plimsoll_sim::workload::{Fault, FaultKind};
use std::time::Duration;
use waits::{Answer, Flow, Scene, mean, percentile};

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn pr_mean() {
    for best_effort in [150.0, 300.0, 1500.0] {
        for seed in 1..=3 {
            let flows =
                vec![Flow::new("premium", 100.0).delay(MS(200), None), Flow::new("default", best_effort)];
            let mut scene = Scene::new(8, MS(40), flows, 400.0, seed);
            scene.plant.queue.max_wait = MS(5000);
            let heard = scene.run();
            println!(
                "BE {best_effort}: mean {:.3} {:?}",
                heard.mean(0, 100.0),
                heard.status.as_ref().unwrap().classes[0].response
            );
        }
    }
}

#[test]
fn pr_p95() {
    for (rate, best_effort) in [(100.0, 300.0), (100.0, 90.0), (100., 95.), (50., 145.), (150., 46.)] {
        for seed in 1..=3 {
            let flows = vec![
                Flow::new("premium", rate).delay(MS(250), Some(95.0)),
                Flow::new("default", best_effort),
            ];
            let mut scene = Scene::new(8, MS(40), flows, 400.0, seed);
            scene.plant.queue.max_wait = MS(5000);
            let heard = scene.run();
            let own = heard.responses(0, 100.0);
            let late = own.iter().filter(|r| **r > 0.25).count() as f64 / own.len() as f64;
            println!(
                "P95 {rate} BE {best_effort}: late {late:.4} {:?}",
                heard.status.as_ref().unwrap().classes[0].response
            );
        }
    }
}

fn untuned(times: f64, seed: u64) -> Scene {
    let all = 200.0 * times;
    let premium = if times < 1.0 { 50.0 } else { 100.0 };
    let flows = vec![
        Flow::new("premium", premium).delay(MS(500), Some(99.5)).priority(1),
        Flow::new("default", all - premium).delay(MS(500), Some(95.0)),
    ];
    let mut scene = Scene::new(8, MS(40), flows, 60.0, seed);
    scene.plant.find_workers = Some(WorkerBounds { least: 1, most: 1024 });
    scene.plant.workers = 16;
    scene.plant.max_connections = 1024;
    scene.site.default_delay = scene.flows[1].class.delay;
    scene
}

#[test]
fn probe_untuned() {
    for times in [0.5, 0.8, 3.0, 10.0, 0.7] {
        for seed in 1..=3 {
            let mut scene = untuned(times, seed);
            let slow = times == 0.7;
            if slow {
                scene.faults = vec![Fault {
                    from: Duration::from_secs(20),
                    until: Duration::from_secs(40),
                    kind: FaultKind::Slower(2.0),
                }];
            }
            let heard = scene.run();
            let (a, b) = if slow { (20.0, 40.0) } else { (10.0, 60.0) };
            let inside: Vec<&Answer> =
                heard.answers.iter().filter(|x| x.arrived >= a && x.arrived < b).collect();
            let good = |c: Option<usize>| {
                inside
                    .iter()
                    .filter(|x| x.completed && x.response() <= 0.5 && c.is_none_or(|c| c == x.class))
                    .count() as f64
            };
            let all = |c: usize| inside.iter().filter(|x| x.class == c).count() as f64;
            if std::env::var("WHO").is_ok() && seed < 3 && times != 3.0 {
                let mut bins = std::collections::BTreeMap::new();
                for x in inside.iter().filter(|x| x.class == 0 && !(x.completed && x.response() <= 0.5)) {
                    *bins
                        .entry((x.arrived as u64, x.completed, (x.response() * 10.0) as u64))
                        .or_insert(0) += 1;
                }
                println!("W{times} {bins:?}");
            }
            let rejected = inside.iter().filter(|x| !x.completed).count();
            let done = inside.iter().filter(|x| x.completed).count();
            let plant = &heard.status.as_ref().unwrap().plants[0];
            println!(
                "x{times}: goodput {:.1}/s ({:.3} of done) premium {:.4} rejected {rejected} of {} workers {} limit {} found {:?} m {:.2}",
                good(None) / (b - a),
                good(None) / done as f64,
                good(Some(0)) / all(0),
                inside.len(),
                plant.workers,
                plant.limit,
                plant.workers_found,
                plant.service_level
            );
        }
    }
}

#[test]
fn tr_ace() {
    for seconds in [5.0, 10., 15., 20., 25., 26., 27., 28., 29.] {
        let mut scene = untuned(3.0, 1);
        scene.seconds = seconds;
        let heard = scene.run();
        let status = heard.status.unwrap();
        let p = &status.plants[0];
        println!(
            "T{seconds} U {:.3} offered {:.3} model {:.3} m {:.3} trim {:.3} line {} in {} wait {} service {:?} rate {:.0}/{:.0} m {:.2}/{:.2} cost {:?} {:?} resp {:?}",
            p.utilization,
            p.utilization_offered,
            p.utilization_model,
            p.service_level,
            p.trim,
            p.set_point,
            p.in_service,
            p.waiting,
            p.service_time,
            status.classes[0].request_rate,
            status.classes[1].request_rate,
            status.classes[0].service_level,
            status.classes[1].service_level,
            status.classes[0].level_cost_seconds,
            status.classes[1].level_cost_seconds,
            status.classes[1].response
        );
    }
}
