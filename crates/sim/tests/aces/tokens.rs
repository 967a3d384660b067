//! A modern load whose costs differ by orders of magnitude: requests to a language model, which cost their tokens.
//!
//! The sizes are the trace's; its times are not, since it is so bursty that at twice the capacity in the mean its server
//! would idle for minutes. Twice the capacity arrives as Poisson's, each request one of the trace's by chance. The
//! deadline is three mean services of the one worker, so that 7 % of the requests, with 24 % of the tokens, cannot be in
//! time at all: goodput is what was in time, and shares by size are of those that can be.

use crate::heard::{Fate, Heard, Mean, listen_to, within};
use crate::plant::{plant, poisson, stream, workload};
use plimsoll_core::promises::{Condition, Plant, Promises, RequestType, Site};
use plimsoll_sim::front::{Comparator, Front, Gateway};
use plimsoll_sim::workload::{Content, Law, Page, Workload};
use std::io::Read;
use std::time::Duration;

/// The time of a mean request.
const MEAN: f64 = 0.1;
const DEADLINE: f64 = 3.0 * MEAN;
const LOAD: f64 = 2.0;
const SECONDS: f64 = 900.0;
const JUDGED: (f64, f64) = (60.0, SECONDS - 5.0);
/// Classes of prompts by their tokens, which the client knows; the last has no end.
const PROMPTS: [f64; 7] = [250.0, 500.0, 1000.0, 2000.0, 3000.0, 4500.0, 6000.0];

/// Prompt and generated tokens of all requests.
fn trace() -> Vec<(f64, f64)> {
    let mut text = String::new();
    let packed: &[u8] = include_bytes!("../data/azure-llm-2023-code.csv.gz");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("it is text");
    let row = |line: &str| {
        let mut columns = line.trim().split(',').skip(1).map(|column| column.parse().expect("a number"));
        Some((columns.next()?, columns.next()?))
    };
    text.lines().skip(1).filter_map(row).collect()
}

fn prompts() -> Workload {
    let trace = trace();
    let mean = trace.iter().map(|(prompt, made)| prompt + made).sum::<f64>() / trace.len() as f64;
    let page = |(prompt, made): &(f64, f64)| {
        let seconds = (prompt + made) / mean * MEAN;
        let class = PROMPTS.iter().filter(|most| *prompt > **most).count();
        Page {
            method: "POST".to_owned(),
            headers: [("x-cost", format!("{seconds:.6}")), ("x-prompt", class.to_string())]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec(),
            service: Some(Duration::from_secs_f64(seconds)),
            service_law: Some(Law::Deterministic),
            ..Page::new("/v1/completions", 1000.0)
        }
    };
    let pages = trace.iter().map(page).collect();
    let arrivals = poisson(&[(0.0, LOAD / MEAN)]);
    let mut workload = workload(vec![stream("prompts", arrivals, Content::Pages(pages))], Some(SECONDS));
    workload.plants[0] = plimsoll_sim::workload::Plant { service: Duration::from_secs_f64(MEAN), ..plant() };
    workload
}

/// How the engine knows what a request will cost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Announced,
    /// By the class of its prompt.
    Learned,
    Nothing,
}

fn promises(told: Told) -> Promises {
    let mut plant = Plant::new("model", 1);
    plant.set_point = 1.0;
    let mut site = Site::new("site", &["full"]);
    site.deadline = Some(Duration::from_secs_f64(DEADLINE));
    site.cost_header = (told == Told::Announced).then(|| "x-cost".to_owned());
    if told == Told::Learned {
        let of = |class: usize| {
            let headers = vec![("x-prompt".to_owned(), class.to_string())];
            let condition = Condition { headers, ..Condition::default() };
            RequestType { name: format!("prompt-{class}"), condition, quantum: 10.0 }
        };
        site.types = (0..=PROMPTS.len()).map(of).collect();
    }
    Promises::of(plant, site)
}

struct Found {
    goodput: f64,
    /// The share of admitted requests that were late.
    missed: f64,
    /// The share in time of those that can be, by tenths of their sizes, and of all of them.
    tenths: Vec<f64>,
    all: f64,
}

fn is_in_time(one: &Heard) -> bool {
    one.fate == Fate::Answered && one.response() <= DEADLINE
}

fn share(some: &[&Heard]) -> f64 {
    some.iter().filter(|one| is_in_time(one)).count() as f64 / some.len() as f64
}

fn run(name: &str, front: &mut dyn Front, seed: u64) -> Found {
    let heard = listen_to(front, &promises(Told::Nothing), &prompts(), seed);
    let judged: Vec<&Heard> =
        heard.iter().filter(|one| (JUDGED.0..JUDGED.1).contains(&one.arrived)).collect();
    let good: Vec<&&Heard> = judged.iter().filter(|one| is_in_time(one)).collect();
    let admitted = judged.iter().filter(|one| one.fate != Fate::Refused).count() as f64;
    let mut possible: Vec<&Heard> = judged.iter().copied().filter(|one| one.cost <= DEADLINE).collect();
    possible.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    let found = Found {
        goodput: good.iter().map(|one| one.cost).sum::<f64>() / (JUDGED.1 - JUDGED.0),
        missed: 1.0 - good.len() as f64 / admitted,
        tenths: possible.chunks(possible.len().div_ceil(10)).map(share).collect(),
        all: share(&possible),
    };
    println!(
        "{name}, seed {seed}: goodput {:.3}, missed {:.4}, in time by size {:.2?}, all {:.2}",
        found.goodput, found.missed, found.tenths, found.all
    );
    found
}

fn engine(name: &str, told: Told, seeds: u64) -> Vec<Found> {
    let run = |seed| {
        let mut engine = Gateway::new(&promises(told), seed).expect("the promises are valid");
        run(name, &mut engine, seed)
    };
    (1..=seeds).map(run).collect()
}

fn comparator(text: &str) -> Found {
    let comparator = Comparator::parse(text).expect("it is one");
    let mut front =
        comparator.front(&promises(Told::Nothing), &prompts(), 1).expect("the promises are valid");
    run(text, front.as_mut(), 1)
}

fn mean(runs: &[Found], value: impl Fn(&Found) -> f64) -> Mean {
    Mean::of(&runs.iter().map(value).collect::<Vec<_>>())
}

/// What the least served tenth gets over what all get.
fn least(found: &Found) -> f64 {
    found.tenths.iter().copied().fold(f64::INFINITY, f64::min) / found.all
}

#[test]
fn announced_costs_leave_little_of_the_capacity_unused() {
    let runs = engine("announced", Told::Announced, 6);
    let [goodput, missed, least] =
        [mean(&runs, |run| run.goodput), mean(&runs, |run| run.missed), mean(&runs, least)];
    println!("announced: goodput {goodput}, missed {missed}, least {least}");
    within("goodput", goodput.mean, 0.85..=0.90);
    within("missed", missed.mean, 0.0..=0.001);
    within("the least served tenth over all", least.mean, 0.47..=0.9);
}

#[test]
fn learned_costs_beat_every_concurrency_limit() {
    let runs = engine("learned", Told::Learned, 4);
    let [goodput, missed, least] =
        [mean(&runs, |run| run.goodput), mean(&runs, |run| run.missed), mean(&runs, least)];
    println!("learned: goodput {goodput}, missed {missed}, least {least}");
    within("goodput", goodput.mean, 0.70..=0.85);
    within("missed", missed.mean, 0.0..=0.005);
    within("the least served tenth over all", least.mean, 0.5..=0.9);
    let limits = (1..=5).map(|most| comparator(&format!("concurrency:{most}")).goodput);
    let best = limits.fold(0.0, f64::max);
    within("the best concurrency limit's goodput", best, 0.5..=0.55);
    let queued = ["concurrency:1,queue=1,wait=100ms", "concurrency:1,queue=2,wait=100ms", "cac,period=300ms"];
    let [one, two, cac] = queued.map(comparator);
    within("with a queue of one", one.goodput, 0.55..=0.63);
    within("with a queue of two", two.goodput, 0.57..=0.65);
    // Half of those who wait are dropped: admitted they were.
    within("missed with a queue of two", two.missed, 0.35..=0.55);
    within("that of CAC", cac.goodput, 0.62..=0.72);
}

/// The twin: one type for all says nothing, and is no better than a limit.
#[test]
fn without_types_nothing_is_known() {
    let runs = engine("nothing told", Told::Nothing, 2);
    within("goodput", mean(&runs, |run| run.goodput).mean, 0.45..=0.58);
}
