//! QM 3.2 live, its figures 7 to 10 and its Table 1: how near a promised mean stays to what was promised with the prediction
//! alone, with P, with PI, and with PI alone.
//!
//! A real Apache of 128 processes, as many as the paper's, each held by its request for an exponential time; a class with D_ref
//! of 1.2 of these, whose rate steps up; and best effort that asks for more than is left. The paper's sampling period is 600
//! answers. Two delays are looked at: the response by the client's clock, of which the mean was promised, and the wait in the
//! gateway's queue by its access log, which is the paper's delay; both in units in which D_ref is 2, as in virtual time
//! (`cargo test -p plimsoll-sim --test scenes apache_processes::`), where order and shape are asserted. With names of schemes
//! beside that of this part (`-- queueing-model predictor both`) only those run, so that a machine need not be quiet for
//! eight minutes on end.

use super::{PAGE, mean_and_spread};
use plimsoll_e2e::flows::{End, Fate, Flow, drive};
use plimsoll_e2e::{Apache, Folder, Plimsoll, ServerModel};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const SERVER: ServerModel = ServerModel::exponential(128, Duration::from_millis(500));
const WANTED: Duration = Duration::from_millis(600);
/// Seconds and requests per second of the class with the promise: 50 of the processes, then 80.
const STEPS: [(f64, f64); 2] = [(70.0, 100.0), (50.0, 160.0)];
/// More than is left.
const BEST_EFFORT: f64 = 200.0;
/// While two windows fill.
const NOT_JUDGED: f64 = 20.0;
const PERIOD: usize = 600;
/// The paper's sums are over some sixty periods.
const PERIODS: f64 = 60.0;
/// The delays of so many periods in a row have a mean within a tenth of D_ref once the class has settled.
const SETTLED: usize = 3;

/// Each `delay_law`, what it is, the aggregate error in virtual time with self-similar arrivals, and the paper's of its two
/// experiments.
const LAWS: [(&str, &str, &str, &str); 4] = [
    ("predictor", "predictor alone", "8.2", "214.08"),
    ("predictor-p", "with P", "3.7", "74.80"),
    ("both", "with PI", "3.6", "30.32; 23.84"),
    ("feedback", "PI alone", "9.8", "56.84"),
];

fn configuration(server: &Apache, law: &str, log: &Path) -> String {
    let (workers, wanted) = (SERVER.workers, WANTED.as_millis());
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n[control]\ndelay_law = \"{law}\"\n\n\
         [access_log]\nfile = \"{}\"\nformat = \"json\"\n\n\
         [upstream.server]\naddress = \"{}\"\ncapacity = {{ workers = {workers}, load_line = 1.0 }}\n\n\
         [[site]]\nname = \"shop\"\n\n[[site.class]]\nname = \"premium\"\nmatch = {{ path = \"/premium/*\" }}\n\
         delay = \"{wanted}ms\"\n",
        log.display(),
        server.upstream
    )
}

/// A sampling period.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    /// Requests per second.
    rate: f64,
    /// The mean response and the mean wait, of a D_ref of 2.
    response: f64,
    wait: f64,
    /// Processes that were the class's own while it wanted them.
    quota: f64,
}

impl Sampled {
    /// The figures of so many answers; the quotas of the run stand with their seconds.
    fn of(period: &[Waited], quotas: &[(f64, f64)]) -> Sampled {
        let (from, until) = (period[0].due, period[PERIOD - 1].due);
        let mean = |of: fn(&Waited) -> f64, wanted: Duration| {
            2.0 * period.iter().map(of).sum::<f64>() / PERIOD as f64 / wanted.as_secs_f64()
        };
        let held = quotas.iter().filter(|(at, _)| (from - 0.5..until + 0.5).contains(at));
        let (sum, count) = held.fold((0.0, 0.0), |(sum, count), (_, quota)| (sum + quota, count + 1.0));
        Sampled {
            rate: PERIOD as f64 / (until - from),
            response: mean(|one| one.response, WANTED),
            wait: mean(|one| one.wait, WANTED - SERVER.fixed),
            quota: sum / count,
        }
    }
}

/// An answered request of the class, by the client's clock, and its wait in the gateway's queue (s).
#[derive(Clone, Copy, Debug)]
struct Waited {
    due: f64,
    response: f64,
    wait: f64,
}

/// What a scheme did: its periods before the step and after it, and how many requests were not answered.
struct Run {
    halves: [Vec<Sampled>; 2],
    unanswered: usize,
}

fn run(law: &str) -> Run {
    let (server, logs) = (Apache::holding(Path::new(PAGE), SERVER), Folder::new());
    let log = logs.path().join("access.log");
    let mut gateway = Plimsoll::run(&configuration(&server, law, &log));
    let whole: f64 = STEPS.iter().map(|(seconds, _)| seconds).sum();
    let flows = [
        Flow::new("shop.test", "/premium/page", &STEPS),
        Flow::new("shop.test", "/page", &[(whole, BEST_EFFORT)]),
    ];
    let (started, mut quotas) = (Instant::now(), Vec::new());
    let flown = drive(gateway.address, &flows, Duration::from_secs(8), || {
        while started.elapsed().as_secs_f64() < whole {
            sleep(Duration::from_secs(1));
            quotas.push((started.elapsed().as_secs_f64(), gateway.metric("plimsoll_quota_workers")));
        }
    });
    gateway.stop();
    let is_page = |end| matches!(end, End::Page { .. });
    let mut answers: Vec<_> = flown[0].fates.iter().filter(|fate| is_page(fate.end)).collect();
    answers.sort_by(|one, other| one.due.total_cmp(&other.due));
    // In the order of arrival the lines of the log are those of the answers.
    let waited = |(fate, wait): (&&Fate, f64)| Waited { due: fate.due, response: fate.latency, wait };
    let own: Vec<Waited> = answers.iter().zip(waits(&log)).map(waited).collect();
    let step = own.partition_point(|one| one.due < STEPS[0].0);
    let halves = [&own[..step], &own[step..]]
        .map(|half| half.chunks_exact(PERIOD).map(|period| Sampled::of(period, &quotas)).collect());
    Run { halves, unanswered: flown[0].fates.len() - answers.len() }
}

/// The waits of the class's answered requests (s), in the order of arrival.
fn waits(log: &Path) -> Vec<f64> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut waits: Vec<(String, f64)> = lines
        .filter(|line| line["class"] == "premium" && line["status"] == 200)
        .filter_map(|line| Some((line["time"].as_str()?.to_owned(), line["queue_time"].as_f64()?)))
        .collect();
    waits.sort_by(|one, other| one.0.cmp(&other.0));
    waits.into_iter().map(|(_, wait)| wait).collect()
}

/// What the paper says of a scheme's curve, by one of the two delays.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The aggregate squared error over as many periods as the paper's.
    error: f64,
    mean: f64,
    /// The mean error in the steady state before the step, and after it.
    before: f64,
    after: f64,
    /// The standard error of the latter.
    doubt: f64,
    /// The variance of the curve around its mean, and that of its steady states around theirs.
    fluctuation: f64,
    steady: f64,
    /// The first period after the step from which on it has settled.
    settled: Option<usize>,
}

impl Shape {
    fn of(run: &Run, delay: fn(&Sampled) -> f64) -> Shape {
        let judged = (NOT_JUDGED * STEPS[0].1) as usize / PERIOD + 1;
        let [before, after] = run.halves.each_ref().map(|half| half.iter().map(delay).collect::<Vec<_>>());
        let before = &before[judged.min(before.len())..];
        let steady = &after[after.len() / 2..];
        let [(mean_before, spread_before), (mean_after, spread_after)] =
            [before, steady].map(mean_and_spread);
        let all: Vec<f64> = before.iter().chain(&after).copied().collect();
        let (mean, spread) = mean_and_spread(&all);
        let squares: f64 = all.iter().map(|delay| (delay - 2.0).powi(2)).sum();
        let is_settled = |few: &[f64]| (few.iter().sum::<f64>() / SETTLED as f64 - 2.0).abs() < 0.2;
        Shape {
            error: PERIODS * squares / all.len() as f64,
            mean,
            before: mean_before - 2.0,
            after: mean_after - 2.0,
            doubt: spread_after / (steady.len() as f64).sqrt(),
            fluctuation: spread.powi(2),
            steady: f64::midpoint(spread_before.powi(2), spread_after.powi(2)),
            settled: after.windows(SETTLED).position(is_settled),
        }
    }
}

/// A figure of each period, the step as a bar.
fn series(what: &str, run: &Run, of: fn(&Sampled) -> f64, decimals: usize) {
    let half = |half: &Vec<Sampled>| {
        half.iter().map(|period| format!("{:>5.decimals$}", of(period))).collect::<String>()
    };
    println!("    {what:<9}{} |{}", half(&run.halves[0]), half(&run.halves[1]));
}

fn show_shape(what: &str, shape: &Shape) {
    let settled = shape.settled.map_or("never".to_owned(), |period| format!("after {period} periods"));
    println!(
        "    {what}: aggregate error {:.2}, mean {:.2}; steady error {:+.2} before the step, {:+.2} +- {:.2} after it; \
         variance {:.3}, of the steady states {:.3}; settled {settled}",
        shape.error, shape.mean, shape.before, shape.after, shape.doubt, shape.fluctuation, shape.steady
    );
}

/// What the paper reads from its figures, where both schemes have run.
fn judge(unit: &str, shapes: &[Option<Shape>; 4]) {
    let [alone, p, pi, pi_alone] = shapes;
    let verdict = |what: &str, holds: Option<bool>| {
        if let Some(holds) = holds {
            println!("  {unit}, {what}: {}", if holds { "as the paper" } else { "not" });
        }
    };
    let both = |one: &Option<Shape>, other: &Option<Shape>, holds: fn(&Shape, &Shape) -> bool| {
        one.as_ref().zip(other.as_ref()).map(|(one, other)| holds(one, other))
    };
    let nearer = |one: &Shape, other: &Shape| one.after.abs() > other.after.abs();
    let less = |one: &Shape, other: &Shape| one.error > other.error;
    verdict(
        "fig. 8, prediction alone has a steady error",
        alone.map(|alone| alone.after.abs() > 2.0 * alone.doubt),
    );
    verdict("fig. 8, P lessens it", both(alone, p, nearer));
    verdict(
        "fig. 8, P lessens the fluctuation",
        both(alone, p, |alone, p| alone.fluctuation > p.fluctuation),
    );
    verdict("fig. 8, with PI there is none", pi.map(|pi| pi.after.abs() < 2.0 * pi.doubt));
    verdict("fig. 10, PI alone is worse than with prediction", both(pi_alone, pi, less));
    verdict("table 1, P is better than prediction alone", both(alone, p, less));
    verdict("table 1, PI is better than P", both(p, pi, less));
}

pub(super) fn show() {
    println!("QM 3.2: an Apache of {} processes, periods of {PERIOD} answers, D_ref = 2", SERVER.workers);
    let named: Vec<String> = std::env::args().collect();
    let is_named = |law: &str| named.iter().any(|name| name == law);
    let all = !LAWS.iter().any(|(law, ..)| is_named(law));
    let (mut responses, mut waits) = ([None; 4], [None; 4]);
    for (place, (law, what, simulated, paper)) in LAWS.into_iter().enumerate() {
        if !all && !is_named(law) {
            continue;
        }
        let run = run(law);
        println!(
            "  {what}, {} not answered (table 1: {paper}; the response in virtual time: {simulated})",
            run.unanswered
        );
        series("requests/s", &run, |period| period.rate, 0);
        series("response", &run, |period| period.response, 2);
        series("wait", &run, |period| period.wait, 1);
        series("quota", &run, |period| period.quota, 0);
        let shapes = [Shape::of(&run, |period| period.response), Shape::of(&run, |period| period.wait)];
        show_shape("response", &shapes[0]);
        show_shape("wait", &shapes[1]);
        (responses[place], waits[place]) = (Some(shapes[0]), Some(shapes[1]));
    }
    judge("wait", &waits);
    judge("response", &responses);
}
