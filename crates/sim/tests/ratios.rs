//! Ratios of delays (PR 5.1) in front of one server: two classes at 1:2 and 1:3, three at 1:2:3, arrivals 3:1 and 3:2:1.
//!
//! What strict priority gives bounds what can be had without leaving work undone (3:1 arrivals, one worker: 1.8, 2.4,
//! 3.7, 7.6 at 60, 70, 80, 90 % load). Where a target is at most 0.85 of it the ratio of the means is within 5 %; where it
//! is out of reach, status says so. PR's own controller stands beside it.

mod waits;

use plimsoll_sim::front::{PoolSettings, Pools};
use std::time::Duration;
use waits::{Flow, Heard, Scene, mean, percentile};

/// None of those that the constants of the loops were chosen on, which began at 1.
const SEEDS: std::ops::RangeInclusive<u64> = 101..=120;
const SERVICE: f64 = 0.04;

/// Arrivals and deltas by class, in front of so many workers.
struct Mix {
    workers: u32,
    arrivals: &'static [f64],
    deltas: &'static [f64],
}

const TWO: Mix = Mix { workers: 1, arrivals: &[3.0, 1.0], deltas: &[1.0, 2.0] };
const THREE_TO_ONE: Mix = Mix { deltas: &[1.0, 3.0], ..TWO };
const THREE: Mix = Mix { workers: 1, arrivals: &[3.0, 2.0, 1.0], deltas: &[1.0, 2.0, 3.0] };
const EIGHT: Mix = Mix { workers: 8, ..TWO };
const EIGHT_THREE: Mix = Mix { workers: 8, ..THREE_TO_ONE };

impl Mix {
    fn scene(&self, load: f64, requests: f64, seed: u64) -> Scene {
        let all = load * f64::from(self.workers) / SERVICE;
        let total: f64 = self.arrivals.iter().sum();
        let flow = |(n, (share, delta)): (usize, (&f64, &f64))| {
            Flow::new(&format!("class{n}"), all * share / total).ratio(*delta)
        };
        let flows = self.arrivals.iter().zip(self.deltas).enumerate().map(flow).collect();
        Scene::new(self.workers, Duration::from_secs_f64(SERVICE), flows, requests / all, seed)
    }

    fn last(&self) -> usize {
        self.deltas.len() - 1
    }

    fn target(&self) -> f64 {
        self.deltas[self.last()]
    }
}

/// The ratio of the last class's mean to the first's, of what arrived after a quarter of the time.
fn ratio(mix: &Mix, scene: &Scene, heard: &Heard) -> f64 {
    let from = 0.25 * scene.seconds;
    heard.mean(mix.last(), from) / heard.mean(0, from)
}

/// Ratios of windows of 1,000 requests, in the order in which they ended.
fn windows(mix: &Mix, scene: &Scene, heard: &Heard) -> Vec<f64> {
    let mut all: Vec<_> = heard.answers.iter().filter(|a| a.arrived > 0.25 * scene.seconds).collect();
    all.sort_by(|a, b| a.ended.total_cmp(&b.ended));
    let ratio = |window: &[&waits::Answer]| {
        let of = |class: usize| {
            let own: Vec<f64> = window.iter().filter(|a| a.class == class).map(|a| a.response()).collect();
            mean(&own)
        };
        of(mix.last()) / of(0)
    };
    all.chunks_exact(1000).map(ratio).collect()
}

fn infeasible(heard: &Heard) -> bool {
    let status = heard.status.as_ref().expect("the engine ran");
    status.classes[0].response.expect("a promise").infeasible
}

/// The mean ratio over all seeds, the mean spread of its windows, and how often it was called infeasible.
fn over_seeds(mix: &Mix, load: f64, requests: f64) -> (f64, f64, usize) {
    let (mut ratios, mut spreads, mut told) = (Vec::new(), Vec::new(), 0);
    for seed in SEEDS {
        let scene = mix.scene(load, requests, seed);
        let heard = scene.run();
        ratios.push(ratio(mix, &scene, &heard));
        let mut windows = windows(mix, &scene, &heard);
        spreads.push(percentile(&mut windows, 0.95) - percentile(&mut windows, 0.05));
        told += usize::from(infeasible(&heard));
    }
    let found = (mean(&ratios), mean(&spreads), told);
    println!(
        "{} workers, 1:{} at {:.0} %: ratio {:.3}, 5th to 95th percentile {:.2}, infeasible {} of 20",
        mix.workers,
        mix.target(),
        100.0 * load,
        found.0,
        found.1,
        found.2
    );
    found
}

fn holds(mix: &Mix, load: f64) -> f64 {
    let (found, spread, told) = over_seeds(mix, load, 40_000.0);
    let off = found / mix.target() - 1.0;
    assert!(off.abs() <= 0.05, "{found:.3} instead of {} at {load}", mix.target());
    assert!(told <= 2, "called infeasible with {told} of 20 seeds");
    says_what_it_reached(mix, load);
    spread
}

/// The deltas that status shows are those of the last windows: in the ratio of the means that the clients had then.
fn says_what_it_reached(mix: &Mix, load: f64) {
    let heard = mix.scene(load, 20_000.0, *SEEDS.start()).run();
    let status = heard.status.as_ref().expect("the engine ran");
    let shown = |class: usize| status.classes[class].response.and_then(|r| r.ratio_reached).expect("reached");
    let last = |class: usize| {
        let all = heard.responses(class, 0.0);
        mean(&all[all.len() - 1000..])
    };
    let (shown, heard) = (shown(mix.last()) / shown(0), last(mix.last()) / last(0));
    assert!((shown / heard - 1.0).abs() < 0.1, "{shown} shown, {heard} heard");
}

#[test]
fn two_classes_at_one_to_two() {
    for load in [0.7, 0.8, 0.9] {
        holds(&TWO, load);
    }
}

#[test]
fn two_classes_at_one_to_three_with_a_small_spread() {
    // The paper at 80 %: 3.1 with feedback, 9.3 by queueing alone.
    let spread = holds(&THREE_TO_ONE, 0.8);
    assert!((0.3..=1.3).contains(&spread), "{spread}");
    let spread = holds(&THREE_TO_ONE, 0.9);
    assert!((0.3..=0.8).contains(&spread), "{spread}");
}

#[test]
fn three_classes() {
    for load in [0.8, 0.9] {
        holds(&THREE, load);
    }
}

#[test]
fn eight_workers() {
    holds(&EIGHT, 0.9);
}

#[test]
fn what_cannot_be_had_is_said() {
    let single = [(&TWO, 0.4), (&TWO, 0.5), (&THREE_TO_ONE, 0.4), (&THREE_TO_ONE, 0.5), (&THREE_TO_ONE, 0.6)];
    let others =
        [(&THREE, 0.4), (&THREE, 0.6), (&EIGHT, 0.4), (&EIGHT, 0.6), (&EIGHT, 0.8), (&EIGHT_THREE, 0.8)];
    for (mix, load) in single.into_iter().chain(others) {
        let (found, _, told) = over_seeds(mix, load, 20_000.0);
        assert!(found < 0.95 * mix.target(), "{found} at {load}");
        assert!(told >= 18, "said with {told} of 20 seeds only");
    }
}

#[test]
fn strict_holds_what_would_need_work_left_undone() {
    for load in [0.4, 0.6] {
        let mut ratios = Vec::new();
        for seed in SEEDS {
            let mut scene = THREE_TO_ONE.scene(load, 40_000.0, seed);
            scene.site.strict_ratios = true;
            let heard = scene.run();
            ratios.push(ratio(&THREE_TO_ONE, &scene, &heard));
        }
        let found = mean(&ratios);
        println!("strict at {load}: {found:.3}");
        assert!((2.85..=3.15).contains(&found), "{found} at {load}");
    }
}

/// A step from 60 to 85 % of load: within ten windows of 1,000 requests the ratio is what was asked for, and stays.
#[test]
fn a_step_of_the_load_is_settled_within_ten_periods() {
    let mut before = Vec::new();
    let mut after = Vec::new();
    for seed in SEEDS {
        let mut scene = TWO.scene(0.85, 60_000.0, seed);
        let at = 0.5 * scene.seconds;
        for flow in &mut scene.flows {
            let rate = flow.rate[0].rate;
            flow.rate[0].rate = rate * 0.6 / 0.85;
            *flow = flow.clone().then(at, rate);
        }
        let heard = scene.run();
        let ten = 10_000.0 * SERVICE / 0.85;
        let of = |from: f64, until: f64| {
            let own = |class: usize| {
                let own = heard.answers.iter().filter(|a| a.class == class);
                let own = own.filter(|a| (from..until).contains(&a.arrived)).map(waits::Answer::response);
                mean(&own.collect::<Vec<_>>())
            };
            own(1) / own(0)
        };
        before.push(of(0.25 * scene.seconds, at));
        after.push(of(at + ten, scene.seconds));
    }
    println!("before the step {:.3}, from ten periods after it {:.3}", mean(&before), mean(&after));
    assert!((1.9..=2.1).contains(&mean(&after)), "{}", mean(&after));
}

/// Without ratios all wait in one line.
#[test]
fn the_twin_without_promises_has_no_ratio() {
    let mut scene = THREE_TO_ONE.scene(0.8, 40_000.0, 1);
    scene.flows.iter_mut().for_each(|flow| flow.class.ratio = None);
    let found = ratio(&THREE_TO_ONE, &scene, &scene.run());
    assert!((0.9..1.1).contains(&found), "{found}");
}

/// PR's integrated controller before one processor that its processes share: the mean ratio and the mean spread.
fn pools(mix: &Mix, load: f64, processes: u32, gains: Option<[f64; 3]>) -> (f64, f64) {
    let (mut ratios, mut spreads) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let mut scene = mix.scene(load, 40_000.0, seed);
        scene.shared = true;
        let capacity = f64::from(mix.workers) / SERVICE;
        let deltas = mix.deltas.to_vec();
        let settings = PoolSettings { processes, deltas, gains, period: 1000, capacity };
        let mut pools = Pools::new(&scene.promises(), settings).expect("the promises are valid");
        let heard = scene.run_with(&mut pools);
        ratios.push(ratio(mix, &scene, &heard));
        let mut windows = windows(mix, &scene, &heard);
        spreads.push(percentile(&mut windows, 0.95) - percentile(&mut windows, 0.05));
    }
    let found = (mean(&ratios), mean(&spreads));
    println!(
        "pools of {processes}, gains {gains:?}, 1:{} at {:.0} %: ratio {:.3}, 5th to 95th percentile {:.2}",
        mix.target(),
        100.0 * load,
        found.0,
        found.1
    );
    found
}

/// What the gateway does is worth it: at 90 % of load PR's controller has the ratio too, with several times the spread, and its
/// allocation without feedback has none, since a processor that is shared is lent to whoever has work.
#[test]
fn the_papers_pools_hold_it_with_several_times_the_spread() {
    let (_, own, _) = over_seeds(&THREE_TO_ONE, 0.9, 40_000.0);
    let (found, spread) = pools(&THREE_TO_ONE, 0.9, 32, Some([1.0; 3]));
    assert!((2.55..=3.45).contains(&found), "{found}");
    assert!((3.0..=12.0).contains(&(spread / own)), "{spread} beside {own}");
    let (alone, _) = pools(&THREE_TO_ONE, 0.9, 32, None);
    assert!((0.9..=1.5).contains(&alone), "{alone}");
}

/// After the step of the load, and where `strict_ratios` would have to hold it, there is none either.
#[test]
fn the_twins_without_ratios_and_without_strict_fail() {
    let scene = |load| THREE_TO_ONE.scene(load, 40_000.0, *SEEDS.start());
    let mut without = scene(0.85);
    without.flows.iter_mut().for_each(|flow| flow.class.ratio = None);
    let found = ratio(&THREE_TO_ONE, &without, &without.run());
    assert!((0.9..1.1).contains(&found), "{found}");
    let lenient = scene(0.6);
    let found = ratio(&THREE_TO_ONE, &lenient, &lenient.run());
    assert!((1.3..2.5).contains(&found), "{found}");
}
