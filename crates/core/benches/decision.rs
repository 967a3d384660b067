//! The cost of one decision: `arrive`, `release` and `depart` of a request that need not wait.
//!
//! `cargo bench -p plimsoll-core` prints nanoseconds (median of 31 rounds), on one thread and on two that share the
//! gate. `… -- --count N` makes N decisions and prints nothing: under callgrind the difference of two counts is the
//! number of instructions of a decision, which does not drift with the machine (`make instructions`). `--count-in-process N`
//! makes them in a lane as in a server's process, with its words on the heap; `crates/ffi/benches/calls.rs` maps them.
//!
//! It also prints the cost of a decision and of a control step where a hundred busy sites with five classes each share
//! a plant, every other one with a contract. `… -- --periods N` runs N such periods and prints nothing, so that callgrind
//! counts the instructions of `Engine::tick`.

use plimsoll_core::processes::{SharedLane, SharedShape, SharedWords};
use plimsoll_core::promises::{Class, Condition, Delay, Guarantee, Plant, Promises, RequestType, Site};
use plimsoll_core::request::{Arrival, Outcome, RequestView, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};
use std::net::{IpAddr, Ipv4Addr};

struct Request(u32);

impl RequestView for Request {
    fn method(&self) -> &str {
        "GET"
    }
    fn host(&self) -> &str {
        "www.example.org"
    }
    fn path(&self) -> &str {
        "/index.html"
    }
    fn header(&self, _: &str) -> Option<&str> {
        None
    }
    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.0))
    }
}

/// Nanoseconds of a decision where a deadline is promised; a type is configured, or types are found.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn within_deadline(configured: bool) -> f64 {
    const EACH: u64 = 20_000;
    let condition = Condition { paths: vec!["/none".into()], ..Condition::default() };
    let types = vec![RequestType { name: "none".to_owned(), condition, quantum: 1.0 }];
    let site = Site {
        deadline: Some(Duration::from_secs(1)),
        types: if configured { types } else { Vec::new() },
        ..Site::new("site", &["full"])
    };
    let (_engine, mut lanes) =
        Engine::new(&Promises::of(Plant::new("app", 64), site), 1, 1).expect("valid promises");
    let paths = ["/index.html", "/item/1234/report", "/api/v1/users/77/orders", "/static/logo.png"];
    let request = |n: usize| AmongMany { host: String::new(), path: paths[n].to_owned(), client: n as u32 };
    let requests: Vec<AmongMany> = (0..paths.len()).map(request).collect();
    let (lane, mut verdicts) = (&mut lanes[0], Verdicts::new());
    let rounds = (0..31).map(|_| {
        let start = std::time::Instant::now();
        for i in 0..EACH {
            let now = Instant::from_nanos(1_000 * i);
            let Some(target) = lane.classify(&requests[i as usize % paths.len()]) else { continue };
            if let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(i), &mut verdicts) {
                let service = Service { response_bytes: 1024, representative: true, cost: None };
                lane.release(now, &mut permit, service, &mut verdicts);
                lane.depart(now, permit, Outcome::Completed, &mut verdicts);
            }
        }
        start.elapsed().as_nanos() as f64 / EACH as f64
    });
    median(rounds.collect())
}

fn one_site() -> Promises {
    let site = Site { hosts: vec!["*.example.org".into()], ..Site::new("site", &["light", "full"]) };
    Promises::of(Plant::new("app", 64), site)
}

fn lanes(count: usize) -> (Engine, Vec<Lane>) {
    Engine::new(&one_site(), count, 1).expect("valid promises")
}

/// A lane as in a server's process.
fn lane_in_process() -> (Engine, Vec<Lane>) {
    fn leaked<T: Default>(count: usize) -> &'static [T] {
        Box::leak((0..count).map(|_| T::default()).collect())
    }
    let promises = one_site();
    let shape = SharedShape::of(&promises).expect("promises that a server keeps");
    let (classes, plants, sites) = (leaked(shape.classes), leaked(shape.plants), leaked(shape.sites));
    let words = SharedWords { classes, plants, sites, turn: &leaked(1)[0] };
    let counters = SharedLane { classes: leaked(shape.classes), plants: leaked(shape.plants) };
    let engine = Engine::of_processes(&promises, 1, words, &[counters]).expect("an engine");
    engine.publish_words(words);
    (engine, vec![Lane::in_process(&promises, 1, words, counters).expect("a lane")])
}

fn decide(lane: &mut Lane, count: u64, verdicts: &mut Verdicts) {
    for i in 0..count {
        let now = Instant::from_nanos(1_000 * i);
        let Some(target) = lane.classify(&Request(i as u32)) else { continue };
        if let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(i), verdicts) {
            lane.sent(&permit, 1024);
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(now, &mut permit, service, verdicts);
            lane.depart(now, permit, Outcome::Completed, verdicts);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn nanoseconds((_engine, mut lanes): (Engine, Vec<Lane>)) -> f64 {
    const COUNT: u64 = 200_000;
    let rounds: Vec<f64> = (0..31)
        .map(|_| {
            let start = std::time::Instant::now();
            std::thread::scope(|scope| {
                for lane in &mut lanes {
                    scope.spawn(|| decide(lane, COUNT, &mut Verdicts::new()));
                }
            });
            start.elapsed().as_nanos() as f64 / COUNT as f64
        })
        .collect();
    median(rounds)
}

const SITES: usize = 100;
const CLASSES: usize = 5;

/// A request to one of many sites, of one of its classes.
struct AmongMany {
    host: String,
    path: String,
    client: u32,
}

impl RequestView for AmongMany {
    fn method(&self) -> &str {
        "GET"
    }
    fn host(&self) -> &str {
        &self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn header(&self, _: &str) -> Option<&str> {
        None
    }
    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.client))
    }
}

/// A hundred sites on one plant, every other one with a contract.
fn many() -> Promises {
    let class = |class: usize| {
        let condition = Condition { paths: vec![format!("/class-{class}/*")], ..Condition::default() };
        Class { priority: class as u8 + 1, ..Class::new(&format!("class-{class}"), condition) }
    };
    let site = |site: usize| Site {
        hosts: vec![format!("site-{site}.example.org")],
        classes: (0..CLASSES).map(class).collect(),
        guarantee: site.is_multiple_of(2).then(|| Guarantee::new(1000.0, 1e7)),
        ..Site::new(&format!("site-{site}"), &["light", "full"])
    };
    let plant = Plant::new("app", 64);
    Promises { sites: (0..SITES).map(site).collect(), ..Promises::of(plant, Site::new("", &["full"])) }
}

/// Nanoseconds of a decision, and of a control step with its samples: medians over this many periods.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn among_many(periods: u64) -> (f64, f64) {
    const EACH: u64 = 20_000;
    let (mut engine, mut lanes) = Engine::new(&many(), 1, 1).expect("valid promises");
    let request = |number: usize| AmongMany {
        host: format!("site-{}.example.org", number % SITES),
        path: format!("/class-{}/index.html", number / SITES % CLASSES),
        client: number as u32,
    };
    let requests: Vec<AmongMany> = (0..4 * SITES * CLASSES).map(request).collect();
    let period = Duration::from_secs(1);
    let (mut now, mut verdicts) = (Instant::ZERO, Verdicts::new());
    engine.tick(now, &Readings::default(), &mut verdicts);
    let (mut decisions, mut steps) = (Vec::new(), Vec::new());
    let mut number = 0;
    for _ in 0..periods {
        let start = std::time::Instant::now();
        for _ in 0..EACH {
            number = (number + 1) % requests.len();
            now += period / EACH as u32;
            let Some(target) = lanes[0].classify(&requests[number]) else { continue };
            if let Arrival::Serve(mut permit) = lanes[0].arrive(now, target, Token(0), &mut verdicts) {
                lanes[0].sent(&permit, 1024);
                let service = Service { response_bytes: 1024, representative: true, cost: None };
                let later = now + Duration::from_millis(6);
                lanes[0].release(later, &mut permit, service, &mut verdicts);
                lanes[0].depart(later, permit, Outcome::Completed, &mut verdicts);
            }
        }
        decisions.push(start.elapsed().as_nanos() as f64 / EACH as f64);
        let start = std::time::Instant::now();
        engine.tick(now, &Readings::default(), &mut verdicts);
        steps.push(start.elapsed().as_nanos() as f64);
    }
    (median(decisions), median(steps))
}

/// Nanoseconds of a request that waits behind this many others, in two classes with a delay and best effort, and starts
/// when one of those ends: its arrival, a release with its dispatch, and its departure. Medians.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn waits(behind: u64) -> f64 {
    const EACH: u64 = 20_000;
    let class = |name: &str, ms: u64| {
        let condition = Condition { paths: vec![format!("/{name}")], ..Condition::default() };
        let target = Duration::from_millis(ms);
        Class { delay: Some(Delay { target, percentile: None }), priority: 1, ..Class::new(name, condition) }
    };
    let site =
        Site { classes: vec![class("class-0", 200), class("class-1", 500)], ..Site::new("site", &["full"]) };
    let mut plant = Plant::new("app", 8);
    plant.queue.max_waiting = 20_000;
    let (mut engine, mut lanes) = Engine::new(&Promises::of(plant, site), 1, 1).expect("valid promises");
    let (lane, mut verdicts) = (&mut lanes[0], Verdicts::new());
    engine.tick(Instant::ZERO, &Readings::default(), &mut verdicts);
    let request = |number: u64| AmongMany {
        host: String::new(),
        path: format!("/class-{}", number % 3),
        client: number as u32,
    };
    let requests: Vec<AmongMany> = (0..3).map(request).collect();
    let (mut started, mut waiting) = (std::collections::VecDeque::new(), Vec::new());
    let arrive = |lane: &mut Lane, verdicts: &mut Verdicts, number: u64| {
        let target = lane.classify(&requests[(number % 3) as usize]).expect("the site has every host");
        match lane.arrive(Instant::from_nanos(number), target, Token(number), verdicts) {
            Arrival::Serve(permit) => Ok(permit),
            other => Err(other),
        }
    };
    for number in 0..behind + 8 {
        match arrive(lane, &mut verdicts, number) {
            Ok(permit) => started.push_back(permit),
            Err(other) => waiting.push(other),
        }
    }
    let rounds = (0..11).map(|round| {
        let start = std::time::Instant::now();
        for step in 0..EACH {
            let number = behind + 8 + round * EACH + step;
            drop(arrive(lane, &mut verdicts, number));
            let mut permit = started.pop_front().expect("eight are in service");
            let now = Instant::from_nanos(number);
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(now, &mut permit, service, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
            started.extend(verdicts.drain(..).filter_map(Verdict::permit));
        }
        start.elapsed().as_nanos() as f64 / EACH as f64
    });
    median(rounds.collect())
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |option: &str| {
        let place = arguments.iter().position(|argument| argument == option)?;
        arguments.get(place + 1)?.parse::<u64>().ok()
    };
    if let Some(periods) = number("--periods") {
        among_many(periods);
        return;
    }
    if let Some(count) = number("--count-in-process") {
        let (_engine, mut lanes) = lane_in_process();
        decide(&mut lanes[0], count, &mut Verdicts::new());
        return;
    }
    if let Some(count) = number("--count") {
        let (_engine, mut lanes) = lanes(1);
        decide(&mut lanes[0], count, &mut Verdicts::new());
        return;
    }
    println!("classify + arrive + sent + release + depart, ns per request");
    for threads in 1..=2 {
        println!("{threads} thread(s), one gate: {:.0}", nanoseconds(lanes(threads)));
    }
    for (name, configured) in [("a type is configured", true), ("types are found", false)] {
        println!("within a deadline, {name}: {:.0}", within_deadline(configured));
    }
    for behind in [10, 100, 1_000, 10_000] {
        println!("one that waits behind {behind}: {:.0}", waits(behind));
    }
    let (decision, step) = among_many(101);
    println!(
        "{SITES} sites of {CLASSES} classes: {decision:.0} a decision, {:.0} us a control step",
        step / 1e3
    );
}
