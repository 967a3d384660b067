//! Two sites with opposite bottlenecks on one server (UC eq. 9): an API that takes the workers' time, and downloads that take
//! the link. The server is full when one of its resources is, and not when the two parts add up to one.

use crate::parties::{self, Party, Run, Shared};
use crate::{LOAD_LINE, between, holds};
use plimsoll_core::promises::plan::{Feasibility, plan};
use plimsoll_core::promises::{Costs, Guarantee, Plant, Site};
use std::time::Duration;

const WORKERS: u32 = 64;
/// The link, in bytes per second.
const LINK: f64 = 12.5e6;
/// The workers carry so many calls a second, and the link so many files; of the other resource each takes little.
const CALLS: f64 = 1000.0;
const FILES: f64 = 250.0;
const LITTLE: f64 = 1.0 / 25.0;

/// A site of one level.
fn plain(name: &str) -> Site {
    let site = parties::site(name);
    Site { levels: site.levels[1..].to_vec(), ..site }
}

/// An API that takes this part of the workers' time.
fn calls(site: Site, part: f64) -> Party {
    let service = Some(Duration::from_secs_f64(f64::from(WORKERS) / CALLS));
    Party { service, bytes: LITTLE * LINK / CALLS, ..Party::constant(site, part * CALLS) }
}

/// Downloads that take this part of the link.
fn files(site: Site, part: f64) -> Party {
    let service = Some(Duration::from_secs_f64(LITTLE * f64::from(WORKERS) / FILES));
    Party { service, bytes: LINK / FILES, ..Party::constant(site, part * FILES) }
}

fn shared(seed: u64, length: u64, parties: [Party; 2]) -> Shared {
    let mut shared = Shared::new(seed, length);
    shared.plant = Plant { bandwidth_bytes_per_second: Some(LINK), ..Plant::new("origin", WORKERS) };
    parties.into_iter().fold(shared, Shared::party)
}

/// The part of the workers' time, and of the link, that was used.
fn used(window: &parties::Window<'_>) -> [f64; 2] {
    let work = |party: usize, of: f64| (1.0 - window.rejected_share(party)) * window.rate(party) / of;
    [work(0, CALLS) + LITTLE * work(1, FILES), (window.bandwidth(0) + window.bandwidth(1)) / LINK]
}

/// Each takes 0.69 of its resource, so both take 0.72 of each, but for ten seconds in which they ask for twice as much.
fn a_peak(seed: u64) -> Shared {
    let peak = |party: Party, usual: f64| party.then(20, 2.0 * usual).then(30, usual);
    let [api, downloads] = [0.69 * CALLS, 0.69 * FILES];
    shared(
        seed,
        150,
        [peak(calls(plain("api"), 0.69), api), peak(files(plain("downloads"), 0.69), downloads)],
    )
}

fn is_held_in_the_peak_alone(run: &Run) -> Result<(), String> {
    let (peak, after) = (run.window(24..30), run.window(45..150));
    for site in 0..2 {
        between(run.window(5..20).rejected_share(site), 0.0..=0.001, "rejected before")?;
        between(peak.rejected_share(site), 0.3..=0.5, "rejected in the peak")?;
        between(after.rejected_share(site), 0.0..=0.001, "rejected after it")?;
    }
    for (used, what) in used(&peak).into_iter().zip(["workers", "link"]) {
        between(used, LOAD_LINE - 0.15..=LOAD_LINE + 0.15, &format!("{what} in the peak"))?;
    }
    used(&after).into_iter().try_for_each(|used| between(used, 0.68..=0.76, "of each resource after it"))
}

#[test]
fn a_load_that_fits_both_resources_turns_nobody_away_after_a_peak_either() {
    holds(a_peak, is_held_in_the_peak_alone);
}

/// V1 is promised 0.5 of the workers and V2 0.5 of the link; both ask for it, beside two sites that would fill both.
fn contracts(seed: u64, share_excess: bool) -> Shared {
    let contract = |name, rate: f64, bytes: f64| {
        let guarantee = Some(Guarantee::new(rate, rate * bytes));
        Site { guarantee, share_excess, ..plain(name) }
    };
    let v1 = calls(contract("v1", 0.5 * CALLS, LITTLE * LINK / CALLS), 0.5);
    let v2 = files(contract("v2", 0.5 * FILES, LINK / FILES), 0.5);
    shared(seed, 120, [v1, v2]).party(calls(plain("api"), 1.5)).party(files(plain("downloads"), 1.5))
}

#[test]
fn contracts_with_opposite_bottlenecks_are_kept() {
    for share_excess in [false, true] {
        holds(
            |seed| contracts(seed, share_excess),
            |run| {
                for window in run.windows(15..120, 15) {
                    for site in 0..2 {
                        between(window.full_share(site), 0.99..=1.0, "full quality of what was offered")?;
                    }
                }
                let end = run.window(30..120);
                between(end.utilization(), LOAD_LINE - 0.03..=LOAD_LINE + 0.03, "utilization")?;
                // V1 and V2 leave a third of each resource, and 1.5 of it is asked for.
                [2, 3]
                    .into_iter()
                    .try_for_each(|site| between(end.rejected_share(site), 0.6..=0.9, "rejected"))
            },
        );
    }
    // It is what the plan says.
    let costs = |seconds: f64| {
        Some(Costs { per_request_seconds: seconds, per_byte_seconds: 0.0, per_rejection_seconds: 0.0 })
    };
    let mut promises = contracts(1, false).promises();
    (promises.sites[0].costs, promises.sites[1].costs) = (costs(1.0 / CALLS), costs(LITTLE / FILES));
    let known =
        |number: usize| plimsoll_core::promises::plan::promised_costs(&promises, &promises.sites[number]);
    let plan = plan(&promises, known).remove(0);
    assert!(plan.verdict == Feasibility::Fits && (plan.sum - 0.52).abs() < 1e-9, "{plan:?}");
}
