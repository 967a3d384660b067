//! Two sites with the same deadline and priority, above a class that was promised nothing: the law of accepted lateness is
//! one for both. The service times of one vary much more than those of the other.
//!
//! What requests of a site take is learned of the site alone. So the site with usual times loses nothing: with deadlines that
//! differ by a millisecond, each site has a law of its own, and as many of its requests are late or refused.

use crate::waits::{Answer, Flow, Scene};
use plimsoll_core::promises::{Mode, Site};
use plimsoll_sim::workload::Law;
use std::time::Duration;

const SEEDS: [u64; 3] = [8_101, 8_102, 8_103];
const SERVICE: Duration = Duration::from_millis(20);
const ODD: usize = 0;
const USUAL: usize = 1;
/// The loops begin with nothing known (s).
const FROM: f64 = 60.0;
const SECONDS: f64 = 660.0;

/// A server, and the lower class that makes requests wait.
#[derive(Clone, Copy, Debug)]
struct Server {
    workers: u32,
    deadline_ms: u64,
    lower_ms: u64,
}

const SERVERS: [Server; 3] = [
    Server { workers: 1, deadline_ms: 200, lower_ms: 20 },
    Server { workers: 4, deadline_ms: 120, lower_ms: 60 },
    Server { workers: 2, deadline_ms: 150, lower_ms: 100 },
];

/// What became of a site's requests: the part that was refused, and the part of the others that was late.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    refused: f64,
    late: f64,
}

impl Lost {
    fn all(&self) -> f64 {
        self.refused + (1.0 - self.refused) * self.late
    }
}

fn site(name: &str) -> Site {
    Site { hosts: vec![format!("{name}.example")], ..Site::new(name, &["full"]) }
}

/// Each site brings 0.3 of what the server can do, and the lower class 0.8. `longer_ms`: by how much the deadline of each site
/// is longer.
fn run(server: Server, law: &Law, longer_ms: [u64; 2], mode: Mode, seed: u64) -> [Lost; 2] {
    let Server { workers, deadline_ms, lower_ms } = server;
    let lower = Duration::from_millis(lower_ms);
    let rate = |load: f64, service: Duration| load * f64::from(workers) / service.as_secs_f64();
    let mut flows = vec![
        Flow::new("odd", rate(0.3, SERVICE)).priority(1),
        Flow::new("usual", rate(0.3, SERVICE)).priority(1).at_site(1),
        Flow::new("lower", rate(0.8, lower)).priority(9).at_site(2),
    ];
    let deadlines = longer_ms.map(|longer| Duration::from_millis(deadline_ms + longer));
    for (flow, deadline) in flows.iter_mut().zip(deadlines) {
        flow.class.deadline = Some(deadline);
    }
    flows[ODD].law = Some(law.clone());
    flows[2].service = Some(lower);
    let mut scene = Scene::new(workers, SERVICE, flows, SECONDS, seed);
    scene.site = site("odd");
    scene.more_sites = vec![site("usual"), site("lower")];
    scene.mode = mode;
    let heard = scene.run();
    [ODD, USUAL].map(|class| {
        let own = heard.answers.iter().filter(|answer| answer.class == class && answer.arrived >= FROM);
        let (admitted, refused): (Vec<&Answer>, Vec<&Answer>) =
            own.partition(|answer| answer.completed || answer.response() > 0.0);
        let limit = deadlines[class].as_secs_f64();
        let late = admitted.iter().filter(|answer| !answer.completed || answer.response() > limit).count();
        Lost {
            refused: refused.len() as f64 / (refused.len() + admitted.len()) as f64,
            late: late as f64 / admitted.len() as f64,
        }
    })
}

/// The mean of all seeds.
fn lost(server: Server, law: &Law, longer_ms: [u64; 2]) -> [Lost; 2] {
    let mut mean = [Lost::default(); 2];
    for seed in SEEDS {
        for (mean, own) in mean.iter_mut().zip(run(server, law, longer_ms, Mode::Control, seed)) {
            mean.refused += own.refused / SEEDS.len() as f64;
            mean.late += own.late / SEEDS.len() as f64;
        }
    }
    mean
}

#[test]
fn a_site_loses_nothing_by_the_odd_times_of_another_with_its_deadline() {
    // c_s^2 = 8.
    let odd = Law::Lognormal { variation: f64::sqrt(8.0) };
    for server in SERVERS {
        let shared = lost(server, &odd, [0, 0]);
        let apart = [lost(server, &odd, [0, 1]), lost(server, &odd, [1, 0])];
        for own in apart.iter().map(|sites| sites[USUAL]) {
            let what = format!("{server:?}: one law {:?}, two laws {own:?}", shared[USUAL]);
            assert!((own.all() - 0.03..own.all() + 0.005).contains(&shared[USUAL].all()), "{what}");
            assert!(shared[USUAL].late < own.late + 0.012, "{what}");
        }
        // The law is at work: longer service in front of its requests is what the site loses by.
        let beside_usual = lost(server, &Law::Exponential, [0, 0])[USUAL];
        assert!(beside_usual.all() + 0.01 < shared[USUAL].all(), "{server:?}: {beside_usual:?}");
        let off = run(server, &odd, [0, 0], Mode::Off, SEEDS[0])[USUAL];
        assert!(off.all() > 0.9, "the twin without control, {server:?}: {off:?}");
    }
}
