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
        Flow::new("premium", premium).delay(MS(500), Some(99.9)).priority(1),
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
    for times in [0.5, 0.79, 3.0, 10.0, 0.7] {
        let mut bb: Vec<f64> = vec![];
        let (mut good, mut done, mut busy, mut premium, mut premiums, mut rejected, mut n, mut w) =
            (0., 0., 0., 0., 0., 0, 0, vec![]);
        for seed in 1..=10 {
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
            let (a, b) = if slow { (20.0, 40.0) } else { (0.0, 60.0) };
            let inside: Vec<&Answer> =
                heard.answers.iter().filter(|x| x.arrived >= a && x.arrived < b).collect();
            let ok = |x: &Answer| x.completed && x.response() <= 0.5;
            good += inside.iter().filter(|x| ok(x)).count() as f64;
            done += inside.iter().filter(|x| x.completed).count() as f64;
            busy += mean(&heard.busy[a as usize..b as usize]);
            premium += inside.iter().filter(|x| x.class == 0 && ok(x)).count() as f64;
            premiums += inside.iter().filter(|x| x.class == 0).count() as f64;
            rejected += inside.iter().filter(|x| !x.completed).count();
            n += inside.len();
            for (k, b) in heard.busy.iter().enumerate() {
                if bb.len() <= k {
                    bb.push(0.0);
                }
                bb[k] += b / 10.0;
            }
            w.push(heard.status.as_ref().unwrap().plants[0].limit);
        }
        println!(
            "x{times}: goodput over realized {:.4} (rate {:.1}, busy {:.3}) premium {:.4} rejected {rejected} of {n} {w:?}",
            good / done * busy / 10.0,
            good / 10.0 / if times == 0.7 { 20. } else { 60. },
            busy / 10.0,
            premium / premiums
        );
    }
}

#[test]
fn trace() {
    for seconds in [1.1, 2.1, 3.1] {
        let mut scene = untuned(10.0, 1);
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
            (
                status.classes[0].response,
                status.classes[1].response,
                status.classes[0].queue_delay,
                status.classes[1].queue_delay,
                &status.classes[1].counts.reasons
            )
        );
    }
}
