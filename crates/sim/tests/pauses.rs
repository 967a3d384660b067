//! A machine that stood still for a moment: the server, the gateway, or both. While light pages for all would do, nobody is
//! turned away for it.
//!
//! The demo's server, smaller: 32 workers of 128 ms at full quality and 0.15 of that light.

use plimsoll_core::promises::{Class, Condition, Delay, Plant, Promises, Site};
use plimsoll_core::request::{Outcome, Service, Target, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_sim::front::{Arriving, Decision, Front, Gateway, Order};

use plimsoll_sim::workload::{
    Arrivals, Clients, Discipline, Fault, FaultKind, Law, Page, Phase, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Request, Row, Setup};

const WORKERS: u32 = 32;
const FULL: Duration = Duration::from_millis(128);
const LIGHT: f64 = 0.15;
const END: f64 = 26.0;
const NOTHING: Promised = Promised::Nothing;

/// What stands still, or is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stands {
    Server,
    Gateway,
    Both,
    /// The server takes so many times as long.
    Slow(f64),
}

#[derive(Clone, Copy, Debug)]
struct Scene {
    stands: Stands,
    from: f64,
    seconds: f64,
    /// The load if all have light pages, of the capacity.
    light: f64,
    seed: u64,
    law: &'static Law,
    promised: Promised,
}

/// What all visitors were promised.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Promised {
    Nothing,
    Deadline(Duration),
    /// On average.
    Delay(Duration),
}

/// A gateway that does nothing from one instant to another: what ends meanwhile is seen then, and what comes.
struct Standing {
    gateway: Gateway,
    from: Instant,
    until: Instant,
    late: Vec<(Token, Option<Service>, Outcome)>,
}

impl Standing {
    fn stands(&self, now: Instant) -> bool {
        (self.from..self.until).contains(&now)
    }
}

impl Front for Standing {
    fn classify(&self, request: &Request) -> Option<Target> {
        self.gateway.classify(request)
    }

    fn arrive(&mut self, now: Instant, arrival: Arriving<'_>, orders: &mut Vec<Order>) -> Decision {
        self.gateway.arrive(now, arrival, orders)
    }

    fn release(&mut self, now: Instant, token: Token, service: Service, orders: &mut Vec<Order>) {
        if self.stands(now) {
            self.late.push((token, Some(service), Outcome::Completed));
        } else {
            self.gateway.release(now, token, service, orders);
        }
    }

    fn depart(&mut self, now: Instant, token: Token, outcome: Outcome, orders: &mut Vec<Order>) {
        if self.stands(now) {
            self.late.push((token, None, outcome));
        } else {
            self.gateway.depart(now, token, outcome, orders);
        }
    }

    fn tick(&mut self, now: Instant, readings: &Readings, orders: &mut Vec<Order>) -> Instant {
        if self.stands(now) {
            return self.until;
        }
        for (token, service, outcome) in std::mem::take(&mut self.late) {
            match service {
                Some(service) => self.gateway.release(now, token, service, orders),
                None => self.gateway.depart(now, token, outcome, orders),
            }
        }
        self.gateway.tick(now, readings, orders).max(now + Duration::from_nanos(1))
    }

    fn service_level(&self, class: u16) -> Option<f64> {
        self.gateway.service_level(class)
    }

    fn status(&self) -> Option<Status> {
        self.gateway.status()
    }
}

impl Scene {
    fn run(&self) -> Vec<Row> {
        let until = self.from + self.seconds;
        let at = Duration::from_secs_f64;
        let (slower, gateway_stands) = match self.stands {
            Stands::Server => (Some(f64::INFINITY), false),
            Stands::Gateway => (None, true),
            Stands::Both => (Some(f64::INFINITY), true),
            Stands::Slow(times) => (Some(times), false),
        };
        let capacity = f64::from(WORKERS) / FULL.as_secs_f64();
        let rate = self.light / LIGHT * capacity;
        let mut phases = vec![(0.0, rate)];
        if gateway_stands {
            // Those who come meanwhile are read within a hundredth of a second.
            phases.extend([
                (self.from, 0.0),
                (until, rate * (1.0 + 100.0 * self.seconds)),
                (until + 0.01, rate),
            ]);
        }
        let phases = phases.into_iter().map(|(from, rate)| Phase { from: at(from), rate, to: None });
        let page = Page { host: "shop.example".to_owned(), ..Page::new("/", 16384.0) };
        let arrivals = Arrivals::Process { process: Process::Poisson, rate: phases.collect() };
        let visitors = Stream::new("visitors", arrivals, vec![page], 4000);
        let fault = slower.map(|times| Fault {
            from: at(self.from),
            until: at(until),
            kind: FaultKind::Slower(times),
        });
        let workload = Workload {
            streams: vec![Stream { clients: Clients { skew: 0.0, ..visitors.clients }, ..visitors }],
            plants: vec![plimsoll_sim::workload::Plant {
                law: self.law.clone(),
                faults: fault.into_iter().collect(),
                ..plimsoll_sim::workload::Plant::new(Discipline::Workers(WORKERS), 511, FULL)
            }],
            versions: vec![vec![Version { cost: Some(LIGHT), bytes: 0.125 }, Version::FULL]],
            duration: Some(at(END)),
            ..Workload::default()
        };
        let mut promises = Promises::of(Plant::new("origin", WORKERS), Site::new("site", &["light", "full"]));
        let everybody = Condition { paths: vec!["/*".to_owned()], ..Condition::default() };
        let class = Class::new("visitors", everybody);
        promises.sites[0].classes = match self.promised {
            Promised::Nothing => Vec::new(),
            Promised::Deadline(within) => vec![Class { deadline: Some(within), ..class }],
            Promised::Delay(target) => {
                vec![Class { delay: Some(Delay { target, percentile: None }), ..class }]
            }
        };
        let setup = Setup { promises: &promises, workload: &workload, seed: self.seed };
        let gateway = Gateway::new(&promises, self.seed).expect("the promises are valid");
        let [from, until] = [self.from, until].map(|seconds| Instant::ZERO + at(seconds));
        let from = if gateway_stands { from } else { until };
        let mut front = Standing { gateway, from, until, late: Vec::new() };
        setup.run_with(&mut front, &mut ()).expect("it runs").rows
    }
}

/// Requests that were turned away after the cold start.
fn turned_away(rows: &[Row]) -> u64 {
    rows.iter().skip(8).flat_map(|row| &row.classes).map(|class| class.rejected).sum()
}

/// When in its period a pause begins, each with a seed. Some of the pauses end at the end of a period, others in its middle.
const BEGINS: [(f64, u64); 4] = [(14.05, 9301), (14.35, 9302), (14.65, 9303), (14.95, 9304)];

/// Light pages for all take 0.45 of the server, or 0.9 of it while it is slow.
#[test]
fn a_moment_is_no_reason_to_turn_anybody_away() {
    for (stands, laws) in [
        (Stands::Server, [&Law::Deterministic, &Law::Exponential]),
        (Stands::Gateway, [&Law::Exponential, &Law::Deterministic]),
        (Stands::Both, [&Law::Deterministic, &Law::Exponential]),
        (Stands::Slow(2.0), [&Law::Exponential, &Law::Deterministic]),
    ] {
        for (place, seconds) in [0.2, 0.5, 1.0, 2.0, 3.0].into_iter().enumerate() {
            for (turn, (from, seed)) in BEGINS.into_iter().enumerate() {
                let law = laws[(place + turn) % 2];
                let scene = Scene { stands, from, seconds, light: 0.45, seed, law, promised: NOTHING };
                assert_eq!(turned_away(&scene.run()), 0, "{scene:?}");
            }
        }
    }
}

/// Half the speed, which reaches further than a pause: at more seeds, with each law, and the slow time at more places of the
/// period.
#[test]
fn half_the_speed_for_a_moment_turns_nobody_away() {
    for seed in 9311..=9318 {
        for seconds in [0.5, 1.0, 2.0, 3.0] {
            let law = if seed % 2 == 0 { &Law::Deterministic } else { &Law::Exponential };
            let from = 14.0 + 0.125 * (seed - 9311) as f64 + 0.03;
            let scene =
                Scene { stands: Stands::Slow(2.0), from, seconds, light: 0.45, seed, law, promised: NOTHING };
            assert_eq!(turned_away(&scene.run()), 0, "{scene:?}");
        }
    }
}

/// A pause is no reason to turn anybody away for a deadline that is several times as long, nor for a mean, which is over many
/// requests. What a gateway finds after a second in which it read nothing is another matter for a deadline: at the pages that a
/// quiet second allows it would take longer than that. When each request that was old held its worker, 631 were refused in the
/// first pause of 2 s of the server.
#[test]
fn a_moment_is_no_reason_to_turn_anybody_away_where_times_are_promised() {
    let [long, mean] = [Duration::from_secs(5), Duration::from_millis(500)];
    for promised in [Promised::Deadline(long), Promised::Delay(mean)] {
        for stands in [Stands::Server, Stands::Gateway, Stands::Both, Stands::Slow(2.0)] {
            let is_read = matches!(stands, Stands::Server | Stands::Slow(_));
            let lengths = match promised {
                Promised::Deadline(_) if is_read => [0.2, 1.0, 2.0, 3.0].as_slice(),
                Promised::Deadline(_) => &[0.2, 0.5],
                _ => &[0.2, 1.0],
            };
            let laws = [&Law::Deterministic, &Law::Exponential].into_iter().cycle();
            for (&seconds, law) in lengths.iter().zip(laws) {
                for (from, seed) in BEGINS {
                    let seed = seed + 200;
                    let scene = Scene { stands, from, seconds, light: 0.45, seed, law, promised };
                    assert_eq!(turned_away(&scene.run()), 0, "{scene:?}");
                }
            }
        }
    }
}

/// When a pause begins that ends well before or after the end of a period.
const WITHIN: [(f64, u64); 4] = [(14.05, 9401), (14.35, 9402), (14.65, 9403), (14.8, 9404)];

/// Light pages for all take 0.9 of the server, more than its load line. What waits behind a pause is served by the tenth that
/// is left, with waits far below the longest, and nothing is turned away for it.
#[test]
fn what_a_pause_leaves_waits_where_light_pages_fill_the_server() {
    for (stands, law) in [
        (Stands::Server, &Law::Deterministic),
        (Stands::Server, &Law::Exponential),
        (Stands::Gateway, &Law::Exponential),
        (Stands::Both, &Law::Deterministic),
    ] {
        for seconds in [0.5, 1.0, 2.0, 3.0] {
            for (from, seed) in WITHIN {
                let scene = Scene { stands, from, seconds, light: 0.9, seed, law, promised: NOTHING };
                let rows = scene.run();
                assert_eq!(turned_away(&rows), 0, "{scene:?}");
                // What came in the pause, and in a second in which a gateway that had been idle gave full pages.
                let waiting = rows[17].plants[0].waiting;
                assert!(f64::from(waiting) <= 1500.0 * (seconds + 1.0), "{waiting} wait, {scene:?}");
            }
        }
    }
}

/// Light pages for all take a tenth more than the server. At least that tenth is turned away, and at most what lies above the
/// load line, with what waited before it was turned away.
#[test]
fn what_light_pages_cannot_carry_is_turned_away() {
    for (from, seed) in WITHIN {
        let scene = Scene {
            stands: Stands::Server,
            from,
            seconds: 0.2,
            light: 1.1,
            seed,
            law: &Law::Exponential,
            promised: NOTHING,
        };
        let rows = scene.run();
        let sum = |of: &dyn Fn(&Row) -> u64| rows[8..].iter().map(of).sum::<u64>() as f64;
        let share = sum(&|row| row.classes[0].rejected) / sum(&|row| row.classes[0].arrivals);
        println!("{share:.3} turned away, {} wait", rows[25].plants[0].waiting);
        assert!((0.2..0.27).contains(&share), "{share} turned away, {scene:?}");
        assert!(rows[20..].iter().all(|row| row.plants[0].waiting < 1500), "{scene:?}");
    }
}

/// A server that stays at a quarter of its speed cannot serve light pages to all, whose load is then 1.8: what the load line
/// does not allow is turned away from the second or third period on.
#[test]
fn what_lasts_is_reacted_to() {
    for (from, seed) in BEGINS {
        let scene = Scene {
            stands: Stands::Slow(4.0),
            from,
            seconds: END - from,
            light: 0.45,
            seed,
            law: &Law::Exponential,
            promised: NOTHING,
        };
        let rows = scene.run();
        let sum = |of: &dyn Fn(&Row) -> u64| rows[17..].iter().map(of).sum::<u64>() as f64;
        let share = sum(&|row| row.classes[0].rejected) / sum(&|row| row.classes[0].arrivals);
        assert!((0.5..0.7).contains(&share), "{share} turned away, {scene:?}");
        assert_eq!(turned_away(&rows[..14]), 0);
    }
}
