//! Reload: what stays keeps what was learned, what goes is accounted to its end, and no request is lost.

use crate::{Request, engine, get, ms};
use plimsoll_core::promises::{
    Class, Condition, Costs, Delay, Guarantee, Level, Mode, Plant, Promises, QueueBounds, Site, WorkerBounds,
};
use plimsoll_core::random::Random;
use plimsoll_core::request::Reason;
use plimsoll_core::request::{
    Arrival, Outcome, Permit, Rejection, Service, Target, Token, Verdict, Verdicts,
};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::{ClassStatus, Status};
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const HOSTS: [&str; 3] = ["shop", "blog", "wiki"];
const PATHS: [&str; 3] = ["/buy", "/read", "/edit"];

fn answered() -> Service {
    Service { response_bytes: 1000, representative: true, cost: None }
}

fn site(name: &str, levels: &[&str]) -> Site {
    Site { hosts: vec![name.to_owned()], ..Site::new(name, levels) }
}

fn class(path: &str) -> Class {
    Class::new(&path[1..], Condition { paths: vec![path.to_owned()], ..Condition::default() })
}

fn plant(name: &str, workers: u32) -> Plant {
    let queue = QueueBounds { max_waiting: 5, max_wait: Some(Duration::from_secs(2)) };
    Plant { queue, ..Plant::new(name, workers) }
}

fn shop_and_blog() -> Promises {
    Promises {
        plants: vec![plant("app", 4), plant("static", 2)],
        sites: vec![
            Site { classes: vec![class("/buy")], ..site("shop", &["light", "full"]) },
            Site { plant: 1, ..site("blog", &["full"]) },
        ],
        ..Promises::default()
    }
}

fn target(lane: &Lane, host: &'static str, path: &'static str) -> Target {
    lane.classify(&Request { host, ..get(path, 7) }).expect("a site")
}

fn serve(lane: &mut Lane, now: Instant, target: Target) -> Permit {
    match lane.arrive(now, target, Token(0), &mut Verdicts::new()) {
        Arrival::Serve(permit) => permit,
        other => panic!("expected to be served: {other:?}"),
    }
}

fn row<'a>(status: &'a Status, site: &str, class: &str) -> &'a ClassStatus {
    let found = status.classes.iter().find(|row| row.site == site && row.class == class);
    found.unwrap_or_else(|| panic!("no row for {site}/{class}"))
}

#[test]
fn numbers_are_for_life_and_the_rest_is_new() {
    let mut promises = shop_and_blog();
    let (mut engine, lane) = engine(&promises);
    let (buy, read) = (target(&lane, "shop", "/buy"), target(&lane, "blog", "/read"));

    promises.plants.swap(0, 1);
    promises.sites.swap(0, 1);
    (promises.sites[0].plant, promises.sites[1].plant) = (0, 1);
    promises.sites[1].classes.insert(0, class("/edit"));
    promises.sites.insert(0, site("wiki", &["full"]));
    let changes = engine.reload(&promises).expect("valid promises");
    assert_eq!(target(&lane, "shop", "/buy"), buy);
    assert_eq!(target(&lane, "blog", "/read"), read);
    let edit = target(&lane, "shop", "/edit");
    assert!(edit.site == buy.site && edit.class > read.class);
    assert_eq!(changes.sites.added, ["wiki"]);
    assert_eq!(changes.sites.changed, ["shop"]);
    assert_eq!(changes.classes.added, ["shop/edit"]);
    assert!(changes.plants == Default::default() && !changes.control);
    assert!(engine.reload(&promises).expect("valid promises").is_empty());
}

#[test]
fn promises_that_cannot_be_change_nothing() {
    let promises = shop_and_blog();
    let (mut engine, lane) = engine(&promises);
    let before = target(&lane, "shop", "/buy");
    let mut wrong = promises.clone();
    wrong.plants[0].set_point = 0.0;
    wrong.sites[0].plant = 9;
    wrong.sites[0].classes.clear();
    assert_eq!(engine.reload(&wrong).expect_err("two things are wrong").len(), 2);
    assert_eq!(target(&lane, "shop", "/buy"), before);
    assert_eq!(engine.status().classes.len(), 5);
}

#[test]
fn a_request_of_a_class_that_goes_is_accounted_to_it() {
    let promises = shop_and_blog();
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    let old = target(&lane, "blog", "/");
    let mut held: Vec<Permit> = (0..2).map(|_| serve(&mut lane, ms(0), old)).collect();
    let Arrival::Wait(waiting) = lane.arrive(ms(1), old, Token(1), &mut verdicts) else {
        panic!("two workers are busy")
    };
    let mut shop_only = promises.clone();
    shop_only.sites.remove(1);
    shop_only.plants.remove(1);
    let changes = engine.reload(&shop_only).expect("valid promises");
    assert_eq!(
        (&changes.sites.removed[..], &changes.plants.removed[..]),
        (&["blog".into()][..], &["static".into()][..])
    );
    assert!(lane.classify(&Request { host: "blog", ..get("/", 7) }).is_none());

    // A target from before the reload is still valid.
    assert!(matches!(lane.arrive(ms(2), old, Token(2), &mut verdicts), Arrival::Wait(_)));
    lane.sent(&held[0], 500);
    lane.release(ms(10), &mut held[0], answered(), &mut verdicts);
    let Some(Verdict::Start(Token(1), started)) = verdicts.pop() else { panic!("a slot is free") };
    assert_eq!((started.class(), started.plant()), (old.class, 1));
    lane.depart(ms(11), waiting, Outcome::Abandoned, &mut verdicts);
    held.push(started);
    for permit in held {
        lane.depart(ms(20), permit, Outcome::Completed, &mut verdicts);
    }
    for verdict in std::mem::take(&mut verdicts) {
        let Verdict::Start(_, permit) = verdict else { panic!("a start") };
        lane.depart(ms(20), permit, Outcome::Completed, &mut verdicts);
    }
    let status = engine.status();
    let blog = row(&status, "blog", "default");
    assert!(blog.removed && status.plants[1].removed);
    assert_eq!((blog.counts.arrivals, blog.counts.outcomes, blog.counts.bytes), (4, [4, 0, 0], 500));
    assert_eq!((status.plants[1].in_service, status.plants[1].waiting), (0, 0));

    engine.reload(&promises).expect("valid promises");
    assert_eq!(target(&lane, "blog", "/"), old, "back again, with its number");
    assert!(!engine.status().plants[1].removed);
}

#[test]
fn limits_queue_and_mode_change_in_place() {
    let mut promises = shop_and_blog();
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    let shop = target(&lane, "shop", "/");
    let _held: Vec<Permit> = (0..4).map(|_| serve(&mut lane, ms(0), shop)).collect();
    assert!(matches!(lane.arrive(ms(0), shop, Token(5), &mut verdicts), Arrival::Wait(_)));
    promises.plants[0].max_connections = 5;
    promises.plants[0].queue.max_waiting = 0;
    promises.control.retry_after = Some(Duration::from_secs(77));
    assert!(engine.reload(&promises).expect("valid promises").control);
    engine.tick(ms(1), &Readings::default(), &mut verdicts);
    assert!(
        matches!(verdicts.pop(), Some(Verdict::Start(Token(5), _))),
        "there is room for the waiting request"
    );
    let refused = lane.arrive(ms(1), shop, Token(6), &mut verdicts);
    let Arrival::Reject(Rejection { reason, retry_after }) = refused else { panic!("no queue: {refused:?}") };
    assert_eq!((reason, retry_after), (Reason::QueueFull, Duration::from_secs(77)));
    promises.control.mode = Mode::Off;
    engine.reload(&promises).expect("valid promises");
    let _sixth = serve(&mut lane, ms(2), shop);
    assert_eq!(engine.status().mode, Mode::Off);
}

/// Four times the load for `periods`, then a status.
fn overload(engine: &mut Engine, lane: &mut Lane, from: u64, periods: u64) -> Status {
    let mut verdicts = Verdicts::new();
    let mut random = Random::new(5);
    let mut held: Vec<Permit> = Vec::new();
    for now in from..from + 1000 * periods {
        engine.tick(ms(now), &Readings::default(), &mut verdicts);
        for mut permit in std::mem::take(&mut held) {
            let full = permit.plant() == 0 && permit.level() >= 2;
            if ms(now).since(permit.arrived()) < Duration::from_millis(if full { 10 } else { 1 }) {
                held.push(permit);
                continue;
            }
            lane.release(ms(now), &mut permit, answered(), &mut verdicts);
            lane.depart(ms(now), permit, Outcome::Completed, &mut verdicts);
        }
        for _ in 0..2 {
            let client = random.below(1000) as u32;
            let target = lane.classify(&Request { host: "shop", ..get("/", client) }).expect("a site");
            match lane.arrive(ms(now), target, Token(0), &mut verdicts) {
                Arrival::Serve(permit) => held.push(permit),
                Arrival::Wait(permit) => lane.depart(ms(now), permit, Outcome::Abandoned, &mut verdicts),
                other => drop(other),
            }
        }
    }
    for permit in held {
        lane.depart(ms(from + 1000 * periods), permit, Outcome::Abandoned, &mut verdicts);
    }
    engine.status()
}

#[test]
fn what_stays_keeps_what_was_learned() {
    let promises = shop_and_blog();
    let (mut engine, mut lane) = engine(&promises);
    let before = overload(&mut engine, &mut lane, 0, 20);
    let shop = row(&before, "shop", "default");
    assert!((1.0..1.9).contains(&shop.service_level), "{}", shop.service_level);

    // Another site, another class in front, another number of connections: none of it concerns what was learned.
    let mut more = promises.clone();
    more.sites.insert(0, site("wiki", &["full"]));
    more.sites[1].classes.insert(0, class("/edit"));
    more.plants[0].max_connections = 40;
    engine.reload(&more).expect("valid promises");
    let after = engine.status();
    let same = row(&after, "shop", "default");
    assert_eq!(same.service_level, shop.service_level);
    assert_eq!(same.level_cost_seconds, shop.level_cost_seconds);
    assert_eq!(same.counts, shop.counts);
    assert_eq!(after.plants[0].bias, before.plants[0].bias);
    let later = overload(&mut engine, &mut lane, 20_000, 1);
    let drift = later.plants[0].service_level - before.plants[0].service_level;
    assert!(drift.abs() < 0.15, "m moved by {drift} in the period of the reload");
}

#[test]
fn a_level_keeps_its_cost_and_m_its_place_by_name() {
    let promises = shop_and_blog();
    let (mut engine, mut lane) = engine(&promises);
    let before = overload(&mut engine, &mut lane, 0, 20);
    let shop = row(&before, "shop", "default");

    let mut levels = promises.clone();
    levels.sites[0].levels.insert(0, Level { name: "text".into(), plant: None, cost_ratio: None });
    engine.reload(&levels).expect("valid promises");
    let after = engine.status();
    let longer = row(&after, "shop", "default");
    assert!((longer.service_level - shop.service_level - 1.0).abs() < 1e-9);
    assert_eq!(longer.level_cost_seconds[1..], shop.level_cost_seconds[..]);
    assert_eq!(longer.levels, ["text", "light", "full"]);

    // Down to one level: a request for a level that is gone gets the nearest one.
    levels.sites[0].levels = vec![Level { name: "full".into(), plant: None, cost_ratio: None }];
    engine.reload(&levels).expect("valid promises");
    let status = engine.status();
    let short = row(&status, "shop", "default");
    assert!(short.service_level <= 1.0);
    assert_eq!(short.level_cost_seconds[0], shop.level_cost_seconds[1]);

    // On another plant its costs are unknown.
    levels.sites[0].plant = 1;
    engine.reload(&levels).expect("valid promises");
    assert_eq!(row(&engine.status(), "shop", "default").level_cost_seconds, [None]);
}

/// A lighter level at another plant changes nothing for the clients that had the only level: their share goes on having it, and
/// the others are passed down.
#[test]
fn a_lighter_level_at_another_plant_leaves_the_first_what_it_has() {
    let mut promises = shop_and_blog();
    promises.plants[0].workers = 1;
    promises.sites[0].levels.remove(0);
    let (mut engine, mut lane) = engine(&promises);
    let before = overload(&mut engine, &mut lane, 0, 20);
    let m = row(&before, "shop", "default").service_level;
    assert!((0.3..0.7).contains(&m), "{m}");

    promises.sites[0].levels.insert(0, Level { name: "light".into(), plant: Some(1), cost_ratio: None });
    promises.plants.iter_mut().for_each(|plant| plant.queue.max_waiting = 5000);
    engine.reload(&promises).expect("valid promises");
    let of_plant = engine.status().plants[0].service_level - before.plants[0].service_level;
    assert!((of_plant - 1.0).abs() < 1e-9, "m of the plant moved by {of_plant}");
    let full = (0..2000).filter(|client| {
        let target = lane.classify(&Request { host: "shop", ..get("/", *client) }).expect("a site");
        match lane.arrive(ms(20_000), target, Token(0), &mut Verdicts::new()) {
            Arrival::Serve(permit) | Arrival::Wait(permit) => permit.level() == 2,
            _ => false,
        }
    });
    let share = full.count() as f64 / 2000.0;
    assert!((share - m).abs() < 0.05, "{share} of the clients have full pages, and had {m}");

    // And back: what the level at the other plant was for comes to nothing, and not to the first plant.
    promises.sites[0].levels.remove(0);
    engine.reload(&promises).expect("valid promises");
    let after = row(&engine.status(), "shop", "default").service_level;
    assert!((after - m).abs() < 1e-9, "{after}, before {m}");
}

#[test]
fn costs_that_a_reload_tells_replace_what_traffic_has_taught() {
    let mut promises = shop_and_blog();
    let (mut engine, mut lane) = engine(&promises);
    overload(&mut engine, &mut lane, 0, 20);
    let of_request = |engine: &Engine| row(&engine.status(), "shop", "default").model.per_request_seconds;
    let configured = Costs { per_request_seconds: 0.5, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 };
    let taught = of_request(&engine);
    promises.plants[0].costs = Some(configured);
    engine.reload(&promises).expect("valid promises");
    assert!(taught != Some(0.5) && of_request(&engine) == Some(0.5), "{taught:?}");
    // The same again is nothing new.
    overload(&mut engine, &mut lane, 20_000, 20);
    let later = of_request(&engine);
    engine.reload(&promises).expect("valid promises");
    assert!(later != Some(0.5) && of_request(&engine) == later, "{later:?}");
}

/// Promises drawn at random: sites, classes, levels, plants and all sizes.
fn drawn(random: &mut Random) -> Promises {
    let mut names = vec!["app", "static", "other"];
    names.rotate_left(random.below(3) as usize);
    names.truncate(1 + random.below(3) as usize);
    let plants: Vec<Plant> = names.iter().map(|name| plant(name, 1 + random.below(4) as u32)).collect();
    let mut sites = Vec::new();
    let first = random.below(3) as usize;
    for host in HOSTS.iter().cycle().skip(first).take(1 + random.below(3) as usize) {
        let levels = ["text", "light", "full"];
        let mut site = site(host, &levels[random.below(3) as usize..]);
        site.plant = random.below(plants.len() as u64) as usize;
        let lower = random.below(plants.len() as u64) as usize;
        let count = random.below(site.levels.len() as u64) as usize;
        site.levels[..count].iter_mut().for_each(|level| level.plant = Some(lower));
        site.classes = PATHS.iter().filter(|_| random.below(2) == 0).map(|path| class(path)).collect();
        site.exempt = vec![Condition { paths: vec!["/read".into()], ..Condition::default() }];
        if count == 0 || lower == site.plant {
            promise_response_times(&mut site, random);
        }
        sites.push(site);
    }
    let mut promises = Promises { plants, sites, ..Promises::default() };
    for plant in &mut promises.plants {
        let bounds = WorkerBounds { least: 1, most: 1 + random.below(6) as u32 };
        plant.find_workers = (random.below(3) == 0).then_some(bounds);
    }
    promises.control.mode =
        [Mode::Control, Mode::Control, Mode::Observe, Mode::Off][random.below(4) as usize];
    promises
}

/// Gives each class a delay, a place in the site's ratio, or nothing.
fn promise_response_times(site: &mut Site, random: &mut Random) {
    let mut draw = || match random.below(3) {
        0 => (Some(delay(1 + random.below(500), (random.below(2) == 0).then_some(95.0))), None),
        1 => (None, Some(1.0 + random.below(3) as f64)),
        _ => (None, None),
    };
    for class in &mut site.classes {
        (class.delay, class.ratio) = draw();
    }
    (site.default_delay, site.default_ratio) = draw();
    let ratios = || site.classes.iter().map(|class| class.ratio).chain([site.default_ratio]).flatten();
    if ratios().count() == 1 {
        site.classes.iter_mut().for_each(|class| class.ratio = None);
        site.default_ratio = None;
    }
    site.strict_ratios = random.below(2) == 0;
}

fn delay(ms: u64, percentile: Option<f64>) -> Delay {
    Delay { target: Duration::from_millis(ms), percentile }
}

/// The lanes of two threads, the requests under way, and those that wait.
struct World {
    lanes: Vec<Lane>,
    held: Vec<Permit>,
    waiting: Vec<(u64, Permit)>,
    verdicts: Verdicts,
    arrived: u64,
}

impl World {
    fn arrive(&mut self, random: &mut Random, now: Instant) {
        let lane = random.below(self.lanes.len() as u64) as usize;
        let host = HOSTS[random.below(3) as usize];
        let request = Request { host, ..get(PATHS[random.below(3) as usize], random.bits() as u32) };
        let Some(target) = self.lanes[lane].classify(&request) else { return };
        // Another thread may continue the request.
        let lane = random.below(self.lanes.len() as u64) as usize;
        self.arrived += 1;
        let token = Token(self.arrived);
        match self.lanes[lane].arrive(now, target, token, &mut self.verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => self.held.push(permit),
            Arrival::Wait(permit) => self.waiting.push((token.0, permit)),
            Arrival::Reject(_) => {}
        }
    }

    fn depart(&mut self, random: &mut Random, now: Instant) {
        let lane = random.below(self.lanes.len() as u64) as usize;
        let waits = !self.waiting.is_empty() && random.below(4) == 0;
        let permit = if waits {
            self.waiting.swap_remove(random.below(self.waiting.len() as u64) as usize).1
        } else if self.held.is_empty() {
            return;
        } else {
            self.held.swap_remove(random.below(self.held.len() as u64) as usize)
        };
        self.lanes[lane].sent(&permit, 10);
        self.lanes[lane].depart(now, permit, Outcome::Completed, &mut self.verdicts);
    }

    fn settle(&mut self, now: Instant) {
        while !self.verdicts.is_empty() {
            for verdict in std::mem::take(&mut self.verdicts) {
                let (token, started) = (verdict.token().0, verdict.permit());
                let place = self.waiting.iter().position(|(waiting, _)| *waiting == token);
                match (place, started) {
                    (Some(place), started) => {
                        let (_, spent) = self.waiting.swap_remove(place);
                        self.lanes[0].depart(now, spent, Outcome::Abandoned, &mut self.verdicts);
                        self.held.extend(started);
                    }
                    (None, Some(permit)) => {
                        self.lanes[0].depart(now, permit, Outcome::Abandoned, &mut self.verdicts);
                    }
                    (None, None) => {}
                }
            }
        }
    }
}

/// Serves a request each `one_in` milliseconds of these seconds, of 20 ms each at four workers, to `/buy` and to a path
/// of no class.
fn traffic(
    engine: &mut Engine,
    world: &mut World,
    random: &mut Random,
    seconds: Range<u64>,
    one_in: u64,
) -> Status {
    let mut due: Vec<u64> = Vec::new();
    for now in 1000 * seconds.start..1000 * seconds.end {
        engine.tick(ms(now), &Readings::default(), &mut world.verdicts);
        world.settle(ms(now));
        due.resize(world.held.len(), now + 20);
        for place in (0..world.held.len()).rev().filter(|place| due[*place] <= now).collect::<Vec<_>>() {
            due.remove(place);
            let mut permit = world.held.remove(place);
            world.lanes[0].release(ms(now), &mut permit, answered(), &mut world.verdicts);
            world.lanes[0].depart(ms(now), permit, Outcome::Completed, &mut world.verdicts);
        }
        world.settle(ms(now));
        due.resize(world.held.len(), now + 20);
        if random.below(one_in) == 0 {
            let request = Request { host: "shop", ..get(PATHS[random.below(2) as usize], 7) };
            let target = world.lanes[0].classify(&request).expect("a site");
            world.arrived += 1;
            let token = Token(world.arrived);
            match world.lanes[0].arrive(ms(now), target, token, &mut world.verdicts) {
                Arrival::Serve(permit) => world.held.push(permit),
                Arrival::Wait(permit) => world.waiting.push((token.0, permit)),
                other => drop(other),
            }
            world.settle(ms(now));
            due.resize(world.held.len(), now + 20);
        }
    }
    engine.status()
}

/// The promises of `shop_and_blog`, with these of the class `buy`: a delay, or ratios of both classes.
fn with(own: Option<Delay>, ratios: Option<(f64, f64)>, find: Option<WorkerBounds>) -> Promises {
    let mut promises = shop_and_blog();
    promises.plants[0].find_workers = find;
    promises.plants[0].queue.max_waiting = 50;
    let site = &mut promises.sites[0];
    site.classes[0].delay = own;
    (site.classes[0].ratio, site.default_ratio) = (ratios.map(|(one, _)| one), ratios.map(|(_, two)| two));
    site.strict_ratios = ratios.is_some();
    promises
}

/// A promise of response times is given, changed, turned into a ratio and taken back while requests wait and are
/// served; so are promised and searched numbers of workers.
#[test]
fn a_promise_comes_changes_and_goes_under_load() {
    let bounds = |most| Some(WorkerBounds { least: 1, most });
    let (mut engine, lanes) = Engine::new(&with(None, None, None), 1, 42).expect("valid promises");
    let mut world = World { lanes, held: vec![], waiting: vec![], verdicts: vec![], arrived: 0 };
    let mut random = Random::new(3);
    let steps = [
        (with(None, None, None), "nothing"),
        (with(Some(delay(50, None)), None, None), "delay"),
        (with(Some(delay(80, Some(95.0))), None, bounds(6)), "delay"),
        (with(None, Some((1.0, 3.0)), bounds(6)), "ratio"),
        (with(None, Some((1.0, 2.0)), None), "ratio"),
        (with(Some(delay(1, Some(95.0))), None, bounds(2)), "delay"),
        (with(None, None, bounds(6)), "nothing"),
        (with(None, None, None), "nothing"),
    ];
    let mut waited = Duration::ZERO;
    for (number, (promises, kind)) in (0..).zip(&steps) {
        engine.reload(promises).expect("valid promises");
        let status = traffic(&mut engine, &mut world, &mut random, 8 * number..8 * number + 8, 6);
        waited += row(&status, "shop", "buy").queue_delay;
        let buy = row(&status, "shop", "buy").response;
        match *kind {
            "delay" => {
                assert!(buy.is_some_and(|buy| buy.quota > Some(0.0) && buy.weight.is_none()), "{buy:?}")
            }
            "ratio" => {
                assert!(buy.is_some_and(|buy| buy.quota.is_none() && buy.weight > Some(0.0)), "{buy:?}")
            }
            _ => assert_eq!(buy, None, "step {number}"),
        }
        let default = row(&status, "shop", "default").response;
        assert_eq!(default.is_some(), *kind == "ratio", "step {number}");
        assert_eq!(status.plants[0].workers_found.is_some(), promises.plants[0].find_workers.is_some());
        let in_flight: u64 = status.classes.iter().map(|class| class.counts.in_flight()).sum();
        assert_eq!(in_flight, (world.held.len() + world.waiting.len()) as u64, "step {number}");
        assert_eq!(status.plants[0].in_service as usize, world.held.len(), "step {number}");
        if promises.plants[0].find_workers.is_none() {
            assert_eq!(status.plants[0].workers, 4, "configured, whatever was found before");
        }
    }
    assert!(waited > Duration::ZERO && world.arrived > 5000, "there was load");
    let end = ms(steps.len() as u64 * 8000);
    while !world.held.is_empty() || !world.waiting.is_empty() {
        world.depart(&mut random, end);
        world.settle(end);
    }
    let status = engine.status();
    assert!(
        status.plants.iter().all(|plant| plant.in_service == 0 && plant.waiting == 0),
        "{:?}",
        status.plants
    );
    for class in &status.classes {
        let ended = class.counts.unserved + class.counts.outcomes.iter().sum::<u64>();
        assert_eq!(class.counts.arrivals, ended, "{}/{}", class.site, class.class);
    }
}

/// Any reloads under any traffic: every request has one end, in the class in which it arrived.
#[test]
fn every_request_ends_once_whatever_is_reloaded() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (mut engine, lanes) = Engine::new(&drawn(&mut random), 2, 42).expect("valid promises");
        let mut world = World { lanes, held: vec![], waiting: vec![], verdicts: vec![], arrived: 0 };
        let mut now = ms(0);
        for _ in 0..400 {
            now += Duration::from_millis(random.below(300));
            match random.below(16) {
                0 => drop(engine.reload(&drawn(&mut random)).expect("valid promises")),
                1..=3 => drop(engine.tick(now, &Readings::default(), &mut world.verdicts)),
                4..=10 => world.arrive(&mut random, now),
                _ => world.depart(&mut random, now),
            }
            world.settle(now);
        }
        let status = engine.status();
        let in_flight: u64 = status.classes.iter().map(|class| class.counts.in_flight()).sum();
        assert_eq!(in_flight, (world.held.len() + world.waiting.len()) as u64, "seed {seed}");
        while !world.held.is_empty() || !world.waiting.is_empty() {
            world.depart(&mut random, now);
            world.settle(now);
        }
        let status = engine.status();
        let sum = |of: fn(&ClassStatus) -> u64| status.classes.iter().map(of).sum::<u64>();
        assert_eq!(sum(|class| class.counts.arrivals), world.arrived, "seed {seed}");
        assert!(status.classes.iter().all(|class| class.counts.in_flight() == 0), "seed {seed}");
        assert!(status.classes.iter().all(|class| {
            class.counts.arrivals == class.counts.unserved + class.counts.outcomes.iter().sum::<u64>()
        }));
        assert!(status.plants.iter().all(|plant| plant.in_service == 0 && plant.waiting == 0), "seed {seed}");
    }
}

/// The same with real threads, while one reloads as fast as it can.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test of threads needs threads")]
fn threads_that_meet_reloads_lose_nothing() {
    let mut random = Random::new(9);
    let (mut engine, lanes) = Engine::new(&drawn(&mut random), 3, 42).expect("valid promises");
    let clock = Arc::new(AtomicU64::new(0));
    let now = move || Instant::from_nanos(clock.fetch_add(1000, Relaxed));
    let threads: Vec<_> = (0..)
        .zip(lanes)
        .map(|(seed, lane)| {
            let now = now.clone();
            std::thread::spawn(move || {
                let mut random = Random::new(seed);
                let mut world =
                    World { lanes: vec![lane], held: vec![], waiting: vec![], verdicts: vec![], arrived: 0 };
                for _ in 0..20_000 {
                    if random.below(2) == 0 {
                        world.arrive(&mut random, now());
                    } else {
                        world.depart(&mut random, now());
                    }
                    end(&mut world, now());
                }
                while !world.held.is_empty() || !world.waiting.is_empty() {
                    world.depart(&mut random, now());
                    end(&mut world, now());
                }
                world.arrived
            })
        })
        .collect();
    let mut verdicts = Verdicts::new();
    let (mut reloads, mut ticked) = (0, 0);
    while reloads < 50 || threads.iter().any(|thread| !thread.is_finished()) {
        engine.reload(&drawn(&mut random)).expect("valid promises");
        engine.tick(now(), &Readings::default(), &mut verdicts);
        // Requests that the tick starts are left under way, because the test has no lane to end them with.
        ticked += verdicts.drain(..).filter(|verdict| matches!(verdict, Verdict::Start(..))).count() as u64;
        reloads += 1;
    }
    let arrived: u64 = threads.into_iter().map(|thread| thread.join().expect("no thread fails")).sum();
    let status = engine.status();
    let sum = |of: fn(&ClassStatus) -> u64| status.classes.iter().map(of).sum::<u64>();
    assert_eq!(sum(|class| class.counts.arrivals), arrived);
    assert_eq!(sum(|class| class.counts.in_flight()), ticked, "after {reloads} reloads");
}

/// The thread that receives a start ends it: the waiting permit, perhaps another thread's, is spent.
fn end(world: &mut World, now: Instant) {
    while let Some(verdict) = world.verdicts.pop() {
        if let Verdict::Start(_, permit) = verdict {
            world.lanes[0].depart(now, permit, Outcome::Completed, &mut world.verdicts);
        }
    }
}

/// The set-point reduction of a missed promise goes with that promise, even where another plant still has one.
#[test]
fn a_promise_that_goes_takes_its_set_point_reduction_with_it() {
    let with = |own: Option<Delay>| {
        let mut promises = shop_and_blog();
        (promises.sites[0].classes[0].delay, promises.sites[0].classes[0].priority) = (own, 1);
        promises.sites[1].default_delay = Some(delay(500, None));
        promises.plants[0].queue.max_waiting = 50;
        promises
    };
    // All workers could keep the promise, since service takes 20 ms; the requests of the class below are in the way.
    let (mut engine, lanes) = Engine::new(&with(Some(delay(21, Some(95.0)))), 1, 42).expect("valid promises");
    let mut world = World { lanes, held: vec![], waiting: vec![], verdicts: vec![], arrived: 0 };
    let mut random = Random::new(3);
    let missed = traffic(&mut engine, &mut world, &mut random, 0..40, 5);
    let buy = row(&missed, "shop", "buy").response.expect("its promise");
    assert!(buy.missed, "{buy:?}");
    let rejected = |status: &Status| row(status, "shop", "default").counts.rejected();
    assert!(rejected(&missed) > 300, "the class below makes way: {}", rejected(&missed));
    engine.reload(&with(None)).expect("valid promises");
    let settled = traffic(&mut engine, &mut world, &mut random, 40..45, 8);
    let after = traffic(&mut engine, &mut world, &mut random, 45..80, 8);
    assert_eq!(rejected(&after), rejected(&settled), "no request has to make way any more");
}

/// Promises of best effort for the host `shop` by a plant of so many workers, with these ratios of two classes beside.
fn best_effort(workers: u32, ratios: Option<(f64, f64)>) -> Promises {
    let queue = QueueBounds { max_waiting: 5, max_wait: None };
    let mut shop = site("shop", &["full"]);
    if let Some((first, second)) = ratios {
        shop.classes = [("/buy", first), ("/edit", second)]
            .map(|(path, ratio)| Class { ratio: Some(ratio), ..class(path) })
            .to_vec();
    }
    Promises {
        plants: vec![Plant { queue, ..Plant::new("app", workers) }, plant("static", 8)],
        sites: vec![shop],
        ..Promises::default()
    }
}

/// Whether requests of best effort start in the order of their arrival at a busy plant of so many workers, and wait a second.
fn serves_in_order(engine: &mut Engine, lane: &mut Lane, workers: u32, from: u64) -> bool {
    let mut verdicts = Verdicts::new();
    engine.tick(ms(from), &Readings::default(), &mut verdicts);
    let shop = target(lane, "shop", "/");
    let mut held: Vec<Permit> = (0..workers).map(|_| serve(lane, ms(from), shop)).collect();
    for token in 1..=3 {
        let arrival = lane.arrive(ms(from + token), shop, Token(token), &mut verdicts);
        assert!(matches!(arrival, Arrival::Wait(_)), "{arrival:?}");
    }
    lane.release(ms(from + 10), &mut held[0], answered(), &mut verdicts);
    let first = verdicts.pop();
    engine.tick(ms(from + 900), &Readings::default(), &mut verdicts);
    matches!(first, Some(Verdict::Start(Token(1), _))) && verdicts.is_empty()
}

/// Requests that are rejected for the load are served newest first; after a reload that ends the overload they are not.
#[test]
fn the_order_of_arrival_returns_after_a_reload_that_ends_the_overload() {
    let ended = |reloads: &[Promises]| {
        let (mut engine, mut lane) = engine(&best_effort(1, None));
        let over = overload(&mut engine, &mut lane, 0, 10);
        assert!(over.plants[0].service_level < 0.8, "{}", over.plants[0].service_level);
        let mut now = 10_000;
        for promises in reloads {
            engine.reload(promises).expect("valid promises");
            let after = overload(&mut engine, &mut lane, now, 5);
            assert_eq!(row(&after, "shop", "default").service_level, 1.0);
            now += 5_000;
        }
        serves_in_order(&mut engine, &mut lane, 8, now)
    };
    let mut away = best_effort(8, None);
    away.sites[0].plant = 1;
    let scenes = [
        vec![best_effort(8, None)],
        vec![best_effort(8, Some((1.0, 3.0)))],
        vec![away, best_effort(8, None)],
    ];
    assert_eq!(scenes.map(|reloads| ended(&reloads)), [true; 3]);
}

/// Requests inside the contract that come to `/read` in two seconds, at twice its rate.
fn inside_contract(engine: &mut Engine, lane: &mut Lane, from: u64) -> u64 {
    let of = |engine: &Engine| {
        row(&engine.status(), "shop", "default").counts.reasons[Reason::Guaranteed as usize]
    };
    let (before, target) = (of(engine), target(lane, "shop", "/read"));
    for now in (from..from + 2_000).step_by(5) {
        let mut permit = serve(lane, ms(now), target);
        lane.release(ms(now + 1), &mut permit, answered(), &mut Verdicts::new());
        lane.depart(ms(now + 1), permit, Outcome::Completed, &mut Verdicts::new());
        engine.tick(ms(now + 4), &Readings::default(), &mut Verdicts::new());
    }
    of(engine) - before
}

/// A site at twice its contract has lost the guarantee of full quality, and a new class at its head gives it none back.
#[test]
fn a_contract_keeps_its_bucket_when_a_new_class_comes_first() {
    let mut promises = shop_and_blog();
    promises.sites[0].classes.clear();
    promises.sites[0].guarantee = Some(Guarantee::new(100.0, 1e9));
    let (mut engine, mut lane) = engine(&promises);
    assert!(inside_contract(&mut engine, &mut lane, 0) > 100, "a burst is inside it at first");
    for seconds in [2, 4, 6] {
        inside_contract(&mut engine, &mut lane, 1_000 * seconds);
    }
    assert_eq!(inside_contract(&mut engine, &mut lane, 8_000), 0);
    promises.sites[0].classes.push(class("/buy"));
    engine.reload(&promises).expect("valid promises");
    assert_eq!(inside_contract(&mut engine, &mut lane, 10_000), 0);
}
