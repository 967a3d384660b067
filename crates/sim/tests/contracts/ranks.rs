//! The order of waiting requests where contracts are beside priorities and ratios. A priority is an order inside one site (UC
//! 5.2), and a contract holds whatever order another site has inside.

use crate::held::rated;
use crate::parties::{self, Party, Run, Shared};
use crate::{between, contract, holds, loses_no_period, v1};
use plimsoll_core::promises::{Class, Condition, Plant, Site};
use plimsoll_sim::workload::Phase;
use std::time::Duration;

/// A site whose pages have one version.
fn plain(site: Site) -> Site {
    Site { levels: site.levels[1..].to_vec(), ..site }
}

/// A class of the requests below `/buy/`.
fn buyers() -> Class {
    let paths = vec!["/buy/*".to_owned()];
    Class::new("buyers", Condition { paths, ..Condition::default() })
}

fn takes(milliseconds: u64, party: Party) -> Party {
    Party { service: Some(Duration::from_millis(milliseconds)), ..party }
}

/// Two workers of 10 ms.
fn of_two_workers(seed: u64, parties: impl IntoIterator<Item = Party>) -> Shared {
    let mut shared = Shared::new(seed, 60);
    shared.plant = Plant::new("origin", 2);
    parties.into_iter().fold(shared, |shared, party| shared.party(takes(10, party)))
}

/// A site with a contract for 30/s, whose buyers are of the highest priority and flood it at 20 s.
fn flooded() -> Party {
    let site = Site { classes: vec![Class { priority: 1, ..buyers() }], ..plain(rated("b", 30.0)) };
    Party { path: "/buy/x", ..Party::constant(site, 20.0).then(20, 900.0).then(40, 20.0) }
}

#[test]
fn a_priority_of_one_site_takes_nothing_from_the_contract_of_another() {
    for rate in [75.0, 150.0] {
        holds(
            |seed| of_two_workers(seed, [Party::constant(plain(rated("a", 60.0)), rate), flooded()]),
            |run| {
                for second in run.windows(5..60, 1) {
                    // Chance alone makes a quarter fewer of 75 arrivals once in a while.
                    let answered = second.full_share(0) * second.rate(0);
                    between(answered / 60.0, 0.75..=3.3, "answers, of its contract, in every second")?;
                }
                // Beside the flood it has its contract, and its share of what is left.
                let beside = run.window(25..40);
                between(beside.full_share(0) * beside.rate(0) / 60.0, 1.0..=2.1, "answers beside the flood")?;
                between(beside.rejected_share(1), 0.8..=0.97, "of the flood rejected")
            },
        );
    }
}

/// As in `surprised`, but those who come at once have a small contract and the highest priority.
#[test]
fn no_contract_loses_a_period_when_a_priority_of_another_overloads() {
    let plan = |seed| {
        let flood = Site { classes: vec![Class { priority: 1, ..buyers() }], ..rated("others", 10.0) };
        Shared::new(seed, 160)
            .party(Party::constant(v1(), 50.0))
            .party(Party::constant(contract("v2", 100.0, 27.0), 250.0))
            .party(Party { path: "/buy/x", ..Party::constant(flood, 1.0).then(80, 300.0) })
    };
    holds(plan, loses_no_period);
}

#[test]
fn a_ratio_takes_no_request_out_of_its_contract() {
    let ratios = || Site {
        default_ratio: Some(2.0),
        classes: vec![Class { ratio: Some(1.0), ..buyers() }],
        ..plain(rated("a", 60.0))
    };
    holds(
        |seed| {
            let first = Party { path: "/buy/x", ..Party::constant(ratios(), 22.0) };
            let second = Party::rising_from(0, 22.0, 22.0, 1);
            of_two_workers(seed, [first, second, flooded()])
        },
        |run| {
            for class in 0..2 {
                for window in run.windows(5..60, 5) {
                    between(window.mean_response(class), 0.01..=0.05, "response time")?;
                    between(window.worst_response(class, 0.99), 0.01..=0.15, "of the slowest of a hundred")?;
                }
                between(run.window(5..60).full_share(class), 0.99..=1.0, "answered")?;
            }
            between(run.window(25..40).rejected_share(2), 0.8..=0.97, "of the flood rejected")
        },
    );
}

/// One worker of 5 ms and a contract for 100/s: 20/s of buyers at the first priority, and 10/s of others with 150 more in a
/// tenth of a second every five. All of it is inside the contract.
fn bursts_of_others(seed: u64, has_contract: bool) -> Shared {
    let site = if has_contract { rated("shop", 100.0) } else { parties::site("shop") };
    let site = Site { classes: vec![Class { priority: 1, ..buyers() }], ..plain(site) };
    let mut others = Party::rising_from(0, 10.0, 10.0, 1);
    for burst in 1..12 {
        let from = Duration::from_secs(5 * burst);
        let until = from + Duration::from_millis(100);
        others.rate.push(Phase { from, rate: 1500.0, to: None });
        others.rate.push(Phase { from: until, rate: 10.0, to: None });
    }
    Shared::new(seed, 60)
        .party(takes(5, Party { path: "/buy/x", ..Party::constant(site, 20.0) }))
        .party(takes(5, others))
}

#[test]
fn the_first_priority_comes_first_inside_a_contract_too() {
    for has_contract in [true, false] {
        holds(
            |seed| bursts_of_others(seed, has_contract),
            |run: &Run| {
                let all = run.window(4..60);
                between(all.full_share(0), 0.99..=1.0, "buyers answered")?;
                between(all.mean_response(0), 0.005..=0.009, "their response time")?;
                // Two of them may come at once, and one request is in service.
                between(all.worst_response(0, 1.0), 0.005..=0.03, "of the slowest")?;
                between(all.worst_response(1, 0.99), 0.3..=2.0, "of the others")
            },
        );
    }
}
