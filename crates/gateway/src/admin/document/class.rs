//! Classes in `/status`: the traffic of each, its promises, what was learned and what was counted.

use super::plant_name;
use crate::admin::journal::Recent;
use crate::admin::scrape::Scrape;
use plimsoll_core::promises::plan::DelayRow;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{
    ClassStatus, Counts, DeadlineStatus, DelayTerms, ModelStatus, ResponseStatus, Status,
};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

document! {
    /// A class: its traffic, its promises, its model and its counters.
    pub(super) ClassDocument<'a>(scrape: &'a Scrape, class: &'a ClassStatus, recent: &'a Recent) {
        /// The site's name.
        site: &'a str = &class.site,
        /// The class's name.
        class: &'a str = &class.class,
        /// The upstream or folder of its highest level.
        upstream: Option<&'a str> = plant_name(&scrape.status, class.plant),
        /// The service level m as it is applied: 0 rejects everybody, the number of levels is full quality.
        service_level: f64 = class.service_level,
        /// The level that its site's contract carries alone; null without a contract.
        service_level_of_contract: Option<f64> = class.site_level,
        /// m at each upstream that serves levels of it.
        service_level_by_upstream: BTreeMap<&'a str, f64> =
            class.parts.iter().map(|part| (part.plant.as_str(), part.service_level)).collect(),
        /// The class's levels, the lowest quality first.
        levels: Vec<LevelDocument<'a>> =
            (1..=class.levels.len()).map(|level| LevelDocument::new(class, level)).collect(),
        /// Requests that arrived in the last control period.
        request_rate_per_second: f64 = class.request_rate,
        /// Bytes of bodies that were delivered in the last control period.
        bandwidth_bytes_per_second: f64 = class.bandwidth,
        /// The mean time from arrival to start in the last control period; null in a controller, since requests wait before
        /// they arrive at a process.
        queue_delay_seconds: Option<f64> = scrape.gateway().map(|_| class.queue_delay.as_secs_f64()),
        /// The mean time from arrival to the server's last byte in the last control period.
        response_time_seconds: f64 = class.response_time.as_secs_f64(),
        /// The class's promise of response times; null without one.
        promise: Option<PromiseDocument> =
            class.response.as_ref().map(|response| PromiseDocument::new(delay_of(&scrape.status, class), response)),
        /// The class's deadline; null without one.
        deadline: Option<DeadlineDocument> = class.deadline.as_ref().map(DeadlineDocument::new),
        /// What its requests cost.
        model: ModelDocument = ModelDocument::new(&class.model),
        /// Clients with more than a tenth of the load, which are served at random levels.
        heavy_clients: u32 = class.heavy_clients,
        /// Requests that arrived.
        arrivals: u64 = class.counts.arrivals,
        /// Requests that were turned away.
        rejected: u64 = class.counts.rejected(),
        /// Requests that are under way or wait.
        in_flight: u64 = class.counts.in_flight(),
        /// Bytes of bodies that were delivered.
        delivered_bytes: u64 = class.counts.bytes,
        /// What became of its requests in the last seconds.
        recent: RecentDocument = RecentDocument::new(recent),
        /// Decisions by reason.
        #[serde(serialize_with = "by_reason")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        reasons: &'a Counts = &class.counts,
        /// How requests ended: `completed`, `failed` or `abandoned`.
        #[serde(serialize_with = "by_outcome")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        outcomes: &'a Counts = &class.counts,
    }
}

document! {
    /// What became of a class's requests in the last seconds. Percentiles are those of a histogram whose buckets double.
    RecentDocument(recent: &Recent) {
        /// How long that is; 0 before anything was seen twice.
        seconds: f64 = recent.seconds,
        /// Requests that arrived.
        arrivals: u64 = recent.arrivals,
        /// Requests that started, by level, the lowest quality first.
        served: Vec<u64> = recent.served.get(1..).unwrap_or_default().to_vec(),
        /// Requests that were turned away.
        rejected: u64 = recent.rejected(),
        /// Decisions by reason, of the reasons that there were.
        reasons: BTreeMap<&'static str, u64> = recent.reasons_seen(),
        /// Requests that the server failed.
        failed: u64 = recent.failed,
        /// The median of response times; null if there were none.
        response_p50_seconds: Option<f64> = recent.quantile(0.5),
        /// The 95th percentile of response times.
        response_p95_seconds: Option<f64> = recent.quantile(0.95),
        /// The 99th percentile of response times.
        response_p99_seconds: Option<f64> = recent.quantile(0.99),
    }
}

document! {
    /// A level of a class, from 1: what one request costs there, and how many were served there.
    LevelDocument<'a>(class: &'a ClassStatus, number: usize) {
        /// The level's number, from 1.
        level: usize = number,
        /// The level's name.
        name: &'a str = &class.levels[number - 1],
        /// What one request takes of the upstream's whole time; null before it is known.
        cost_seconds: Option<f64> = class.level_cost_seconds.get(number - 1).copied().flatten(),
        /// Requests that started at it.
        served: u64 = class.counts.served.get(number).copied().unwrap_or(0),
    }
}

document! {
    /// A promise of response times, and how it is kept. A delay has no weight; a ratio has neither quota nor late share.
    PromiseDocument(row: Option<&DelayRow>, response: &ResponseStatus) {
        /// The time that was promised; null for a ratio.
        delay_seconds: Option<f64> = row.map(|row| row.delay.target.as_secs_f64()),
        /// The percentile of it; null for a mean.
        percentile: Option<f64> = row.and_then(|row| row.delay.percentile),
        /// Workers that are its own while it wants them, or places at a server that takes more at once; null for a ratio.
        quota: Option<f64> = response.quota,
        /// The mean response time of the window: a thousand requests or so, none older than ten minutes.
        mean_seconds: f64 = response.response,
        /// The part of them that took longer than promised; null for a ratio.
        late_share: Option<f64> = row.map(|_| response.late),
        /// The part of the requests that failed or was turned away; null for a ratio.
        lost_share: Option<f64> = row.map(|_| response.lost),
        /// Whether the delay is missed.
        missed: bool = response.missed,
        /// Whether the quota is at an end of its range.
        at_limit: bool = response.at_limit,
        /// What the quota is made of; null for a ratio, and before the first update.
        law: Option<LawDocument> = response.law.as_ref().map(LawDocument::new),
        /// Whether the ratio cannot be had at this load.
        infeasible: bool = response.infeasible,
        /// The ratio that was promised; null for a delay.
        ratio: Option<f64> = response.ratio,
        /// The ratio that is reached, in the same units; null for a delay.
        ratio_reached: Option<f64> = response.ratio_reached,
        /// What its waiting counts for when the next request is chosen; null for a delay.
        weight: Option<f64> = response.weight,
    }
}

document! {
    /// What the delay law made its last quota of: the model's workers, and what feedback added for the error that is left.
    LawDocument(terms: &DelayTerms) {
        /// Workers that keep the promise by the queueing model.
        predicted_workers: f64 = terms.predicted,
        /// Measured over promised, less 1.
        error: f64 = terms.error,
        /// The gain: workers for each unit of error.
        workers_per_error: f64 = terms.gain,
        /// Workers that the integral part adds.
        integral_workers: f64 = terms.integral,
    }
}

document! {
    /// A class's deadline, and what a request would wait if it came now.
    DeadlineDocument(deadline: &DeadlineStatus) {
        /// The relative deadline.
        deadline_seconds: f64 = deadline.deadline.as_secs_f64(),
        /// How many of a hundred admitted requests are to keep it.
        in_time: f64 = deadline.in_time,
        /// A request is admitted now if its chance to be in time is at least so many in a hundred: less than `in_time` where
        /// requests of lower priorities are in the way.
        admitted_from: f64 = deadline.admitted_from,
        /// What a request that came now would wait.
        expected_wait_seconds: f64 = deadline.wait.as_secs_f64(),
        /// Admitted requests that were late.
        missed: u64 = deadline.missed,
    }
}

document! {
    /// The linear model of a class's content, and how well it is known.
    ModelDocument(model: &ModelStatus) {
        /// a: utilization seconds of a request; null before it is known.
        per_request_seconds: Option<f64> = model.per_request_seconds,
        /// b: utilization seconds of a delivered byte; null before it is known.
        per_byte_seconds: Option<f64> = model.per_byte_seconds,
        /// How well they are known: 0 not at all, 1 exactly.
        confidence: f64 = model.confidence,
        /// Whether the last control period taught nothing.
        frozen: bool = model.frozen,
    }
}

/// The delay that a class was promised; `None` without one.
fn delay_of<'a>(status: &'a Status, class: &ClassStatus) -> Option<&'a DelayRow> {
    let mut rows = status.plan.iter().flat_map(|plan| &plan.delays);
    rows.find(|row| row.site == class.site && row.class == class.class)
}

fn by_reason<S: Serializer>(counts: &&Counts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Reason::ALL.map(|reason| (reason.as_str(), counts.reasons[reason as usize])))
}

fn by_outcome<S: Serializer>(counts: &&Counts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Outcome::ALL.map(|outcome| (outcome.as_str(), counts.outcomes[outcome as usize])))
}
