//! The agent as a front of a simulated run (`plimsoll simulate agent.toml`), in the scenes of `agent.rs`: there the test asks
//! the machine by hand, here the run does, with the server's own counters and probes through its queue.

use plimsoll_core::agent::{AgentLoopSettings, AgentPolicy, LoadSense, Threshold};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::time::Duration;
use plimsoll_sim::front::{AgentSettings, Comparator, ShownCounters};
use plimsoll_sim::workload::{self, Arrivals, Discipline, Law, Page, Phase, Process, Stream, Version};
use plimsoll_sim::{Run, Setup};

const WORKERS: u32 = 8;
const QUEUE: usize = 128;
/// CA's costs of 64 KB and of 8 KB, 32 times as slow.
const FULL: f64 = 32.0 * 5.636e-3;
const LIGHT_COST: f64 = 2.108 / 5.636;
const FRACTION: AgentPolicy = AgentPolicy::Fraction { step: 0.05, apart: Duration::from_secs(5) };
const GAP: (LoadSense, ShownCounters) = (LoadSense::Gap { workers: Some(WORKERS) }, ShownCounters::Requests);
const BUSY: (LoadSense, ShownCounters) = (LoadSense::Gap { workers: None }, ShownCounters::BusyWorkers);
/// CA's coefficients, slowed down likewise, in time of the whole server.
const LINEAR: (LoadSense, ShownCounters) = (
    LoadSense::Linear {
        per_request_seconds: 4.0 * 1.604e-3,
        per_byte_seconds: 4.0 * 0.063e-3 / 1024.0,
        bandwidth: None,
    },
    ShownCounters::Log,
);

fn agent(policy: AgentPolicy, (sense, shown): (LoadSense, ShownCounters)) -> Comparator {
    let settings = AgentLoopSettings {
        policy,
        threshold: Threshold::Queue(QUEUE as u32),
        every: Duration::from_millis(500),
        period: Duration::from_secs(1),
        load_line: 0.85,
        back_line: 0.75,
    };
    Comparator::agent(AgentSettings { settings, sense, shown })
}

/// Seconds and loads, in multiples of the capacity.
fn run(front: &Comparator, steps: &[(f64, f64)], seed: u64) -> Run {
    let mut from = 0.0;
    let phase = |(seconds, load): &(f64, f64)| {
        let phase =
            Phase { from: Duration::from_secs_f64(from), rate: load * f64::from(WORKERS) / FULL, to: None };
        from += seconds;
        phase
    };
    let rate: Vec<Phase> = steps.iter().map(phase).collect();
    let arrivals = Arrivals::Process { process: Process::Poisson, rate };
    let stream = Stream::new("readers", arrivals, vec![Page::new("/", 65_536.0)], 2000);
    let service = Duration::from_secs_f64(FULL);
    let workload = workload::Workload {
        streams: vec![stream],
        plants: vec![workload::Plant {
            law: Law::Lognormal { variation: 0.12 },
            ..workload::Plant::new(Discipline::Workers(WORKERS), QUEUE, service)
        }],
        versions: vec![vec![Version { cost: Some(LIGHT_COST), bytes: 0.125 }, Version::FULL]],
        duration: Some(Duration::from_secs_f64(from)),
        ..workload::Workload::default()
    };
    let promises = Promises::of(Plant::new("server", WORKERS), Site::new("site", &["degraded", "full"]));
    let mut front = front.front(&promises, &workload, seed).expect("one server");
    let setup = Setup { promises: &promises, workload: &workload, seed };
    setup.run_with(&mut *front, &mut ()).expect("it runs")
}

/// When F became what.
fn changes(run: &Run) -> Vec<(f64, f64)> {
    let of = |row: &plimsoll_sim::Row| (row.from.as_secs_f64(), row.classes[0].service_level - 1.0);
    let all: Vec<(f64, f64)> = run.rows.iter().map(of).collect();
    all.windows(2).filter(|pair| (pair[0].1 - pair[1].1).abs() > 1e-6).map(|pair| pair[1]).collect()
}

fn lost(run: &Run, from: f64, to: f64) -> f64 {
    let rows = run.rows.iter().filter(|row| (from..to).contains(&row.from.as_secs_f64()));
    let (lost, all) =
        rows.fold((0, 0), |sum, row| (sum.0 + row.plants[0].lost, sum.1 + row.classes[0].arrivals));
    lost as f64 / all as f64
}

fn utilization(run: &Run, from: f64, to: f64) -> f64 {
    let rows = run.rows.iter().filter(|row| (from..to).contains(&row.from.as_secs_f64()));
    let all: Vec<f64> = rows.map(|row| row.plants[0].utilization).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn the_relay_switches_down_and_comes_back_within_ten_seconds() {
    for (sense, seed) in [(GAP, 41), (BUSY, 42), (LINEAR, 43)] {
        let found = run(&agent(AgentPolicy::Relay, sense), &[(20.0, 0.5), (90.0, 2.4), (30.0, 0.2)], seed);
        let changes = changes(&found);
        println!("{sense:?}: {changes:?}, lost {:.4}", lost(&found, 20.0, 110.0));
        // The row in which it changes has a mean.
        let (down, back) = (changes[0].0, changes[changes.len() - 1].0);
        assert!((20.0..25.0).contains(&down) && (112.0..121.0).contains(&back), "{changes:?}");
        assert!(
            changes.iter().all(|(at, _)| (at - down).abs() < 2.0 || (at - back).abs() < 2.0),
            "{changes:?}"
        );
        assert!(lost(&found, 20.0, 110.0) < 0.05 && lost(&found, 32.0, 140.0) == 0.0);
        assert!((0.80..0.96).contains(&utilization(&found, 40.0, 110.0)));
    }
    let none = run(&Comparator::parse("none").expect("it is one"), &[(20.0, 0.5), (90.0, 2.4)], 41);
    assert!(lost(&none, 30.0, 110.0) > 0.5);
}

#[test]
fn a_fraction_is_degraded_and_the_server_held_at_its_line() {
    for (sense, seed) in [(GAP, 44), (BUSY, 45), (LINEAR, 46)] {
        let found = run(&agent(FRACTION, sense), &[(20.0, 0.5), (160.0, 1.7), (30.0, 0.2)], seed);
        let used = utilization(&found, 100.0, 180.0);
        println!("{sense:?}: utilization {used:.3}, lost {:.4}", lost(&found, 20.0, 180.0));
        assert!((0.82..0.88).contains(&used), "{used}");
        assert!(lost(&found, 20.0, 180.0) < 0.02 && lost(&found, 40.0, 210.0) == 0.0);
        let last = found.rows.last().expect("rows");
        assert!((last.classes[0].service_level - 2.0).abs() < 1e-9, "everybody is back");
    }
    let none = run(&Comparator::parse("none").expect("it is one"), &[(20.0, 0.5), (160.0, 1.7)], 44);
    let (lost, used) = (lost(&none, 20.0, 180.0), utilization(&none, 100.0, 180.0));
    assert!(lost > 0.3 && used > 0.99, "the twin without an agent: {lost} lost, {used} used");
}

#[test]
fn it_stands_beside_one_server() {
    let promises = Promises {
        plants: vec![Plant::new("one", 1), Plant::new("other", 1)],
        sites: vec![Site::new("site", &["degraded", "full"])],
        ..Promises::default()
    };
    let plant = workload::Plant::new(Discipline::Workers(1), 1, Duration::from_millis(1));
    let two = workload::Workload { plants: vec![plant.clone(), plant], ..workload::Workload::default() };
    let wrong = agent(AgentPolicy::Relay, GAP).front(&promises, &two, 1).err().expect("two servers");
    assert!(wrong[0].contains("beside one server, and there are 2"), "{wrong:?}");
}
