//! `/status`: what the engine knows, as one JSON object.
//!
//! [`StatusDocument`] borrows from a [`Scrape`]. Its fields are the keys of the document, each with its unit in its name;
//! durations are seconds. A figure that is not known yet, or is not finite, is `null`. Counters count from the start, and
//! every other figure is of the last control period.

use super::journal::{PromiseRow, Recent, View};
use super::metrics::Scrape;
use crate::client::spill_files::Buffered;
use crate::http2::floods::{self, Http2Status};
use crate::runtime::reload::Reloaded;
use crate::settings::SeedSource;
use crate::upstream::roster::{RosterStatus, ServerStatus};
use plimsoll_core::Difference;
use plimsoll_core::promises::Mode;
use plimsoll_core::promises::plan::{ContractRow, DelayRow, PlantPlan};
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{
    ClassStatus, Counts, DeadlineStatus, DelayTerms, FoundType, LimitReason, ModelStatus, PlantStatus,
    ResponseStatus, SiteStatus, Status, TypeStatus,
};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The document as indented JSON with a line's end.
pub(super) fn render(document: &impl Serialize) -> String {
    // The documents of this module hold texts, numbers and lists of them: writing these to a string cannot fail.
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// The plants that are promised, or still at work, each with its servers; a folder has none.
pub(super) fn plants<'a>(
    status: &'a Status,
    rosters: &'a [RosterStatus],
) -> impl Iterator<Item = (&'a PlantStatus, &'a RosterStatus)> {
    const NONE: &RosterStatus = &RosterStatus { servers: Vec::new(), retries: [0; 2], lookup_failure: None };
    let rosters = rosters.iter().chain(std::iter::repeat(NONE));
    status.plants.iter().zip(rosters).filter(|(plant, _)| !plant.is_gone())
}

/// The classes that are promised, or have requests under way.
pub(super) fn classes(status: &Status) -> impl Iterator<Item = &ClassStatus> {
    status.classes.iter().filter(|class| !class.is_gone())
}

/// The configuration's word for a mode.
pub const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Control => "control",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

/// A type that serializes to a JSON object: each key with its type, and where its value comes from.
macro_rules! document {
    ($(#[$doc:meta])* $visibility:vis $name:ident$(<$life:lifetime>)?($($from:tt)*) {
        $($(#[$how:meta])* $key:ident: $type:ty = $value:expr,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        $visibility struct $name$(<$life>)? {
            $($(#[$how])* $key: $type,)+
        }
        impl$(<$life>)? $name$(<$life>)? {
            $visibility fn new($($from)*) -> Self {
                $name { $($key: $value,)+ }
            }
        }
    };
}

document! {
    /// What `/status` answers with.
    pub(super) StatusDocument<'a>(scrape: &'a Scrape, view: &'a View) {
        version: &'static str = env!("CARGO_PKG_VERSION"),
        unix_seconds: f64 = view.unix_seconds,
        at_seconds: f64 = scrape.status.at.as_secs_f64(),
        mode: &'static str = mode_word(scrape.status.mode),
        period_seconds: f64 = scrape.status.period.as_secs_f64(),
        rejection_cost_seconds: Option<f64> = scrape.status.rejection_cost_seconds,
        promises: &'a [PromiseRow] = &view.promises,
        clients: ClientsDocument = ClientsDocument::new(&scrape.status, scrape.seed_from),
        buffers: BuffersDocument = BuffersDocument::new(scrape.buffered),
        http2: Http2Document = Http2Document::new(scrape.http2),
        connections_turned_away: BTreeMap<&'static str, u64> =
            scrape.turned_away.map(|(why, count)| (why.as_str(), count)).into(),
        upstreams: Vec<PlantDocument<'a>> = plants(&scrape.status, &scrape.rosters)
            .map(|(plant, roster)| PlantDocument::new(plant, roster)).collect(),
        sites: Vec<SiteDocument<'a>> =
            scrape.status.sites.iter().map(|site| SiteDocument::new(&scrape.status, site)).collect(),
        plan: Vec<PlanDocument<'a>> =
            scrape.status.plan.iter().filter(has_promises).map(PlanDocument::new).collect(),
        classes: Vec<ClassDocument<'a>> = numbered_classes(scrape, view).collect(),
    }
}

document! {
    /// What is kept of requests and responses for slow clients, and how often a temporary file failed.
    BuffersDocument(buffered: Buffered) {
        memory_bytes: u64 = buffered.in_memory,
        file_bytes: u64 = buffered.in_files,
        file_failures: u64 = buffered.failures,
    }
}

document! {
    /// HTTP/2: the limits of a connection, of its streams and of the frames that ask for nothing, and how many were ended for
    /// such frames.
    Http2Document(http2: Http2Status) {
        streams: u32 = http2.streams,
        idle_frames: u32 = floods::ALLOWANCE,
        idle_frames_per_second: u32 = floods::A_SECOND,
        ended: BTreeMap<&'static str, u64> = http2.ended.map(|(flood, count)| (flood.as_str(), count)).into(),
    }
}

document! {
    /// How it is chosen which clients get the better level: where the key of the hash is from, and whether the choice turns.
    ClientsDocument(status: &Status, seed: SeedSource) {
        seed: &'static str = seed.as_str(),
        rekey_seconds: Option<f64> = status.rekey.map(|rekey| rekey.as_secs_f64()),
    }
}

document! {
    /// An upstream or a folder, and its loop.
    PlantDocument<'a>(plant: &'a PlantStatus, roster: &'a RosterStatus) {
        name: &'a str = &plant.name,
        workers: u32 = plant.workers,
        workers_found: Option<bool> = plant.workers_found,
        limit: u32 = plant.limit,
        limit_reason: Option<&'static str> = plant.limit_reason.map(LimitReason::as_str),
        available: f64 = plant.available,
        utilization: UtilizationDocument = UtilizationDocument::new(plant),
        service_level: f64 = plant.service_level,
        bias: f64 = plant.bias,
        set_point_reduction: f64 = plant.set_point_reduction,
        come_again: ComeAgainDocument = ComeAgainDocument::new(plant),
        response_time_override: bool = plant.response_time_override,
        in_service: u32 = plant.in_service,
        waiting: u32 = plant.waiting,
        tunnels: u32 = plant.tunnels,
        unfinished_seconds: Option<f64> = plant.unfinished_seconds,
        service_time_seconds: f64 = plant.service_time.as_secs_f64(),
        servers: Vec<ServerDocument<'a>> = roster.servers.iter().map(ServerDocument::new).collect(),
        all_servers_out: bool = roster.is_panic(),
        retries: u64 = roster.retries[0],
        retries_refused: u64 = roster.retries[1],
        lookup_failure: Option<&'a str> = roster.lookup_failure.as_deref(),
    }
}

document! {
    /// A server of an upstream: whether it is in use, since when and why, and how requests ended there.
    ServerDocument<'a>(server: &'a ServerStatus) {
        address: &'a str = &server.address,
        state: &'static str = server.state,
        since_seconds: f64 = server.since.as_secs_f64(),
        why: Option<&'static str> = server.why,
        weight: f64 = server.weight,
        in_service: u32 = server.in_service,
        served: u64 = server.served,
        errors: u64 = server.errors,
        unreachable: u64 = server.unreachable,
        ejections: u32 = server.ejections,
    }
}

document! {
    /// After what times requests that are turned away now are told to come again (`Retry-After`): when the load line has room
    /// for the first of them, and for all, by the loop's forecast.
    ComeAgainDocument(plant: &PlantStatus) {
        soonest_seconds: f64 = plant.come_again.0.as_secs_f64(),
        latest_seconds: f64 = plant.come_again.1.as_secs_f64(),
    }
}

document! {
    /// A plant's utilization: wanted, measured, by the model, and offered.
    UtilizationDocument(plant: &PlantStatus) {
        set_point: f64 = plant.set_point,
        measured: f64 = plant.utilization,
        model: f64 = plant.utilization_model,
        offered: f64 = plant.utilization_offered,
    }
}

document! {
    /// A site: its contract and what it takes.
    SiteDocument<'a>(status: &'a Status, site: &'a SiteStatus) {
        name: &'a str = &site.name,
        upstream: Option<&'a str> = plant_name(status, site.plant),
        utilization: f64 = site.utilization,
        utilization_promised: Option<f64> = site.utilization_promised,
        guaranteed_share: f64 = site.guaranteed_share,
        types: Vec<TypeDocument<'a>> = site.types.iter().map(TypeDocument::new).collect(),
        found_types: Vec<FoundTypeDocument<'a>> = site.found_types.iter().map(FoundTypeDocument::new).collect(),
    }
}

document! {
    /// A type that was found: what its requests have in common, as the `match` of a `[[site.type]]`.
    FoundTypeDocument<'a>(found: &'a FoundType) {
        name: &'a str = &found.name,
        within: &'a str = &found.within,
        path: &'a [String] = &found.condition.paths,
        method: &'a [String] = &found.condition.methods,
        query: &'a [String] = &found.condition.query,
    }
}

document! {
    /// What requests of a type cost. If costs are announced, the times are what one announced second really takes.
    TypeDocument<'a>(costs: &'a TypeStatus) {
        name: &'a str = &costs.name,
        level: &'a str = &costs.level,
        announced: bool = costs.announced,
        requests: u64 = costs.requests,
        mean_seconds: f64 = costs.mean,
        deviation_seconds: f64 = costs.deviation,
        in_time_alone: Option<f64> = costs.in_time,
        block_seconds: f64 = costs.block,
    }
}

document! {
    /// A plant's contracts, judged by the costs as they are known now.
    PlanDocument<'a>(plan: &'a PlantPlan) {
        upstream: &'a str = &plan.plant,
        ceiling: f64 = plan.ceiling,
        sum: f64 = plan.sum,
        reserve: f64 = plan.reserve,
        verdict: &'static str = plan.verdict.as_str(),
        guarantees: Vec<GuaranteeDocument<'a>> = plan.rows.iter().map(GuaranteeDocument::new).collect(),
        delays: Vec<DelayDocument<'a>> = plan.delays.iter().map(DelayDocument::new).collect(),
    }
}

document! {
    /// A site's guarantee in the plan of its plant.
    GuaranteeDocument<'a>(row: &'a ContractRow) {
        site: &'a str = &row.site,
        utilization: Option<f64> = row.utilization,
    }
}

document! {
    /// A delay that was promised, and what the plan says about it.
    DelayDocument<'a>(row: &'a DelayRow) {
        site: &'a str = &row.site,
        class: &'a str = &row.class,
        delay_seconds: f64 = row.delay.target.as_secs_f64(),
        percentile: Option<f64> = row.delay.percentile,
        requests_per_second: Option<f64> = row.rate,
        service_seconds: Option<f64> = row.service_seconds,
        least_seconds: Option<f64> = row.least_seconds,
        fitting_requests_per_second: Option<f64> = row.fitting_rate,
        verdict: &'static str = row.verdict().as_str(),
    }
}

document! {
    /// A class: its traffic, its promises, its model and its counters.
    ClassDocument<'a>(status: &'a Status, class: &'a ClassStatus, recent: &'a Recent) {
        site: &'a str = &class.site,
        class: &'a str = &class.class,
        upstream: Option<&'a str> = plant_name(status, class.plant),
        service_level: f64 = class.service_level,
        service_level_of_contract: Option<f64> = class.site_level,
        service_level_by_upstream: BTreeMap<&'a str, f64> =
            class.parts.iter().map(|part| (part.plant.as_str(), part.service_level)).collect(),
        levels: Vec<LevelDocument<'a>> =
            (1..=class.levels.len()).map(|level| LevelDocument::new(class, level)).collect(),
        request_rate_per_second: f64 = class.request_rate,
        bandwidth_bytes_per_second: f64 = class.bandwidth,
        queue_delay_seconds: f64 = class.queue_delay.as_secs_f64(),
        response_time_seconds: f64 = class.response_time.as_secs_f64(),
        promise: Option<PromiseDocument> =
            class.response.as_ref().map(|response| PromiseDocument::new(delay_of(status, class), response)),
        deadline: Option<DeadlineDocument> = class.deadline.as_ref().map(DeadlineDocument::new),
        model: ModelDocument = ModelDocument::new(&class.model),
        heavy_clients: u32 = class.heavy_clients,
        arrivals: u64 = class.counts.arrivals,
        rejected: u64 = class.counts.rejected(),
        in_flight: u64 = class.counts.in_flight(),
        delivered_bytes: u64 = class.counts.bytes,
        recent: RecentDocument = RecentDocument::new(recent),
        #[serde(serialize_with = "by_reason")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        reasons: &'a Counts = &class.counts,
        #[serde(serialize_with = "by_outcome")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        outcomes: &'a Counts = &class.counts,
    }
}

document! {
    /// What became of a class's requests in the last seconds. Percentiles are those of a histogram whose buckets double.
    RecentDocument(recent: &Recent) {
        seconds: f64 = recent.seconds,
        arrivals: u64 = recent.arrivals,
        served: Vec<u64> = recent.served.get(1..).unwrap_or_default().to_vec(),
        rejected: u64 = recent.rejected(),
        reasons: BTreeMap<&'static str, u64> = recent.reasons_seen(),
        failed: u64 = recent.failed,
        response_p50_seconds: Option<f64> = recent.quantile(0.5),
        response_p95_seconds: Option<f64> = recent.quantile(0.95),
        response_p99_seconds: Option<f64> = recent.quantile(0.99),
    }
}

document! {
    /// A level of a class, from 1: what one request costs there, and how many were served there.
    LevelDocument<'a>(class: &'a ClassStatus, number: usize) {
        level: usize = number,
        name: &'a str = &class.levels[number - 1],
        cost_seconds: Option<f64> = class.level_cost_seconds.get(number - 1).copied().flatten(),
        served: u64 = class.counts.served.get(number).copied().unwrap_or(0),
    }
}

document! {
    /// A promise of response times, and how it is kept. A delay has no weight; a ratio has neither quota nor late share.
    PromiseDocument(row: Option<&DelayRow>, response: &ResponseStatus) {
        delay_seconds: Option<f64> = row.map(|row| row.delay.target.as_secs_f64()),
        percentile: Option<f64> = row.and_then(|row| row.delay.percentile),
        quota: Option<f64> = response.quota,
        mean_seconds: f64 = response.response,
        late_share: Option<f64> = row.map(|_| response.late),
        lost_share: Option<f64> = row.map(|_| response.lost),
        missed: bool = response.missed,
        at_limit: bool = response.at_limit,
        law: Option<LawDocument> = response.law.as_ref().map(LawDocument::new),
        infeasible: bool = response.infeasible,
        ratio: Option<f64> = response.ratio,
        ratio_reached: Option<f64> = response.ratio_reached,
        weight: Option<f64> = response.weight,
    }
}

document! {
    /// What the delay law made its last quota of: the model's workers, and what feedback added for the error that is left.
    LawDocument(terms: &DelayTerms) {
        predicted_workers: f64 = terms.predicted,
        error: f64 = terms.error,
        workers_per_error: f64 = terms.gain,
        integral_workers: f64 = terms.integral,
    }
}

document! {
    /// A class's deadline, and what a request would wait if it came now.
    DeadlineDocument(deadline: &DeadlineStatus) {
        deadline_seconds: f64 = deadline.deadline.as_secs_f64(),
        in_time: f64 = deadline.in_time,
        expected_wait_seconds: f64 = deadline.wait.as_secs_f64(),
        missed: u64 = deadline.missed,
    }
}

document! {
    /// The linear model of a class's content, and how well it is known.
    ModelDocument(model: &ModelStatus) {
        per_request_seconds: Option<f64> = model.per_request_seconds,
        per_byte_seconds: Option<f64> = model.per_byte_seconds,
        confidence: f64 = model.confidence,
        frozen: bool = model.frozen,
    }
}

document! {
    /// What `POST /reload` answers with: what a reload changed.
    pub(super) ReloadDocument<'a>(reloaded: &'a Reloaded) {
        upstreams: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.plants),
        sites: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.sites),
        classes: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.classes),
        control: bool = reloaded.changes.control,
        settings: &'a [&'static str] = &reloaded.settings,
        needs_restart: &'a [&'static str] = &reloaded.needs_restart,
    }
}

document! {
    /// Names that a reload added, removed or changed.
    DifferenceDocument<'a>(difference: &'a Difference) {
        added: &'a [String] = &difference.added,
        removed: &'a [String] = &difference.removed,
        changed: &'a [String] = &difference.changed,
    }
}

/// The classes that are shown, each with its last seconds.
fn numbered_classes<'a>(scrape: &'a Scrape, view: &'a View) -> impl Iterator<Item = ClassDocument<'a>> {
    let status = &scrape.status;
    let shown = status.classes.iter().zip(&view.recent).filter(|(class, _)| !class.is_gone());
    shown.map(|(class, recent)| ClassDocument::new(status, class, recent))
}

fn has_promises(plan: &&PlantPlan) -> bool {
    !plan.rows.is_empty() || !plan.delays.is_empty()
}

fn plant_name(status: &Status, plant: usize) -> Option<&str> {
    status.plants.get(plant).map(|plant| plant.name.as_str())
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
