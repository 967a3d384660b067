//! Exempt requests come before all others and hold half of the places at most, so that a flood of them starves nobody.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Condition, Plant, Promises, Site, WorkerBounds};
use plimsoll_core::request::{Arrival, Outcome, Permit, Reason, Service, Token, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Duration;
use plimsoll_core::{Engine, Lane};

const WORKERS: u32 = 4;
/// The flood: so many clients, each of which asks again as soon as it was answered.
const FLOOD: u32 = 40;
/// The service times of exempt requests and of others (ms).
const SLOW: u64 = 200;
const PAGE: u64 = 20;
/// A page is asked for so often (ms): a quarter of one worker's time.
const EVERY: u64 = 80;
const END: u64 = 30_000;

fn promises(find: bool, exempts: bool) -> Promises {
    let exempt = vec![Condition { paths: vec!["/healthz".into()], ..Condition::default() }];
    let exempt = if exempts { exempt } else { Vec::new() };
    let find_workers = find.then_some(WorkerBounds { least: 1, most: 64 });
    Promises::of(
        Plant { find_workers, ..Plant::new("app", WORKERS) },
        Site { exempt, ..Site::new("site", &["full"]) },
    )
}

/// A server of four workers in virtual time, the flood, and a page now and then.
struct Scene {
    engine: Engine,
    lane: Lane,
    verdicts: Verdicts,
    /// The token of each request, when its service ends (ms), and its permit.
    in_service: Vec<(u64, u64, Permit)>,
    waiting: Vec<(u64, Permit)>,
    served: u64,
    rejected: u64,
    /// The longest time from a page's arrival to its start.
    longest_wait: Duration,
    most_exempt: usize,
}

const PAGES: u64 = 1_000_000;

impl Scene {
    fn new(promises: &Promises) -> Scene {
        let (engine, lane) = engine(promises);
        Scene {
            engine,
            lane,
            verdicts: Verdicts::new(),
            in_service: Vec::new(),
            waiting: Vec::new(),
            served: 0,
            rejected: 0,
            longest_wait: Duration::ZERO,
            most_exempt: 0,
        }
    }

    fn ask(&mut self, now: u64, path: &'static str, token: u64) {
        let target = self.lane.classify(&get(path, token as u32)).expect("any host");
        match self.lane.arrive(ms(now), target, Token(token), &mut self.verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => self.begin(now, token, permit),
            Arrival::Wait(permit) => self.waiting.push((token, permit)),
            Arrival::Reject(_) => self.rejected += u64::from(token >= PAGES),
        }
        self.settle(now);
    }

    fn begin(&mut self, now: u64, token: u64, permit: Permit) {
        let service = if token >= PAGES { PAGE } else { SLOW };
        if token >= PAGES {
            self.longest_wait = self.longest_wait.max(ms(now).since(permit.arrived()));
        }
        // Beyond its workers the server shares them; a request that finds none free takes twice as long here.
        let crowded = self.in_service.len() >= WORKERS as usize;
        self.in_service.push((token, now + service * (1 + u64::from(crowded)), permit));
        self.most_exempt =
            self.most_exempt.max(self.in_service.iter().filter(|(token, ..)| *token < PAGES).count());
    }

    fn settle(&mut self, now: u64) {
        while let Some(verdict) = self.verdicts.pop() {
            let (token, started) = (verdict.token().0, verdict.permit());
            self.waiting.retain(|(waiting, _)| *waiting != token);
            match started {
                Some(permit) => self.begin(now, token, permit),
                None => self.rejected += u64::from(token >= PAGES),
            }
        }
    }

    fn run(mut self) -> Scene {
        (0..u64::from(FLOOD)).for_each(|client| self.ask(0, "/healthz", client));
        for now in 0..END {
            self.engine.tick(ms(now), &Readings::default(), &mut self.verdicts);
            self.settle(now);
            let (done, rest) =
                core::mem::take(&mut self.in_service).into_iter().partition(|(_, at, _)| *at <= now);
            self.in_service = rest;
            let done: Vec<(u64, u64, Permit)> = done;
            for (token, _, mut permit) in done {
                let service = Service { response_bytes: 1000, representative: true, cost: None };
                self.lane.release(ms(now), &mut permit, service, &mut self.verdicts);
                self.lane.depart(ms(now), permit, Outcome::Completed, &mut self.verdicts);
                self.settle(now);
                if token < PAGES {
                    self.ask(now, "/healthz", token);
                } else {
                    self.served += 1;
                }
            }
            if now % EVERY == 0 {
                self.ask(now, "/page", PAGES + now);
            }
        }
        self
    }
}

#[test]
fn a_flood_of_exempt_requests_leaves_half_of_the_places() {
    let scene = Scene::new(&promises(false, true)).run();
    assert_eq!(scene.most_exempt, 2);
    assert_eq!(scene.rejected, 0);
    assert!(scene.served >= END / EVERY - 1, "{} of {}", scene.served, END / EVERY);
    assert!(scene.longest_wait <= Duration::from_millis(PAGE), "{:?}", scene.longest_wait);
    let status = scene.engine.status();
    let exempt = status.classes.iter().find(|class| class.class == "exempt").expect("its row");
    let turns = END / SLOW * 2;
    assert!(
        (turns - 4..=turns).contains(&exempt.counts.reasons[Reason::Exempt as usize]),
        "its share is used: {exempt:?}"
    );
    assert!(status.plants[0].utilization_offered < 0.65, "what is held is no load: {:?}", status.plants[0]);
}

/// The same flood as ordinary requests: pages wait behind it, and are turned away with it.
#[test]
fn as_ordinary_requests_the_same_flood_delays_everybody() {
    let scene = Scene::new(&promises(false, false)).run();
    assert!(scene.longest_wait > Duration::from_millis(10 * PAGE), "{:?}", scene.longest_wait);
}

#[test]
fn a_flood_of_exempt_requests_starves_nobody_where_workers_are_found() {
    let scene = Scene::new(&promises(true, true)).run();
    let all = END / EVERY;
    assert!(scene.served * 20 >= all * 19, "{} of {all}, {} turned away", scene.served, scene.rejected);
}
