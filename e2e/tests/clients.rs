//! What single clients see before a real server: a level that stays while the service level m stands still, full quality when
//! the load has gone, and a share of a small pool of connections.

use crate::page;
use plimsoll_e2e::configuration::{before, plain, two_levels};
use plimsoll_e2e::flows::{Flow, Recorded};
use plimsoll_e2e::{Apache, Nginx, Plimsoll, SLOW_PAGES, get};
use plimsoll_load::{ClosedLoop, Outcome, Target};
use std::thread;
use std::time::Duration;

/// So few that each is seen several times a second.
const CLIENTS: u32 = 20;

/// The values of m that were read from before `from` to after `until`.
fn read_between(levels: &[(Duration, f64)], from: Duration, until: Duration) -> &[(Duration, f64)] {
    let first = levels.partition_point(|(at, _)| *at < from).saturating_sub(2);
    let last = (levels.partition_point(|(at, _)| *at <= until) + 2).min(levels.len());
    &levels[first..last]
}

#[test]
fn a_client_keeps_its_level_while_the_service_level_stands_still() {
    let nginx = Nginx::pages(page(), SLOW_PAGES);
    let file = before(nginx.address, &two_levels()) + "\n[control]\nperiod = \"2s\"\n";
    let gateway = Plimsoll::run(&file);
    // The sum over the site's classes, while every client is served at full quality.
    let full = gateway.metric("plimsoll_service_level");
    let flow = Flow::new("e2e.test", "/page", &[(14.0, 2.0 * SLOW_PAGES.capacity())]);
    let mut load = flow.load(gateway.address, 1, Duration::from_secs(20));
    load.clients = CLIENTS;
    let running = Recorded::start(load);
    let (began, mut levels) = (running.load.started(), Vec::new());
    while !running.load.is_finished() {
        // A reading lies between two moments: the later one is kept for what comes before it, the earlier one for what follows.
        let earlier = began.elapsed();
        let level = gateway.metric("plimsoll_service_level");
        levels.extend([(earlier, level), (began.elapsed(), level)]);
        thread::sleep(Duration::from_millis(10));
    }
    let (_, mut records) = running.join();
    records.sort_by_key(|record| record.arrival);
    let (mut pairs, mut changes) = (0, 0);
    for client in 0..CLIENTS {
        let answers = records.iter().filter(|record| record.client == client).filter_map(|record| {
            let Outcome::Answer(answer) = record.outcome else { return None };
            Some((record.arrival, record.arrival + record.latency, answer.level?))
        });
        let answers: Vec<_> = answers.collect();
        for pair in answers.windows(2) {
            let [(from, first_end, first), (_, second_end, second)] = [pair[0], pair[1]];
            // A level is chosen between a request's arrival and its answer.
            let read = read_between(&levels, from, first_end.max(second_end));
            let stands_still = read.len() > 2 && read.iter().all(|(_, level)| *level == read[0].1);
            pairs += u32::from(stands_still && read[0].1 < full);
            changes += u32::from(stands_still && first != second);
        }
    }
    eprintln!("{changes} changes between {pairs} pairs of answers at one m");
    assert!(pairs > 0, "only {pairs} pairs: nothing was tested");
    assert_eq!(changes, 0, "of {pairs} pairs");

    // Without load m rises, and then every client is served at full quality.
    gateway.wait_for_metric("plimsoll_service_level", full);
    let answer = get(gateway.address, "/page");
    assert_eq!(
        (answer.status, answer.header("x-plimsoll").map(|report| &report[..7])),
        (200, Some("level=2"))
    );
}

/// Were the pool to let 24 connections grow, each prefork worker would be tied to one of them, and most clients would be left
/// without any answer.
#[test]
fn two_dozen_clients_share_eight_prefork_workers() {
    let apache = Apache::pages(page(), SLOW_PAGES);
    let file = before(apache.upstream, &plain());
    let gateway = Plimsoll::run(&file.replace("workers = 8", "workers = 8, load_line = 1.0"));
    let target = Target { host: "e2e.test".into(), ..Target::new(gateway.address) };
    // With pauses, so that the workers are about half busy and no request is rejected.
    let (think, lasting) = (Some(Duration::from_millis(150)), Duration::from_secs(5));
    let load = ClosedLoop { path: "/light/page".into(), think, ..ClosedLoop::new(target, 24, lasting) };
    let tally = load.start(None).unwrap().join();
    assert_eq!(tally.requests, tally.status(200), "{:?} {:?}", tally.errors, tally.by_status);
    assert!(tally.by_client.iter().all(|answers| *answers > 0), "answers by client: {:?}", tally.by_client);
}
