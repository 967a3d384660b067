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

use crate::waits::{self, Flow, Heard, Scene, mean};
use plimsoll_core::promises::{DelayParts, Mode};
use plimsoll_sim::surge_files;
use plimsoll_sim::workload::{Law, Page, Process};
use std::ops::Range;
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

/// The run: the class's load steps up, best effort asks for more than is left. What is more than the server carries is best
/// effort's to lose: by its priority the class loses nothing of its load.
fn scene(process: Process, law: &Law, parts: DelayParts, seed: u64) -> Scene {
    let rates = RATES.map(|rate| nominal(rate, process));
    let step = HALF / RATES[0];
    let seconds = step + HALF / RATES[1];
    let mut premium = Flow::new("premium", rates[0]).then(step, rates[1]).delay(WANTED, None).priority(1);
    premium.process = process;
    let capacity = f64::from(PROCESSES) / SERVICE.as_secs_f64();
    let best_effort = Flow::new("default", 1.3 * (capacity - RATES[0]));
    let mut scene = Scene::new(PROCESSES, SERVICE, vec![premium, best_effort], seconds, seed);
    scene.delay_law = parts;
    scene.law = law.clone();
    scene
}

/// What is judged is the whole load of the class: nobody of it is turned away, or next to nobody (one in a thousand of one run
/// with SURGE's files; up to 0.17 % with other seeds). Without its priority it was 15 % before the step and 29 % after it.
fn all_of_it_is_served(heard: &Heard) {
    let own = || heard.answers.iter().filter(|one| one.class == 0);
    let lost = own().filter(|one| !one.completed).count() as f64 / own().count() as f64;
    assert!(lost < 0.002, "{lost} of the class is turned away");
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
        all_of_it_is_served(&heard);
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
    let services = if matches!(law, Law::Exponential) { "exponential" } else { "by files" };
    println!(
        "{process:?}, {services}, {parts:?}: aggregate error {:.2}, of waits {:.1}, mean {:.2}",
        found.0, found.2, found.1
    );
    found
}

/// By how much the error of prediction alone is larger than with P, that with P than with PI, and that of PI alone than with
/// prediction, each of the responses and of the waits; the error of PI's waits, and its mean response.
struct Order {
    alone: [f64; 2],
    p: [Range<f64>; 2],
    pi_alone: [f64; 2],
    waits: f64,
    mean: f64,
}

/// Table 1: prediction alone is worse than with P, PI is no worse than P by more than a fiftieth, and PI alone is behind PI
/// with prediction. Between ten sets of four seeds the first and the last of these ratios have a standard deviation of 10 to
/// 26 %, P over PI one of 1 to 10 %, PI's sum one of 7 to 12 %, and its mean one of 0.01.
fn in_the_papers_order(process: Process, law: &Law, order: &Order) {
    let [alone, p, pi, pi_alone] = all_parts(process, law);
    let near = |expected: f64, least: f64| (0.8 * expected).max(least)..1.25 * expected;
    assert!(near(order.alone[0], 2.0).contains(&(alone.0 / p.0)), "{alone:?} and {p:?}; the paper: 2.9");
    assert!(order.p[0].contains(&(p.0 / pi.0)), "{p:?} and {pi:?}; the paper: 2.5");
    assert!(
        near(order.pi_alone[0], 1.2).contains(&(pi_alone.0 / pi.0)),
        "{pi_alone:?}, {pi:?}; the paper: 2.4"
    );
    assert!((pi.1 - order.mean).abs() < 0.02, "{pi:?}");
    // In the paper's unit, the wait alone.
    assert!(near(order.alone[1], 2.0).contains(&(alone.2 / p.2)), "{alone:?} and {p:?}");
    assert!(order.p[1].contains(&(p.2 / pi.2)), "{p:?} and {pi:?}");
    assert!(near(order.pi_alone[1], 1.5).contains(&(pi_alone.2 / pi.2)), "{pi_alone:?} and {pi:?}");
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
    let order = Order {
        alone: [2.22, 2.2],
        p: [0.99..1.06, 0.98..1.07],
        pi_alone: [2.72, 2.81],
        waits: 118.0,
        mean: 1.93,
    };
    in_the_papers_order(process, &Law::Exponential, &order);
    // The twin without control: best effort takes what it wants.
    let twin = scene(process, &Law::Exponential, DelayParts::Both, 7001);
    let heard = Scene { mode: Mode::Off, ..twin }.run();
    let delay = 2.0 * heard.mean(0, 0.1 * STEP) / WANTED.as_secs_f64();
    assert!(delay > 20.0, "{delay}");
}

/// The users of SURGE as the paper changed them, as many as come at the class's rate in SURGE's own time. So many users
/// together are nearly Poisson's arrivals within a sampling period, so that PI brings nothing beyond P.
#[test]
fn the_order_of_table_1_with_surge_s_users() {
    let order = Order {
        alone: [2.46, 2.59],
        p: [0.98..1.06, 0.98..1.09],
        pi_alone: [2.94, 3.11],
        waits: 96.0,
        mean: 1.92,
    };
    in_the_papers_order(Process::Surge { users: 370, waits: false }, &Law::Exponential, &order);
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
    let page = Page { weight: 20_000.0, ..Page::new("/*", 0.0) };
    let files = surge_files(&page, 1000);
    let often = |file: &Page| std::iter::repeat_n(file.bytes, file.weight.round() as usize);
    Law::Empirical(files.iter().flat_map(often).collect())
}

/// SURGE's users and files, as the paper changed the users: a file that is a hundred times as large as another holds its
/// process a hundred times as long, so that prediction alone misses more than the paper's, and PI brings more beyond P.
#[test]
fn the_order_of_table_1_with_surge_s_users_and_files() {
    let order = Order {
        alone: [6.37, 6.47],
        p: [1.31..1.69, 1.44..2.04],
        pi_alone: [3.92, 4.51],
        waits: 297.0,
        mean: 1.97,
    };
    in_the_papers_order(Process::Surge { users: 370, waits: false }, &held_by_files(), &order);
}

/// SURGE's own users, which wait for their answers: as many of them as ask at the class's rates if the promise is kept.
#[test]
fn the_order_of_table_1_with_surge_s_waiting_users() {
    let order = Order {
        alone: [8.92, 10.2],
        p: [1.17..1.73, 1.37..1.99],
        pi_alone: [2.69, 3.66],
        waits: 176.0,
        mean: 1.97,
    };
    in_the_papers_order(Process::Surge { users: 370, waits: true }, &held_by_files(), &order);
}

#[test]
fn the_order_of_table_1_with_pareto_arrivals() {
    let order = Order {
        alone: [4.92, 4.53],
        p: [1.02..1.39, 1.01..1.4],
        pi_alone: [2.9, 2.71],
        waits: 137.0,
        mean: 2.01,
    };
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
        all_of_it_is_served(&heard);
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
/// step, P and PI hold it nearer. P lessens the steady state error of the prediction alone by a quarter. That PI removes it is
/// not had: with all three the wait stays short by 0.46 to 0.62 of 2, 4 to 5 % of the response that was promised. Half and more
/// of P's and PI's is due to the least quota, 1.03 times the load under each scheme, which cuts what would take processes away:
/// with one of 0.05 times the load they are -0.17 and -0.27 off. Fig. 10: PI alone goes further off than PI with the predictor,
/// and is still above D_ref at the end, since its integral learns by errors what the predictor knows of the arrivals. The quota
/// follows the load with each scheme.
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
        // The class's work takes 50 and 80 processes, and its quota is 3 to 6 % more: eq. 1 asks for 52.9 and 83.2.
        assert!((50.6..54.4).contains(&quotas[0]) && (82.0..86.4).contains(&quotas[1]), "{quotas:?}");
        let calm = mean(&series.before[10..]);
        assert!((1.5..1.9).contains(&calm), "{parts:?} before the step: {calm}");
    }
    let [alone, p, pi, pi_alone] = &all;
    for held in [p, pi] {
        assert!((1.4..2.1).contains(&(alone.overshoot() / held.overshoot())), "fig. 8: {}", held.overshoot());
        assert!(
            (1.45..2.05).contains(&(pi_alone.overshoot() / held.overshoot())),
            "fig. 10: {}",
            held.overshoot()
        );
    }
    // D_ref is 2. In the paper the first is the largest, as here, and PI's is none.
    for (series, bounds) in
        [(alone, -0.73..-0.51), (p, -0.56..-0.36), (pi, -0.64..-0.44), (pi_alone, 0.23..0.47)]
    {
        assert!(bounds.contains(&series.offset()), "{} in {bounds:?}", series.offset());
    }
}
