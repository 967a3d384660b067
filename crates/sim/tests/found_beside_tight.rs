//! The number of workers is found beside a promise that is hardly longer than the service itself, or shorter: a lower limit of
//! requests in service makes none of them faster. Before, the limit fell for as long as the promised class was slow.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::{Delay, Mode};
use plimsoll_sim::workload::Law;
use std::ops::RangeInclusive;
use std::time::Duration;

/// None of those that a constant was chosen on.
const SEEDS: RangeInclusive<u64> = 12_501..=12_508;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A server, and what its class is promised.
struct Tight {
    workers: u32,
    service: Duration,
    law: Law,
    promised: Delay,
    /// The load, as a part of the capacity; half of it comes for the promised class.
    load: f64,
}

impl Tight {
    fn scene(&self, seed: u64) -> Scene {
        let rate = self.load * f64::from(self.workers) / self.service.as_secs_f64();
        let Delay { target, percentile } = self.promised;
        let promised = Flow::new("promised", rate / 2.0).delay(target, percentile).priority(1);
        let flows = vec![promised, Flow::new("default", rate / 2.0)];
        let seconds = 12_000.0 / rate;
        let scene = Scene::new(self.workers, self.service, flows, seconds, seed);
        Scene { law: self.law.clone(), ..scene.finding_workers(true) }
    }
}

/// The part of a class that was turned away.
fn turned_away(heard: &Heard, class: usize) -> f64 {
    let own = heard.answers.iter().filter(|one| one.class == class);
    mean(&own.map(|one| f64::from(u8::from(!one.completed))).collect::<Vec<_>>())
}

#[test]
fn a_promise_that_service_alone_takes_up_turns_nobody_away_in_calm() {
    let mean_of = |ms| Delay { target: MS(ms), percentile: None };
    let all_of = |ms, percentile| Delay { target: MS(ms), percentile: Some(percentile) };
    let tight = |(workers, service), law, promised, load| Tight { workers, service, law, promised, load };
    for case in [
        tight((24, MS(800)), Law::Deterministic, mean_of(1200), 0.8),
        tight((16, MS(40)), Law::Exponential, mean_of(55), 0.7),
        tight((8, MS(100)), Law::Exponential, all_of(180, 90.0), 0.6),
    ] {
        let runs: Vec<Heard> = SEEDS.map(|seed| case.scene(seed).run()).collect();
        let lost = |class| mean(&runs.iter().map(|heard| turned_away(heard, class)).collect::<Vec<_>>());
        let found = runs.iter().map(|heard| f64::from(*heard.workers.last().expect("seconds")));
        let found: Vec<f64> = found.map(|found| found / f64::from(case.workers)).collect();
        let [own, other] = [0, 1].map(lost);
        println!("{} workers: turned away {own:.4} and {other:.4}; found {found:.2?}", case.workers);
        assert!(own < 0.005 && other < 0.005, "{} workers: {own}, {other}", case.workers);
        assert!(found.iter().all(|found| (0.8..=3.0).contains(found)), "{} workers: {found:?}", case.workers);
        // The twin with as many workers told as were found before.
        let mut twin = case.scene(*SEEDS.start());
        let few = case.workers / 4;
        (twin.plant.find_workers, twin.plant.workers, twin.plant.max_connections) = (None, few, few);
        let lost = turned_away(&twin.run(), 1);
        assert!(lost > 0.5, "{} workers, the twin: {lost}", case.workers);
    }
}

/// Two classes of the first priority ask for one and a half times the server, so hardly any request of the promised class
/// below them is started. How long its last ones took says nothing of the server now; before, they kept the limit falling.
#[test]
fn a_class_that_others_keep_out_does_not_lower_the_limit() {
    let run = |mode, seed| {
        let promised = |name, rate, ms| {
            let mut flow = Flow::new(name, rate).priority(1);
            flow.class.deadline = Some(MS(ms));
            flow
        };
        let mut dear = promised("dear", 100.0, 25_000);
        (dear.service, dear.law) = (Some(MS(500)), Some(Law::Deterministic));
        let kept_out = Flow::new("kept_out", 400.0).delay(MS(400), None).priority(2);
        let flows = vec![promised("quick", 280.0, 3500), dear, kept_out];
        Scene { mode, ..Scene::new(64, MS(180), flows, 150.0, seed).finding_workers(true) }.run()
    };
    let in_time = |heard: &Heard| {
        let own = heard.answers.iter().filter(|one| one.class == 0 && one.arrived >= 30.0);
        mean(&own.map(|one| f64::from(u8::from(one.completed && one.response() <= 3.5))).collect::<Vec<_>>())
    };
    for seed in SEEDS.take(3) {
        let good = in_time(&run(Mode::Control, seed));
        println!("{good:.3} of the quick requests in time");
        assert!(good > 0.6, "{good}");
    }
    let off = in_time(&run(Mode::Off, *SEEDS.start()));
    assert!(off < 0.2, "without control: {off}");
}
