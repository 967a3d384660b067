//! What other gateways do, measured: bounds on both sides for each comparator, calm and at three times the capacity.
//!
//! A pool of eight workers, 40 ms, exponential, so 200 requests per second; clients wait 3 s. Two comparators have a
//! theory (Erlang's loss formula, a bucket without burst) and are held to it. Then the paper AC's own experiment: its
//! mix of types on one server, SAC against CAC.

use crate::scenario::commit;
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::Outcome;
use plimsoll_sim::front::Comparator;
use plimsoll_sim::workload::{
    self, Arrivals, Discipline, Fault, FaultKind, Law, Page, Process, Stream, Workload,
};
use plimsoll_sim::{ClassRow, Run, Setup};
use std::ops::RangeInclusive;
use std::time::Duration;

const SEEDS: RangeInclusive<u64> = 1..=3;
const WORKERS: u32 = 8;
const SERVICE: Duration = Duration::from_millis(40);
/// Requests per second.
const CAPACITY: f64 = 200.0;
const PATIENCE: Duration = Duration::from_secs(3);
/// What comes before is not measured.
const WARM_UP: f64 = 20.0;

/// The pool at this load.
fn pool(load: f64) -> Workload {
    let pages = vec![page("/", 1.0, None)];
    Workload {
        streams: vec![Stream {
            patience: Some(PATIENCE),
            ..stream(Process::Poisson, load * CAPACITY, pages)
        }],
        plants: vec![workload::Plant {
            // Large enough that it is the clients' patience that ends first.
            listen_queue: 4096,
            // What a worker needs to find that its client has left.
            failure: Duration::from_millis(10),
            ..plant(WORKERS, SERVICE, Law::Exponential)
        }],
        versions: vec![],
        duration: Some(Duration::from_secs(120)),
        ..Workload::default()
    }
}

/// Tables 1 and 2 of AC: one server, 1 ms for a static object, a queue of 1,000; nobody leaves.
fn aces(process: Process, load: f64) -> Workload {
    let ms = |n| Some(Duration::from_millis(n));
    let pages = vec![
        page("/static", 94.7, ms(1)),
        page("/dynamic", 5.0, ms(10)),
        page("/audio", 0.2, ms(20)),
        page("/video", 0.1, ms(100)),
    ];
    Workload {
        streams: vec![stream(process, load * ACES_CAPACITY, pages)],
        plants: vec![workload::Plant {
            listen_queue: 1000,
            ..plant(1, Duration::from_millis(1), Law::Deterministic)
        }],
        versions: vec![],
        duration: Some(Duration::from_secs(120)),
        ..Workload::default()
    }
}

/// The mean of AC's mix is 1.587 units of 1 ms.
const ACES_CAPACITY: f64 = 1000.0 / 1.587;
/// AC's bound, which is its period too.
const ACES_BOUND: Duration = Duration::from_secs(1);

fn page(path: &str, weight: f64, service: Option<Duration>) -> Page {
    Page {
        host: "shop.example".to_owned(),
        weight,
        service_law: service.map(|_| Law::Deterministic),
        service,
        ..Page::new(path, 10_000.0)
    }
}

fn stream(process: Process, rate: f64, pages: Vec<Page>) -> Stream {
    Stream::new("visitors", Arrivals::steady(process, rate), pages, 2000)
}

fn plant(workers: u32, service: Duration, law: Law) -> workload::Plant {
    workload::Plant { law, ..workload::Plant::new(Discipline::Workers(workers), 511, service) }
}

fn run(comparator: &str, workload: &Workload, seed: u64) -> Run {
    let workers = workload.plants[0].discipline.servers();
    let promises = Promises::of(Plant::new("origin", workers), Site::new("site", &["full"]));
    let comparator = Comparator::parse(comparator).expect("it is one");
    let mut front = comparator.front(&promises, workload, seed).expect("the promises are valid");
    Setup { promises: &promises, workload, seed }.run_with(front.as_mut(), &mut ()).expect("it runs")
}

/// What became of the requests after the warm-up.
#[derive(Debug)]
struct Measured {
    /// What was simulated, for messages.
    case: String,
    /// Answered, per second.
    goodput: f64,
    /// Shares of the arrivals.
    rejected: f64,
    left: f64,
    /// Mean response time of the answered requests.
    mean_ms: f64,
    max: Duration,
    /// The share of the answered that took longer than AC's bound.
    late: f64,
    utilization: f64,
}

fn measure(comparator: &str, workload: &Workload, seed: u64) -> Measured {
    let run = run(comparator, workload, seed);
    let rows: Vec<_> = run.rows.iter().filter(|row| row.from.as_secs_f64() >= WARM_UP).collect();
    let seconds: f64 = rows.iter().map(|row| row.length.as_secs_f64()).sum();
    let mut class = ClassRow::default();
    rows.iter().for_each(|row| row.classes.iter().for_each(|of_class| class.merge(of_class, [1.0, 1.0])));
    let of_arrivals = |n: u64| n as f64 / class.arrivals as f64;
    let in_time = (0..=1000).rev().map(|k| f64::from(k) / 1000.0);
    let in_time = in_time.into_iter().find(|q| class.response.quantile(*q) <= ACES_BOUND).unwrap_or(0.0);
    Measured {
        case: format!("{comparator}, {} requests, seed {seed}", run.requests),
        goodput: class.served() as f64 / seconds,
        rejected: of_arrivals(class.rejected),
        left: of_arrivals(class.ended(Outcome::Abandoned)),
        mean_ms: class.response.mean().as_secs_f64() * 1e3,
        max: class.response.max(),
        late: 1.0 - in_time,
        utilization: rows.iter().map(|row| row.plants[0].utilization).sum::<f64>() / rows.len() as f64,
    }
}

impl Measured {
    #[track_caller]
    fn within(&self, what: &str, value: f64, bounds: Bounds) {
        assert!(
            bounds.contains(&value),
            "{}, commit {}: {what} is {value:.4}, not within {bounds:?}: {self:?}",
            self.case,
            commit()
        );
    }
}

/// Both sides, always.
type Bounds = RangeInclusive<f64>;

#[test]
fn calm_they_differ_in_whom_they_turn_away_for_nothing() {
    let nobody: Bounds = 0.0..=0.0;
    let plans: [(&str, Bounds); 9] = [
        ("none", nobody.clone()),
        ("tail-drop:64", nobody.clone()),
        ("concurrency:8,queue=40,wait=1s", nobody.clone()),
        ("rate:190,burst=20", 0.0..=0.001),
        ("sac", nobody.clone()),
        ("cac", 0.0..=0.001),
        // Its probe of the ideal round trip: 50 requests three at a time, once a minute.
        ("gradient", 0.003..=0.02),
        ("gradient2", nobody.clone()),
        ("aimd", nobody),
    ];
    for seed in SEEDS {
        for (comparator, rejected) in &plans {
            let measured = measure(comparator, &pool(0.7), seed);
            measured.within("the share rejected", measured.rejected, rejected.clone());
            measured.within("goodput", measured.goodput / (0.7 * CAPACITY), 0.96..=1.04);
            measured.within("utilization", measured.utilization, 0.66..=0.74);
        }
    }
}

#[test]
fn three_times_the_capacity() {
    let all = 0.97..=1.03;
    let plans: [(&str, Bounds, Bounds); 11] = [
        // It melts: served are those who are about to leave.
        ("none", 0.0..=0.3, 2900.0..=3000.0),
        // The queue is just shorter than the patience: everybody answered, nobody content.
        ("tail-drop:511", all.clone(), 2400.0..=2700.0),
        ("tail-drop:64", all.clone(), 300.0..=335.0),
        ("concurrency:8,queue=40,wait=1s", all.clone(), 225.0..=250.0),
        ("rate:190,burst=20", 0.93..=0.97, 55.0..=120.0),
        ("sac", all.clone(), 500.0..=1300.0),
        ("gradient", 0.88..=0.99, 45.0..=80.0),
        // Its least limit of 20 is 12 more than there are workers.
        ("gradient2", all.clone(), 160.0..=300.0),
        ("gradient2,initial=8,least=1", all.clone(), 90.0..=170.0),
        // No round trip reaches its time-out of 5 s: the limit goes up to its 200 and stays.
        ("aimd", all, 900.0..=1100.0),
        ("aimd,least=1,timeout=500ms", 0.88..=0.97, 380.0..=500.0),
    ];
    for seed in SEEDS {
        for (comparator, goodput, mean_ms) in &plans {
            let measured = measure(comparator, &pool(3.0), seed);
            measured.within("goodput over capacity", measured.goodput / CAPACITY, goodput.clone());
            measured.within("mean response", measured.mean_ms, mean_ms.clone());
            let left = if *comparator == "none" { 0.9..=1.0 } else { 0.0..=0.01 };
            measured.within("the share that left", measured.left, left);
        }
    }
}

#[test]
fn a_server_that_slows_down_breaks_what_was_set_by_its_rate() {
    let fault = Fault {
        from: Duration::from_secs(20),
        until: Duration::from_secs(120),
        kind: FaultKind::Slower(2.0),
    };
    let plans: [(&str, Bounds); 7] = [
        ("none", 0.0..=0.02),
        ("rate:190,burst=20", 0.05..=0.3),
        ("sac", 0.4..=0.75),
        ("concurrency:8,queue=40,wait=1s", 0.96..=1.04),
        ("gradient", 0.8..=0.95),
        ("gradient2", 0.96..=1.04),
        ("aimd,least=1,timeout=500ms", 0.8..=0.92),
    ];
    for seed in SEEDS {
        for (comparator, goodput) in &plans {
            let mut workload = pool(3.0);
            workload.plants[0].faults.push(fault);
            let measured = measure(comparator, &workload, seed);
            let left_over = CAPACITY / 2.0;
            measured.within("goodput over what is left", measured.goodput / left_over, goodput.clone());
        }
    }
}

/// HAProxy works off its queue whoever has left, and only `option abortonclose` lets it skip those that nobody waits for.
/// Four in five have a patience of 100 ms; the others stay, and alone were half of the capacity. Before, the first plan did
/// what the second does.
#[test]
fn haproxy_serves_who_has_left_unless_it_is_told_not_to() {
    let (mut workload, staying) = (pool(2.0), Stream { patience: None, ..pool(0.5).streams.remove(0) });
    workload.streams[0].patience = Some(Duration::from_millis(100));
    workload.streams.push(staying);
    let plans: [(&str, Bounds, Bounds); 2] =
        [("", 0.15..=0.25, 0.09..=0.15), ("; option abortonclose", 0.48..=0.9, 0.0..=0.0)];
    for seed in 4..=6 {
        for (more, goodput, rejected) in &plans {
            let measured = measure(&format!("haproxy: maxconn 8; timeout queue 5s{more}"), &workload, seed);
            measured.within("utilization", measured.utilization, 0.95..=1.0);
            measured.within("goodput over capacity", measured.goodput / CAPACITY, goodput.clone());
            // After the time-out of the queue, of those that stay alone.
            measured.within("the share rejected", measured.rejected, rejected.clone());
        }
    }
}

/// Erlang's loss formula: the share lost by `servers` without a queue at this offered load.
fn erlang_b(servers: u32, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |blocked, n| offered * blocked / (f64::from(n) + offered * blocked))
}

#[test]
fn a_concurrency_limit_without_queue_loses_what_erlang_says() {
    for seed in SEEDS {
        for load in [0.7, 3.0] {
            let measured = measure("concurrency:8", &pool(load), seed);
            let theory = erlang_b(WORKERS, load * f64::from(WORKERS));
            // Calm a tenth, for want of a queue; the overload costs a twentieth of the capacity.
            assert!((theory - if load < 1.0 { 0.10 } else { 0.684 }).abs() < 0.002, "{theory}");
            measured.within("the share rejected", measured.rejected, theory - 0.015..=theory + 0.015);
            measured.within("mean response", measured.mean_ms, 38.5..=41.5);
        }
    }
}

#[test]
fn a_bucket_without_burst_is_closed_for_an_interval_after_each() {
    for seed in SEEDS {
        for load in [0.7, 3.0] {
            let measured = measure("rate:190", &pool(load), seed);
            // A renewal: the closed interval, then the wait for the next Poisson arrival.
            let theory = 1.0 / (1.0 / 190.0 + 1.0 / (load * CAPACITY));
            measured.within("goodput over theory", measured.goodput / theory, 0.98..=1.02);
        }
    }
}

/// AC, figures 4, 6 and 8: the stress test.
#[test]
fn sac_over_admits_and_cac_never_misses() {
    for seed in SEEDS {
        for load in [0.6, 1.0, 1.5, 2.5] {
            let workload = aces(Process::Poisson, load);
            let sac = measure("sac", &workload, seed);
            let cac = measure("cac", &workload, seed);
            // The theorem behind CAC holds for every request.
            cac.within("the longest response (s)", cac.max.as_secs_f64(), 0.1..=1.0);
            let [of_sac, of_cac] = [&sac, &cac].map(|of| of.goodput / ACES_CAPACITY);
            match load {
                0.6 => {
                    // Fig. 4 and 6: at medium load they are the same.
                    assert_eq!((sac.rejected, cac.rejected), (0.0, 0.0), "{sac:?}");
                    assert_eq!(sac.mean_ms, cac.mean_ms, "{sac:?}");
                    sac.within("mean response", sac.mean_ms, 7.0..=15.0);
                }
                1.0 => {
                    sac.within("goodput", of_sac, 0.97..=1.02);
                    cac.within("goodput", of_cac, 0.92..=0.97);
                    cac.within("mean response", cac.mean_ms, 35.0..=70.0);
                }
                _ => {
                    // Fig. 6: SAC's delay is its queue, 1,000 of 1.587 ms. Fig. 8: it misses for nearly all.
                    sac.within("mean response", sac.mean_ms, 1400.0..=1650.0);
                    sac.within("the share late", sac.late, 0.97..=1.0);
                    sac.within("goodput", of_sac, 0.97..=1.03);
                    cac.within("goodput", of_cac, 0.97..=1.03);
                    // Its budget is used up early in each period, and what is left to do falls from there.
                    let fluid = (1.0 - 1.0 / load) / 2.0 * 1e3;
                    cac.within("mean response over the fluid's", cac.mean_ms / fluid, 0.85..=1.15);
                }
            }
        }
    }
}

/// AC, figures 5, 7 and 9, the sensitivity test: load that comes in bursts of 2 s at four times the rate.
#[test]
fn in_bursts_cac_pays_for_its_delays_with_throughput() {
    let bursts =
        Process::Modulated { ratio: 4.0, burst: Duration::from_secs(2), calm: Duration::from_secs(6) };
    for seed in SEEDS {
        let workload = aces(bursts, 0.9);
        let sac = measure("sac", &workload, seed);
        let cac = measure("cac", &workload, seed);
        cac.within("the longest response (s)", cac.max.as_secs_f64(), 0.3..=1.0);
        cac.within("goodput over SAC's", cac.goodput / sac.goodput, 0.80..=0.93);
        sac.within("the share late", sac.late, 0.15..=0.6);
        sac.within("mean response over CAC's", sac.mean_ms / cac.mean_ms, 3.0..=8.0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    for (form, _) in Comparator::FORMS {
        let workload = Workload { duration: Some(Duration::from_secs(30)), ..pool(1.5) };
        let text = |seed| format!("{:?}", run(form, &workload, seed));
        let first = text(1);
        assert_eq!(first, text(1), "{form}");
        assert_ne!(first, text(2), "{form}");
    }
}
