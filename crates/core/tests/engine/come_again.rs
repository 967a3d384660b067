//! When a request that is turned away is told to come again.

use crate::{get, ms};
use plimsoll_core::promises::{Guarantee, Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Duration;
use plimsoll_core::{Engine, Lane};

/// What requests are told that are turned away within a minute of ten in a second on an idle server, of a site that is held to
/// a contract of this rate.
fn told(rate: f64, promised: Option<Duration>) -> Vec<Duration> {
    let mut site = Site::new("site", &["full"]);
    site.guarantee = Some(Guarantee { rate, bandwidth_bytes_per_second: None, burst: Guarantee::BURST });
    site.share_excess = false;
    let mut promises = Promises::of(Plant::new("server", 2), site);
    promises.control.retry_after = promised;
    let (mut engine, mut lanes): (Engine, Vec<Lane>) = Engine::new(&promises, 1, 1).expect("valid promises");
    let (lane, mut verdicts, mut told) = (&mut lanes[0], Verdicts::new(), Vec::new());
    for n in 0..600_u32 {
        let at = ms(u64::from(n) * 100);
        engine.tick(at, &Readings::default(), &mut verdicts);
        let target = lane.classify(&get("/", n)).expect("any host");
        match lane.arrive(at, target, Token(0), &mut verdicts) {
            Arrival::Serve(mut permit) => {
                let end = at + Duration::from_millis(10);
                let service = Service { response_bytes: 1000, representative: true, cost: None };
                lane.release(end, &mut permit, service, &mut verdicts);
                lane.depart(end, permit, Outcome::Completed, &mut verdicts);
            }
            Arrival::Reject(rejection) => told.push(rejection.retry_after),
            other => panic!("{other:?}"),
        }
    }
    assert!(told.len() > 100, "{} of 600 were turned away", told.len());
    told
}

#[test]
fn beyond_a_contract_it_is_when_another_request_is_promised() {
    let seconds = |range: core::ops::RangeInclusive<u64>| {
        Duration::from_secs(*range.start())..=Duration::from_secs(*range.end())
    };
    for (rate, range) in [(0.01, 100..=125), (0.001, 120..=150), (0.2, 5..=7), (5.0, 1..=1)] {
        let (told, range) = (told(rate, None), seconds(range));
        assert!(told.iter().all(|told| range.contains(told)), "{rate}: {told:?}");
    }
    let said = told(0.01, Some(Duration::from_secs(5)));
    assert!(said.iter().all(|told| *told == Duration::from_secs(5)), "{said:?}");
}

/// What requests are told in the last of ten seconds at four times what the light version's server takes. Another server has
/// the full version, and its plant is the site's.
fn told_where_the_light_version_is_elsewhere() -> Vec<Duration> {
    let mut site = Site::new("site", &["light", "full"]);
    site.levels[0].plant = Some(1);
    let plants = vec![Plant::new("app", 2), Plant::new("static", 2)];
    let promises = Promises { plants, sites: vec![site], ..Promises::default() };
    let (mut engine, mut lane) = crate::engine(&promises);
    let (mut verdicts, mut held, mut told) = (Verdicts::new(), Vec::<Permit>::new(), Vec::new());
    for n in 0..10_000_u32 {
        let now = ms(u64::from(n));
        engine.tick(now, &Readings::default(), &mut verdicts);
        let service = |permit: &Permit| Duration::from_millis([100, 20][permit.plant()]);
        for mut permit in held.extract_if(.., |permit| now.since(permit.started()) >= service(permit)) {
            let answer = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(now, &mut permit, answer, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        }
        if n % 5 < 2 {
            let target = lane.classify(&get("/", n)).expect("any host");
            match lane.arrive(now, target, Token(0), &mut verdicts) {
                Arrival::Serve(permit) => held.push(permit),
                Arrival::Reject(rejection) if n >= 9000 => told.push(rejection.retry_after),
                _ => {}
            }
        }
        held.extend(verdicts.drain(..).filter_map(Verdict::permit));
    }
    told
}

#[test]
fn it_is_when_the_server_of_the_lowest_level_has_room() {
    let mut told = told_where_the_light_version_is_elsewhere();
    assert!(told.len() > 100, "{} of 400 were turned away", told.len());
    told.sort();
    let latest = told.last().copied().unwrap_or_default();
    told.dedup();
    assert!(told.len() > 50 && latest > Duration::from_secs(5), "{} values up to {latest:?}", told.len());
}
