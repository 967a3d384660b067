//! What a gateway reads at its start: what an earlier one has learned. The file is its own, but disks and people change files.

#[path = "../../cli/src/service/state/document.rs"]
mod document;

use document::{StateDocument, is_own};
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::{Plant, Promises, Site, WorkerBounds};
use plimsoll_core::request::{Arrival, Outcome, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_core::{Engine, Lane, LearnedState};
use plimsoll_sim::Request;
use std::net::Ipv4Addr;

/// What is a state is gone on from: levels stay levels, and what is kept next is a state again, told as one, of which nothing
/// is left out. What is none is said.
pub fn state(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let document = match StateDocument::parse(text) {
        Ok(document) => document,
        Err((wrong, _)) => return assert!(!wrong.is_empty()),
    };
    let (learned, at_once) = document.learned();
    let kept = goes_on(&learned, at_once);
    let again = StateDocument::new(kept, document.seed, document.rate_forecasts).text();
    assert!(is_own(again.as_bytes()), "{again}");
    let read = StateDocument::parse(&again).unwrap_or_else(|(wrong, _)| panic!("{wrong}: {again}"));
    let left_out = engine().0.restore(&read.learned().0, true);
    // Evidence may have been at its bound already, and beyond it by now.
    assert!(left_out.iter().all(|what| what.starts_with("the workers")), "{left_out:?}: {again}");
}

/// A rate forecast is written as it was read, but for what was never counted; or what is wrong with it is said.
pub fn rate_forecast(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<RateForecasts>() {
        Ok(read) => {
            let kept: RateForecasts =
                read.to_string().parse().unwrap_or_else(|wrong| panic!("{wrong}: {read}"));
            assert_eq!(kept.to_string().parse(), Ok(kept));
        }
        Err(wrong) => assert!(!wrong.is_empty()),
    }
}

fn engine() -> (Engine, Vec<Lane>) {
    let mut plant = Plant::new("app", 8);
    plant.find_workers = Some(WorkerBounds { least: 1, most: 64 });
    let mut site = Site::new("shop", &["light", "full"]);
    site.deadline = Some(Duration::from_secs(1));
    Engine::new(&Promises::of(plant, site), 1, 7).expect("these can be kept")
}

/// What an engine has learned that goes on from this for four seconds of light load, two of a crowd, and a rest.
fn goes_on(learned: &LearnedState, at_once: bool) -> LearnedState {
    let (mut engine, mut lanes) = engine();
    let _left_out = engine.restore(learned, at_once);
    let mut number = 0;
    for tick in 1..=80 {
        let now = Instant::from_nanos(tick * 100_000_000);
        let requests = [5, 100, 0][(tick as usize / 40 + tick as usize / 60).min(2)];
        serve(&mut engine, &mut lanes[0], now, number..number + requests);
        number += requests;
    }
    for class in engine.status().classes {
        assert!((0.0..=2.0).contains(&class.service_level), "{class:?}");
    }
    engine.learned()
}

/// A tick, and requests that take a hundredth of a second each.
fn serve(engine: &mut Engine, lane: &mut Lane, now: Instant, requests: std::ops::Range<u32>) {
    let mut verdicts = Verdicts::new();
    engine.tick(now, &Readings::default(), &mut verdicts);
    let mut started = Vec::new();
    for number in requests {
        let target = lane.classify(&request(number)).expect("any host");
        match lane.arrive(now, target, Token(number.into()), &mut verdicts) {
            Arrival::Serve(permit) | Arrival::Exempt(permit) => started.push(permit),
            Arrival::Wait(_) | Arrival::Reject(_) => {}
        }
    }
    let later = now + Duration::from_millis(10);
    loop {
        started.extend(verdicts.drain(..).filter_map(Verdict::permit));
        if started.is_empty() {
            return;
        }
        for mut permit in started.drain(..) {
            let service = Service { response_bytes: 4096, representative: true, cost: None };
            lane.release(later, &mut permit, service, &mut verdicts);
            lane.depart(later, permit, Outcome::Completed, &mut verdicts);
        }
    }
}

/// The request of this number, of a client of its own for one of three folders.
fn request(number: u32) -> Request {
    let mut request = Request::default();
    request.method.push_str("GET");
    request.host.push_str("shop.test");
    request.path = format!("/{}/{number}", number % 3);
    request.client = Ipv4Addr::from_bits(number).into();
    request
}
