//! Ratios of delays (PR 5.1) in front of one server: two classes at 1:2 and 1:3, three at 1:2:3, arrivals 3:1 and 3:2:1.
//!
//! What strict priority gives bounds what can be had without leaving work undone (3:1 arrivals, one worker: 1.8, 2.4,
//! 3.7, 7.6 at 60, 70, 80, 90 % load). Where a target is at most 0.85 of it the ratio of the means is within 5 %; where it
//! is out of reach, status says so, and `strict_ratios` holds it. So for eight workers. PR's own controller is in
//! `process_pools.rs`.

use crate::waits::{self, Flow, Heard, Scene, mean, percentile};
use std::ops::Range;
use std::time::Duration;

/// None of those that the constants of the loops were chosen on, which began at 1.
const SEEDS: std::ops::RangeInclusive<u64> = 101..=110;
const SERVICE: f64 = 0.04;

/// Arrivals and deltas by class, in front of so many workers.
struct Mix {
    workers: u32,
    /// Mean service time (s).
    service: f64,
    arrivals: &'static [f64],
    deltas: &'static [f64],
}

/// Probability that all of s workers are busy at an offered load of a (Erlang C).
fn erlang_c(workers: u32, offered: f64) -> f64 {
    let (mut term, mut below) = (1.0, 0.0);
    for n in 1..=workers {
        below += term;
        term *= offered / f64::from(n);
    }
    let all = term / (1.0 - offered / f64::from(workers));
    all / (below + all)
}

const TWO: Mix = Mix { workers: 1, service: SERVICE, arrivals: &[3.0, 1.0], deltas: &[1.0, 2.0] };
const THREE_TO_ONE: Mix = Mix { deltas: &[1.0, 3.0], ..TWO };
const THREE: Mix = Mix { workers: 1, service: SERVICE, arrivals: &[3.0, 2.0, 1.0], deltas: &[1.0, 2.0, 3.0] };
const EIGHT: Mix = Mix { workers: 8, ..TWO };
const EIGHT_THREE: Mix = Mix { workers: 8, ..THREE_TO_ONE };
const EIGHT_OF_THREE: Mix = Mix { workers: 8, ..THREE };

impl Mix {
    fn scene(&self, load: f64, requests: f64, seed: u64) -> Scene {
        let all = load * f64::from(self.workers) / self.service;
        let total: f64 = self.arrivals.iter().sum();
        let flow = |(n, (share, delta)): (usize, (&f64, &f64))| {
            Flow::new(&format!("class{n}"), all * share / total).ratio(*delta)
        };
        let flows = self.arrivals.iter().zip(self.deltas).enumerate().map(flow).collect();
        Scene::new(self.workers, Duration::from_secs_f64(self.service), flows, requests / all, seed)
    }

    /// T_i / S of strict priority: `1 + W_0 / ((1 - sum_{j < i} rho_j) (1 - sum_{j <= i} rho_j))`, `W_0 = C(s, a) / s`.
    fn strict_priority(&self, load: f64) -> Vec<f64> {
        let residual = erlang_c(self.workers, load * f64::from(self.workers)) / f64::from(self.workers);
        let total: f64 = self.arrivals.iter().sum();
        let mut above = 0.0;
        let response = |share: &f64| {
            let through = above + load * share / total;
            let response = 1.0 + residual / ((1.0 - above) * (1.0 - through));
            above = through;
            response
        };
        self.arrivals.iter().map(response).collect()
    }

    /// The same arrivals with 0.85 of what strict priority gives between each two neighbours; 1, nobody before the others,
    /// where that is less, and up to 3 in all. So fast a server that the load line, which looks at seconds, turns nobody away:
    /// in front of one worker of 40 ms it does so with one in sixteen at 90 %, and what is left of the load has other limits.
    fn within_reach(&self, load: f64) -> Mix {
        let mut delta = 1.0;
        let pairs = self.strict_priority(load);
        let deltas = pairs.windows(2).map(|pair| {
            delta = (delta * (0.85 * pair[1] / pair[0]).max(1.0)).min(3.0);
            delta
        });
        let deltas: Vec<f64> = std::iter::once(1.0).chain(deltas).collect();
        Mix { service: 0.001, deltas: deltas.leak(), ..*self }
    }

    fn last(&self) -> usize {
        self.deltas.len() - 1
    }

    fn target(&self) -> f64 {
        self.deltas[self.last()]
    }
}

/// The ratio of each class's mean to the first's, of what arrived after a quarter of the time.
fn ratios(mix: &Mix, scene: &Scene, heard: &Heard) -> Vec<f64> {
    let mean = |class| heard.mean(class, 0.25 * scene.seconds);
    (0..mix.deltas.len()).map(|class| mean(class) / mean(0)).collect()
}

/// That of the last class.
fn ratio(mix: &Mix, scene: &Scene, heard: &Heard) -> f64 {
    ratios(mix, scene, heard)[mix.last()]
}

/// Ratios of windows of 1,000 requests, in the order in which they ended.
fn windows(mix: &Mix, scene: &Scene, heard: &Heard) -> Vec<f64> {
    let mut all: Vec<_> =
        heard.answers.iter().filter(|a| a.arrived > 0.25 * scene.seconds && a.completed).collect();
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

/// The share that was not served, of what arrived after a quarter of the time.
fn turned_away(scene: &Scene, heard: &Heard) -> f64 {
    let judged = || heard.answers.iter().filter(|a| a.arrived > 0.25 * scene.seconds);
    judged().filter(|a| !a.completed).count() as f64 / judged().count() as f64
}

fn infeasible(heard: &Heard) -> bool {
    let status = heard.status.as_ref().expect("the engine ran");
    status.classes[0].response.expect("a promise").infeasible
}

/// What was found over all seeds.
struct Found {
    /// The ratio of each class to the first.
    ratios: Vec<f64>,
    /// Mean of the last class's windows.
    spread: f64,
    /// How often it was called infeasible.
    told: usize,
    /// The share that the load line turns away, of what is judged.
    rejected: f64,
}

impl Found {
    /// The ratio of the last class to the first.
    fn ratio(&self) -> f64 {
        self.ratios[self.ratios.len() - 1]
    }
}

fn over_seeds(mix: &Mix, load: f64, requests: f64) -> Found {
    let (mut sums, mut spreads, mut told) = (vec![0.0; mix.deltas.len()], Vec::new(), 0);
    let mut rejected = Vec::new();
    for seed in SEEDS {
        let scene = mix.scene(load, requests, seed);
        let heard = scene.run();
        rejected.push(turned_away(&scene, &heard));
        sums.iter_mut().zip(ratios(mix, &scene, &heard)).for_each(|(sum, ratio)| *sum += ratio);
        let mut windows = windows(mix, &scene, &heard);
        spreads.push(percentile(&mut windows, 0.95) - percentile(&mut windows, 0.05));
        told += usize::from(infeasible(&heard));
    }
    let ratios = sums.iter().map(|sum| sum / SEEDS.count() as f64).collect();
    let found = Found { ratios, spread: mean(&spreads), told, rejected: mean(&rejected) };
    println!(
        "{} workers, {:.3?} at {:.0} %: {:.3?}, 5th to 95th percentile {:.2}, infeasible {} of 10, turned away {:.4}",
        mix.workers,
        mix.deltas,
        100.0 * load,
        found.ratios,
        found.spread,
        found.told,
        found.rejected
    );
    found
}

/// Each class to each other one.
fn assert_ratios(mix: &Mix, found: &[f64], load: f64) {
    for (one, other) in (0..found.len()).flat_map(|other| (0..other).map(move |one| (one, other))) {
        let (reached, wanted) = (found[other] / found[one], mix.deltas[other] / mix.deltas[one]);
        let off = reached / wanted - 1.0;
        assert!(
            off.abs() <= 0.05,
            "classes {one} and {other}: {reached:.3} instead of {wanted:.3} at {load}"
        );
    }
}

fn holds(mix: &Mix, load: f64) -> Found {
    holds_over(mix, load, 40_000.0)
}

fn holds_over(mix: &Mix, load: f64, requests: f64) -> Found {
    let found = over_seeds(mix, load, requests);
    assert_ratios(mix, &found.ratios, load);
    assert!(found.told <= 1, "called infeasible with {} of 10 seeds", found.told);
    says_what_it_reached(mix, load);
    found
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

/// What the load line, which looks at seconds, turns away before one worker of 40 ms, by load: 0.1, 1.5 and 6.6 %. The ratios
/// of the three tests below are those of what is left of the load. Where nobody is turned away has tests of its own, below.
const AT_70: Range<f64> = 0.0005..0.002;
const AT_80: Range<f64> = 0.012..0.0185;
const AT_90: Range<f64> = 0.055..0.077;

#[test]
fn two_classes_at_one_to_two() {
    for (load, away) in [(0.7, AT_70), (0.8, AT_80), (0.9, AT_90)] {
        let rejected = holds(&TWO, load).rejected;
        assert!(away.contains(&rejected), "{rejected} are turned away at {load}");
    }
}

#[test]
fn two_classes_at_one_to_three_with_a_small_spread() {
    // The paper at 80 %: 3.1 with feedback, 9.3 by queueing alone.
    let Found { spread, rejected, .. } = holds(&THREE_TO_ONE, 0.8);
    assert!((0.3..=1.3).contains(&spread), "{spread}");
    assert!(AT_80.contains(&rejected), "{rejected}");
    let Found { spread, rejected, .. } = holds(&THREE_TO_ONE, 0.9);
    assert!((0.3..=0.8).contains(&spread), "{spread}");
    assert!(AT_90.contains(&rejected), "{rejected}");
}

#[test]
fn three_classes() {
    for (load, away) in [(0.8, AT_80), (0.9, AT_90)] {
        let rejected = holds(&THREE, load).rejected;
        assert!(away.contains(&rejected), "{rejected} are turned away at {load}");
    }
}

#[test]
fn eight_workers() {
    let rejected = holds(&EIGHT, 0.9).rejected;
    assert!(rejected < 0.002, "{rejected} are turned away");
}

/// Classes whose requests cost differently: the ratio is that of response times, service included. With three to one
/// arrivals at 1:2 strict priority gives 1:4.8 (1 and 4 ms) and 1:3.8 (4 and 1 ms) at 80 %.
#[test]
fn unequal_service_times() {
    let requests = 60_000.0;
    for (services, mix) in
        [(&[1.0, 4.0][..], &TWO), (&[4.0, 1.0], &TWO), (&[1.0, 4.0, 2.0], &THREE), (&[2.0, 1.0, 4.0], &THREE)]
    {
        let total: f64 = mix.arrivals.iter().sum();
        let work: f64 = mix.arrivals.iter().zip(services).map(|(share, ms)| share / total * ms * 1e-3).sum();
        for load in [0.8, 0.9] {
            let mut sums = vec![0.0; mix.deltas.len()];
            for seed in SEEDS {
                let mut scene = Mix { service: work, ..*mix }.scene(load, requests, seed);
                for (flow, ms) in scene.flows.iter_mut().zip(services) {
                    flow.service = Some(Duration::from_secs_f64(ms * 1e-3));
                }
                let heard = scene.run();
                sums.iter_mut().zip(ratios(mix, &scene, &heard)).for_each(|(sum, ratio)| *sum += ratio);
            }
            let found: Vec<f64> = sums.iter().map(|sum| sum / SEEDS.count() as f64).collect();
            println!("services of {services:?} ms, {:?} at {load}: {found:.3?}", mix.deltas);
            assert_ratios(mix, &found, load);
        }
    }
}

/// At 90 % a window of 1,000 requests is a few busy periods, and near the limit it takes some tens of them to settle.
fn holds_what_is_within_reach(mix: &Mix) -> [f64; LOADS.len()] {
    LOADS.map(|load| {
        let requests = if load > 0.85 { 120_000.0 } else { 30_000.0 };
        let Found { spread, rejected, .. } = holds_over(&mix.within_reach(load), load, requests);
        assert!(rejected < 1e-9, "{rejected} are turned away at {load}");
        assert!((0.05..2.5).contains(&spread), "{spread} at {load}");
        spread
    })
}

const LOADS: [f64; 6] = [0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

#[test]
fn two_classes_before_one_worker_where_it_can_be_had() {
    // Nobody is turned away, and at 80 and 90 % the target is 3: what was asked of the spread holds at the load that is
    // offered.
    let [.., at_80, at_90] = holds_what_is_within_reach(&TWO);
    assert!((0.3..=1.3).contains(&at_80) && (0.3..=0.8).contains(&at_90), "{at_80}, {at_90}");
}

#[test]
fn three_classes_before_one_worker_where_it_can_be_had() {
    _ = holds_what_is_within_reach(&THREE);
}

#[test]
fn two_classes_before_eight_workers_where_it_can_be_had() {
    _ = holds_what_is_within_reach(&EIGHT);
}

#[test]
fn three_classes_before_eight_workers_where_it_can_be_had() {
    _ = holds_what_is_within_reach(&EIGHT_OF_THREE);
}

/// The formula is the simulator's strict priority, where the load line turns nobody away.
#[test]
fn strict_priority_is_what_the_formula_says() {
    for (mix, load) in [(&TWO, 0.6), (&THREE, 0.6), (&EIGHT, 0.8), (&EIGHT_OF_THREE, 0.8)] {
        let mut found = vec![0.0; mix.deltas.len()];
        for seed in SEEDS {
            let mut scene = mix.scene(load, 40_000.0, seed);
            for (n, flow) in scene.flows.iter_mut().enumerate() {
                (flow.class.ratio, flow.class.priority) = (None, 1 + n as u8);
            }
            let heard = scene.run();
            found.iter_mut().enumerate().for_each(|(n, sum)| *sum += heard.mean(n, 0.0) / SERVICE / 10.0);
        }
        println!("strict priority at {load}: {found:.3?}, by the formula {:.3?}", mix.strict_priority(load));
        for (found, formula) in found.iter().zip(mix.strict_priority(load)) {
            assert!((found / formula - 1.0).abs() < 0.03, "{found} instead of {formula} at {load}");
        }
    }
}

/// Close to the limit the miss is less than the chance of a window, and the nearer turns come to the limit the longer it takes
/// to tell: 80,000 requests until they had a head start, 100,000 with it. Conservation gives the first class of 1:2:3 at 70 %
/// no less than 1.04 of its share, that of 1:3 in front of eight workers at 90 % 1.015, and of 1:2:3 there 1.03.
#[test]
fn what_is_missed_by_little_is_said() {
    for (mix, load) in [(&TWO, 0.6), (&THREE, 0.7), (&EIGHT_THREE, 0.9), (&EIGHT_OF_THREE, 0.9)] {
        let found = over_seeds(mix, load, 100_000.0);
        assert!((0.85..0.95).contains(&(found.ratio() / mix.target())), "{} at {load}", found.ratio());
        assert!(found.told >= 9, "said with {} of 10 seeds only", found.told);
    }
}

/// Every load of 40 to 90 % at which strict priority gives less than was asked for, but for those in the test above.
#[test]
fn what_cannot_be_had_is_said() {
    let beyond: [(&Mix, &[f64]); 6] = [
        (&TWO, &[0.4, 0.5]),
        (&THREE_TO_ONE, &[0.4, 0.5, 0.6, 0.7]),
        (&THREE, &[0.4, 0.5, 0.6]),
        (&EIGHT, &[0.4, 0.5, 0.6, 0.7, 0.8]),
        (&EIGHT_THREE, &[0.4, 0.5, 0.6, 0.7, 0.8]),
        (&EIGHT_OF_THREE, &[0.4, 0.5, 0.6, 0.7, 0.8]),
    ];
    for (mix, load) in beyond.into_iter().flat_map(|(mix, loads)| loads.iter().map(move |load| (mix, *load)))
    {
        let found = over_seeds(mix, load, 20_000.0);
        assert!(found.ratio() < 0.95 * mix.target(), "{} at {load}", found.ratio());
        // What can be had is: the first class is as far before the others, by their arrivals, as strict priority gets it. How
        // two classes that both miss share what is left is the law's.
        let strict = mix.strict_priority(load);
        let others = |ratio: &dyn Fn(usize) -> f64| -> f64 {
            (1..strict.len()).map(|n| mix.arrivals[n] * ratio(n)).sum()
        };
        let part = others(&|n| found.ratios[n]) / others(&|n| strict[n] / strict[0]);
        println!("{} workers, {:?} at {load}: {part:.3} of strict priority", mix.workers, mix.deltas);
        assert!((0.95..1.05).contains(&part), "{part} of strict priority at {load}");
        assert!(found.told >= 9, "said with {} of 10 seeds only", found.told);
    }
}

/// Held, and the first class's response times are what strict priority gives it where nobody can be faster: work is left
/// undone for the slower ones alone.
fn strict_holds(mix: &Mix, loads: &[f64]) {
    for load in loads {
        let (mut sums, mut first) = (vec![0.0; mix.deltas.len()], Vec::new());
        for seed in SEEDS {
            let mut scene = mix.scene(*load, 40_000.0, seed);
            scene.site.strict_ratios = true;
            let heard = scene.run();
            sums.iter_mut().zip(ratios(mix, &scene, &heard)).for_each(|(sum, ratio)| *sum += ratio);
            first.push(heard.mean(0, 0.25 * scene.seconds) / SERVICE);
        }
        let (found, first): (Vec<f64>, f64) =
            (sums.iter().map(|sum| sum / SEEDS.count() as f64).collect(), mean(&first));
        println!(
            "{} workers, strict {:.3?} at {load}: {found:.3?}, first {first:.3}",
            mix.workers, mix.deltas
        );
        assert_ratios(mix, &found, *load);
        // If all ratios are right, all classes are alike in this: the most that the first may have to wait for the others'
        // sake.
        let strict = mix.strict_priority(*load);
        let shares = || mix.arrivals.iter().zip(mix.deltas);
        let all: f64 = mix.arrivals.iter().zip(&strict).map(|(share, response)| share * response).sum();
        let most = strict[0].max(all / shares().map(|(share, delta)| share * delta).sum::<f64>());
        assert!(first <= 1.08 * most, "{first} of {most} at {load}");
    }
}

/// A class that has had no request yet stops neither what is said of the others nor what holds them.
#[test]
fn a_class_without_traffic_has_no_part_in_the_ratios() {
    let (mut reached, mut told) = (Vec::new(), 0);
    for seed in SEEDS.take(5) {
        let mut scene = THREE_TO_ONE.scene(0.6, 40_000.0, seed);
        scene.site.default_ratio = Some(2.0);
        told += usize::from(infeasible(&scene.run()));
        scene.site.strict_ratios = true;
        reached.push(ratio(&THREE_TO_ONE, &scene, &scene.run()));
    }
    let reached = mean(&reached);
    println!("beside a class without traffic: strict {reached:.3}, infeasible {told} of 5");
    assert!((2.85..=3.15).contains(&reached) && told == 5, "{reached}, {told}");
}

#[test]
fn strict_holds_two_classes_before_one_worker() {
    strict_holds(&THREE_TO_ONE, &LOADS);
}

#[test]
fn strict_holds_three_classes_before_one_worker() {
    strict_holds(&THREE, &[0.4, 0.6, 0.7, 0.9]);
}

#[test]
fn strict_holds_two_classes_before_eight_workers() {
    strict_holds(&EIGHT_THREE, &[0.4, 0.6, 0.8, 0.9]);
}

#[test]
fn strict_holds_three_classes_before_eight_workers() {
    strict_holds(&EIGHT_OF_THREE, &[0.4, 0.8, 0.9]);
}

/// From 40 to 85 % of load, where 1:2 takes no hold any more: what was held is forgotten, and nobody waits longer for it.
#[test]
fn a_hold_that_is_not_needed_any_more_is_forgotten() {
    let (mut ratios, mut slower) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let mut scene = TWO.scene(0.85, 60_000.0, seed);
        let at = 0.5 * scene.seconds;
        for flow in &mut scene.flows {
            let rate = flow.rate[0].rate;
            flow.rate[0].rate = rate * 0.4 / 0.85;
            *flow = flow.clone().then(at, rate);
        }
        let later = at + 10_000.0 * SERVICE / 0.85;
        let first = scene.run().mean(0, later);
        scene.site.strict_ratios = true;
        let heard = scene.run();
        ratios.push(heard.mean(1, later) / heard.mean(0, later));
        slower.push(heard.mean(0, later) / first);
    }
    println!("strict after a step: {:.3}, the first class {:.3} as slow", mean(&ratios), mean(&slower));
    assert!((1.9..=2.1).contains(&mean(&ratios)), "{}", mean(&ratios));
    assert!((0.9..=1.05).contains(&mean(&slower)), "{}", mean(&slower));
}

/// The ratios of the windows of 1,000 requests after a step of the load, of all seeds together.
fn after_a_step(before: f64, load: f64) -> Vec<f64> {
    const WINDOWS: usize = 30;
    // The sum and the number of both classes' response times.
    let mut sums = [[(0.0, 0.0); 2]; WINDOWS];
    for seed in SEEDS {
        let mut scene = TWO.scene(load, 80_000.0, seed);
        let at = 0.5 * scene.seconds;
        for flow in &mut scene.flows {
            let rate = flow.rate[0].rate;
            flow.rate[0].rate = rate * before / load;
            *flow = flow.clone().then(at, rate);
        }
        let heard = scene.run();
        let mut after: Vec<_> = heard.answers.iter().filter(|a| a.arrived >= at && a.completed).collect();
        after.sort_by(|a, b| a.ended.total_cmp(&b.ended));
        for (sums, window) in sums.iter_mut().zip(after.chunks_exact(1000)) {
            for answer in window {
                let (sum, count) = &mut sums[answer.class];
                (*sum, *count) = (*sum + answer.response(), *count + 1.0);
            }
        }
    }
    let ratio = |[first, second]: &[(f64, f64); 2]| second.0 / second.1 / (first.0 / first.1);
    let ratios: Vec<f64> = sums.iter().map(ratio).collect();
    println!("from {before} to {load}: {ratios:.2?}");
    ratios
}

/// Each window after the tenth is within a tenth of 1:2, and their mean within a twentieth; also from a load at which it cannot
/// be had, and all turns are the first class's.
#[test]
fn a_step_of_the_load_is_settled_within_ten_periods() {
    for (before, load) in [(0.7, 0.85), (0.7, 0.9), (0.9, 0.7), (0.6, 0.85)] {
        let settled = &after_a_step(before, load)[10..];
        assert!((1.9..=2.1).contains(&mean(settled)), "{} from {before} to {load}", mean(settled));
        let each = settled.iter().all(|ratio| (1.8..=2.2).contains(ratio));
        assert!(each, "{settled:?} from {before} to {load}");
    }
}

/// Without ratios all wait in one line.
#[test]
fn the_twin_without_promises_has_no_ratio() {
    let mut scene = THREE_TO_ONE.scene(0.8, 40_000.0, 1);
    scene.flows.iter_mut().for_each(|flow| flow.class.ratio = None);
    let found = ratio(&THREE_TO_ONE, &scene, &scene.run());
    assert!((0.9..1.1).contains(&found), "{found}");
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

/// The mean ratio between two seconds after the rates of two classes before eight workers of 50 ms have changed; without a
/// promised one the first class has a higher priority.
fn after_another_mix(ratio: Option<f64>, before: [f64; 2], then: [f64; 2], from: f64, until: f64) -> f64 {
    const AT: f64 = 300.0;
    let of_seed = |seed| {
        let flow = |name, number: usize, delta: f64| {
            let flow = Flow::new(name, before[number]).then(AT, then[number]);
            if ratio.is_some() { flow.ratio(delta) } else { flow.priority(1 + number as u8) }
        };
        let flows = vec![flow("gold", 0, 1.0), flow("silver", 1, ratio.unwrap_or(1.0))];
        let heard = Scene::new(8, Duration::from_millis(50), flows, AT + until, seed).run();
        heard.mean(1, AT + from) / heard.mean(0, AT + from)
    };
    mean(&(9321..=9332).map(of_seed).collect::<Vec<_>>())
}

/// A rush of one class is no error of the ratio. Before, when the shares of the classes were those of 10,000 departures, the
/// ratios were 1.24 and 2.6.
#[test]
fn another_mix_of_the_classes_is_followed_within_a_minute() {
    let equal = after_another_mix(Some(1.0), [20.0, 20.0], [132.0, 20.0], 10.0, 30.0);
    let half_more = after_another_mix(Some(1.5), [70.0, 70.0], [146.0, 6.0], 30.0, 60.0);
    println!("1:1 is 1:{equal:.2}, 1:1.5 is 1:{half_more:.2}");
    assert!((0.88..=1.12).contains(&equal) && (1.4..=2.0).contains(&half_more), "{equal}, {half_more}");
    let equal = after_another_mix(None, [20.0, 20.0], [132.0, 20.0], 10.0, 30.0);
    let half_more = after_another_mix(None, [70.0, 70.0], [146.0, 6.0], 30.0, 60.0);
    println!("the twins by priority: 1:{equal:.2} and 1:{half_more:.2}");
    assert!(equal > 3.0 && half_more > 3.0, "{equal}, {half_more}");
}
