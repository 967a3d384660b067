//! Contracts at a server that becomes slow: all are held to the same part of the plan, with lighter pages before any request is
//! rejected. What lighter pages cost then is not known from them, and what a byte costs was learned from the fast server.

use crate::held::rated;
use crate::parties::{self, FULL, Party, Run, Shared, US};
use crate::{LOAD_LINE, between, holds, v1, v2};
use plimsoll_core::promises::{Guarantee, Site};
use plimsoll_sim::workload::{Fault, FaultKind, Phase, Process};
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

/// One worker of 5 ms and a contract for 100/s, of whose requests 150 come in a tenth of a second every ten; another site,
/// with a contract for 0.15/s, sends one at the end of each.
fn rare(seed: u64) -> Shared {
    let guarantee = |rate| Guarantee { bandwidth_bytes_per_second: None, ..Guarantee::new(rate, 1.0) };
    let site = |name, rate| {
        let site = parties::site(name);
        Site { levels: site.levels[1..].to_vec(), guarantee: Some(guarantee(rate)), ..site }
    };
    let takes = |party| Party { service: Some(Duration::from_millis(5)), ..party };
    let mut often = Party::constant(site("often", 100.0), 40.0);
    let mut seldom = Party::constant(site("seldom", 0.15), 0.0);
    seldom.process = Process::Deterministic;
    let from = |party: &mut Party, milliseconds, rate| {
        let from = Duration::from_millis(milliseconds);
        party.rate.push(Phase { from, rate, to: None });
    };
    for burst in (10_000..300_000).step_by(10_000) {
        from(&mut often, burst, 1500.0);
        from(&mut often, burst + 100, 40.0);
        from(&mut seldom, burst + 50, 20.2);
        from(&mut seldom, burst + 100, 0.0);
    }
    Shared::new(seed, 300).party(takes(often)).party(takes(seldom))
}

#[test]
fn a_contract_for_a_request_in_ten_seconds_waits_for_no_burst_of_a_large_one() {
    holds(rare, |run| {
        let all = run.window(5..300);
        between(all.full_share(0), 0.99..=1.0, "answered of the large one")?;
        between(all.worst_response(0, 0.99), 0.3..=2.0, "its slowest")?;
        between(all.full_share(1), 0.99..=1.0, "answered of the small one")?;
        between(all.rate(1), 0.09..=0.15, "what comes of the small one")?;
        between(all.mean_response(1), 0.005..=0.03, "response time of the small one")
    });
}
