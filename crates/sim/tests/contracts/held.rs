//! Contracts that together take more than the server carries: a page that became dear, a promise that
//! never fitted. A site that takes what was planned is served as before; the others get lighter pages before any request
//! is rejected.

use crate::parties::{self, Party, Shared};
use crate::{LOAD_LINE, between, holds};
use plimsoll_core::promises::{Guarantee, Plant, Site};
use plimsoll_sim::workload::Version;
use std::time::Duration;

/// A contract for a rate alone.
pub(crate) fn rated(name: &str, rate: f64) -> Site {
    let guarantee = Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(rate, 1.0) };
    Site { guarantee: Some(guarantee), ..parties::site(name) }
}

/// V1 and V2 inside their contracts. After 30 s a page of V2 takes 12 ms of the server and not 3.6, at as many bytes.
fn dear(seed: u64, [v1, v2]: [Site; 2]) -> Shared {
    let page = Party { service: Some(Duration::from_millis(12)), ..Party::rising_from(0, 0.0, 0.0, 1) };
    let mut shared = Shared::new(seed, 120)
        .party(Party::constant(v1, 45.0))
        .party(Party::constant(v2, 90.0).then(30, 0.0))
        .party(page.then(30, 90.0));
    shared.light = Version { cost: Some(0.25), bytes: 1.0 / 8.0 };
    shared
}

#[test]
fn a_contract_whose_pages_become_dear_takes_nothing_from_another() {
    holds(
        |seed| dear(seed, [rated("v1", 50.0), rated("v2", 100.0)]),
        |run| {
            for window in run.windows(0..120, 5) {
                // Nobody knows in the first second.
                between(window.mean_response(0), 0.003..=0.1, "its response time")?;
            }
            for window in run.windows(15..120, 15) {
                between(window.full_share(0), 0.99..=1.0, "the other at full quality")?;
                between(window.mean_response(0), 0.003..=0.05, "its response time")?;
            }
            between(run.window(5..120).rejected_share(1), 0.0..=0.001, "rejected")?;
            between(run.window(5..30).full_share(1), 0.99..=1.0, "full quality before")?;
            let end = run.window(60..120);
            // 0.69 of the server carry 90/s at 0.51 of full quality.
            between(end.full_share(1), 0.4..=0.6, "full quality after")?;
            between(end.utilization(), LOAD_LINE - 0.02..=LOAD_LINE + 0.02, "utilization")
        },
    );
}

/// The same on the gateway's own machine, where what a rejection takes is time of the server.
fn on_the_same_host(mut shared: Shared, rejection: Duration) -> Shared {
    shared.plant.same_host = true;
    shared.rejection = rejection;
    shared
}

#[test]
fn a_contract_whose_pages_become_dear_takes_nothing_from_another_on_the_same_host() {
    for others in [0.0, 150.0] {
        holds(
            |seed| {
                let sites = [rated("v1", 50.0), rated("v2", 100.0)];
                let best_effort = Party::constant(parties::site("others"), others);
                on_the_same_host(dear(seed, sites).party(best_effort), Duration::from_micros(300))
            },
            |run| {
                between(run.window(5..30).full_share(1), 0.99..=1.0, "full quality before")?;
                between(run.window(5..120).full_share(0), 0.98..=1.0, "the other at full quality")?;
                // For four periods it is not sure, and what waited then takes as long again.
                for window in run.windows(45..120, 5) {
                    between(window.mean_response(0), 0.003..=0.05, "its response time")?;
                }
                between(run.window(5..120).rejected_share(1), 0.0..=0.01, "rejected")?;
                let end = run.window(60..120);
                between(end.rejected_share(1), 0.0..=0.001, "rejected after")?;
                between(end.full_share(1), 0.3..=0.6, "full quality after")?;
                between(end.utilization(), LOAD_LINE - 0.03..=LOAD_LINE + 0.03, "utilization")
            },
        );
    }
}

/// A promise that never fitted: 100/s where the server carries 67 full pages a second, and light ones for all.
fn too_large(seed: u64, promised: Option<f64>) -> Shared {
    let site = promised.map_or_else(|| parties::site("shop"), |rate| rated("shop", rate));
    let page = |party| Party { service: Some(Duration::from_millis(120)), ..party };
    let mut shared = Shared::new(seed, 120).party(page(Party::constant(site, 20.0).then(30, 90.0)));
    shared.plant = Plant::new("origin", 8);
    shared.light = Version { cost: Some(0.25), bytes: 1.0 };
    shared
}

#[test]
fn a_promise_that_is_too_large_is_degraded_and_rejects_nobody() {
    for promised in [Some(100.0), None] {
        holds(
            |seed| too_large(seed, promised),
            |run| {
                between(run.window(5..30).full_share(0), 0.99..=1.0, "full quality while it fits")?;
                between(run.window(0..120).rejected_share(0), 0.0..=0.001, "rejected")?;
                let end = run.window(45..120);
                between(end.full_share(0), 0.35..=0.6, "full quality")?;
                between(end.mean_response(0), 0.05..=0.25, "response time")?;
                between(end.utilization(), LOAD_LINE - 0.03..=LOAD_LINE + 0.03, "utilization")
            },
        );
    }
}
