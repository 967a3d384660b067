//! Sites in `/status`: the contract of each, and its types of requests.

use super::plant_name;
use plimsoll_core::telemetry::status::{FoundType, SiteStatus, Status, TypeStatus};
use serde::Serialize;

document! {
    /// A site: its contract and what it takes.
    pub(super) SiteDocument<'a>(status: &'a Status, site: &'a SiteStatus) {
        /// The site's name in the configuration.
        name: &'a str = &site.name,
        /// The upstream or folder that serves its highest level.
        upstream: Option<&'a str> = plant_name(status, site.plant),
        /// The part of the upstream that it takes.
        utilization: f64 = site.utilization,
        /// The part that its contract promises; null without a contract, and before costs are known.
        utilization_promised: Option<f64> = site.utilization_promised,
        /// The part of its requests in the last control period that were inside its contract.
        guaranteed_share: f64 = site.guaranteed_share,
        /// What its types of requests cost, where deadlines are promised.
        types: Vec<TypeDocument<'a>> = site.types.iter().map(TypeDocument::new).collect(),
        /// The types that were found.
        found_types: Vec<FoundTypeDocument<'a>> = site.found_types.iter().map(FoundTypeDocument::new).collect(),
    }
}

document! {
    /// A type that was found: what its requests have in common, as the `match` of a `[[site.type]]`.
    FoundTypeDocument<'a>(found: &'a FoundType) {
        /// The name that it was given.
        name: &'a str = &found.name,
        /// The type within which it was found.
        within: &'a str = &found.within,
        /// Patterns of its paths.
        path: &'a [String] = &found.condition.paths,
        /// Methods of its requests.
        method: &'a [String] = &found.condition.methods,
        /// Names of keys that its queries have.
        query: &'a [String] = &found.condition.query,
    }
}

document! {
    /// What requests of a type cost. If costs are announced, the times are what one announced second really takes.
    TypeDocument<'a>(costs: &'a TypeStatus) {
        /// The type's name.
        name: &'a str = &costs.name,
        /// The level's name.
        level: &'a str = &costs.level,
        /// Whether the requests announced what they cost.
        announced: bool = costs.announced,
        /// How many requests that was learned from.
        requests: u64 = costs.requests,
        /// The mean service time, without what bodies take.
        mean_seconds: f64 = costs.mean,
        /// The standard deviation from request to request, with the doubt about the mean.
        deviation_seconds: f64 = costs.deviation,
        /// The part of them that takes no longer than the shortest deadline in service alone; null without one.
        in_time_alone: Option<f64> = costs.in_time,
        /// What each whole 64 KB of a request's body takes on top.
        block_seconds: f64 = costs.block,
    }
}
