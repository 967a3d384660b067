//! Clients that wait for their answers before they ask again, each by one connection: no more requests wait than there are
//! clients, so none needs to be rejected, however often they ask again when they are. Beside them a pool of connections that
//! grows as requests wait, which looks the same while they are rejected.

use crate::{engine, get};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Target, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};

/// Steps of a tenth of a millisecond.
const STEP_NS: u64 = 100_000;
const SECONDS: u64 = 40;

/// Clients that ask again at once, before two workers of 2 ms that stand still for half a second every ten: answers, and
/// rejections. `knows` says whether the shell knows their connections.
fn answered_and_rejected(clients: usize, knows: bool) -> (u64, u64) {
    let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
    let (mut engine, mut lane) = engine(&promises);
    let (mut verdicts, mut held) = (Verdicts::new(), Vec::<(Token, Permit)>::new());
    let mut idle: Vec<usize> = (0..clients).collect();
    // When each client was counted last, in steps.
    let mut counted = vec![None::<u64>; clients];
    let (mut answered, mut rejected) = (0, 0);
    for step in 0..SECONDS * 1_000_000_000 / STEP_NS {
        let now = Instant::from_nanos(step * STEP_NS);
        engine.tick(now, &Readings::default(), &mut verdicts);
        let stands_still = step % 100_000 < 5_000 && step > 100_000;
        let due = |(_, own): &mut (Token, Permit)| now.since(own.started()) >= Duration::from_millis(2);
        let ended: Vec<_> = if stands_still { Vec::new() } else { held.extract_if(.., due).collect() };
        for (token, mut permit) in ended {
            let answer = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(now, &mut permit, answer, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
            idle.push(token.0 as usize);
            answered += 1;
        }
        for client in core::mem::take(&mut idle) {
            let repeats = counted[client].is_some_and(|at| step - at < 10_000);
            if !repeats {
                counted[client] = Some(step);
            }
            let target = lane.classify(&get("/", client as u32)).expect("any host");
            let target = Target { repeats: repeats && knows, ..target };
            match lane.arrive(now, target, Token(client as u64), &mut verdicts) {
                Arrival::Serve(permit) | Arrival::Exempt(permit) => held.push((Token(client as u64), permit)),
                Arrival::Wait(_) => {}
                Arrival::Reject(_) => {
                    rejected += 1;
                    idle.push(client);
                }
            }
        }
        for verdict in verdicts.drain(..) {
            match verdict {
                Verdict::Start(token, permit) => held.push((token, permit)),
                Verdict::Drop(token, _) => {
                    rejected += 1;
                    idle.push(token.0 as usize);
                }
            }
        }
    }
    (answered, rejected)
}

#[test]
fn few_clients_that_wait_for_their_answers_are_never_rejected() {
    for clients in [3, 8, 30] {
        let (answered, rejected) = answered_and_rejected(clients, true);
        println!("{clients} clients: {answered} answered, {rejected} rejected");
        assert_eq!(rejected, 0, "{clients} clients");
        assert!(answered > 900 * SECONDS, "{answered}");
    }
    let (_, rejected) = answered_and_rejected(8, false);
    println!("unknown connections: {rejected} rejected");
    assert!(rejected > 1000, "the twin rejects them for as long as they ask again: {rejected}");
}

/// Three times the capacity through the pool of another gateway, for 400 s: a request takes the connection that became free
/// last, or a new one. The part of the capacity that is answered within a second, and the longest wait of the second half (s).
fn goodput_and_longest_wait(knows: bool) -> (f64, f64) {
    let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
    let (mut engine, mut lane) = engine(&promises);
    let (mut verdicts, mut held) = (Verdicts::new(), Vec::<(Token, Permit)>::new());
    let (mut free, mut counted) = (Vec::<usize>::new(), Vec::<u64>::new());
    let (mut in_time, mut longest) = (0, Duration::ZERO);
    for step in 0..400_000_u64 {
        let now = Instant::from_nanos(step * 1_000_000);
        engine.tick(now, &Readings::default(), &mut verdicts);
        let due = |(_, own): &mut (Token, Permit)| now.since(own.started()) >= Duration::from_millis(2);
        for (token, mut permit) in held.extract_if(.., due).collect::<Vec<_>>() {
            let response = now.since(permit.arrived());
            in_time += u64::from(response < Duration::from_secs(1));
            longest = if step > 30_000 { longest.max(response) } else { longest };
            let answer = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(now, &mut permit, answer, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
            free.push(token.0 as usize);
        }
        for n in 0..3 {
            let connection = free.pop().unwrap_or_else(|| {
                counted.push(u64::MAX);
                counted.len() - 1
            });
            let repeats = counted[connection] != u64::MAX && step - counted[connection] < 1000;
            if !repeats {
                counted[connection] = step;
            }
            let target = lane.classify(&get("/", (3 * step + n) as u32)).expect("any host");
            let target = Target { repeats: repeats && knows, ..target };
            match lane.arrive(now, target, Token(connection as u64), &mut verdicts) {
                Arrival::Serve(permit) | Arrival::Exempt(permit) => {
                    held.push((Token(connection as u64), permit))
                }
                Arrival::Wait(_) => {}
                Arrival::Reject(_) => free.push(connection),
            }
        }
        for verdict in verdicts.drain(..) {
            match verdict {
                Verdict::Start(token, permit) => held.push((token, permit)),
                Verdict::Drop(token, _) => free.push(token.0 as usize),
            }
        }
    }
    (in_time as f64 / 400_000.0, longest.as_secs_f64())
}

#[test]
fn a_pool_that_is_as_small_as_rejections_let_it_be_is_an_overload() {
    let [known, unknown] = [true, false].map(goodput_and_longest_wait);
    println!("known: {known:?}, unknown: {unknown:?}");
    assert!(known.0 > 0.97 * unknown.0 && unknown.0 > 0.8, "{known:?} {unknown:?}");
    // Once in minutes one period lets in what comes, since nothing else distinguishes a pool from clients that wait.
    assert!(known.1 < 1.25 && unknown.1 < 0.4, "{known:?} {unknown:?}");
}
