//! PR's experiments (5.1) with its own controller, `--against pools`, and with the engine, before the same servers: two
//! classes at 1:2 and 1:3, three at 1:2:3, arrivals 3:1 and 3:2:1, exponential service. As the paper has it, 100 sampling
//! periods are run before 30 are judged.
//!
//! Fig. 7 is drawn there from single requests; here it is their percentiles, how often a request of one class takes longer than
//! one of another in the same period, and how steady a class's mean is from period to period.
//!
//! Where processes share a processor, the engine lets one request at a time into it. zeta (eq. 11) is what feedback takes away
//! of the error of the queueing-theoretical allocation alone. `--nocapture` prints the figures of docs/papers.md.

use crate::once::Once;
use crate::waits::{Answer, Flow, Heard, Scene, mean, percentile};
use std::time::Duration;

const SEEDS: std::ops::RangeInclusive<u64> = 201..=206;
/// So fast a server that the load line, which looks at seconds, turns nobody away: PR has no admission control.
const SERVICE: f64 = 0.001;
/// Windows of so many requests: a sampling period.
const WINDOW: usize = 1000;
const WARM_UP: usize = 100;
const JUDGED: usize = 30;
const ENGINE: &str = "engine";
const ALONE: &str = "pools,gain=0";
const PID: &str = "pools";
/// Each class's part of the arrivals and its delta.
type Classes<'a> = &'a [(f64, f64)];
const TWO: Classes<'static> = &[(3.0, 1.0), (1.0, 2.0)];
const THREE_TO_ONE: Classes<'static> = &[(3.0, 1.0), (1.0, 3.0)];
const THREE: Classes<'static> = &[(3.0, 1.0), (2.0, 2.0), (1.0, 3.0)];

/// What stands in front, and what it gave.
#[derive(Clone, Debug)]
struct Found {
    /// The ratio of each class's mean to that of the class with the smallest delta.
    ratios: Vec<f64>,
    /// From the 5th to the 95th percentile of the windows' ratio of the last class to the first; the mean over the seeds.
    spread: f64,
    /// The 5th percentile, the mean and the 95th of these (Fig. 8).
    windows: [f64; 3],
    /// The same of single responses over the service time, of the first class and of the last (Fig. 7).
    single: [[f64; 3]; 2],
    /// How often a request of the last class took longer than one of the first that ended in the same window.
    slower: f64,
    /// The deviation of the last class's mean from window to window, over its mean.
    unsteady: f64,
    /// Windows of the start until five of them, on the mean of the seeds, are within a fifth of what the judged ones have.
    settled: usize,
    /// Mean responses over the service time: the first class's, and all.
    slowdown: [f64; 2],
}

#[derive(Clone, Copy)]
struct Server {
    workers: u32,
    shared: bool,
}

const SHARED: Server = Server { workers: 1, shared: true };
const PROCESSES: Server = Server { workers: 32, shared: false };

fn scene(server: Server, classes: Classes<'_>, load: f64, seed: u64) -> Scene {
    let all = load * f64::from(server.workers) / SERVICE;
    let total: f64 = classes.iter().map(|class| class.0).sum();
    let flow = |(n, (share, delta)): (usize, &(f64, f64))| {
        Flow::new(&format!("class{n}"), all * share / total).ratio(*delta)
    };
    let flows = classes.iter().enumerate().map(flow).collect();
    let seconds = (WINDOW * (WARM_UP + JUDGED)) as f64 / all;
    let mut scene = Scene::new(server.workers, Duration::from_secs_f64(SERVICE), flows, seconds, seed);
    scene.shared = server.shared;
    scene
}

/// A window's single responses over the service time, of the class with the smallest delta and of that with the largest.
type Window = [Vec<f64>; 2];

fn windows(heard: &Heard, first: usize, last: usize) -> Vec<Window> {
    let mut all: Vec<_> = heard.answers.iter().collect();
    all.sort_by(|a, b| a.ended.total_cmp(&b.ended));
    let of = |window: &[&Answer]| {
        [first, last].map(|class| {
            let own = window.iter().filter(|answer| answer.class == class);
            own.map(|answer| answer.response() / SERVICE).collect::<Vec<_>>()
        })
    };
    all.chunks_exact(WINDOW).map(of).filter(|[first, last]| !first.is_empty() && !last.is_empty()).collect()
}

fn ratio([first, last]: &Window) -> f64 {
    mean(last) / mean(first)
}

/// The 5th percentile, the mean and the 95th.
fn five_mean_95(mut values: Vec<f64>) -> [f64; 3] {
    [percentile(&mut values, 0.05), mean(&values), percentile(&mut values, 0.95)]
}

/// How often a request of the last class took longer than one of the first.
fn slower([first, last]: &Window) -> f64 {
    let mut first = first.clone();
    first.sort_by(f64::total_cmp);
    let faster = |own: &f64| first.partition_point(|other| other < own) as f64 / first.len() as f64;
    mean(&last.iter().map(faster).collect::<Vec<_>>())
}

fn variation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

/// The means of what each seed gave.
fn means<const N: usize>(all: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|n| mean(&all.iter().map(|own| own[n]).collect::<Vec<_>>()))
}

fn found(front: &str, server: Server, classes: Classes<'_>, load: f64) -> Found {
    static FOUND: Once<String, Found> = Once::new();
    let key = format!("{front} {} {} {classes:?} {load}", server.workers, server.shared);
    FOUND.get(key, || find(front, server, classes, load))
}

fn find(front: &str, server: Server, classes: Classes<'_>, load: f64) -> Found {
    let place = |best: fn(f64, f64) -> bool| {
        (0..classes.len()).reduce(|a, b| if best(classes[b].1, classes[a].1) { b } else { a }).unwrap_or(0)
    };
    let (first, last) = (place(|a, b| a < b), place(|a, b| a >= b));
    let (mut ratios, mut series) = (vec![Vec::new(); classes.len()], Vec::new());
    let (mut shapes, mut singles) = (Vec::new(), [Vec::new(), Vec::new()]);
    let mut slowdown = [Vec::new(), Vec::new()];
    for seed in SEEDS {
        let scene = scene(server, classes, load, seed);
        let heard = if front == ENGINE { scene.run() } else { scene.run_against(front) };
        assert!(heard.answers.iter().all(|answer| answer.completed), "somebody was turned away");
        let from = scene.seconds * WARM_UP as f64 / (WARM_UP + JUDGED) as f64;
        let base = heard.mean(first, from);
        ratios.iter_mut().enumerate().for_each(|(class, own)| own.push(heard.mean(class, from) / base));
        let judged = heard.answers.iter().filter(|answer| answer.arrived >= from);
        slowdown[0].push(base / SERVICE);
        slowdown[1].push(mean(&judged.map(Answer::response).collect::<Vec<_>>()) / SERVICE);
        let windows = windows(&heard, first, last);
        let judged = &windows[WARM_UP..];
        let [five, middle, most] = five_mean_95(judged.iter().map(ratio).collect());
        let of_last: Vec<f64> = judged.iter().map(|[_, last]| mean(last)).collect();
        let slower = mean(&judged.iter().map(slower).collect::<Vec<_>>());
        shapes.push([five, middle, most, slower, variation(&of_last)]);
        for (class, singles) in singles.iter_mut().enumerate() {
            singles.push(five_mean_95(judged.iter().flat_map(|window| window[class].clone()).collect()));
        }
        series.push(windows.iter().map(ratio).collect::<Vec<f64>>());
    }
    let shortest = series.iter().map(Vec::len).min().unwrap_or(0);
    let over_seeds: Vec<f64> =
        (0..shortest).map(|n| mean(&series.iter().map(|own| own[n]).collect::<Vec<_>>())).collect();
    let stationary = mean(&over_seeds[WARM_UP..]);
    let is_close = |five: &[f64]| (mean(five) / stationary - 1.0).abs() <= 0.2;
    let settled = over_seeds.windows(5).position(is_close).unwrap_or(over_seeds.len());
    let [five, middle, most, slower, unsteady] = means(&shapes);
    let found = Found {
        ratios: ratios.iter().map(|own| mean(own)).collect(),
        spread: most - five,
        windows: [five, middle, most],
        single: singles.each_ref().map(|own| means(own)),
        slower,
        unsteady,
        settled,
        slowdown: slowdown.each_ref().map(|own| mean(own)),
    };
    println!(
        "{} {}, {classes:?} at {load}, {front}: {found:.2?}",
        server.workers,
        if server.shared { "shared" } else { "workers" },
    );
    found
}

/// zeta (eq. 11), for each class beside the first.
fn zeta(integrated: &Found, alone: &Found, classes: Classes<'_>) -> Vec<f64> {
    let off = |found: &Found, class: usize| (found.ratios[class] - classes[class].1).abs();
    let zeta: Vec<f64> =
        (1..classes.len()).map(|class| 1.0 - off(integrated, class) / off(alone, class)).collect();
    println!("    zeta {zeta:.2?}");
    zeta
}

/// The allocation decides, and nothing else: whichever class is declared first, the ratio is the same, and classes that are
/// alike fare alike. Four processes are at work at all times here, so whoever was next in the order would have it.
#[test]
fn the_order_of_declaration_decides_nothing() {
    for (load, bounds) in [(0.8, 1.2..1.45), (0.9, 1.3..1.7)] {
        let of = |classes: Classes<'_>| found("pools:4,gain=0", SHARED, classes, load).ratios;
        let (once, reversed) = (of(THREE_TO_ONE)[1], of(&[(1.0, 3.0), (3.0, 1.0)])[0]);
        assert!(bounds.contains(&once) && bounds.contains(&reversed), "{once}, {reversed} at {load}");
        assert!((0.87..1.15).contains(&(once / reversed)), "{once}, {reversed} at {load}");
        let alike = of(&[(1.0, 1.0), (1.0, 1.0)])[1];
        assert!((0.93..1.07).contains(&alike), "{alike} at {load}");
    }
}

/// A load; what the last class reaches with PID, from and to; each class's zeta, and about twice its spread between sets of
/// seeds.
type Point = (f64, std::ops::Range<f64>, &'static [f64], f64);

/// The last class's ratio along the load axis of fig. 4 to 6, alone and with PID, and what PID mends.
fn along_the_axis(classes: Classes<'_>, points: &[Point]) {
    for (load, reached, zetas, spread) in points {
        let [alone, pid] = [ALONE, PID].map(|front| found(front, SHARED, classes, *load));
        let [of_alone, of_pid] = [&alone, &pid].map(|found| found.ratios[classes.len() - 1]);
        // A processor that is shared is lent to whoever has work: the allocation alone differentiates hardly at all.
        assert!((0.95..1.4).contains(&of_alone), "{of_alone} at {load}");
        assert!(reached.contains(&of_pid), "{of_pid} at {load}");
        for ((class, zeta), expected) in (1..).zip(zeta(&pid, &alone, classes)).zip(*zetas) {
            assert!((zeta - expected).abs() < *spread, "{zeta} of class {class} at {load}");
        }
    }
}

/// Fig. 4 to 6. Where few wait there is nothing to differentiate by, and feedback comes the nearer to the ratio the higher the
/// load. It mends most of what the allocation misses for 1:2 at 80 %, and goes past both ratios at 90 %; up to 60 % it
/// mends a quarter at most. The paper's allocation alone has 2.75 of 3 at 40 % and 4.13 at 90 %, which processes that share
/// one processor do not give here.
#[test]
fn feedback_mends_a_part_of_what_the_allocation_misses_with_two_classes() {
    let one_to_two: [Point; 6] = [
        (0.4, 1.0..1.15, &[0.06], 0.02),
        (0.5, 1.02..1.25, &[0.12], 0.02),
        (0.6, 1.1..1.35, &[0.24], 0.02),
        (0.7, 1.3..1.75, &[0.48], 0.04),
        (0.8, 1.8..2.3, &[0.92], 0.07),
        (0.9, 2.1..2.7, &[0.52], 0.12),
    ];
    along_the_axis(TWO, &one_to_two);
    let one_to_three: [Point; 6] = [
        (0.4, 1.0..1.15, &[0.03], 0.01),
        (0.5, 1.02..1.25, &[0.06], 0.01),
        (0.6, 1.1..1.35, &[0.12], 0.02),
        (0.7, 1.3..1.75, &[0.24], 0.03),
        (0.8, 1.8..2.3, &[0.52], 0.05),
        (0.9, 3.1..4.0, &[0.67], 0.08),
    ];
    along_the_axis(THREE_TO_ONE, &one_to_three);
}

/// At 90 % it is most in the mean, and 0.5 to 1.0 by the seeds.
#[test]
fn feedback_mends_a_part_of_what_the_allocation_misses_with_three_classes() {
    let points: [Point; 6] = [
        (0.4, 1.0..1.15, &[0.08, 0.02], 0.02),
        (0.5, 1.02..1.25, &[0.15, 0.04], 0.02),
        (0.6, 1.05..1.3, &[0.24, 0.07], 0.02),
        (0.7, 1.2..1.6, &[0.33, 0.16], 0.04),
        (0.8, 1.5..2.1, &[0.5, 0.34], 0.06),
        (0.9, 2.8..4.0, &[0.89, 0.86], 0.27),
    ];
    along_the_axis(THREE, &points);
}

/// Turns give the ratio that PID comes near to, with less spread and from the first window on. Below 80 % no order of requests
/// gives these ratios (`ratios.rs`).
#[test]
fn turns_hold_the_ratio_with_a_part_of_the_spread() {
    for (classes, load) in [(TWO, 0.8), (TWO, 0.9), (THREE_TO_ONE, 0.9), (THREE, 0.9)] {
        let [alone, pid, engine] = [ALONE, PID, ENGINE].map(|front| found(front, SHARED, classes, load));
        for (class, of_engine) in (1..).zip(zeta(&engine, &alone, classes)) {
            assert!((0.9..=1.0).contains(&of_engine), "{of_engine} of class {class} at {load}");
        }
        let over = pid.spread / engine.spread;
        assert!((2.5..=14.0).contains(&over), "{} beside {} at {load}", pid.spread, engine.spread);
        assert!(engine.settled <= 1, "{}", engine.settled);
    }
}

/// The loads of Fig. 7 to 9.
const MICROSCOPIC: [f64; 3] = [0.4, 0.6, 0.8];

/// Fig. 8 and 9 are not had here. In the paper PID takes the spread at 80 % from 4.2 to 1.7 at 1:2 and from 9.3 to 3.1 at
/// 1:3, and settles sooner. Here the allocation alone stays near 1, where there is little to spread and nothing to settle,
/// and PID's spread is the paper's. Turns have less than the paper's at every load.
#[test]
fn feedback_widens_the_spread_and_takes_time_to_settle() {
    let rows = |at_80| [(1.0..1.6, 0..=1, 0.25..0.6), (1.4..2.4, 0..=2, 0.6..1.3), (2.3..5.0, 2..=15, at_80)];
    for (classes, papers, at_80) in [(TWO, 1.7, 0.2..0.6), (THREE_TO_ONE, 3.1, 0.9..1.9)] {
        for (load, (over_alone, settled, of_turns)) in MICROSCOPIC.into_iter().zip(rows(at_80)) {
            let [alone, pid, engine] = [ALONE, PID, ENGINE].map(|front| found(front, SHARED, classes, load));
            let over = pid.spread / alone.spread;
            assert!(over_alone.contains(&over), "{} after {} at {load}", pid.spread, alone.spread);
            assert!(of_turns.contains(&engine.spread), "{} at {load}", engine.spread);
            assert!(settled.contains(&pid.settled), "{} at {load}", pid.settled);
            assert!(alone.settled <= 1 && engine.settled <= 1, "{}, {}", alone.settled, engine.settled);
            for of in [&alone, &pid, &engine] {
                let [five, middle, most] = of.windows;
                assert!(five < middle && middle < most, "{:?} at {load}", of.windows);
                assert!((middle / of.ratios[1] - 1.0).abs() < 0.08, "{middle}, {:?} at {load}", of.ratios);
            }
        }
        let spread = found(PID, SHARED, classes, 0.8).spread;
        assert!((0.4..1.4).contains(&(spread / papers)), "{spread}");
    }
}

/// Fig. 7, at 1:3. A class is told from the other by its single requests only where the load is high, and with the allocation
/// alone not even there. In the paper PID makes periods more alike. Here it does so nowhere; turns do at 80 %, and below that
/// the last class varies more because it is what waits.
#[test]
fn single_requests_tell_the_classes_apart_at_high_load() {
    let rows = [
        ([0.48..0.52, 0.5..0.54, 0.5..0.56], [0.9..1.1, 1.0..1.2, 1.2..1.6], [1.0..1.35, 1.0..1.5]),
        ([0.48..0.52, 0.51..0.57, 0.53..0.6], [0.9..1.1, 1.1..1.5, 1.9..2.8], [1.1..1.6, 1.1..1.8]),
        ([0.49..0.53, 0.57..0.66, 0.6..0.68], [0.97..1.25, 1.8..2.8, 3.3..5.0], [1.05..1.6, 0.75..0.99]),
    ];
    for (load, (slower, slowest, unsteady)) in MICROSCOPIC.into_iter().zip(rows) {
        let all = [ALONE, PID, ENGINE].map(|front| found(front, SHARED, THREE_TO_ONE, load));
        for ((of, slower), slowest) in all.iter().zip(slower).zip(slowest) {
            assert!(slower.contains(&of.slower), "{} at {load}", of.slower);
            let [first, last] = &of.single;
            // The shortest twentieth waits for nobody, in either class.
            assert!(first[0] < 0.4 && last[0] < 0.4, "{first:?}, {last:?} at {load}");
            assert!(slowest.contains(&(last[2] / first[2])), "{first:?}, {last:?} at {load}");
        }
        let [alone, pid, engine] = all.map(|of| of.unsteady);
        let [by_pid, by_turns] = [pid / alone, engine / alone];
        assert!(unsteady[0].contains(&by_pid), "{pid} after {alone} at {load}");
        assert!(unsteady[1].contains(&by_turns), "{engine} after {alone} at {load}");
    }
}

/// Each class may have gains of its own, as in the paper. The gain of the class that has too many processes decides how soon
/// the ratio is there, and none of them what it is: the sum of errors grows until nothing is left to take. Without a gain of
/// its own that class keeps what the other one, asking for more than there is, leaves it.
#[test]
fn gains_by_class_decide_how_soon_and_hardly_what() {
    let of = |gain: &str, classes: Classes<'_>, load: f64| {
        found(&format!("pools,gain={gain}"), SHARED, classes, load)
    };
    let usual = found(PID, SHARED, TWO, 0.8);
    let [soon, late, none] = ["0.25/1", "1/0.25", "1/0"].map(|gain| of(gain, TWO, 0.8));
    for other in [&soon, &late] {
        let over = other.ratios[1] / usual.ratios[1];
        assert!((0.97..1.03).contains(&over), "{:?} after {:?}", other.ratios, usual.ratios);
    }
    let later = late.settled - soon.settled;
    assert!((5..=40).contains(&later), "{} and {}", late.settled, soon.settled);
    assert!((1.2..1.6).contains(&none.ratios[1]), "{:?}", none.ratios);
    // The paper's of Fig. 6.
    let (usual, papers) = (found(PID, SHARED, THREE, 0.9), of("0.5/0.5/1", THREE, 0.9));
    for (one, other) in papers.ratios.iter().zip(&usual.ratios) {
        assert!((0.93..1.07).contains(&(one / other)), "{:?}, {:?}", papers.ratios, usual.ratios);
    }
    // "Quite sensitive to parameter settings" it is where few processes wait: the sum is bounded, and a tenth of it moves two.
    let [little, much] = ["pools,gain=0.1", PID].map(|front| found(front, PROCESSES, TWO, 0.4).ratios[1]);
    assert!((0.95..1.1).contains(&little) && (2.1..2.9).contains(&much), "{little}, {much}");
}

/// Before workers, with a process for each, a class's rate is in proportion to its processes, as the paper assumes. Thirty-two
/// hardly wait for one another, and the allocation leaves them so; PID goes past the ratio at every load, by leaving processes
/// idle while others wait: requests are slower for it in the mean, and the first class gains nothing.
#[test]
fn before_workers_feedback_pays_by_idle_processes() {
    for (load, of_alone) in [(0.4, 0.95..1.1), (0.6, 0.95..1.1), (0.8, 0.95..1.2), (0.9, 1.2..1.65)] {
        let [alone, pid, engine] = [ALONE, PID, ENGINE].map(|front| found(front, PROCESSES, TWO, load));
        assert!(of_alone.contains(&alone.ratios[1]), "{} at {load}", alone.ratios[1]);
        assert!((2.1..2.9).contains(&pid.ratios[1]), "{} at {load}", pid.ratios[1]);
        let zeta = zeta(&pid, &alone, TWO)[0];
        assert!((0.2..0.85).contains(&zeta), "{zeta} at {load}");
        let [first, all] = [0, 1].map(|which| pid.slowdown[which] / engine.slowdown[which]);
        assert!((0.95..1.3).contains(&first), "the first class is {first} times as slow at {load}");
        assert!((1.2..1.65).contains(&all), "all are {all} times as slow at {load}");
        assert!((0.95..1.45).contains(&engine.ratios[1]) && engine.spread < 0.3 * pid.spread);
    }
}
