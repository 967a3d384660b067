//! A contract for a request in seconds beside bursts of a large one: a start that made nobody wait is no debt.

use crate::parties::{self, Party, Shared};
use crate::{between, holds};
use plimsoll_core::promises::{Guarantee, Site};
use plimsoll_sim::workload::{Phase, Process};
use std::time::Duration;

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
