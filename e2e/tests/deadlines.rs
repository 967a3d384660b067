//! Deadlines live: an origin of 200 pages a second is asked for 60/s by premium clients, 120/s by others, and for 12/s
//! reports that take ten times as long. Within half a second at least 170/s are answered, premium always. With control
//! off nobody is.
//!
//! The bounds here are what chance leaves of those figures in a few seconds; the figures stand in docs/measurements.md.

use plimsoll_e2e::Plimsoll;
use plimsoll_e2e::configuration::plain;
use plimsoll_e2e::flows::{Flow, Flown, drive};
use plimsoll_load::{Cost, Origin, OriginHandle, OriginSettings, PathClass};
use std::time::Duration;

/// What a client waits; the gateway promises a little less, since both clocks are real.
const LIMIT: Duration = Duration::from_millis(500);
/// A page of a kilobyte.
const PAGE: Duration = Duration::from_millis(40);
const SECONDS: f64 = 14.0;
/// Until costs are known.
const FROM: f64 = 2.0;

/// Eight workers, exponential service.
fn origin() -> OriginHandle {
    let settings = OriginSettings {
        workers: 8,
        cost: Cost { fixed: Duration::ZERO, per_kilobyte: PAGE },
        classes: vec![PathClass::new("page", "/", 1024), PathClass::new("report", "/reports", 10 * 1024)],
        exponential: Some(3),
        ..OriginSettings::default()
    };
    Origin::start(settings).unwrap_or_else(|error| panic!("the origin does not start: {error}"))
}

fn flow(path: &'static str, rate: f64) -> Flow {
    Flow { host: "shop.test", path, steps: vec![(Duration::from_secs_f64(SECONDS), rate)] }
}

/// Premium, basic, reports.
fn run(mode: &str) -> Vec<Flown> {
    let origin = origin();
    let site = "\n[[site]]\nname = \"shop\"\ndeadline = \"480ms\"\ndefault_priority = 2\n\
        [[site.type]]\nname = \"report\"\nmatch.path = \"/reports/*\"\ncost = 100\n\
        [[site.class]]\nname = \"premium\"\nmatch.path = \"/premium/*\"\npriority = 1\n";
    let configuration =
        plain(origin.address()).replacen("threads", &format!("mode = \"{mode}\"\nthreads"), 1);
    let gateway = Plimsoll::run(&(configuration + site));
    let flows = vec![flow("/premium/page", 60.0), flow("/page", 120.0), flow("/reports/1", 12.0)];
    let flown = drive(gateway.address, flows, || ());
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    if mode == "control" {
        gateway.wait_for_metric("plimsoll_unfinished_work_seconds", 0.0);
    }
    flown
}

struct Found {
    /// Of all, within the limit, in a second.
    rate: f64,
    /// The same as a part of the pages asked for.
    part: f64,
    premium: f64,
    /// Pages admitted that came too late.
    late: u64,
}

fn found(mode: &str) -> Found {
    let flown = run(mode);
    let during = || flown.iter().map(|flow| flow.during(FROM..SECONDS));
    let within = || flown.iter().map(|flow| flow.answered_within(FROM..SECONDS, LIMIT));
    let in_time = within().sum::<u64>();
    let asked: Vec<u64> = during().map(|window| window.requests).collect();
    let found = Found {
        rate: in_time as f64 / (SECONDS - FROM),
        part: in_time as f64 / (asked[0] + asked[1]) as f64,
        premium: within().next().unwrap_or(0) as f64 / asked[0] as f64,
        late: during().map(|window| window.full + window.light).sum::<u64>() - in_time,
    };
    eprintln!(
        "{mode}: {:.0}/s within {LIMIT:?}, premium {:.2} %, admitted and late {}",
        found.rate,
        100.0 * found.premium,
        found.late
    );
    found
}

#[test]
fn cheap_and_dear_urls_premium_first() {
    let kept = found("control");
    assert!((0.85..1.05).contains(&kept.part), "{:.3} of the pages asked for", kept.part);
    assert!(kept.premium >= 0.98, "premium {:.3}", kept.premium);
    assert!(kept.late as f64 <= 0.05 * kept.rate * SECONDS, "{} late", kept.late);
    let twin = found("off");
    assert!(twin.part < 0.6 && twin.premium < 0.7, "the twin without control must fail: {:.3}", twin.part);
}
