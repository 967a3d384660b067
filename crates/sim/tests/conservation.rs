//! Every request is accounted for once, whatever stands in front and whatever goes wrong.
//!
//! ```text
//! arrivals of a class = answered + turned away + failed + left while served + left while waiting + under way at the end
//! ```
//!
//! Small workloads by chance: pools and shared cores, links, faults, short listen queues, impatience, retries, several
//! streams and classes, with and without an end. The gateway's engine, observing too, and each comparator meet them.

use plimsoll_core::promises::{Class, Condition, Mode, Plant, Promises, Site};
use plimsoll_core::random::Random;
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_sim::front::{Comparator, Decision, Front, Gateway, Order};
use plimsoll_sim::workload::{
    self, Arrivals, Clients, Content, Discipline, Fault, FaultKind, Law, Page, Phase, Process, Retry, Stream,
    Version, Workload,
};
use plimsoll_sim::{Event, Run, Setup, Watch};
use std::collections::BTreeSet;

const CASES: u64 = 60;

fn chance(random: &mut Random, of: u64) -> bool {
    random.below(of) == 0
}

fn ms(random: &mut Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + random.below(to - from))
}

/// Two sites on two plants, the first with a class, exempt requests and a level from the other plant.
fn promises(random: &mut Random) -> Promises {
    let path = |path: &str| Condition { paths: vec![path.to_owned()], ..Condition::default() };
    let mut shop = Site::new("shop", &["stale", "light", "full"]);
    shop.hosts = vec!["shop.example".to_owned()];
    shop.levels[0].plant = Some(1);
    shop.classes = vec![Class::new("buy", path("/buy"))];
    shop.exempt = vec![path("/health")];
    let mut promises = Promises::of(Plant::new("app", 4), shop);
    let mut blog = Site::new("blog", &["full"]);
    blog.hosts = vec!["blog.example".to_owned()];
    blog.plant = 1;
    promises.sites.push(blog);
    promises.plants.push(Plant::new("cache", 2));
    promises.plants[0].same_host = chance(random, 2);
    if chance(random, 4) {
        promises.control.mode = Mode::Observe;
    }
    promises
}

fn stream(random: &mut Random, first_address: u32) -> Stream {
    let page = |host: &str, path: &str| Page {
        host: host.to_owned(),
        bytes_law: Law::Exponential,
        ..Page::new(path, 10_000.0)
    };
    let pages = vec![
        page("shop.example", "/"),
        page("shop.example", "/buy"),
        page("shop.example", "/health"),
        page("blog.example", "/"),
        page("nobody.example", "/"),
    ];
    let rate = 20.0 + random.uniform() * 400.0;
    let rate = vec![
        Phase { from: Duration::ZERO, rate, to: None },
        Phase { from: ms(random, 2000, 6000), rate: 0.0, to: None },
    ];
    let process =
        [Process::Poisson, Process::Deterministic, Process::Pareto { shape: 1.5 }][random.below(3) as usize];
    Stream {
        name: "visitors".to_owned(),
        arrivals: Arrivals::Process { process, rate },
        content: Content::Pages(pages),
        clients: Clients { count: 50, skew: 1.0, first_address },
        patience: chance(random, 2).then(|| ms(random, 5, 1500)),
        retry: chance(random, 2).then(|| Retry {
            after: ms(random, 1, 800),
            most: 3,
            obeys: chance(random, 2),
        }),
    }
}

fn plant(random: &mut Random, servers: u32) -> workload::Plant {
    let kinds = [
        FaultKind::Slower(3.0),
        FaultKind::Slower(f64::INFINITY),
        FaultKind::Takes(Duration::from_secs(1)),
        FaultKind::Fails(Duration::from_millis(1)),
    ];
    let from = ms(random, 500, 2000);
    let fault = Fault { from, until: from + ms(random, 100, 1500), kind: kinds[random.below(4) as usize] };
    let sharing = Discipline::Sharing { cores: servers, most: servers + random.below(20) as u32 };
    workload::Plant {
        discipline: if chance(random, 2) { sharing } else { Discipline::Workers(servers) },
        listen_queue: random.below(60) as usize,
        full_queue: workload::FullQueue::default(),
        service: ms(random, 5, 60),
        service_per_byte: 1e-7,
        law: Law::Exponential,
        link: chance(random, 2).then_some(2e6),
        rejection: ms(random, 0, 3),
        processor: 1.0,
        failure: ms(random, 0, 5),
        faults: if chance(random, 2) { vec![fault] } else { Vec::new() },
        reports: chance(random, 3),
    }
}

fn workload(random: &mut Random) -> Workload {
    let streams = (0..=random.below(2) as u32).map(|number| stream(random, 0x0a00_0000 + number * 1000));
    let streams = streams.collect();
    Workload {
        streams,
        plants: vec![plant(random, 4), plant(random, 2)],
        versions: vec![vec![
            Version { cost: None, bytes: 0.5 },
            Version { cost: Some(0.3), bytes: 0.2 },
            Version::FULL,
        ]],
        duration: chance(random, 2).then(|| ms(random, 1000, 8000)),
        ..Workload::default()
    }
}

/// Requests that were seen to arrive and not to end, and those that came with work of their own.
#[derive(Default)]
struct Seen {
    open: BTreeSet<u64>,
    with_work: u64,
}

impl Watch for Seen {
    fn event(&mut self, _now: Instant, event: &Event<'_>) {
        let ended = match event {
            Event::Arrived { token, request, decision, .. } => {
                self.with_work += u64::from(request.work.is_some());
                assert!(self.open.insert(token.0), "{token:?} is there already");
                matches!(decision, Decision::Reject(_)).then_some(token)
            }
            Event::Ordered(Order::Drop(token, _)) | Event::Ended { token, .. } => Some(token),
            Event::Ordered(Order::Start(..)) => None,
        };
        assert!(ended.is_none_or(|token| self.open.remove(&token.0)), "{ended:?} had ended before");
    }
}

/// Checks the books of one run. `case` replays it.
fn check(run: &Run, workload: &Workload, case: &str) {
    let (mut arrivals, mut under_way) = (0, 0);
    for (number, class) in run.classes.iter().enumerate() {
        let left = class.ended(Outcome::Abandoned) + class.reasons[Reason::ClientLeft as usize];
        let ended = class.served() + class.rejected + class.ended(Outcome::Failed) + left;
        assert!(ended <= class.arrivals, "{case}, class {number}: {class:?}");
        assert_eq!(class.served(), class.ended(Outcome::Completed), "{case}, class {number}");
        assert_eq!(class.served(), class.response.count(), "{case}, class {number}");
        // A decision for each, but for those who wait still: and no more.
        let decided: u64 = class.reasons.iter().sum();
        assert!(decided >= ended && decided <= class.arrivals, "{case}, class {number}: {class:?}");
        arrivals += class.arrivals;
        under_way += class.arrivals - ended;
    }
    assert_eq!(arrivals + run.unmatched, run.requests, "{case}");
    assert_eq!(under_way, run.in_flight, "{case}");
    if workload.duration.is_none() {
        assert_eq!(run.in_flight, 0, "{case}: it ended before everybody was answered");
    }
    let seconds: f64 = run.rows.iter().map(|row| row.length.as_secs_f64()).sum();
    assert!((seconds - run.ended.as_secs_f64()).abs() < 1e-6, "{case}: {seconds}");
    for plant in run.rows.iter().flat_map(|row| &row.plants) {
        assert!((0.0..=1.0 + 1e-9).contains(&plant.utilization), "{case}: {plant:?}");
        assert!(plant.link <= plant.utilization, "{case}: {plant:?}");
    }
}

#[test]
fn every_request_is_accounted_for_once_before_every_front() {
    let forms = Comparator::FORMS.map(|(form, _)| form);
    // What the cases met, all together: a case that nobody meets proves nothing.
    let mut met = [0_u64; 7];
    for seed in 1..=CASES {
        let random = &mut Random::new(seed);
        let (promises, workload) = (promises(random), workload(random));
        let setup = Setup { promises: &promises, workload: &workload, seed };
        let mut run = |front: &mut dyn Front, name: &str| {
            let mut seen = Seen::default();
            let run = setup.run_with(front, &mut seen).expect("it runs");
            let case = format!("seed {seed}, {name}");
            check(&run, &workload, &case);
            assert_eq!(seen.open.len() as u64, run.in_flight, "{case}: each end is told once");
            // A client that tries again brings the work that was drawn for its first attempt; no other is drawn.
            assert_eq!(seen.with_work, run.retries, "{case}");
            for class in &run.classes {
                let left = [class.ended(Outcome::Abandoned), class.reasons[Reason::ClientLeft as usize]];
                met[0] += class.served();
                met[1] += class.rejected;
                met[2] += class.ended(Outcome::Failed);
                met[3] += left[0];
                met[4] += left[1];
            }
            met[5] += run.in_flight;
            met[6] += run.retries;
            if promises.control.mode == Mode::Observe && name == "gateway" {
                assert!(run.classes.iter().all(|class| class.rejected == 0), "seed {seed}: it only observes");
            }
        };
        run(&mut Gateway::new(&promises, seed).expect("they can be kept"), "gateway");
        // All comparators in the first cases, then one of them a case.
        for form in forms.iter().filter(|form| seed <= 6 || **form == forms[seed as usize % forms.len()]) {
            let comparator = Comparator::parse(form).expect("its own form");
            run(&mut *comparator.front(&promises, &workload, seed).expect("they can be kept"), form);
        }
    }
    assert!(met.iter().all(|count| *count > 100), "{met:?}");
}
