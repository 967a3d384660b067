//! What the engine knows after a time without requests.

use crate::put_off::Run;
use crate::{get, ms};
use plimsoll_core::promises::{Class, Condition, Control, Mode, Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::{Duration, Instant};

fn promises() -> Promises {
    Promises {
        plants: vec![Plant::new("app", 8)],
        sites: vec![Site::new("site", &["light", "full"])],
        ..Promises::default()
    }
}

/// Serves one request for this long.
fn serve(run: &mut Run, now: Instant, seconds: f64) {
    let permit = arrive(run, now, "/");
    let end = now + Duration::from_secs_f64(seconds);
    run.rest(end, end);
    depart(run, end, permit);
}

fn arrive(run: &mut Run, now: Instant, path: &'static str) -> Permit {
    let target = run.lane.classify(&get(path, 7)).expect("any host");
    match run.lane.arrive(now, target, Token(1), &mut run.verdicts) {
        Arrival::Serve(permit) => permit,
        other => panic!("a server with free workers serves: {other:?}"),
    }
}

fn depart(run: &mut Run, now: Instant, mut permit: Permit) {
    let answered = Service { response_bytes: 1000, representative: true, ..Service::default() };
    run.lane.release(now, &mut permit, answered, &mut run.verdicts);
    run.lane.depart(now, permit, Outcome::Completed, &mut run.verdicts);
}

/// The gates count time modulo 39 hours, and take a difference beyond half of that for the reading of a clock that is late.
#[test]
fn a_weekend_without_a_request_loses_no_busy_time() {
    for looks_ahead in [false, true] {
        for hours in [15, 23, 38, 62] {
            let mut run = Run::new(&promises(), looks_ahead);
            serve(&mut run, ms(100), 0.5);
            let back = ms(hours * 3_600_000 + 100);
            run.rest(back, back);
            let busy: Vec<Permit> = (0..4).map(|_| arrive(&mut run, back, "/")).collect();
            let later = back + Duration::from_secs(5);
            run.rest(later, later);
            let utilization = run.engine.status().plants[0].utilization;
            assert!((0.49..0.51).contains(&utilization), "{utilization} after {hours} h");
            busy.into_iter().for_each(|permit| depart(&mut run, later, permit));
        }
    }
}

/// The first period with a request is late, so that nothing is learned from it; the idle time before it was there still.
#[test]
fn idle_time_before_a_late_period_lets_a_bias_fade() {
    let mut run = Run::new(&promises(), false);
    serve(&mut run, ms(100), 0.5);
    let mut learned = run.engine.learned();
    learned.plants[0].bias = -0.4;
    assert!(run.engine.restore(&learned, true).is_empty());
    assert_eq!(run.engine.status().plants[0].bias, -0.4);
    let back = ms(3_600_000);
    run.rest(back, back);
    let permit = arrive(&mut run, back, "/");
    let late = run.due + Duration::from_secs(4);
    run.due = run.engine.tick(late, &Readings::default(), &mut run.verdicts);
    depart(&mut run, late, permit);
    serve(&mut run, late, 2.0);
    let bias = run.engine.status().plants[0].bias;
    assert!((-0.05..0.05).contains(&bias), "{bias}");
}

/// One class is answered as fast as the other, so a strict ratio of 3 would hold it.
#[test]
fn a_strict_ratio_holds_no_request_where_the_engine_only_observes() {
    for (mode, held) in [(Mode::Control, true), (Mode::Observe, false)] {
        let class = |name: &str, ratio: f64| {
            let paths = vec![format!("/{name}")];
            Class { ratio: Some(ratio), ..Class::new(name, Condition { paths, ..Condition::default() }) }
        };
        let mut promises = promises();
        promises.control = Control { mode, ..Control::default() };
        promises.sites[0].classes = vec![class("gold", 1.0), class("silver", 3.0)];
        promises.sites[0].strict_ratios = true;
        let mut run = Run::new(&promises, false);
        let (mut now, mut waited) = (ms(100), false);
        for number in 0..8000 {
            let path = if number % 2 == 0 { "/gold" } else { "/silver" };
            let target = run.lane.classify(&get(path, 7)).expect("any host");
            let arrival = run.lane.arrive(now, target, Token(1), &mut run.verdicts);
            now += Duration::from_millis(20);
            run.rest(now, now);
            let Arrival::Serve(permit) = arrival else {
                waited = true;
                break;
            };
            depart(&mut run, now, permit);
        }
        assert_eq!(waited, held, "{mode:?}");
    }
}
