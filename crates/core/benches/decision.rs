//! What one decision costs: `arrive` and `depart` of a request that need not wait, with its release between.
//!
//! `cargo bench -p plimsoll-core` prints nanoseconds (median of 31 rounds), on one thread and on two that share the
//! gate. `… -- --count N` makes N decisions and prints nothing: run under callgrind, the difference of two counts is
//! the instructions of a decision, which do not drift with the machine (`make instructions`).

use plimsoll_core::door::{Arrival, Outcome, RequestView, Service, Token, Verdicts};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::time::Instant;
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

fn lanes(count: usize) -> (Engine, Vec<Lane>) {
    let site = Site { hosts: vec!["*.example.org".into()], ..Site::new("site", &["light", "full"]) };
    let promises = Promises::of(Plant::new("app", 64), site);
    Engine::new(&promises, count, 1).expect("valid promises")
}

fn decide(lane: &mut Lane, count: u64, verdicts: &mut Verdicts) {
    for i in 0..count {
        let now = Instant::from_nanos(1_000 * i);
        let Some(target) = lane.classify(&Request(i as u32)) else { continue };
        if let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(i), verdicts) {
            lane.sent(&permit, 1024);
            let service = Service { response_bytes: 1024, representative: true };
            lane.release(now, &mut permit, service, verdicts);
            lane.depart(now, permit, Outcome::Completed, verdicts);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn nanoseconds(threads: usize) -> f64 {
    const COUNT: u64 = 200_000;
    let (_engine, mut lanes) = lanes(threads);
    let mut rounds: Vec<f64> = (0..31)
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
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|a| a == "--count") {
        let count = arguments.get(place + 1).and_then(|n| n.parse().ok()).unwrap_or(0);
        let (_engine, mut lanes) = lanes(1);
        decide(&mut lanes[0], count, &mut Verdicts::new());
        return;
    }
    println!("classify + arrive + sent + release + depart, ns per request");
    for threads in 1..=2 {
        println!("{threads} thread(s), one gate: {:.0}", nanoseconds(threads));
    }
}
