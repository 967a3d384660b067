//! What single clients see, on a real server: a level that stays while m stands still and only rises while m rises, and
//! a fair share of a small pool of connections.

use plimsoll_e2e::configuration::{plain, two_levels};
use plimsoll_e2e::overload::PATIENCE;
use plimsoll_e2e::page::capacity;
use plimsoll_e2e::{Apache, Nginx, Plimsoll};
use plimsoll_load::{ClosedLoop, OpenLoop, Outcome, Paths, Record, Target};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_client_keeps_its_level_and_is_only_raised_while_the_load_falls() {
    let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
    let gateway = Plimsoll::run(&two_levels(nginx.address, "control"));
    let records = Arc::new(Mutex::new(Vec::<Record>::new()));
    let keep = Arc::clone(&records);
    let target =
        Target { level_header: Some("x-plimsoll".into()), timeout: PATIENCE, ..Target::new(gateway.address) };
    // 100 clients, so that each is seen often; overload for long enough to settle, then calm.
    let steps = vec![(seconds(20), 2.0 * capacity()), (seconds(10), 0.4 * capacity())];
    let load = OpenLoop { clients: 100, paths: Paths::one("/page"), ..OpenLoop::new(target, steps) };
    let sink = Box::new(move |record: &Record| keep.lock().unwrap().push(*record));
    let running = load.start(Some(sink)).unwrap();
    let began = Instant::now();
    let mut knob = Vec::new();
    while !running.is_finished() {
        knob.push((began.elapsed(), gateway.metric("plimsoll_level")));
        thread::sleep(Duration::from_millis(40));
    }
    let tally = running.join();
    assert_eq!(tally.requests, tally.status(200), "{:?} {:?}", tally.errors, tally.by_status);

    let records = records.lock().unwrap();
    // The level by client and time of answer.
    let mut levels: Vec<Vec<(Duration, u8)>> = vec![Vec::new(); 100];
    for record in records.iter() {
        if let Outcome::Answer(answer) = record.outcome {
            let at = record.arrival + record.latency;
            levels[record.client as usize].push((at, answer.level.expect("every answer tells its level")));
        }
    }
    let (mut steady_pairs, mut steady_changes, mut moved) = (0, 0, 0.0);
    for (client, seen) in levels.iter_mut().enumerate() {
        seen.sort_unstable();
        for pair in seen.windows(2) {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            if from > seconds(10) && to < seconds(20) {
                steady_pairs += 1;
                steady_changes += u32::from(before != after);
                moved += movement(&knob, from, to);
            }
            // One control period after the crowd has gone, m only rises.
            let falling = from > seconds(21);
            assert!(!falling || before <= after, "client {client} fell from {before} to {after} at {to:?}");
        }
        // Six periods are more than the loop needs to see the calm.
        let last = seen.last().filter(|last| last.0 > seconds(26));
        assert!(last.is_none_or(|last| last.1 == 2), "client {client} should end at full quality: {last:?}");
    }
    eprintln!(
        "steady: {steady_changes} changes between {steady_pairs} pairs of answers, m moved by {moved:.1} in all"
    );
    // A client changes its level because m passed its hash, so changes are as many as m moved between its answers, and
    // chance. One that drew its level anew for each answer would change in 2 F (1 - F), about two fifths, of the pairs.
    let most = 1.5 * moved + 10.0;
    assert!(most < 0.3 * f64::from(steady_pairs), "m moved too much for this to tell anything: {moved:.1}");
    assert!(f64::from(steady_changes) <= most, "{steady_changes} changes, {most:.0} at most by what m moved");
}

/// By how much m moved, up and down, while a client's levels at two answers were chosen.
fn movement(knob: &[(Duration, f64)], from: Duration, to: Duration) -> f64 {
    // A level is chosen up to a service time and a wait before its answer, and read up to a look later.
    let earliest = from.saturating_sub(Duration::from_millis(700));
    let latest = to + Duration::from_millis(100);
    let seen = knob.iter().filter(|(at, _)| (earliest..latest).contains(at)).map(|(_, m)| *m);
    let (low, high) = seen.fold((f64::MAX, f64::MIN), |(low, high), m| (low.min(m), high.max(m)));
    (high - low).max(0.0)
}

#[test]
fn two_dozen_clients_share_eight_prefork_workers_fairly() {
    let apache = Apache::start(Path::new(env!("CARGO_BIN_EXE_page-cgi")));
    let gateway =
        Plimsoll::run(&plain(apache.upstream).replace("workers = 8", "workers = 8, load_line = 1.0"));
    let target = Target { host: "e2e.test".into(), ..Target::new(gateway.address) };
    // With pauses, so that the workers are about half busy and nobody is rejected. A pool that let 24
    // connections grow would still tie each prefork worker to one of them, and leave most clients without any answer.
    let think = Some(Duration::from_millis(150));
    let load =
        ClosedLoop { paths: Paths::one("/light/page"), think, ..ClosedLoop::new(target, 24, seconds(8)) };
    let tally = load.start(None).unwrap().join();
    assert_eq!(tally.requests, tally.status(200), "{:?} {:?}", tally.errors, tally.by_status);
    let mut answers = tally.by_client;
    answers.sort_unstable();
    let (slowest, median) = (answers[0], answers[12]);
    assert!(median > 25 && 2 * slowest >= median, "answers by client: {answers:?}");
}
