//! UC Fig. 6 with real servers: behind the gateway nobody fails up to 2.5 times the rate at which the server alone
//! starts to. The same load on the same server with the gateway's control off must fail.

use plimsoll_e2e::configuration::two_levels;
use plimsoll_e2e::overload::{failures, load, starts_to_fail};
use plimsoll_e2e::page::{FULL, LIGHT, capacity};
use plimsoll_e2e::{Apache, Nginx, Plimsoll};
use plimsoll_load::{Tally, on_a_steady_machine};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const MULTIPLE: f64 = 2.5;
/// The site is at work before the crowd comes.
const CALM: Duration = Duration::from_secs(4);
const CROWD: Duration = Duration::from_secs(20);
/// Without control it is over sooner.
const CROWD_UNCONTROLLED: Duration = Duration::from_secs(6);

fn crowd(gateway: &Plimsoll, rate: f64, crowd: Duration) -> Tally {
    let tally = load(gateway.address, &[(CALM, 0.5 * capacity()), (crowd, MULTIPLE * rate)]).join();
    eprintln!(
        "at {:.0}/s: {} requests, {} failed {:?} {:?}, levels {:?}, p99 {:?}",
        MULTIPLE * rate,
        tally.requests,
        failures(&tally),
        tally.errors,
        tally.by_status,
        tally.by_level,
        tally.latency.quantile(0.99),
    );
    // Nothing may be left over: every arrival departed or was turned away.
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    tally
}

/// The share of full pages that the set point leaves at this rate, by the costs of the pages alone; what the server adds
/// to each makes it less.
fn full_share(rate: f64) -> f64 {
    let light = LIGHT.as_secs_f64() / FULL.as_secs_f64();
    ((0.85 / (rate / capacity()) - light) / (1.0 - light)).max(0.0)
}

fn nobody_fails(server: SocketAddr, upstream: SocketAddr) {
    let rate = starts_to_fail(server);
    // What the server carries alone is what its application can: the baseline is no straw man.
    assert!(rate > 0.9 * capacity() && rate < 1.6 * capacity(), "alone it starts to fail at {rate:.0}/s");

    let tally = crowd(&Plimsoll::run(&two_levels(upstream, "control")), rate, CROWD);
    assert_eq!(failures(&tally), 0, "{:?} {:?}", tally.errors, tally.by_status);
    let count = |level| tally.by_level.get(&Some(level)).map_or(0, |answers| answers.count) as f64;
    let calm = CALM.as_secs_f64() * 0.5 * capacity();
    let full = (count(2) - calm) / (tally.requests as f64 - calm);
    // Quality is not thrown away either: at least a third of what the set point allows is served.
    let allowed = full_share(MULTIPLE * rate);
    assert!(
        full > allowed / 3.0 && full < 1.3 * allowed + 0.05,
        "full share {full:.3}, allowed {allowed:.3}"
    );

    let uncontrolled = crowd(&Plimsoll::run(&two_levels(upstream, "off")), rate, CROWD_UNCONTROLLED);
    assert!(failures(&uncontrolled) * 5 > uncontrolled.requests, "the twin without control failed too few");
}

#[test]
fn apache_prefork_behind_the_gateway_fails_nobody() {
    on_a_steady_machine(|| {
        let apache = Apache::start(Path::new(env!("CARGO_BIN_EXE_page-cgi")));
        nobody_fails(apache.direct, apache.upstream);
    });
}

#[test]
fn nginx_behind_the_gateway_fails_nobody() {
    on_a_steady_machine(|| {
        let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
        nobody_fails(nginx.address, nginx.address);
    });
}
