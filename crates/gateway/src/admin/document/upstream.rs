//! Upstreams and folders in `/status`: each with its loop and its servers, and the plan of what was promised there.

use crate::upstream::ejection::{RosterStatus, ServerStatus};
use plimsoll_core::promises::plan::{ContractRow, DelayRow, PlantPlan};
use plimsoll_core::telemetry::status::{LimitReason, PlacesStatus, PlantStatus};
use serde::Serialize;

document! {
    /// An upstream or a folder, and its loop.
    pub(super) PlantDocument<'a>(plant: &'a PlantStatus, roster: Option<&'a RosterStatus>) {
        /// The upstream's or folder's name in the configuration.
        name: &'a str = &plant.name,
        /// How many requests it works on at once: of the share that is there.
        workers: u32 = plant.workers,
        /// Whether that number was found; null if it is configured.
        workers_found: Option<bool> = plant.workers_found,
        /// The most requests in service at once; null in a controller, since what its server takes is in service.
        limit: Option<u32> = roster.map(|_| plant.limit),
        /// Why no more: `refusals`, `outage`, `search`, `reported`, `promises`; null where the limit is the one that is
        /// configured, and where it is null.
        limit_reason: Option<&'static str> = plant.limit_reason.filter(|_| roster.is_some()).map(LimitReason::as_str),
        /// The share of it that is there, by its servers in use.
        available: f64 = plant.available,
        /// The utilization in the last control period.
        utilization: UtilizationDocument = UtilizationDocument::new(plant),
        /// The service level m that its loop asks for, from 0 to the number of levels.
        service_level: f64 = plant.service_level,
        /// What the integral part of the law adds to the set point.
        bias: f64 = plant.bias,
        /// The part by which the load line is lowered for delays that are missed.
        set_point_reduction: f64 = plant.set_point_reduction,
        /// When clients that are turned away now are told to come again.
        come_again: ComeAgainDocument = ComeAgainDocument::new(plant),
        /// Whether it answers slower than its `response_time_limit`, and so counts as full.
        response_time_override: bool = plant.response_time_override,
        /// Requests in service now.
        in_service: u32 = plant.in_service,
        /// Requests that wait now; null in a controller, since they wait in the server's listen queue.
        waiting: Option<u32> = roster.map(|_| plant.waiting),
        /// Upgraded connections and streams of events now; null in a controller, since each process has its own.
        tunnels: Option<u32> = roster.map(|_| plant.tunnels),
        /// Work that was taken on and is not done, in seconds of one worker; null where no deadline is promised.
        unfinished_seconds: Option<f64> = plant.unfinished_seconds,
        /// The mean service time of the last control period; 0 if nothing was served.
        service_time_seconds: f64 = plant.service_time.as_secs_f64(),
        /// What a gateway reports to a server that decides itself of its places there, in either of them; null where nothing is
        /// reported.
        places: Option<PlacesDocument> = plant.places.as_ref().map(PlacesDocument::new),
        /// The servers; a folder has none. This and what follows is null in a controller, which runs inside the server.
        servers: Option<Vec<ServerDocument<'a>>> =
            roster.map(|own| own.servers.iter().map(ServerDocument::new).collect()),
        /// Whether all servers are out of use, and so all are used.
        all_servers_out: Option<bool> = roster.map(RosterStatus::is_panic),
        /// Requests that were tried again, at another server or on another connection.
        retries: Option<u64> = roster.map(|own| own.retries[0]),
        /// Requests that were not, since too many were.
        retries_refused: Option<u64> = roster.map(|own| own.retries[1]),
        /// Why the last lookup of a name failed; null if it did not.
        lookup_failure: Option<&'a str> = roster.and_then(|own| own.lookup_failure.as_deref()),
    }
}

document! {
    /// What part of a gateway's places at a server that decides itself is taken, as the gateway reports it with each request.
    PlacesDocument(places: &PlacesStatus) {
        /// The part; more than 1 while the gateway turns requests away.
        taken: f64 = places.taken,
        /// In the server: how long ago it was reported, at the end of the last control period; null in the gateway.
        reported_seconds_ago: Option<f64> = places.heard.map(|heard| heard.age.as_secs_f64()),
        /// In the server: the part by which the load line is lowered for it; null in the gateway.
        set_point_reduction: Option<f64> = places.heard.map(|heard| heard.set_point_reduction),
    }
}

document! {
    /// A server of an upstream: whether it is in use, since when and why, and how requests ended there.
    ServerDocument<'a>(server: &'a ServerStatus) {
        /// Where it listens.
        address: &'a str = &server.address,
        /// `healthy`, `starting`, `ejected` or `down`.
        state: &'static str = server.state,
        /// For how long it has been so.
        since_seconds: f64 = server.since.as_secs_f64(),
        /// Why it is out of use; of health checks what the last one met; null while it is in use.
        why: Option<&'a str> = server.why.as_deref(),
        /// The part of its turns that it gets.
        weight: f64 = server.weight,
        /// Requests in service there now.
        in_service: u32 = server.in_service,
        /// Requests that it answered with less than 500.
        served: u64 = server.served,
        /// Requests that it answered with 500 and more, wrongly, or not at all.
        errors: u64 = server.errors,
        /// Tries that got no connection.
        unreachable: u64 = server.unreachable,
        /// How often it was taken out of use.
        ejections: u32 = server.ejections,
    }
}

document! {
    /// After what times requests that are turned away now are told to come again (`Retry-After`): when the load line has room
    /// for the first of them, and for all, by the loop's forecast.
    ComeAgainDocument(plant: &PlantStatus) {
        /// The first of them.
        soonest_seconds: f64 = plant.come_again.0.as_secs_f64(),
        /// The last of them.
        latest_seconds: f64 = plant.come_again.1.as_secs_f64(),
    }
}

document! {
    /// A plant's utilization: wanted, measured, by the model, and offered.
    UtilizationDocument(plant: &PlantStatus) {
        /// The load line as it is now, U*.
        set_point: f64 = plant.set_point,
        /// As it was sensed; at most 1.
        measured: f64 = plant.utilization,
        /// By the costs that were learned.
        model: f64 = plant.utilization_model,
        /// What all that is offered would take, waiting requests included; above 1 in an overload.
        offered: f64 = plant.utilization_offered,
    }
}

document! {
    /// A plant's contracts, judged by the costs as they are known now.
    pub(super) PlanDocument<'a>(plan: &'a PlantPlan) {
        /// The upstream's name in the configuration.
        upstream: &'a str = &plan.plant,
        /// The part of it that contracts may promise together.
        ceiling: f64 = plan.ceiling,
        /// The part that they promise together, by the costs that are known.
        sum: f64 = plan.sum,
        /// What of the sum is kept for rejections.
        reserve: f64 = plan.reserve,
        /// `fits`, `exceeds`, or `unverified` while something is not known.
        verdict: &'static str = plan.verdict.as_str(),
        /// The contracts of sites.
        guarantees: Vec<GuaranteeDocument<'a>> = plan.rows.iter().map(GuaranteeDocument::new).collect(),
        /// The delays of classes.
        delays: Vec<DelayDocument<'a>> = plan.delays.iter().map(DelayDocument::new).collect(),
    }
}

document! {
    /// A site's guarantee in the plan of its plant.
    GuaranteeDocument<'a>(row: &'a ContractRow) {
        /// The site's name.
        site: &'a str = &row.site,
        /// The part of the upstream that it takes; null before costs are known.
        utilization: Option<f64> = row.utilization,
    }
}

document! {
    /// A delay that was promised, and what the plan says about it.
    DelayDocument<'a>(row: &'a DelayRow) {
        /// The site's name.
        site: &'a str = &row.site,
        /// The class's name.
        class: &'a str = &row.class,
        /// The time that was promised.
        delay_seconds: f64 = row.delay.target.as_secs_f64(),
        /// The percentile of it; null for a mean.
        percentile: Option<f64> = row.delay.percentile,
        /// The rate that was guaranteed; null without a contract.
        requests_per_second: Option<f64> = row.rate,
        /// What one request takes; null before costs are known.
        service_seconds: Option<f64> = row.service_seconds,
        /// The least delay that can be kept at that rate; null if it is not known.
        least_seconds: Option<f64> = row.least_seconds,
        /// The rate at which the delay could be kept; null if it is not known.
        fitting_requests_per_second: Option<f64> = row.fitting_rate,
        /// `fits`, `exceeds` or `unverified`.
        verdict: &'static str = row.verdict().as_str(),
    }
}
