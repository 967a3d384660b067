//! Deadlines at the request API: reserved work is given back, however a request ends, and refusals say when to come
//! again.

use crate::{Request, engine, get, ms};
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::{
    Admission, Class, Condition, Costs, Delay, Mode, Plant, Promises, QueueBounds, RequestType, Site,
};
use plimsoll_core::random::Random;
use plimsoll_core::request::{
    Arrival, DefaultType, Outcome, Permit, Reason, Rejection, Service, Target, Token, Verdict, Verdicts,
};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};
use std::collections::BTreeMap;

/// A plant of scripts that take 100 ms; reports are a type of their own.
fn promises(workers: u32, deadline: Option<Duration>) -> Promises {
    let paths = |path: &str| Condition { paths: vec![path.to_owned()], ..Condition::default() };
    let class = Class { priority: 1, ..Class::new("first", paths("/first")) };
    let costs = Costs {
        per_request_seconds: 0.1 / f64::from(workers),
        per_byte_seconds: 0.0,
        per_rejection_seconds: 0.0,
    };
    let plant = Plant { costs: Some(costs), set_point: 1.0, ..Plant::new("app", workers) };
    let report = RequestType { name: "report".to_owned(), condition: paths("/report*"), quantum: 50.0 };
    let site = Site {
        classes: vec![class],
        deadline,
        types: vec![report],
        cost_header: Some("x-cost".to_owned()),
        ..Site::new("site", &["full"])
    };
    Promises::of(plant, site)
}

fn target(lane: &Lane, path: &'static str) -> Target {
    lane.classify(&get(path, 0)).expect("any host")
}

fn unfinished(engine: &Engine) -> f64 {
    engine.status().plants[0].unfinished_seconds.expect("deadlines are promised")
}

#[test]
fn what_cannot_be_done_in_time_is_refused_and_told_when_it_could() {
    let (engine, mut lane) = engine(&promises(1, Some(Duration::from_secs(2))));
    let mut verdicts = Verdicts::new();
    let script = target(&lane, "/script");
    let mut waits = 0;
    let (reason, retry_after) = loop {
        match lane.arrive(ms(0), script, Token(waits), &mut verdicts) {
            Arrival::Serve(_) | Arrival::Wait(_) => waits += 1,
            Arrival::Reject(Rejection { reason, retry_after }) => break (reason, retry_after),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason, Reason::Deadline);
    // The estimate varies like an exponential time until it is learned.
    assert!((6..=11).contains(&waits), "{waits} of 100 ms in 2 s");
    assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_millis(250), "{retry_after:?}");
    let work = unfinished(&engine);
    assert!((work - 0.1 * waits as f64).abs() < 0.11, "{work}");
    let status = &engine.status().classes[1];
    assert_eq!(status.counts.reasons[Reason::Deadline as usize], 1);
    assert!(
        status.deadline.is_some_and(|own| own.wait > Duration::from_millis(500)),
        "{:?}",
        status.deadline
    );
}

#[test]
fn an_announced_cost_is_believed_from_trusted_clients() {
    let (engine, mut lane) = engine(&promises(1, Some(Duration::from_secs(2))));
    let mut verdicts = Verdicts::new();
    let asked = |cost, trusted| Request { cost, trusted, ..get("/script", 0) };
    let target = |lane: &Lane, request: &Request| lane.classify(request).expect("any host");
    let dear = target(&lane, &asked(Some("30"), true));
    assert!(matches!(
        lane.arrive(ms(0), dear, Token(0), &mut verdicts),
        Arrival::Reject(Rejection { reason: Reason::Deadline, .. })
    ));
    let liar = target(&lane, &asked(Some("30"), false));
    assert_eq!(liar.announced_us, 0);
    let cheap = target(&lane, &asked(Some("0.01"), true));
    let _permit = lane.arrive(ms(0), cheap, Token(1), &mut verdicts);
    // In service half of the work remains, and more while its variance is not known.
    assert!((0.005..=0.0101).contains(&unfinished(&engine)), "{}", unfinished(&engine));
}

#[test]
fn a_request_that_can_no_longer_be_in_time_is_dropped_as_late() {
    let mut promises = promises(1, Some(Duration::from_millis(1500)));
    promises.plants[0].queue =
        QueueBounds { max_wait: Some(Duration::from_secs(60)), ..QueueBounds::default() };
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    engine.tick(ms(0), &Readings::default(), &mut verdicts);
    let script = target(&lane, "/script");
    let Arrival::Serve(mut permit) = lane.arrive(ms(0), script, Token(0), &mut verdicts) else {
        panic!("the worker is free")
    };
    let Arrival::Wait(_first) = lane.arrive(ms(1), script, Token(1), &mut verdicts) else { panic!("busy") };
    let Arrival::Wait(_second) = lane.arrive(ms(300), script, Token(2), &mut verdicts) else {
        panic!("busy")
    };
    // The server hangs.
    engine.tick(ms(1550), &Readings::default(), &mut verdicts);
    let dropped = verdicts.drain(..).map(|verdict| match verdict {
        Verdict::Drop(token, Rejection { reason, retry_after }) => {
            (token.0, reason, retry_after > Duration::ZERO)
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(dropped.collect::<Vec<_>>(), [(1, Reason::Late, true)]);
    // The turn of the other request comes too late.
    lane.release(ms(2000), &mut permit, Service::default(), &mut verdicts);
    assert!(
        matches!(verdicts[..], [Verdict::Drop(Token(2), Rejection { reason: Reason::Late, .. })]),
        "{verdicts:?}"
    );
    lane.depart(ms(2000), permit, Outcome::Completed, &mut verdicts);
    assert_eq!(unfinished(&engine), 0.0);
    assert_eq!(engine.status().classes[1].deadline.map(|own| own.missed), Some(1));
}

/// 200 requests one after another before a class with a delay and a deadline, each tenth of which takes `slow_ms`, the others
/// 10 ms: the share that was later than the delay, and the requests that missed the deadline.
fn delay_beside_deadline(delay_ms: u64, percentile: f64, deadline_ms: u64, slow_ms: u64) -> (f64, u64) {
    let mut promises = promises(4, Some(Duration::from_millis(deadline_ms)));
    let delay = Delay { target: Duration::from_millis(delay_ms), percentile: Some(percentile) };
    promises.sites[0].default_delay = Some(delay);
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    engine.tick(ms(0), &Readings::default(), &mut verdicts);
    let mut now = 0;
    for request in 0..200 {
        let Arrival::Serve(mut permit) =
            lane.arrive(ms(now), target(&lane, "/script"), Token(request), &mut verdicts)
        else {
            panic!("the plant is idle")
        };
        now += if request % 10 == 9 { slow_ms } else { 10 };
        let service = Service { response_bytes: 1000, representative: true, cost: None };
        lane.release(ms(now), &mut permit, service, &mut verdicts);
        lane.depart(ms(now), permit, Outcome::Completed, &mut verdicts);
        engine.tick(ms(now), &Readings::default(), &mut verdicts);
    }
    let status = &engine.status().classes[1];
    let [late, missed] = [status.response.map(|own| own.late), status.deadline.map(|own| own.missed as f64)];
    (late.expect("a delay"), missed.expect("a deadline") as u64)
}

/// A class may have both, since a site's deadline holds for all its classes. An answer that is later than the one promise may
/// keep the other, and one that breaks both is late once for each.
#[test]
fn a_delay_and_a_deadline_of_one_class_are_counted_apart() {
    let (late, missed) = delay_beside_deadline(200, 95.0, 1000, 250);
    assert!((late - 0.1).abs() < 0.01, "{late} later than 200 ms");
    assert_eq!(missed, 0, "none is later than 1 s");
    let (late, missed) = delay_beside_deadline(300, 99.0, 300, 400);
    assert!((late - 0.1).abs() < 0.01, "{late} later than 300 ms");
    assert_eq!(missed, 20);
    let (late, missed) = delay_beside_deadline(1000, 95.0, 300, 400);
    assert_eq!((late, missed), (0.0, 20), "later than the deadline, sooner than the delay");
}

#[test]
fn a_request_waits_as_long_as_its_deadline_allows_whatever_the_queue_bounds() {
    for max_wait in [None, Some(Duration::from_secs(1))] {
        let mut promises = promises(1, Some(Duration::from_secs(60)));
        promises.plants[0].queue.max_wait = max_wait;
        let (mut engine, mut lane) = engine(&promises);
        let mut verdicts = Verdicts::new();
        let script = target(&lane, "/script");
        for number in 0..100 {
            let arrival = lane.arrive(ms(0), script, Token(number), &mut verdicts);
            assert!(matches!(arrival, Arrival::Serve(_) | Arrival::Wait(_)), "{number}: {arrival:?}");
        }
        for second in 0..50 {
            engine.tick(ms(1000 * second), &Readings::default(), &mut verdicts);
        }
        assert!(verdicts.is_empty(), "the server stands still, and each could still be in time");
        for second in 50..62 {
            engine.tick(ms(1000 * second), &Readings::default(), &mut verdicts);
        }
        let late =
            |verdict: &Verdict| matches!(verdict, Verdict::Drop(_, Rejection { reason: Reason::Late, .. }));
        assert_eq!(verdicts.iter().filter(|verdict| late(verdict)).count(), 99);
    }
}

#[test]
fn a_type_refused_for_its_price_alone_is_tried_again() {
    let (mut engine, mut lane) = engine(&promises(1, Some(Duration::from_millis(400))));
    let mut verdicts = Verdicts::new();
    let report = target(&lane, "/report");
    let mut refused = 0;
    for second in 0..200 {
        engine.tick(ms(250 * second), &Readings::default(), &mut verdicts);
        match lane.arrive(ms(250 * second + 1), report, Token(second), &mut verdicts) {
            Arrival::Reject(Rejection { reason, .. }) => {
                assert_eq!(reason, Reason::Deadline);
                refused += 1;
            }
            Arrival::Serve(mut permit) => {
                // It takes 20 ms instead of the expected 500 ms.
                let service = Service { response_bytes: 1, representative: true, cost: None };
                lane.release(ms(250 * second + 21), &mut permit, service, &mut verdicts);
                lane.depart(ms(250 * second + 21), permit, Outcome::Completed, &mut verdicts);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((1..100).contains(&refused), "{refused}");
    let types = &engine.status().sites[0].types;
    let report = types.iter().find(|own| own.name == "report").expect("it is promised");
    assert!((0.015..0.03).contains(&report.mean) && report.requests > 100, "{report:?}");
}

#[test]
fn observing_refuses_no_request_and_counts_what_would_be_refused() {
    let mut promises = promises(1, Some(Duration::from_millis(300)));
    promises.control.mode = Mode::Observe;
    let (engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    let script = target(&lane, "/script");
    let mut reasons = Vec::new();
    for token in 0..8 {
        let Arrival::Serve(permit) = lane.arrive(ms(0), script, Token(token), &mut verdicts) else {
            panic!("everything passes")
        };
        reasons.push(permit.reason());
    }
    assert_eq!((reasons[0], reasons[7]), (Reason::Full, Reason::Deadline));
    assert!(engine.status().classes[1].counts.reasons[Reason::Deadline as usize] >= 3);
}

#[test]
fn what_nobody_told_is_typed_by_method_query_and_path() {
    let (_, lane) = engine(&promises(1, Some(Duration::from_secs(1))));
    let number = |method, path, query| {
        let target = lane.classify(&Request { method, query, ..get(path, 0) }).expect("any host");
        // After the site's own type.
        usize::from(target.request_type) - 1
    };
    let [fixed, dynamic] = [DefaultType::Static as usize, DefaultType::Dynamic as usize];
    assert_eq!(number("GET", "/x.html", ""), fixed);
    assert_eq!(number("GET", "/", ""), fixed);
    assert_eq!(number("POST", "/x.html", ""), dynamic);
    assert_eq!(number("GET", "/x.html", "page=2"), dynamic);
    assert_eq!(number("GET", "/cgi-bin/map.gif", ""), dynamic);
}

/// Carries verdicts out on the permits by token.
fn carry_out(verdicts: &mut Verdicts, held: &mut BTreeMap<u64, Permit>) {
    for verdict in verdicts.drain(..) {
        match verdict {
            Verdict::Start(token, permit) => drop(held.insert(token.0, permit)),
            Verdict::Drop(token, _) => drop(held.remove(&token.0)),
        }
    }
}

/// Any order of arrivals, ends, clients that leave, ticks and reloads.
#[test]
fn unfinished_work_returns_to_zero_whatever_happens() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut draw = |most: u64| random.bits() % most;
        let first = promises(3, Some(Duration::from_millis(700)));
        let (mut engine, mut lane) = engine(&first);
        let mut verdicts = Verdicts::new();
        let mut held: BTreeMap<u64, Permit> = BTreeMap::new();
        let mut now = ms(0);
        for token in 0..600 {
            now += Duration::from_micros(draw(30_000));
            match draw(12) {
                0..6 => {
                    let path = ["/script", "/first", "/report", "/a.png"][draw(4) as usize];
                    let target = target(&lane, path);
                    match lane.arrive(now, target, Token(token), &mut verdicts) {
                        Arrival::Serve(permit) | Arrival::Wait(permit) | Arrival::Exempt(permit) => {
                            held.insert(token, permit);
                        }
                        Arrival::Reject(_) => {}
                    }
                }
                6..10 => {
                    let oldest = held.keys().nth(draw(held.len().max(1) as u64) as usize).copied();
                    if let Some(mut permit) = oldest.and_then(|token| held.remove(&token)) {
                        let service = Service { response_bytes: 1, representative: draw(2) == 0, cost: None };
                        lane.release(now, &mut permit, service, &mut verdicts);
                        lane.depart(now, permit, Outcome::Completed, &mut verdicts);
                    }
                }
                10 => drop(engine.tick(now, &Readings::default(), &mut verdicts)),
                _ => {
                    let deadline = [None, Some(300), Some(700), Some(5000)][draw(4) as usize];
                    let mut next = promises(1 + draw(4) as u32, deadline.map(Duration::from_millis));
                    if draw(2) == 0 {
                        next.sites[0].types.clear();
                        next.sites[0].classes[0].deadline = Some(Duration::from_millis(100 + draw(500)));
                    }
                    next.control.admission =
                        [Admission::Work, Admission::Synthetic, Admission::Budget][draw(3) as usize];
                    engine.reload(&next).expect("valid promises");
                }
            }
            carry_out(&mut verdicts, &mut held);
        }
        engine.reload(&first).expect("valid promises");
        while let Some((_, permit)) = held.pop_first() {
            now += Duration::from_millis(1);
            lane.depart(now, permit, Outcome::Abandoned, &mut verdicts);
            carry_out(&mut verdicts, &mut held);
        }
        let status = engine.status();
        assert_eq!((status.plants[0].in_service, status.plants[0].waiting), (0, 0), "seed {seed}");
        assert_eq!(status.plants[0].unfinished_seconds, Some(0.0), "seed {seed}");
        let counts = status.classes.iter().map(|class| class.counts);
        assert!(counts.into_iter().all(|counts| counts.in_flight() == 0), "seed {seed}");
    }
}

/// For a plant that was promised before, and for one that already ticks.
#[test]
fn forecasts_are_remembered_however_late() {
    let mut promises = promises(1, Some(Duration::from_millis(100)));
    promises.control.admission = Admission::Budget;
    let before: RateForecasts =
        "upstream app\n0 1026  0 0 0  1 50 1  0 0 0\nupstream gone\n7 2  0 0 0  0 9 0  0 0 0\n"
            .parse()
            .unwrap();
    for ticks in [0, 1, 40] {
        let (mut engine, _lane) = engine(&promises);
        let mut verdicts = Verdicts::new();
        for tick in 0..ticks {
            engine.tick(ms(100 * tick), &Readings::default(), &mut verdicts);
        }
        engine.restore_rate_forecasts(before.clone());
        for tick in ticks..60 {
            engine.tick(ms(100 * tick), &Readings::default(), &mut verdicts);
        }
        let text = engine.rate_forecasts().to_string();
        let stayed = |rank: &str| {
            let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(rank)).expect(&text);
            line.split_whitespace().nth(6).unwrap().parse::<u32>().unwrap()
        };
        // Some sixty periods without a request, for a class with earlier forecasts and for one without.
        assert_eq!(stayed("1026") - stayed("0"), 50, "{text}");
        assert!(
            (50..60).contains(&stayed("0")) && text.contains("upstream gone\n7 2  0 0 0  0 9 0"),
            "{text}"
        );
    }
}

#[test]
fn threads_give_back_all_that_they_reserved() {
    for admission in [Admission::Work, Admission::Synthetic, Admission::Budget] {
        let mut promises = promises(4, Some(Duration::from_millis(500)));
        promises.control.admission = admission;
        let (engine, lanes) = Engine::new(&promises, 2, 1).expect("valid");
        hammer(lanes);
        assert_eq!(unfinished(&engine), 0.0);
    }
}

/// Arrivals on several threads, whose clients leave.
fn hammer(lanes: Vec<Lane>) {
    std::thread::scope(|scope| {
        for mut lane in lanes {
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                let script = target(&lane, "/script");
                for token in 0..20_000_u64 {
                    let now = Instant::from_nanos(token * 1000);
                    let mut started = Vec::new();
                    match lane.arrive(now, script, Token(token), &mut verdicts) {
                        Arrival::Serve(permit) => started.push(permit),
                        // The client leaves at once.
                        Arrival::Wait(permit) => lane.depart(now, permit, Outcome::Abandoned, &mut verdicts),
                        _ => {}
                    }
                    loop {
                        started.extend(verdicts.drain(..).filter_map(Verdict::permit));
                        let Some(permit) = started.pop() else { break };
                        lane.depart(now, permit, Outcome::Abandoned, &mut verdicts);
                    }
                }
            });
        }
    });
}

/// A type that was found stays found, and keeps its cost, when its deadline changes.
#[test]
fn what_was_found_outlives_a_reload() {
    let mut promised = promises(4, Some(Duration::from_secs(1)));
    promised.sites[0].types.clear();
    let (mut engine, mut lane) = engine(&promised);
    let (mut verdicts, mut now) = (Verdicts::new(), ms(0));
    for token in 0..400 {
        let (path, takes) = if token % 4 == 0 { ("/report", 300) } else { ("/script", 10) };
        let target = target(&lane, path);
        let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(token), &mut verdicts) else {
            panic!("nothing else is there")
        };
        now += Duration::from_millis(takes);
        lane.release(now, &mut permit, Service { representative: true, ..Service::default() }, &mut verdicts);
        lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        engine.tick(now, &Readings::default(), &mut verdicts);
    }
    let found = |engine: &Engine| {
        let site = engine.status().sites.swap_remove(0);
        let own = site.types.into_iter().find(|own| own.name == "report").expect("it was found");
        assert_eq!(site.found_types.len(), 1);
        own.mean
    };
    let before = found(&engine);
    assert!((0.25..0.35).contains(&before), "{before}");
    let number = target(&lane, "/report").request_type;
    promised.sites[0].deadline = Some(Duration::from_secs(2));
    promised.sites[0].classes[0].deadline = Some(Duration::from_millis(900));
    promised.plants[0].costs = None;
    engine.reload(&promised).expect("valid promises");
    assert_eq!(found(&engine), before);
    assert_eq!(target(&lane, "/report").request_type, number);
    // Where one is configured, none is found.
    engine.reload(&promises(4, Some(Duration::from_secs(1)))).expect("valid promises");
    assert!(engine.status().sites[0].found_types.is_empty());
}
