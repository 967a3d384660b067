//! Ratios that lie far apart.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Class, Condition, Plant, Promises, QueueBounds, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Duration;

/// Sixty seconds of twice the load that the plant carries, half of it in each class; returns how many are rejected.
fn rejected(ratios: [f64; 2], max_wait: Duration) -> u32 {
    let condition = || Condition { paths: vec!["/gold".into()], ..Condition::default() };
    let site = Site {
        classes: vec![Class { ratio: Some(ratios[0]), ..Class::new("gold", condition()) }],
        default_ratio: Some(ratios[1]),
        ..Site::new("shop", &["full"])
    };
    let queue = QueueBounds { max_waiting: 20, max_wait: Some(max_wait) };
    let (mut engine, mut lane) = engine(&Promises::of(Plant { queue, ..Plant::new("app", 2) }, site));
    let (mut verdicts, mut held, mut rejected) = (Verdicts::new(), Vec::<Permit>::new(), 0);
    for n in 0..60_000_u64 {
        let now = ms(n);
        engine.tick(now, &Readings::default(), &mut verdicts);
        for mut permit in held.extract_if(.., |own| now.since(own.started()) >= Duration::from_millis(20)) {
            let answer = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(now, &mut permit, answer, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        }
        if n % 5 == 0 {
            let path = if n % 2 == 0 { "/gold" } else { "/" };
            let target = lane.classify(&get(path, n as u32)).expect("any host");
            match lane.arrive(now, target, Token(0), &mut verdicts) {
                Arrival::Serve(permit) | Arrival::Exempt(permit) => held.push(permit),
                Arrival::Reject(_) => rejected += 1,
                Arrival::Wait(_) => {}
            }
        }
        held.extend(verdicts.drain(..).filter_map(Verdict::permit));
    }
    rejected
}

/// The longest wait of the slower class would be longer than any time that can be expressed.
#[test]
fn a_ratio_may_be_as_small_as_any_number() {
    for (ratios, max_wait) in [
        ([1.0, 1e20], Duration::from_secs(10)),
        ([f64::MIN_POSITIVE, 1000.0], Duration::from_secs(10)),
        ([1.0, 2.0], Duration::MAX),
    ] {
        let rejected = rejected(ratios, max_wait);
        assert!((5000..7000).contains(&rejected), "{rejected} of 12,000 at {ratios:?}");
    }
}
