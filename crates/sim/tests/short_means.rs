//! A short mean beside requests of a lower priority that take far longer and are not preempted: they yield until it is kept.

use crate::waits::{Flow, Heard, Scene, mean};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Process;
use std::time::Duration;

/// From when on the runs are judged (s): the set point follows windows of a thousand answers.
const SETTLED: f64 = 250.0;
const SECONDS: f64 = 600.0;

/// A plant of which a class wants a seventh, and best effort three times the whole.
#[derive(Clone, Copy)]
struct Beside {
    workers: u32,
    own_ms: u64,
    own_rate: f64,
    promised_ms: u64,
    other_ms: u64,
    other_rate: f64,
}

const fn beside(
    (workers, promised_ms): (u32, u64),
    (own_rate, own_ms): (f64, u64),
    (other_rate, other_ms): (f64, u64),
) -> Beside {
    Beside { workers, own_ms, own_rate, promised_ms, other_ms, other_rate }
}

impl Beside {
    /// The mean of the class over its promise, and what best effort has of the server.
    fn reached(&self, mode: Mode, seed: u64) -> (f64, f64) {
        let ms = Duration::from_millis;
        let mut own = Flow::new("own", self.own_rate).priority(1).delay(ms(self.promised_ms), None);
        own.service = Some(ms(self.own_ms));
        let mut others = Flow::new("others", self.other_rate).priority(2);
        others.service = Some(ms(self.other_ms));
        let scene = Scene::new(self.workers, ms(self.own_ms), vec![own, others], SECONDS, seed);
        let heard = Scene { mode, ..scene }.run();
        let served = heard.responses(1, SETTLED).len() as f64 / (SECONDS - SETTLED);
        let used = served * self.other_ms as f64 / 1e3 / f64::from(self.workers);
        (mean(&heard.responses(0, SETTLED)) * 1e3 / self.promised_ms as f64, used)
    }
}

#[test]
fn lower_classes_yield_to_a_mean_that_no_quota_keeps_beside_their_long_requests() {
    for (one, least) in [
        (beside((2, 60), (30.0, 10), (60.0, 100)), 0.6),
        (beside((4, 25), (60.0, 10), (120.0, 100)), 0.55),
        (beside((8, 20), (120.0, 10), (240.0, 100)), 0.65),
        (beside((8, 70), (30.0, 40), (60.0, 400)), 0.6),
    ] {
        let all: Vec<(f64, f64)> = (7301..=7304).map(|seed| one.reached(Mode::Control, seed)).collect();
        // Without control none that comes after the beginning may be answered at all.
        let twin = Some(one.reached(Mode::Off, 7301).0).filter(|reached| reached.is_finite());
        let twin = twin.unwrap_or(f64::INFINITY);
        let Beside { workers, promised_ms, .. } = one;
        println!(
            "{workers} workers, {promised_ms} ms: reached and used {all:.3?}, without control {twin:.1}"
        );
        let reached = mean(&all.iter().map(|own| own.0).collect::<Vec<_>>());
        assert!((0.95..=1.07).contains(&reached) && twin > 3.0, "{reached:.3}, without control {twin:.1}");
        assert!(all.iter().all(|own| own.1 >= least), "what is left is used: {all:?}");
    }
}

/// Requests of 40 ms that come for 0.3 s in 0.9, at 90/s then, before eight workers; and best effort of 400 ms that wants twice
/// the server.
fn bursts(mode: Mode, seed: u64) -> Scene {
    let ms = Duration::from_millis;
    let mut own = Flow::new("own", 30.0).priority(1).delay(ms(100), None);
    own.process = Process::Modulated { ratio: 1e6, burst: ms(300), calm: ms(600) };
    let mut others = Flow::new("others", 40.0).priority(2);
    others.service = Some(ms(400));
    Scene { mode, ..Scene::new(8, ms(40), vec![own, others], SECONDS, seed) }
}

/// When a class was taken for gone in each longer pause, what best effort had yielded until then was lost: 113 ms.
#[test]
fn what_lower_classes_yield_outlasts_the_pauses_of_a_class() {
    let runs: Vec<Heard> = (7321..=7328).map(|seed| bursts(Mode::Control, seed).run()).collect();
    let reached = mean(&runs.iter().map(|heard| heard.mean(0, SETTLED)).collect::<Vec<_>>());
    let served = mean(&runs.iter().map(|heard| heard.responses(1, SETTLED).len() as f64).collect::<Vec<_>>());
    let used = served / (SECONDS - SETTLED) * 0.4 / 8.0;
    println!("{:.1} ms, best effort has {used:.3}", 1e3 * reached);
    assert!((0.095..=0.108).contains(&reached) && used >= 0.65, "{reached} {used}");
    assert!(bursts(Mode::Off, 7321).run().mean(0, 20.0) > 1.0, "without control");
}
