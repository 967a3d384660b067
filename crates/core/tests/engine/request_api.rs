//! The contract of the request API: every request is accounted for once, however it ends.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Condition, Costs, Mode, Plant, Promises, QueueBounds, Site, WorkerBounds};
use plimsoll_core::random::Random;
use plimsoll_core::request::Reason;
use plimsoll_core::request::{
    Arrival, Outcome, Permit, Rejection, RequestView, Service, Target, Token, Verdict, Verdicts,
};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane};

const WORKERS: u32 = 4;

fn promises() -> Promises {
    let queue = QueueBounds { max_waiting: 3, max_wait: Some(Duration::from_secs(2)) };
    let exempt = vec![Condition { paths: vec!["/healthz".into()], ..Condition::default() }];
    let plant = Plant { queue, ..Plant::new("app", WORKERS) };
    Promises::of(plant, Site { exempt, ..Site::new("site", &["light", "full"]) })
}

fn target(lane: &Lane, client: u32) -> Target {
    lane.classify(&get("/", client)).expect("any host")
}

fn serve(lane: &mut Lane, now: Instant, client: u32, verdicts: &mut Verdicts) -> Permit {
    let target = target(lane, client);
    match lane.arrive(now, target, Token(client.into()), verdicts) {
        Arrival::Serve(permit) => permit,
        other => panic!("expected to be served: {other:?}"),
    }
}

fn wait(lane: &mut Lane, now: Instant, client: u32, verdicts: &mut Verdicts) -> Permit {
    let target = target(lane, client);
    match lane.arrive(now, target, Token(client.into()), verdicts) {
        Arrival::Wait(permit) => permit,
        other => panic!("expected to wait: {other:?}"),
    }
}

fn started(verdicts: &mut Verdicts) -> Vec<(u64, Permit)> {
    let start = |verdict| match verdict {
        Verdict::Start(Token(token), permit) => (token, permit),
        other => panic!("expected a start: {other:?}"),
    };
    verdicts.drain(..).map(start).collect()
}

fn answered() -> Service {
    Service { response_bytes: 1000, representative: true, cost: None }
}

/// The times of a request that waited, of one that did not, and of one that took less than is distinguished.
#[test]
fn queue_service_and_response_times_add_up_and_responses_are_counted_by_status() {
    let plant = Plant { queue: QueueBounds { max_waiting: 3, max_wait: None }, ..Plant::new("app", 1) };
    let (engine, mut lane) = engine(&Promises::of(plant, Site::new("site", &["full"])));
    let mut verdicts = Verdicts::new();
    let mut served = serve(&mut lane, ms(0), 1, &mut verdicts);
    let _waits = wait(&mut lane, ms(10), 2, &mut verdicts);
    lane.release(ms(40), &mut served, answered(), &mut verdicts);
    let (_, mut late) = started(&mut verdicts).pop().expect("the one that waited");
    lane.release(ms(50), &mut late, answered(), &mut verdicts);
    let mut quick = serve(&mut lane, ms(60), 3, &mut verdicts);
    lane.release(Instant::from_nanos(60_400_000), &mut quick, answered(), &mut verdicts);
    for (permit, status) in [(served, 200), (late, 204), (quick, 503)] {
        lane.responded(permit.class(), status);
        lane.depart(ms(61), permit, Outcome::Completed, &mut verdicts);
    }
    lane.responded(999, 200);
    lane.responded(0, 99);
    let class = &engine.status().classes[0];
    let sums = [&class.queue_delays, &class.service_times, &class.response_times].map(|times| times.sum_ns);
    assert_eq!(sums, [30_000_000, 50_400_000, 80_400_000]);
    let counts =
        [&class.queue_delays, &class.service_times, &class.response_times].map(|times| times.count());
    assert_eq!(counts, [3; 3]);
    // 8 to 16 ms: one service; 32 to 64 ms: one service, two responses.
    assert_eq!([&class.service_times, &class.response_times].map(|times| times.buckets[4]), [1, 0]);
    assert_eq!([&class.service_times, &class.response_times].map(|times| times.buckets[6]), [1, 2]);
    assert_eq!(class.responses, [0, 2, 0, 0, 1]);
}

#[test]
fn waiting_is_first_come_first_served_and_bounded() {
    let (engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let mut held: Vec<_> = (0..WORKERS).map(|c| serve(&mut lane, ms(0), c, &mut verdicts)).collect();
    let waiting: Vec<_> = (10..13).map(|c| wait(&mut lane, ms(1), c, &mut verdicts)).collect();
    let one_more = target(&lane, 13);
    let refused = lane.arrive(ms(1), one_more, Token(13), &mut verdicts);
    assert!(matches!(refused, Arrival::Reject(Rejection { reason: Reason::QueueFull, .. })), "{refused:?}");
    assert_eq!(engine.status().plants[0].waiting, 3);

    lane.release(ms(5), &mut held[0], answered(), &mut verdicts);
    let first = started(&mut verdicts);
    assert_eq!(first.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [10]);
    assert!(first[0].1.level() == 2 && !first[0].1.is_waiting());
    lane.release(ms(6), &mut held[0], answered(), &mut verdicts);
    assert!(verdicts.is_empty(), "a second release does nothing");
    for (_, permit) in first {
        lane.depart(ms(7), permit, Outcome::Completed, &mut verdicts);
    }
    let second = started(&mut verdicts);
    assert_eq!(second[0].0, 11);
    drop((waiting, second));
}

/// Half of the eight places that a search for workers begins with could be all workers that there are.
#[test]
fn streams_and_exempt_requests_hold_half_as_many_places_before_workers_are_found() {
    let searched = Plant { find_workers: Some(WorkerBounds { least: 1, most: 64 }), ..Plant::new("app", 8) };
    for (find, most) in [(true, 2), (false, 4)] {
        let plant = if find { searched.clone() } else { Plant::new("app", 8) };
        let promises = Promises { plants: vec![plant], ..promises() };
        for streams in [true, false] {
            let (_engine, mut lane) = engine(&promises);
            let mut verdicts = Verdicts::new();
            let path = if streams { "/" } else { "/healthz" };
            let arrivals = [0; 6].map(|client| {
                let target = Target { streams, ..lane.classify(&get(path, client)).expect("any host") };
                lane.arrive(ms(0), target, Token(client.into()), &mut verdicts)
            });
            let starts = |arrival: &&Arrival| matches!(arrival, Arrival::Serve(_) | Arrival::Exempt(_));
            let served = arrivals.iter().filter(starts).count();
            assert_eq!(served, most, "streams: {streams}, found: {find}");
        }
    }
}

/// Streams hold a part of the places, waiting or in service; a right to stream comes back however its request ends.
#[test]
fn one_more_stream_than_may_be_is_refused_and_counted_once() {
    let (engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let mut stream = |lane: &mut Lane, client: u32| {
        let target = Target { streams: true, ..target(lane, client) };
        lane.arrive(ms(0), target, Token(client.into()), &mut verdicts)
    };
    let refused = |arrival: &Arrival| {
        matches!(arrival, Arrival::Reject(Rejection { reason: Reason::TooManyStreams, .. }))
    };
    let Arrival::Serve(mut whole) = stream(&mut lane, 0) else { panic!("a place is free") };
    let Arrival::Serve(released) = stream(&mut lane, 1) else { panic!("a place is free") };
    assert!(refused(&stream(&mut lane, 2)), "half of four places are taken");
    lane.end_stream(&mut whole);
    lane.end_stream(&mut whole);
    // The other two places go to requests that do not stream, so that the next stream waits.
    let mut verdicts_of_others = Verdicts::new();
    let others = [10, 11].map(|client| serve(&mut lane, ms(0), client, &mut verdicts_of_others));
    let Arrival::Wait(waiting) = stream(&mut lane, 3) else { panic!("all places are taken") };
    assert!(refused(&stream(&mut lane, 4)), "a waiting stream counts");
    lane.depart(ms(1), waiting, Outcome::Abandoned, &mut verdicts_of_others);
    lane.depart(ms(2), whole, Outcome::Completed, &mut verdicts_of_others);
    lane.depart(ms(2), released, Outcome::Failed, &mut verdicts_of_others);
    assert!([6, 7].map(|client| matches!(stream(&mut lane, client), Arrival::Serve(_))) == [true; 2]);
    assert!(refused(&stream(&mut lane, 8)));
    let counts = &engine.status().classes[0].counts;
    assert_eq!(counts.reasons[Reason::TooManyStreams as usize], 3);
    assert_eq!(counts.arrivals, counts.reasons.iter().sum::<u64>(), "each has one reason");
    drop(others);
}

/// A plant that only waited for the client has served the request for the rest of the time.
#[test]
fn time_that_the_client_took_is_in_no_figure() {
    let figures = |from: u64, waited: u64| {
        let (mut engine, mut lane) = engine(&promises());
        let mut verdicts = Verdicts::new();
        engine.tick(ms(0), &Readings::default(), &mut verdicts);
        let mut permit = serve(&mut lane, ms(from), 1, &mut verdicts);
        permit.excuse(Duration::from_millis(waited));
        lane.release(ms(900), &mut permit, answered(), &mut verdicts);
        lane.depart(ms(901), permit, Outcome::Completed, &mut verdicts);
        engine.tick(ms(1000), &Readings::default(), &mut verdicts);
        let status = engine.status();
        (status.plants[0].service_time, status.classes[0].response_time)
    };
    let (long, short) = (figures(100, 0), figures(100, 700));
    assert_eq!(short, figures(800, 0), "as if it had taken 100 ms");
    assert!(short.0 > Duration::ZERO && long.0 > 2 * short.0, "{long:?} {short:?}");
}

#[test]
fn a_client_that_leaves_while_it_waits_is_accounted_at_once() {
    let (engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let held: Vec<_> = (0..WORKERS).map(|c| serve(&mut lane, ms(0), c, &mut verdicts)).collect();
    let gone = wait(&mut lane, ms(1), 10, &mut verdicts);
    let late = wait(&mut lane, ms(1), 11, &mut verdicts);
    lane.depart(ms(2), gone, Outcome::Abandoned, &mut verdicts);
    for permit in held {
        lane.depart(ms(3), permit, Outcome::Completed, &mut verdicts);
    }
    // The start of the second request was decided, so its waiting permit is spent, and departing the started permit
    // ends it.
    lane.depart(ms(4), late, Outcome::Abandoned, &mut verdicts);
    for (token, permit) in started(&mut verdicts) {
        assert_eq!(token, 11);
        lane.depart(ms(4), permit, Outcome::Abandoned, &mut verdicts);
    }
    let status = engine.status();
    assert_eq!(status.classes[0].counts.in_flight(), 0);
    assert_eq!(status.classes[0].counts.reasons[Reason::ClientLeft as usize], 1);
    assert_eq!(status.classes[0].counts.outcomes, [4, 0, 1]);
    assert_eq!((status.plants[0].in_service, status.plants[0].waiting), (0, 0));
}

#[test]
fn a_request_that_its_gateway_turns_away_while_it_waits_has_no_client_that_left() {
    let (engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let held: Vec<_> = (0..WORKERS).map(|c| serve(&mut lane, ms(0), c, &mut verdicts)).collect();
    let gone = wait(&mut lane, ms(1), 10, &mut verdicts);
    let late = wait(&mut lane, ms(1), 11, &mut verdicts);
    lane.turn_away(ms(2), gone, Reason::QueueFull);
    for permit in held {
        lane.depart(ms(3), permit, Outcome::Completed, &mut verdicts);
    }
    // Its start was decided, so that this permit is spent.
    lane.turn_away(ms(4), late, Reason::QueueFull);
    for (token, permit) in started(&mut verdicts) {
        assert_eq!(token, 11);
        lane.depart(ms(4), permit, Outcome::Completed, &mut verdicts);
    }
    let status = engine.status();
    let counts = &status.classes[0].counts;
    let reasons = [Reason::QueueFull, Reason::ClientLeft].map(|reason| counts.reasons[reason as usize]);
    assert_eq!((counts.in_flight(), reasons, counts.outcomes), (0, [1, 0], [5, 0, 0]));
    assert_eq!((status.plants[0].in_service, status.plants[0].waiting), (0, 0));
}

#[test]
fn a_request_that_waits_too_long_is_answered_by_tick() {
    let (mut engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let _held: Vec<_> = (0..WORKERS).map(|c| serve(&mut lane, ms(0), c, &mut verdicts)).collect();
    let _waiting = wait(&mut lane, ms(100), 10, &mut verdicts);
    let mut now = ms(0);
    while verdicts.is_empty() {
        let next = engine.tick(now, &Readings::default(), &mut verdicts);
        assert!(next > now, "tick asks to come again later");
        if verdicts.is_empty() {
            now = next;
        }
    }
    assert_eq!(now, ms(2100), "exactly when it is due");
    let dropped = verdicts.pop();
    assert!(matches!(dropped, Some(Verdict::Drop(Token(10), Rejection { reason: Reason::WaitTimeout, .. }))));
}

#[test]
fn exempt_requests_are_never_turned_away_and_go_first() {
    let (engine, mut lane) = engine(&promises());
    let mut verdicts = Verdicts::new();
    let mut held: Vec<_> = (0..WORKERS).map(|c| serve(&mut lane, ms(0), c, &mut verdicts)).collect();
    let _waiting: Vec<_> = (10..13).map(|c| wait(&mut lane, ms(1), c, &mut verdicts)).collect();
    let probe = lane.classify(&get("/healthz", 99)).expect("any host");
    assert!(probe.exempt);
    assert!(matches!(lane.arrive(ms(2), probe, Token(99), &mut verdicts), Arrival::Wait(_)));
    lane.release(ms(3), &mut held[0], answered(), &mut verdicts);
    let first = started(&mut verdicts);
    assert_eq!((first[0].0, first[0].1.reason()), (99, Reason::Exempt));
    let status = engine.status();
    assert_eq!(status.classes[1].class, "exempt");
    assert_eq!((status.classes[0].counts.arrivals, status.classes[1].counts.arrivals), (7, 1));
}

/// Ten seconds of four times the load, without a plant behind: what the engine would decide.
fn overload(engine: &mut Engine, lane: &mut Lane, (clients, top): (u32, u8)) -> Vec<(u32, u8, Reason)> {
    let mut verdicts = Verdicts::new();
    let mut random = Random::new(5);
    let mut decisions = Vec::new();
    let mut held: Vec<Permit> = Vec::new();
    for now in 0..10_000 {
        engine.tick(ms(now), &Readings::default(), &mut verdicts);
        held.retain_mut(|permit| {
            let full = permit.level() == top;
            let done = ms(now).since(permit.arrived()) >= Duration::from_millis(if full { 10 } else { 1 });
            if done {
                lane.release(ms(now), permit, answered(), &mut verdicts);
            }
            !done
        });
        for _ in 0..2 {
            let client = random.below(clients.into()) as u32;
            let target = target(lane, client);
            if let Arrival::Serve(permit) = lane.arrive(ms(now), target, Token(0), &mut verdicts) {
                decisions.push((client, permit.level(), permit.reason()));
                held.push(permit);
            }
        }
    }
    decisions
}

#[test]
fn observing_decides_and_lets_everything_through() {
    let mut promises = promises();
    promises.control.mode = Mode::Observe;
    let (mut engine, mut lane) = engine(&promises);
    let decisions = overload(&mut engine, &mut lane, (1000, 2));
    assert_eq!(decisions.len(), 20_000, "none waits, none is rejected");
    assert!(decisions.iter().all(|(_, level, _)| *level == 2), "all at full quality");
    assert!(
        decisions.iter().any(|(.., reason)| *reason == Reason::Degraded),
        "and what would have been is reported"
    );
    assert!(engine.status().plants[0].service_level < 2.0);
}

#[test]
fn a_client_that_carries_more_than_a_tenth_is_no_switch() {
    let mut promises = promises();
    promises.plants[0].queue.max_waiting = 0;
    let (mut engine, mut lane) = engine(&promises);
    // All requests come from one address, whose hash alone would make all of them light or all full.
    let decisions = overload(&mut engine, &mut lane, (1, 2));
    let later = &decisions[decisions.len() / 2..];
    let full = later.iter().filter(|(_, level, _)| *level == 2).count() as f64 / later.len() as f64;
    assert!((0.02..0.9).contains(&full), "{full} at full");
    assert_eq!(engine.status().classes[0].heavy_clients, 1);

    let (mut engine, mut lane) = self::engine(&promises);
    overload(&mut engine, &mut lane, (1000, 2));
    assert_eq!(engine.status().classes[0].heavy_clients, 0);
}

/// Clients that retry at once when they are rejected, or have waited for too long, send more than they would take.
#[test]
fn clients_that_do_not_wait_after_a_rejection_leave_no_server_idle() {
    let mut promises = promises();
    promises.sites[0].levels.remove(0);
    promises.plants[0].queue.max_waiting = 1000;
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    // 24 closed loops on 4 workers of 20 ms.
    let mut idle: Vec<u32> = (0..24).collect();
    let mut held: Vec<(u32, Instant, Permit)> = Vec::new();
    let mut waiting: Vec<(u64, Permit)> = Vec::new();
    let mut busy = 0;
    for now in 0..120_000 {
        engine.tick(ms(now), &Readings::default(), &mut verdicts);
        for (client, started, mut permit) in std::mem::take(&mut held) {
            if ms(now).since(started) < Duration::from_millis(20) {
                held.push((client, started, permit));
                continue;
            }
            lane.release(ms(now), &mut permit, answered(), &mut verdicts);
            lane.depart(ms(now), permit, Outcome::Completed, &mut verdicts);
            idle.push(client);
        }
        for client in std::mem::take(&mut idle) {
            let target = target(&lane, client);
            match lane.arrive(ms(now), target, Token(client.into()), &mut verdicts) {
                Arrival::Serve(permit) | Arrival::Exempt(permit) => held.push((client, ms(now), permit)),
                Arrival::Wait(permit) => waiting.push((client.into(), permit)),
                Arrival::Reject(_) => idle.push(client),
            }
        }
        for verdict in verdicts.drain(..) {
            let client = verdict.token().0;
            waiting.retain(|(waiting, _)| *waiting != client);
            match verdict.permit() {
                Some(permit) => held.push((client as u32, ms(now), permit)),
                None => idle.push(client as u32),
            }
        }
        busy += if now >= 60_000 { held.len() } else { 0 };
    }
    let utilization = busy as f64 / 60_000.0 / f64::from(WORKERS);
    assert!((0.6..=1.0).contains(&utilization), "{utilization}");
}

/// Any order of calls: at rest nothing is left, and every arrival has one end.
#[test]
fn every_request_ends_once() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut engine, mut lane) = engine(&promises());
        let mut verdicts = Verdicts::new();
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        let mut now = 0;
        for token in 0..300 {
            now += random.below(400);
            match random.below(4) {
                0 | 1 => {
                    let path = if random.below(10) == 0 { "/healthz" } else { "/" };
                    let target = lane.classify(&get(path, random.bits() as u32)).expect("any host");
                    match lane.arrive(ms(now), target, Token(token), &mut verdicts) {
                        Arrival::Serve(permit) | Arrival::Exempt(permit) => held.push(permit),
                        Arrival::Wait(permit) => waiting.push((token, permit)),
                        Arrival::Reject(_) => {}
                    }
                }
                2 if !held.is_empty() => {
                    let mut permit = held.swap_remove(random.below(held.len() as u64) as usize);
                    if random.below(2) == 0 {
                        lane.release(ms(now), &mut permit, answered(), &mut verdicts);
                    }
                    let outcome = Outcome::ALL[random.below(3) as usize];
                    lane.depart(ms(now), permit, outcome, &mut verdicts);
                }
                3 if !waiting.is_empty() && random.below(3) == 0 => {
                    let (_, permit) = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
                    lane.depart(ms(now), permit, Outcome::Abandoned, &mut verdicts);
                }
                _ => {
                    engine.tick(ms(now), &Readings::default(), &mut verdicts);
                }
            }
            settle(ms(now), &mut lane, &mut verdicts, &mut held, &mut waiting);
            assert!(engine.status().plants[0].in_service <= WORKERS);
        }
        while let Some(permit) = held.pop() {
            lane.depart(ms(now), permit, Outcome::Completed, &mut verdicts);
            settle(ms(now), &mut lane, &mut verdicts, &mut held, &mut waiting);
        }
        let status = engine.status();
        let left: u64 = status.classes.iter().map(|class| class.counts.in_flight()).sum();
        assert_eq!((left, status.plants[0].in_service, status.plants[0].waiting), (0, 0, 0), "seed {seed}");
    }
}

fn settle(
    now: Instant,
    lane: &mut Lane,
    verdicts: &mut Verdicts,
    held: &mut Vec<Permit>,
    waiting: &mut Vec<(u64, Permit)>,
) {
    while !verdicts.is_empty() {
        for verdict in std::mem::take(verdicts) {
            let (token, started) = (verdict.token().0, verdict.permit());
            let place = waiting.iter().position(|(waiting, _)| *waiting == token);
            match (place, started) {
                (Some(place), started) => {
                    let (_, spent) = waiting.swap_remove(place);
                    lane.depart(now, spent, Outcome::Abandoned, verdicts);
                    held.extend(started);
                }
                (None, Some(permit)) => lane.depart(now, permit, Outcome::Abandoned, verdicts),
                (None, None) => {}
            }
        }
    }
}

/// Workers, limit and whether they were found, a second after the plant reported them at a tick.
fn after_reporting(promises: &Promises, reported: &[(usize, u32)]) -> (u32, u32, Option<bool>) {
    let (mut engine, _lane) = engine(promises);
    let mut verdicts = Verdicts::new();
    for tick in 0..=10 {
        let workers = if tick == 1 { reported.to_vec() } else { Vec::new() };
        engine.tick(ms(100 * tick), &Readings { workers, ..Readings::default() }, &mut verdicts);
    }
    let plant = &engine.status().plants[0];
    (plant.workers, plant.limit, plant.workers_found)
}

#[test]
fn what_a_plant_tells_of_its_workers_counts_where_they_are_to_be_found() {
    let mut promises = promises();
    assert_eq!(
        after_reporting(&promises, &[(0, 9)]),
        (WORKERS, WORKERS, None),
        "the configuration states it"
    );
    promises.plants[0].find_workers = Some(WorkerBounds { least: 2, most: 64 });
    promises.plants[0].max_connections = 64;
    assert_eq!(after_reporting(&promises, &[]), (WORKERS, WORKERS, Some(false)));
    assert_eq!(after_reporting(&promises, &[(0, 9), (7, 3)]), (9, 9, Some(true)));
    assert_eq!(after_reporting(&promises, &[(0, 100)]), (64, 64, Some(true)), "within the bounds");
    promises.control.mode = Mode::Off;
    assert_eq!(after_reporting(&promises, &[(0, 9)]).0, 9);
}

/// Costs are promised in seconds of the whole plant, however many workers it turns out to have.
#[test]
fn promised_costs_stay_what_they_are_when_the_workers_are_found() {
    let mut promises = promises();
    promises.plants[0].find_workers = Some(WorkerBounds { least: 2, most: 64 });
    promises.plants[0].max_connections = 64;
    promises.plants[0].workers = 16;
    let costs = Costs { per_request_seconds: 0.005, per_byte_seconds: 1e-7, per_rejection_seconds: 0.0 };
    promises.plants[0].costs = Some(costs);
    let (mut engine, _lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    let mut model = |engine: &mut Engine, at: u64, workers: u32| {
        let readings = Readings { workers: vec![(0, workers)], ..Readings::default() };
        engine.tick(ms(at), &readings, &mut verdicts);
        engine.tick(ms(at + 500), &Readings::default(), &mut verdicts);
        let status = engine.status();
        assert_eq!(status.plants[0].workers, workers);
        let as_promised = |known: Option<f64>, promised: f64| {
            assert!((known.expect("promised") / promised - 1.0).abs() < 1e-9, "{known:?}: {workers} workers");
        };
        for class in status.classes.iter().filter(|class| !class.removed) {
            as_promised(class.model.per_request_seconds, costs.per_request_seconds);
            as_promised(class.model.per_byte_seconds, costs.per_byte_seconds);
        }
        status.classes.len()
    };
    let mut at = 0;
    for workers in [16, 14, 12, 8, 9, 40, 2] {
        at += 1000;
        model(&mut engine, at, workers);
    }
    // A site that a reload adds, where two workers were found of the sixteen to begin with.
    let added = Site { hosts: vec!["b".into()], ..Site::new("added", &["full"]) };
    promises.sites[0].hosts = vec!["a".into()];
    promises.sites.push(added);
    engine.reload(&promises).expect("valid promises");
    assert_eq!(model(&mut engine, at + 1000, 2), 4);
    // Bounds that the number did not have, and a number that is configured.
    promises.plants[0].find_workers = Some(WorkerBounds { least: 8, most: 64 });
    engine.reload(&promises).expect("valid promises");
    model(&mut engine, at + 2000, 8);
    (promises.plants[0].find_workers, promises.plants[0].workers) = (None, 5);
    engine.reload(&promises).expect("valid promises");
    model(&mut engine, at + 3000, 5);
}

/// With control off nothing limits the requests in service, and a server that only becomes slower does not seem
/// smaller.
#[test]
fn with_control_off_no_workers_are_searched() {
    let found = |mode| {
        let mut promises = promises();
        promises.plants[0].find_workers = Some(WorkerBounds { least: 1, most: 64 });
        promises.plants[0].max_connections = 64;
        promises.plants[0].workers = 16;
        promises.control.mode = mode;
        let (mut engine, mut lane) = engine(&promises);
        let (mut verdicts, mut random) = (Verdicts::new(), Random::new(3));
        // Five requests are served at once and the others wait inside the server, so twelve take as long as five at a
        // time take.
        let mut inside: Vec<Permit> = Vec::new();
        for step in 0..60_000 {
            let now = ms(step);
            let wanted = 1 + (step / 500 * 7 % 12) as usize;
            while inside.len() < wanted {
                inside.push(serve(&mut lane, now, inside.len() as u32, &mut verdicts));
            }
            if random.uniform() < 0.02 * inside.len().min(5) as f64 {
                let mut permit = inside.remove(0);
                lane.release(now, &mut permit, answered(), &mut verdicts);
                lane.depart(now, permit, Outcome::Completed, &mut verdicts);
            }
            if step % 250 == 0 {
                engine.tick(now, &Readings::default(), &mut verdicts);
            }
        }
        let plant = &engine.status().plants[0];
        let seen = (plant.workers, plant.workers_found);
        inside
            .into_iter()
            .for_each(|permit| lane.depart(ms(60_001), permit, Outcome::Completed, &mut verdicts));
        seen
    };
    assert_eq!(found(Mode::Off), (16, Some(false)));
    let (workers, seen) = found(Mode::Observe);
    assert!(seen == Some(true) && (4..=8).contains(&workers), "the test can show it: {workers}, {seen:?}");
}

/// A request whose body is not there yet is rejected at once exactly if its arrival would be, and is counted once.
#[test]
fn what_would_be_rejected_for_its_level_is_rejected_before_its_body() {
    let mut promises = promises();
    promises.sites[0].levels.truncate(1);
    promises.plants[0].queue.max_waiting = 0;
    let (mut engine, mut lane) = engine(&promises);
    drop(overload(&mut engine, &mut lane, (1000, 1)));
    let m = engine.status().plants[0].service_level;
    assert!((0.05..0.95).contains(&m), "some are rejected: {m}");
    let counts = |engine: &Engine| {
        let counts = &engine.status().classes[0].counts;
        (counts.arrivals, counts.reasons[Reason::Overload as usize])
    };
    let (before, mut verdicts) = (counts(&engine), Verdicts::new());
    let mut rejected = 0;
    for client in 0..1000 {
        let target = target(&lane, client);
        let early = lane.reject_before_body(ms(10_000), &target);
        if let Some(Rejection { reason, retry_after }) = early {
            assert_eq!(reason, Reason::Overload);
            assert!(retry_after > Duration::ZERO);
            rejected += 1;
            continue;
        }
        let arrival = lane.arrive(ms(10_000), target, Token(client.into()), &mut verdicts);
        assert!(!matches!(arrival, Arrival::Reject(Rejection { reason: Reason::Overload, .. })), "{client}");
    }
    assert!((rejected as f64 / 1000.0 - (1.0 - m)).abs() < 0.1, "{rejected} at {m}");
    assert_eq!(counts(&engine), (before.0 + 1000, before.1 + rejected));
    let probe = lane.classify(&get("/healthz", 1)).expect("any host");
    assert!(lane.reject_before_body(ms(10_000), &probe).is_none(), "an exempt request never is");
}

/// A client that is known by its address alone is rejected exactly if each of its requests would be, and is counted once, as
/// one of them.
#[test]
fn a_client_is_rejected_by_its_address_as_its_requests_would_be() {
    let mut promises = promises();
    promises.sites[0].levels.truncate(1);
    let (mut engine, mut lane) = engine(&promises);
    drop(overload(&mut engine, &mut lane, (1000, 1)));
    let by_address = |lane: &mut Lane, client: u32| {
        lane.reject_client(ms(10_000), get("/", client).client()).map(|rejection| rejection.reason)
    };
    assert_eq!(by_address(&mut lane, 1), None, "any client may send an exempt request");
    promises.sites[0].exempt.clear();
    engine.reload(&promises).expect("good promises");
    let counts = |engine: &Engine| {
        let counts = &engine.status().classes[0].counts;
        (counts.arrivals, counts.reasons[Reason::Overload as usize])
    };
    let before = counts(&engine);
    let mut rejected = 0;
    for client in 0..1000 {
        let target = target(&lane, client);
        let by_request = lane.reject_before_body(ms(10_000), &target).map(|rejection| rejection.reason);
        assert_eq!(by_address(&mut lane, client), by_request, "{client}");
        rejected += u64::from(by_request.is_some());
    }
    assert!((50..950).contains(&rejected), "{rejected}");
    assert_eq!(counts(&engine), (before.0 + 2 * rejected, before.1 + 2 * rejected));
}
