//! An upstream's number of workers or where to look for it, and the load line that follows from the promises of its sites.

use super::file::ConfigurationKeys;
use super::plants::{CostKeys, UpstreamKeys};
use crate::agent::HttpUrl;
use crate::diagnostic::{Findings, places, refuse};
use crate::syntax::{Located, OptionalKey, Rate, Share, Table, Whole, section};
use plimsoll_core::promises::{Plant, Sense, Site, WorkerBounds};
use plimsoll_core::time::Duration;
use std::ops::Range;

section! { "[upstream.NAME.capacity]"
    /// The capacity of an upstream, and its load line.
    CapacityKeys {
        /// The number of requests it works on at once. Apache: `MaxRequestWorkers`. An application server: its processes
        /// times their threads. nginx: the workers of the application behind it; for nginx alone, which has no such number,
        /// leave it out. Several addresses: their sum. Absent: it is found while the gateway runs, as the number from which
        /// more requests at once only take longer. Write it if you know it.
        workers: Whole<1, 1_000_000>, optional;
        /// Without `workers`: the page on which the server itself reports how many it has: Apache's `server-status?auto`,
        /// or the status page of PHP-FPM. The page is asked for every two seconds; until it answers the number is searched
        /// for. For one server: several addresses take `workers`, their sum. nginx's `stub_status` counts connections and
        /// no workers.
        workers_from: HttpUrl, optional;
        /// Without `workers`: the lower bound of the search. Default: 1.
        min_workers: Whole<1, 65_535>, optional;
        /// Without `workers`: the upper bound of the search. Default: `max_connections`, or 1024 where that is not given
        /// either.
        max_workers: Whole<1, 65_535>, optional;
        /// The load line: the utilization to hold. A lower one leaves more room for bursts, a higher one serves more at
        /// full quality. It is held by lighter pages, and by rejections once more comes than the whole server carries. If
        /// not even the lightest level fits under the line but the server carries it, the utilization is between the line
        /// and 1 and no request is rejected, unless a site has a `guarantee`, which needs that room. Default: 0.85. It is 1
        /// if a class that the upstream serves has a `delay` or a `deadline`, which is held instead, unless there are
        /// classes without one at sites with a `ratio` or a `guarantee`.
        load_line: Share, optional;
        /// The capacity of its network link, if that may be what runs out first.
        bandwidth: Rate, optional;
        /// The mean service time above which a period counts as full load, whatever else is measured.
        response_time_limit: Duration, optional;
        /// How utilization is sensed.
        sense: Sense, default(Sense::default());
        /// The costs of requests, if known. Otherwise they are learned from traffic, so leave them out unless you measured.
        costs: Table<CostKeys>, optional;
        /// Whether the gateway runs on the server's own machine: then rejections cost the server too.
        same_host: bool, default(false);
        /// The most that the sites' guarantees may take of it together, below 1. Default: the load line, at most 0.95; at most
        /// 0.58 where deadlines are promised.
        ceiling: Share, optional;
    }
}

/// How many requests an upstream works on at once.
pub(super) struct Workers {
    /// The configured number of workers, or the first guess.
    pub(super) workers: u32,
    /// The bounds of the search, if the number is not configured.
    pub(super) search: Option<WorkerBounds>,
    /// The most in service at once.
    pub(super) max_connections: u32,
}

type Count = Option<Located<Whole<1, 65_535>>>;

fn number(count: &Count) -> Option<u32> {
    count.as_ref().map(|count| count.value.0 as u32)
}

impl Workers {
    /// The number of workers of an upstream.
    pub(super) fn of(keys: &UpstreamKeys, findings: &mut Findings) -> Self {
        let capacity = &keys.capacity.value;
        if let Some(workers) = &capacity.workers {
            refuse_search_bounds(capacity, &workers.span, findings);
            let workers = workers.value.0 as u32;
            let max_connections = number(&keys.max_connections).unwrap_or(workers);
            return Workers { workers, search: None, max_connections };
        }
        let addresses = keys.address.as_ref().filter(|address| address.value.0.len() > 1);
        if let (Some(page), Some(addresses)) = (&capacity.workers_from, addresses) {
            refuse!(findings, Conflict at &page.span,
                format!("the page of one server does not say how many workers all {} have", addresses.value.0.len()),
                help: "write `workers`, the sum of all servers' workers, or leave both out: then they are found",
                beside &addresses.span => "the addresses are");
        }
        if let (Some(workers), Some(connections)) = (&capacity.max_workers, &keys.max_connections) {
            refuse!(findings, Conflict at &workers.span,
                "where workers are to be found, this and `max_connections` say the same: the most requests in service",
                help: "keep one of them",
                beside &connections.span => "`max_connections` is given");
        }
        let most = number(&capacity.max_workers)
            .or(number(&keys.max_connections))
            .unwrap_or(WorkerBounds::USUAL.most);
        let least = number(&capacity.min_workers).unwrap_or(WorkerBounds::USUAL.least);
        if least > most {
            refuse_empty_search(least, most, keys, findings);
        }
        let search = Some(WorkerBounds { least, most });
        Workers { workers: WorkerBounds::FIRST_GUESS.min(most).max(least), search, max_connections: most }
    }
}

/// Refuses bounds of a search beside the number itself.
fn refuse_search_bounds(capacity: &CapacityKeys, workers: &Range<usize>, findings: &mut Findings) {
    for (name, bound) in places!(capacity => min_workers, max_workers, workers_from) {
        let Some(bound) = bound else { continue };
        refuse!(findings, Conflict at bound,
            format!("`{name}` is for workers that are to be found, and `workers` states their number"),
            help: format!("keep `workers` if you know how many they are; to have them found, keep `{name}`"),
            beside workers => "`workers` is given");
    }
}

/// Refuses bounds of a search that have no number between them.
fn refuse_empty_search(least: u32, most: u32, keys: &UpstreamKeys, findings: &mut Findings) {
    let capacity = &keys.capacity.value;
    let Some(min) = &capacity.min_workers else { return };
    let message = format!("no number of workers is at least {least} and at most {most}");
    let max = capacity.max_workers.span().map(|span| (span, "`max_workers` is given"));
    let connections = keys.max_connections.span().map(|span| (span, "`max_connections` is given"));
    match max.or(connections) {
        Some((span, what)) => refuse!(findings, Unreachable at &min.span,
            message, help: format!("write at most `{most}`, or raise the other"),
            beside span => what),
        None => refuse!(findings, Unreachable at &min.span,
            message, help: format!("add `max_workers`: {most} without it")),
    }
}

/// Fills in the load lines that the file does not give, and checks whether each can be reached. `plants` are those of the file,
/// upstreams first.
pub(super) fn set_load_lines(
    file: &ConfigurationKeys,
    plants: &mut [Plant],
    sites: &[Site],
    findings: &mut Findings,
) {
    for (index, ((_, keys), plant)) in file.upstream.value.0.iter().zip(plants).enumerate() {
        let capacity = &keys.value.capacity.value;
        // The load line of a server that decides itself is kept by its levels, so the gateway's promises do not change it.
        if capacity.load_line.is_none() && !plant.decides_itself {
            plant.set_point = Plant::usual_load_line(index, sites);
        }
        // With n connections at most n workers are ever busy, so a load line above n / workers would never be reached.
        if let (Some(connections), Some(workers)) = (&keys.value.max_connections, &capacity.workers) {
            let most = plant.max_connections;
            let needed = (plant.set_point * workers.value.0 as f64).ceil() as u32;
            if plant.sense == Sense::Gap && most < needed {
                refuse!(findings, Unreachable at &connections.span,
                    format!("with {most} connections at most {most} of {} workers are ever busy", workers.value.0),
                    help: format!("write at least {needed}, or lower `workers` to the share that is the gateway's"),
                    beside &workers.span => "`workers` is given");
            }
        }
    }
}
