//! Access logs with random damage: an error or a run whose every request is accounted for, never a panic. The same
//! property as the fuzz target `access_log`, seeded.

use crate::scenario::Scenario;
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::random::Random;
use plimsoll_core::request::Reason;
use plimsoll_sim::workload::{Arrivals, Input, Law, Replay, Workload};
use plimsoll_sim::{Error, Setup};
use std::sync::Arc;
use std::time::Duration;

const LEFT: usize = Reason::ClientLeft as usize;

/// A small server and a log.
fn replayed(log: Arc<str>, seed: u64) -> (Promises, Workload) {
    let scenario = Scenario {
        service_time: Law::Exponential,
        listen_queue: 16,
        clients: 1,
        seed,
        ..Scenario::new(
            Promises::of(Plant::new("origin", 2), Site::new("site", &["light", "full"])),
            vec![Duration::from_millis(2), Duration::from_millis(10)],
            vec![1, 2],
        )
    };
    let mut workload = scenario.workload();
    workload.duration = None;
    workload.streams[0].arrivals = Arrivals::log(Input::Text(log), Replay { speed: 1000.0, scale: 1.5 });
    workload.streams[0].patience = Some(Duration::from_secs(3));
    (scenario.promises, workload)
}

/// Bytes changed, taken out, doubled; lines cut, exchanged, joined.
fn damaged(log: &str, random: &mut Random) -> String {
    let mut bytes = log.as_bytes().to_vec();
    for _ in 0..1 + random.below(40) {
        let at = random.below(bytes.len() as u64) as usize;
        let until = (at + random.below(200) as usize).min(bytes.len());
        match random.below(5) {
            0 => bytes[at] = random.bits() as u8,
            1 => drop(bytes.drain(at..until)),
            2 => {
                let piece = bytes[at..until].to_vec();
                let to = random.below(bytes.len() as u64) as usize;
                bytes.splice(to..to, piece);
            }
            3 => bytes[at] = b'\n',
            _ => bytes[at] = b"\"[]-0/: {}"[random.below(10) as usize],
        }
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn fuzz_smoke_damaged_logs_are_replayed_or_refused_but_never_panic() {
    let json: String = (0..50)
        .map(|n| format!("{{\"time\":{},\"client\":\"10.0.0.{n}\",\"request\":\"GET /{n} HTTP/1.1\",\"status\":200,\"bytes\":{n}}}\n", 1_700_000_000 + n))
        .collect();
    let logs = [include_str!("data/nasa-1995-08-01.log"), &json];
    let (mut replays, mut refusals) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let text = damaged(logs[seed as usize % 2], &mut random);
        let (promises, workload) = replayed(text.into(), seed);
        match (Setup { promises: &promises, workload: &workload, seed }).run() {
            Ok(run) => {
                let read = run.notes.first().map_or(0, |(_, notes)| notes.requests);
                let ended: u64 =
                    run.classes.iter().map(|c| c.outcomes.iter().sum::<u64>() + c.rejected).sum();
                let left: u64 = run.classes.iter().map(|c| c.reasons[LEFT]).sum();
                assert_eq!((run.requests, run.in_flight), (read, 0), "seed {seed}");
                assert_eq!(ended + left, run.requests, "seed {seed}");
                replays += 1;
            }
            Err(Error::Stream(..)) => refusals += 1,
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
    assert!(replays > 300, "{replays} replayed, {refusals} refused");
}
