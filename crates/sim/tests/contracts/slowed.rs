//! Contracts at a server that becomes slow: all are held to the same part of the plan, with lighter pages before any request is
//! rejected. What lighter pages cost then is not known from them, and what a byte costs was learned from the fast server.

use crate::held::rated;
use crate::parties::{self, FULL, Party, Run, Shared, US};
use crate::{LOAD_LINE, between, holds, v1, v2};
use plimsoll_core::promises::{Plant, Site};
use plimsoll_sim::workload::{Fault, FaultKind};
use std::time::Duration;

/// By what it becomes slower: light pages for all take 0.7 of it then, full ones 1.36.
const SLOWER: f64 = 2.5;
/// From when until when (s).
const SLOW: std::ops::Range<usize> = 60..120;
/// What the contracts were planned for at full quality, of the fast server.
const PLANNED: [f64; 2] = [50.0 * (US.a + US.b * FULL), 100.0 * (US.a + US.b * FULL)];

/// V1 and V2 at the rates of their contracts, and so much best effort. The server becomes slow in the middle of a period.
fn slowed(seed: u64, [first, second]: [Site; 2], others: f64) -> Shared {
    let mut shared = Shared::new(seed, 180)
        .party(Party::constant(first, 50.0))
        .party(Party::constant(second, 100.0))
        .party(Party::constant(parties::site("others"), others));
    let [from, until] = [SLOW.start as f64 + 0.3, SLOW.end as f64 + 0.3].map(Duration::from_secs_f64);
    shared.faults = vec![Fault { from, until, kind: FaultKind::Slower(SLOWER) }];
    shared
}

fn shares_are_right(run: &Run) -> Result<(), String> {
    for site in 0..2 {
        between(run.window(10..SLOW.start).full_share(site), 0.99..=1.0, "full quality before")?;
        between(run.window(SLOW.start..180).rejected_share(site), 0.0..=0.001, "rejected")?;
        between(run.window(SLOW.end + 8..180).full_share(site), 0.98..=1.0, "full quality after")?;
    }
    // Nobody knows in the first second, and what waited then has gone five seconds later.
    for (window, site) in
        run.windows(SLOW.start + 6..SLOW.end, 6).flat_map(|window| [0, 1].map(|n| (window, n)))
    {
        between(window.mean_response(site), 0.005..=0.1, "response time")?;
    }
    let planned: f64 = PLANNED.iter().sum();
    for window in run.windows(SLOW.start + 6..SLOW.end, 18) {
        for (site, own) in PLANNED.iter().enumerate() {
            let part = LOAD_LINE * own / planned;
            between(SLOWER * window.use_of(site) / part, 0.9..=1.1, "of its part of the line")?;
        }
    }
    let all = run.window(SLOW.start + 6..SLOW.end);
    between(all.utilization(), LOAD_LINE - 0.02..=LOAD_LINE + 0.02, "utilization")
}

#[test]
fn contracts_at_a_server_that_slows_are_held_within_seconds() {
    for others in [1.0, 300.0] {
        holds(|seed| slowed(seed, [rated("v1", 50.0), rated("v2", 100.0)], others), shares_are_right);
    }
}

#[test]
fn contracts_with_a_bandwidth_at_a_server_that_slows_are_held_within_seconds() {
    for others in [1.0, 300.0] {
        holds(|seed| slowed(seed, [v1(), v2()], others), shares_are_right);
    }
}

#[test]
fn contracts_at_a_server_on_the_same_host_that_slows_are_held_too() {
    let plan = |seed| {
        let mut shared = slowed(seed, [rated("v1", 50.0), rated("v2", 100.0)], 150.0);
        shared.plant = Plant { same_host: true, ..Plant::new("origin", 1) };
        shared.rejection = Duration::from_micros(300);
        shared
    };
    holds(plan, |run| {
        for site in 0..2 {
            // For four periods it is not sure, and what waited then takes as long again.
            between(run.window(SLOW.start..SLOW.start + 12).rejected_share(site), 0.0..=0.4, "rejected")?;
            between(run.window(SLOW.start + 12..180).rejected_share(site), 0.0..=0.001, "rejected then")?;
            between(run.window(SLOW.end + 8..180).full_share(site), 0.98..=1.0, "full quality after")?;
            for window in run.windows(SLOW.start + 12..SLOW.end, 6) {
                between(window.mean_response(site), 0.005..=0.2, "response time")?;
            }
        }
        let all = run.window(SLOW.start + 12..SLOW.end);
        between(all.utilization(), LOAD_LINE - 0.04..=LOAD_LINE + 0.04, "utilization")
    });
}
