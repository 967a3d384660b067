//! Contracts that change under load, in virtual time: what was promised before holds until then, and what is promised now holds
//! soon after.
//!
//! A server of 32 workers; a page takes 100 ms at full quality and 56 ms at the light level, for half of its time is not in its
//! bytes. V1 offers nearly its wider contract throughout, V2 nearly what it will be promised once it is a site, and best effort
//! offers one and a half times the capacity.

use crate::{Request, get, ms};
use plimsoll_core::promises::{Costs, Guarantee, Mode, Plant, Promises, QueueBounds, Site};
use plimsoll_core::random::Random;
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::{Engine, Lane};
use std::ops::Range;

const WORKERS: u32 = 32;
/// Full pages per millisecond, and the milliseconds and bytes of a light and a full page.
const CAPACITY: f64 = 0.32;
const PAGE: [(u64, u64); 2] = [(56, 4 << 10), (100, 32 << 10)];
const HOSTS: [&str; 3] = ["v1", "v2", "others"];
/// V1's contract before and after, and V2's, as parts of the server.
const NARROW: f64 = 0.2;
const WIDE: f64 = 0.45;
const NEW: f64 = 0.3;
/// When each takes effect, in which time it must hold (ms), and the end.
const WIDER: u64 = 9_000;
const ONE_MORE: u64 = 15_000;
const SOON: u64 = 3_000;
const END: u64 = 22_000;

fn promises(v1: f64, v2: Option<f64>, mode: Mode) -> Promises {
    let site = |name: &str, part: Option<f64>| {
        let bandwidth = |part: f64| part * CAPACITY * 1e3 * PAGE[1].1 as f64;
        let guarantee = part.map(|part| Guarantee::new(part * CAPACITY * 1e3, bandwidth(part)));
        let share_excess = name != "v1";
        let hosts = if part.is_some() { vec![name.to_owned()] } else { Vec::new() };
        Site { hosts, guarantee, share_excess, ..Site::new(name, &["light", "full"]) }
    };
    let costs = Costs {
        per_request_seconds: 50e-3 / f64::from(WORKERS),
        per_byte_seconds: 50e-3 / f64::from(WORKERS) / PAGE[1].1 as f64,
        per_rejection_seconds: 0.0,
    };
    let queue = QueueBounds { max_waiting: 1000, ..QueueBounds::default() };
    let plant = Plant { costs: Some(costs), queue, ..Plant::new("server", WORKERS) };
    let sites = [Some(site("v1", Some(v1))), v2.map(|v2| site("v2", Some(v2))), Some(site("others", None))];
    let mut promises =
        Promises { plants: vec![plant], sites: sites.into_iter().flatten().collect(), ..Promises::default() };
    promises.control.mode = mode;
    promises
}

/// What became of the requests of one host: when each came, and at which level it was answered.
type Answers = Vec<(u64, Option<u8>)>;

struct World {
    lane: Lane,
    verdicts: Verdicts,
    /// Requests in service with their ends, and the host and arrival of each by its number.
    served: Vec<(u64, usize, Permit)>,
    waiting: Vec<(usize, Permit)>,
    requests: Vec<(usize, u64)>,
    answers: [Answers; 3],
}

impl World {
    fn start(&mut self, now: u64, number: usize, permit: Permit) {
        let (milliseconds, _) = PAGE[usize::from(permit.level()) - 1];
        self.served.push((now + milliseconds, number, permit));
    }

    fn end(&mut self, number: usize, level: Option<u8>) {
        let (host, arrived) = self.requests[number];
        self.answers[host].push((arrived, level));
    }

    fn settle(&mut self, now: u64) {
        for verdict in std::mem::take(&mut self.verdicts) {
            let (number, started) = (verdict.token().0 as usize, verdict.permit());
            let place = self.waiting.iter().position(|(waiting, _)| *waiting == number).expect("it waits");
            let (_, spent) = self.waiting.swap_remove(place);
            self.lane.depart(ms(now), spent, Outcome::Abandoned, &mut self.verdicts);
            match started {
                Some(permit) => self.start(now, number, permit),
                None => self.end(number, None),
            }
        }
    }

    fn finish(&mut self, now: u64) {
        let due: Vec<usize> =
            (0..self.served.len()).rev().filter(|place| self.served[*place].0 <= now).collect();
        for place in due {
            let (_, number, mut permit) = self.served.swap_remove(place);
            let response_bytes = PAGE[usize::from(permit.level()) - 1].1;
            self.end(number, Some(permit.level()));
            self.lane.sent(&permit, response_bytes);
            let service = Service { response_bytes, representative: true, cost: None };
            self.lane.release(ms(now), &mut permit, service, &mut self.verdicts);
            self.lane.depart(ms(now), permit, Outcome::Completed, &mut self.verdicts);
        }
    }

    fn arrive(&mut self, now: u64, host: usize, client: u32) {
        let target = self
            .lane
            .classify(&Request { host: HOSTS[host], ..get("/page", 0x0a00_0000 + client) })
            .expect("a site");
        let number = self.requests.len();
        self.requests.push((host, now));
        match self.lane.arrive(ms(now), target, Token(number as u64), &mut self.verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => self.start(now, number, permit),
            Arrival::Wait(permit) => self.waiting.push((number, permit)),
            Arrival::Reject(_) => self.end(number, None),
        }
    }
}

/// Runs it; what became of the requests of each host.
fn run(mode: Mode) -> [Answers; 3] {
    let (mut engine, mut lanes) = Engine::new(&promises(NARROW, None, mode), 1, 42).expect("valid promises");
    let lane = lanes.pop().expect("one lane");
    let (served, waiting, requests, answers) = Default::default();
    let mut world = World { lane, verdicts: Verdicts::new(), served, waiting, requests, answers };
    let mut random = Random::new(1);
    let rates = [0.9 * WIDE, 0.85 * NEW, 1.5].map(|part| part * CAPACITY);
    let mut due = [0.0; 3];
    for now in 0..END {
        match now {
            WIDER => drop(engine.reload(&promises(WIDE, None, mode)).expect("valid promises")),
            ONE_MORE => drop(engine.reload(&promises(WIDE, Some(NEW), mode)).expect("valid promises")),
            _ => {}
        }
        engine.tick(ms(now), &Readings::default(), &mut world.verdicts);
        world.finish(now);
        world.settle(now);
        for host in 0..HOSTS.len() {
            while due[host] <= now as f64 {
                due[host] += random.exponential(1.0 / rates[host]);
                let client = 1000 * host as u32 + random.below(400) as u32;
                world.arrive(now, host, client);
                world.settle(now);
            }
        }
    }
    world.answers
}

/// The part of the requests that came in this time which were answered at full quality, and what all of them used of the
/// server.
fn full_and_used(answers: &Answers, time: Range<u64>) -> (f64, f64) {
    let those: Vec<_> = answers.iter().filter(|(arrived, _)| time.contains(arrived)).collect();
    let count = |level| those.iter().filter(|(_, answered)| *answered == Some(level)).count() as f64;
    let used = (count(2) + PAGE[0].0 as f64 / PAGE[1].0 as f64 * count(1)) / CAPACITY;
    (count(2) / those.len() as f64, used / (time.end - time.start) as f64)
}

#[test]
fn a_contract_holds_from_three_seconds_after_the_reload_that_brings_it() {
    let [v1, v2, _] = run(Mode::Control);
    let (narrow, used) = full_and_used(&v1, 4_000..WIDER);
    assert!(narrow < 0.5, "the old contract holds until then: {narrow:.3}");
    assert!((0.7..1.25).contains(&(used / NARROW)), "{:.3} of the old U*", used / NARROW);
    let (wide, _) = full_and_used(&v1, WIDER + SOON..END - 1_000);
    assert!(wide >= 0.97, "the new contract holds: {wide:.3}");
    let (nobody, _) = full_and_used(&v2, 4_000..ONE_MORE);
    assert!(nobody < 0.3, "best effort until then: {nobody:.3}");
    let (somebody, _) = full_and_used(&v2, ONE_MORE + SOON..END - 1_000);
    assert!(somebody >= 0.97, "the new site's contract holds: {somebody:.3}");
}

#[test]
fn the_twin_without_control_knows_no_contract() {
    let [v1, _, _] = run(Mode::Off);
    let (narrow, used) = full_and_used(&v1, 4_000..WIDER);
    let (wide, _) = full_and_used(&v1, WIDER + SOON..END - 1_000);
    assert!(
        !(narrow < 0.5 && (0.7..1.25).contains(&(used / NARROW)) && wide >= 0.97),
        "{narrow} {used} {wide}"
    );
}
