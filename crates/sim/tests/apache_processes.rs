//! QM's Apache (3.2, fig. 7 to 10 and table 1) in virtual time: 128 processes, each held by its request as those of the paper
//! are held by their connections; a class with a promised mean whose load steps up, best effort that asks for more than is
//! left, and sampling periods of 600 answers. The paper's arrivals are those of SURGE, changed so that its users
//! do not wait for answers.
//!
//! Figures 7 to 10 are series: what comes, the delay by sampling period and here the quota beside it, by scheme. They are
//! asserted in shape.
//!
//! The paper prints sums over a run of its length, and its delay is the wait for a process alone. The promise here is of the
//! response, of which five sixths are service; so the sums are given of both, each with D_ref = 2. `--nocapture` prints the
//! figures of docs/papers.md.

use crate::waits::{self, Flow, Scene, mean};
use plimsoll_core::promises::{DelayParts, Mode};
use plimsoll_sim::surge_files;
use plimsoll_sim::workload::{Law, Page, Process};
use std::time::Duration;

const PROCESSES: u32 = 128;
const SERVICE: Duration = Duration::from_millis(500);
/// D_ref: 2 in the paper's figures.
const WANTED: Duration = Duration::from_millis(600);
/// The class takes 50 of the processes, then 80.
const RATES: [f64; 2] = [100.0, 160.0];
const PERIOD: usize = 600;
/// Requests of each half.
const HALF: f64 = 24_000.0;
/// The paper's table has sums over some sixty periods.
const PERIODS: f64 = 60.0;

/// The run: the class's load steps up, best effort asks for more than is left.
fn scene(process: Process, law: &Law, parts: DelayParts, seed: u64) -> Scene {
    let rates = RATES.map(|rate| nominal(rate, process));
    let step = HALF / RATES[0];
    let seconds = step + HALF / RATES[1];
    let mut premium = Flow::new("premium", rates[0]).then(step, rates[1]).delay(WANTED, None);
    premium.process = process;
    let capacity = f64::from(PROCESSES) / SERVICE.as_secs_f64();
    let best_effort = Flow::new("default", 1.3 * (capacity - RATES[0]));
    let mut scene = Scene::new(PROCESSES, SERVICE, vec![premium, best_effort], seconds, seed);
    scene.delay_law = parts;
    scene.law = law.clone();
    scene
}

/// The aggregate squared error of the periods' mean responses, and that of their mean waits, which are the paper's delays:
/// D_ref is
/// 2 of each. And the mean response; over so many seeds.
fn aggregate(process: Process, law: &Law, parts: DelayParts) -> (f64, f64, f64) {
    let (mut sums, mut means, mut waits) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 7001..=7004 {
        let scene = scene(process, law, parts, seed);
        // While the first windows fill it is not judged.
        let heard = scene.run();
        let from = 0.1 * scene.seconds;
        let own = heard.answers.iter().filter(|one| one.class == 0 && one.completed && one.arrived >= from);
        let own: Vec<&waits::Answer> = own.collect();
        let periods = |of: fn(&waits::Answer) -> f64, wanted: Duration| -> Vec<f64> {
            let delay = |period: &[&waits::Answer]| {
                2.0 * mean(&period.iter().map(|one| of(one)).collect::<Vec<_>>()) / wanted.as_secs_f64()
            };
            own.chunks_exact(PERIOD).map(delay).collect()
        };
        let error = |delay: &f64| (delay - 2.0).powi(2);
        let sum = |delays: &[f64]| PERIODS * delays.iter().map(error).sum::<f64>() / delays.len() as f64;
        let delays = periods(waits::Answer::response, WANTED);
        sums.push(sum(&delays));
        means.push(mean(&delays));
        waits.push(sum(&periods(waits::Answer::wait, WANTED - SERVICE)));
    }
    let found = (mean(&sums), mean(&means), mean(&waits));
    println!(
        "{process:?}, {parts:?}: aggregate error {:.2}, of waits {:.1}, mean {:.2}",
        found.0, found.2, found.1
    );
    found
}

/// By how much the error of prediction alone is larger than with P, that with P than with PI, and that of PI alone than with
/// prediction; and the error of PI's waits.
struct Order {
    alone: f64,
    p: f64,
    pi_alone: f64,
    waits: f64,
}

/// Table 1: prediction alone is worst, P takes most of its error away, PI as much within a twentieth; and PI alone is behind PI
/// with prediction.
fn in_the_papers_order(process: Process, law: &Law, order: &Order) {
    let [alone, p, pi, pi_alone] = all_parts(process, law);
    let near = |expected: f64, least: f64| (0.8 * expected).max(least)..1.25 * expected;
    assert!(near(order.alone, 2.0).contains(&(alone.0 / p.0)), "{alone:?} and {p:?}; the paper: 2.9");
    assert!(near(order.p, 0.95).contains(&(p.0 / pi.0)), "{p:?} and {pi:?}; the paper: 2.5");
    assert!(near(order.pi_alone, 1.2).contains(&(pi_alone.0 / pi.0)), "{pi_alone:?}, {pi:?}; the paper: 2.4");
    assert!((1.93..2.03).contains(&pi.1), "{pi:?}");
    // In the paper's unit, the wait alone.
    assert!(near(order.alone, 2.0).contains(&(alone.2 / p.2)), "{alone:?} and {p:?}");
    assert!(near(1.1 * order.p, 0.95).contains(&(p.2 / pi.2)), "{p:?} and {pi:?}");
    assert!(near(1.05 * order.pi_alone, 1.5).contains(&(pi_alone.2 / pi.2)), "{pi_alone:?} and {pi:?}");
    assert!(near(order.waits, 80.0).contains(&pi.2), "{pi:?}; the paper: 30.32 and 23.84");
}

/// By prediction alone, with P, with PI, and by PI alone.
fn all_parts(process: Process, law: &Law) -> [(f64, f64, f64); 4] {
    [DelayParts::Predictor, DelayParts::PredictorP, DelayParts::Both, DelayParts::Feedback]
        .map(|parts| aggregate(process, law, parts))
}

#[test]
fn the_order_of_table_1_with_self_similar_arrivals() {
    let process = Process::SelfSimilar { hurst: 0.8, sources: 200 };
    let order = Order { alone: 2.8, p: 0.98, pi_alone: 2.8, waits: 99.0 };
    in_the_papers_order(process, &Law::Exponential, &order);
    // The twin without control: best effort takes what it wants.
    let twin = scene(process, &Law::Exponential, DelayParts::Both, 7001);
    let heard = Scene { mode: Mode::Off, ..twin }.run();
    let delay = 2.0 * heard.mean(0, 0.1 * STEP) / WANTED.as_secs_f64();
    assert!(delay > 20.0, "{delay}");
}

/// The users of SURGE as the paper changed them, as many as come at the class's rate in SURGE's own time. So many users
/// together are nearly Poisson's arrivals within a sampling period, so that prediction alone has less to miss than in the
/// paper's table, and PI alone is behind it. P improves on prediction alone as in the paper, and PI is no worse than P by more
/// than a twentieth.
#[test]
fn the_parts_of_table_1_with_surge_s_users() {
    let [alone, p, pi, pi_alone] = all_parts(Process::Surge { users: 370, waits: false }, &Law::Exponential);
    assert!((1.5..2.3).contains(&(alone.0 / p.0)), "{alone:?} and {p:?}; the paper: 2.9");
    assert!((0.95..1.2).contains(&(p.0 / pi.0)), "{p:?} and {pi:?}; the paper: 2.5");
    assert!((1.9..3.0).contains(&(pi_alone.0 / pi.0)), "{pi_alone:?} and {pi:?}; the paper: 2.4");
    assert!((1.9..1.99).contains(&pi.1), "{pi:?}");
}

/// The rate of users that wait for nothing, of whom so many come if each waits as long as was promised: N / X = Z + R.
fn nominal(rate: f64, process: Process) -> f64 {
    match process {
        Process::Surge { users, waits: true } => {
            rate / (1.0 - rate * WANTED.as_secs_f64() / f64::from(users))
        }
        _ => rate,
    }
}

/// A process is held in proportion to the size of the file, of a thousand files as popular as SURGE's.
fn held_by_files() -> Law {
    let page = Page {
        method: "GET".to_owned(),
        host: String::new(),
        path: "/*".to_owned(),
        headers: Vec::new(),
        weight: 20_000.0,
        bytes: 0.0,
        bytes_law: Law::Deterministic,
        service: None,
        service_law: None,
    };
    let files = surge_files(&page, 1000);
    let often = |file: &Page| std::iter::repeat_n(file.bytes, file.weight.round() as usize);
    Law::Empirical(files.iter().flat_map(often).collect())
}

/// SURGE's users and files, as the paper changed the users: a file that is a hundred times as large as another holds its
/// process a hundred times as long, so that prediction alone has as much to miss as in the paper.
#[test]
fn the_order_of_table_1_with_surge_s_users_and_files() {
    let order = Order { alone: 11.0, p: 1.65, pi_alone: 2.5, waits: 270.0 };
    in_the_papers_order(Process::Surge { users: 370, waits: false }, &held_by_files(), &order);
}

/// SURGE's own users, which wait for their answers: as many of them as ask at the class's rates if the promise is kept.
#[test]
fn the_order_of_table_1_with_surge_s_waiting_users() {
    let order = Order { alone: 8.4, p: 1.7, pi_alone: 2.55, waits: 187.0 };
    in_the_papers_order(Process::Surge { users: 370, waits: true }, &held_by_files(), &order);
}

#[test]
fn the_order_of_table_1_with_pareto_arrivals() {
    let order = Order { alone: 5.1, p: 1.12, pi_alone: 2.1, waits: 118.0 };
    in_the_papers_order(Process::Pareto { shape: 1.5 }, &Law::Exponential, &order);
}

/// A scheme's series, means over the seeds: by sampling period the wait with D_ref = 2, of requests that came before the
/// step and after it, and by second the quota.
struct Series {
    before: Vec<f64>,
    after: Vec<f64>,
    quotas: Vec<f64>,
}

/// When the load steps up (s).
const STEP: f64 = HALF / RATES[0];

fn series(parts: DelayParts) -> Series {
    const SEEDS: std::ops::RangeInclusive<u64> = 7101..=7108;
    let process = Process::SelfSimilar { hurst: 0.8, sources: 200 };
    let run = |seed: u64| -> [Vec<f64>; 3] {
        let heard = scene(process, &Law::Exponential, parts, seed).run();
        let delays = |of_half: &dyn Fn(f64) -> bool| -> Vec<f64> {
            let own =
                heard.answers.iter().filter(|one| one.class == 0 && one.completed && of_half(one.arrived));
            let waits: Vec<f64> = own.map(waits::Answer::wait).collect();
            let wanted = (WANTED - SERVICE).as_secs_f64();
            waits.chunks_exact(PERIOD).map(|period| 2.0 * mean(period) / wanted).collect()
        };
        [delays(&|arrived| arrived < STEP), delays(&|arrived| arrived >= STEP), heard.quotas]
    };
    let runs: Vec<_> = SEEDS.map(run).collect();
    let [before, after, quotas] = [0, 1, 2].map(|which| {
        let length = runs.iter().map(|run| run[which].len()).min().unwrap_or(0);
        (0..length)
            .map(|n| mean(&runs.iter().map(|run| run[which][n]).collect::<Vec<_>>()))
            .collect::<Vec<_>>()
    });
    let by_ten: Vec<f64> = quotas.iter().copied().step_by(10).collect();
    println!("{parts:?}\n  delays {before:.2?}\n  then {after:.2?}\n  quota every 10 s {by_ten:.0?}");
    Series { before, after, quotas }
}

impl Series {
    /// The steady state error: of the last half of the periods after the step.
    fn offset(&self) -> f64 {
        mean(&self.after[self.after.len() / 2..]) - 2.0
    }

    /// The longest delay of the first five periods after the step, over D_ref.
    fn overshoot(&self) -> f64 {
        self.after[..5].iter().copied().fold(0.0, f64::max) - 2.0
    }
}

/// Fig. 7 to 10: what comes steps from 100 to 160 a second. Fig. 8: with prediction alone the wait goes furthest off at the
/// step, P and PI hold it nearer. That P lessens the steady state error of the prediction alone and PI removes it is not had:
/// with all three the wait stays short by a fifth to a quarter, 3 to 4 % of the response that was promised. Fig. 10: PI alone
/// goes further off than PI with the predictor, and is still above D_ref at the end, since its integral learns by errors what
/// the predictor knows of the arrivals. The quota follows the load with each scheme.
#[test]
fn the_series_of_figures_7_to_10() {
    let parts = [DelayParts::Predictor, DelayParts::PredictorP, DelayParts::Both, DelayParts::Feedback];
    let all = parts.map(series);
    for (series, parts) in all.iter().zip(parts) {
        let quota = |from: f64, to: f64| mean(&series.quotas[from as usize..to as usize]);
        let quotas = [quota(0.5 * STEP, STEP), quota(1.3 * STEP, 1.6 * STEP)];
        println!(
            "{parts:?}: overshoot {:.2}, offset {:.3}, quotas {quotas:.1?}",
            series.overshoot(),
            series.offset()
        );
        // Workers that nobody asks for are lent beyond the quota, so it is less than the 50 and 80 that are used.
        assert!((47.0..53.0).contains(&quotas[0]) && (64.0..72.0).contains(&quotas[1]), "{quotas:?}");
        let calm = mean(&series.before[10..]);
        assert!((1.5..2.1).contains(&calm), "{parts:?} before the step: {calm}");
    }
    let [alone, p, pi, pi_alone] = &all;
    for held in [p, pi] {
        assert!((1.4..2.1).contains(&(alone.overshoot() / held.overshoot())), "fig. 8: {}", held.overshoot());
        assert!(
            (1.7..2.5).contains(&(pi_alone.overshoot() / held.overshoot())),
            "fig. 10: {}",
            held.overshoot()
        );
    }
    // D_ref is 2. In the paper the first is the largest, and PI's is none.
    for (series, bounds) in
        [(alone, -0.65..-0.43), (p, -0.47..-0.26), (pi, -0.53..-0.33), (pi_alone, 0.35..0.6)]
    {
        assert!(bounds.contains(&series.offset()), "{} in {bounds:?}", series.offset());
    }
}
