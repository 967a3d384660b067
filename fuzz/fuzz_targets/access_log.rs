//! Any text as an access log: an error or a run whose every request is accounted for, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_sim::workload::{
    self, Arrivals, Clients, Content, Discipline, Input, Law, LogFormat, Replay, Stream, Workload,
};
use plimsoll_sim::{Error, Setup};
use std::time::Duration;

fuzz_target!(|text: &str| {
    let promises = Promises::of(Plant::new("origin", 2), Site::new("site", &["light", "full"]));
    let stream = Stream {
        name: "log".to_owned(),
        arrivals: Arrivals::Log {
            input: Input::Text(text.into()),
            format: LogFormat::Auto,
            replay: Replay { speed: 1000.0, scale: 1.5 },
        },
        content: Content::Pages(Vec::new()),
        clients: Clients { count: 1, skew: 1.0, first_address: 0 },
        patience: Some(Duration::from_secs(3)),
        retry: None,
    };
    let plant = workload::Plant {
        discipline: Discipline::Workers(2),
        listen_queue: 16,
        service: Duration::from_millis(10),
        service_per_byte: 0.0,
        law: Law::Exponential,
        link: None,
        rejection: Duration::ZERO,
        failure: Duration::ZERO,
        faults: Vec::new(),
        reports: false,
    };
    let workload = Workload { streams: vec![stream], plants: vec![plant], versions: vec![], duration: None };
    match (Setup { promises: &promises, workload: &workload, seed: 1 }).run() {
        Ok(run) => {
            let notes = run.notes.first().map(|(_, notes)| notes.requests).unwrap_or(0);
            assert_eq!((run.requests, run.in_flight), (notes, 0));
        }
        Err(error) => assert!(matches!(error, Error::Stream(..)), "{error}"),
    }
});
