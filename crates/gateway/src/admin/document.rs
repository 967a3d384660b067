//! `/status`: all that the engine knows, as one JSON object.
//!
//! The fields are those of [`Status`] with their units in their names; durations are seconds. What is not known yet is
//! `null`. Counters count from the start, everything else is of the last control period.

use super::json::Json;
use plimsoll_core::promises::Mode;
use plimsoll_core::promises::plan::{DelayRow, PlantPlan};
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::ResponseStatus;
use plimsoll_core::telemetry::status::{
    ClassStatus, DeadlineStatus, PlantStatus, SiteStatus, Status, TypeStatus,
};
use std::time::Duration;

/// The document, indented.
pub fn render_status(status: &Status) -> String {
    format!("{:#}\n", status_json(status))
}

/// The document as a value.
pub fn status_json(status: &Status) -> Json {
    let classes = classes(status).map(|class| class_json(status, class));
    Json::object([
        ("at_seconds", Json::Number(status.at.as_secs_f64())),
        ("mode", text(mode_word(status.mode))),
        ("period_seconds", seconds(status.period)),
        ("rejection_cost_seconds", optional(status.rejection_cost_seconds)),
        ("upstreams", Json::List(plants(status).map(plant_json).collect())),
        ("sites", Json::List(status.sites.iter().map(|site| site_json(status, site)).collect())),
        ("plan", Json::List(status.plan.iter().filter(|plan| has_promises(plan)).map(plan_json).collect())),
        ("classes", Json::List(classes.collect())),
    ])
}

/// The plants that are promised, or still at work.
pub(super) fn plants(status: &Status) -> impl Iterator<Item = &PlantStatus> {
    status.plants.iter().filter(|plant| !plant.is_gone())
}

/// The classes that are promised, or have requests under way.
pub(super) fn classes(status: &Status) -> impl Iterator<Item = &ClassStatus> {
    status.classes.iter().filter(|class| !class.is_gone())
}

/// What was promised of a class's response times; `None` without a delay.
pub(super) fn delay_of<'a>(status: &'a Status, class: &ClassStatus) -> Option<&'a DelayRow> {
    let rows = status.plan.iter().flat_map(|plan| &plan.delays);
    rows.into_iter().find(|row| row.site == class.site && row.class == class.class)
}

fn has_promises(plan: &PlantPlan) -> bool {
    !plan.rows.is_empty() || !plan.delays.is_empty()
}

/// The configuration's word for a mode.
pub(super) const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Control => "control",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

fn plant_json(plant: &PlantStatus) -> Json {
    let utilization = Json::object([
        ("set_point", Json::Number(plant.set_point)),
        ("measured", Json::Number(plant.utilization)),
        ("model", Json::Number(plant.utilization_model)),
        ("offered", Json::Number(plant.utilization_offered)),
    ]);
    Json::object([
        ("name", text(&plant.name)),
        ("workers", Json::Count(plant.workers.into())),
        ("workers_found", plant.workers_found.map_or(Json::Null, Json::Bool)),
        ("limit", Json::Count(plant.limit.into())),
        ("utilization", utilization),
        ("level", Json::Number(plant.service_level)),
        ("trim", Json::Number(plant.trim)),
        ("pressure", Json::Number(plant.pressure)),
        ("response_time_override", Json::Bool(plant.response_time_override)),
        ("in_service", Json::Count(plant.in_service.into())),
        ("waiting", Json::Count(plant.waiting.into())),
        ("unfinished_seconds", optional(plant.unfinished_seconds)),
        ("service_time_seconds", seconds(plant.service_time)),
    ])
}

fn site_json(status: &Status, site: &SiteStatus) -> Json {
    let upstream = status.plants.get(site.plant).map_or(Json::Null, |plant| text(&plant.name));
    Json::object([
        ("name", text(&site.name)),
        ("upstream", upstream),
        ("utilization", Json::Number(site.utilization)),
        ("utilization_promised", optional(site.utilization_promised)),
        ("guaranteed_share", Json::Number(site.guaranteed_share)),
        ("types", Json::List(site.types.iter().map(type_json).collect())),
    ])
}

/// What requests of a type cost; of announced costs, what one second announced really takes.
fn type_json(own: &TypeStatus) -> Json {
    Json::object([
        ("name", text(&own.name)),
        ("level", text(&own.level)),
        ("announced", Json::Bool(own.announced)),
        ("requests", Json::Count(own.requests)),
        ("mean_seconds", Json::Number(own.mean)),
        ("deviation_seconds", Json::Number(own.deviation)),
        ("block_seconds", Json::Number(own.block)),
    ])
}

fn deadline_json(own: &DeadlineStatus) -> Json {
    Json::object([
        ("deadline_seconds", seconds(own.deadline)),
        ("expected_wait_seconds", seconds(own.wait)),
        ("missed", Json::Count(own.missed)),
    ])
}

/// A plant's contracts, with the costs as they are known now.
fn plan_json(plan: &PlantPlan) -> Json {
    let rows = plan
        .rows
        .iter()
        .map(|row| Json::object([("site", text(&row.site)), ("utilization", optional(row.utilization))]));
    Json::object([
        ("upstream", text(&plan.plant)),
        ("ceiling", Json::Number(plan.ceiling)),
        ("sum", Json::Number(plan.sum)),
        ("reserve", Json::Number(plan.reserve)),
        ("verdict", text(plan.verdict.as_str())),
        ("guarantees", Json::List(rows.collect())),
        ("delays", Json::List(plan.delays.iter().map(delay_json).collect())),
    ])
}

/// A delay that was promised, and what the plan says of it.
pub fn delay_json(row: &DelayRow) -> Json {
    Json::object([
        ("site", text(&row.site)),
        ("class", text(&row.class)),
        ("delay_seconds", seconds(row.delay.target)),
        ("percentile", optional(row.delay.percentile)),
        ("requests_per_second", optional(row.rate)),
        ("service_seconds", optional(row.service_seconds)),
        ("least_seconds", optional(row.least_seconds)),
        ("fitting_requests_per_second", optional(row.fitting_rate)),
        ("verdict", text(row.verdict().as_str())),
    ])
}

/// What a class was promised of its response times, and how that is kept. Of a delay there is no weight, of a ratio
/// there are neither quota nor late ones.
fn response_json(row: Option<&DelayRow>, response: &ResponseStatus) -> Json {
    let delay = row.map(|row| row.delay);
    Json::object([
        ("delay_seconds", delay.map_or(Json::Null, |delay| seconds(delay.target))),
        ("percentile", optional(delay.and_then(|delay| delay.percentile))),
        ("quota", optional(response.quota)),
        ("mean_seconds", Json::Number(response.response)),
        ("late_share", optional(delay.map(|_| response.late))),
        ("missed", Json::Bool(response.missed)),
        ("at_limit", Json::Bool(response.at_limit)),
        ("infeasible", Json::Bool(response.infeasible)),
        ("ratio", optional(response.ratio)),
        ("ratio_reached", optional(response.ratio_reached)),
        ("weight", optional(response.weight)),
    ])
}

fn class_json(status: &Status, class: &ClassStatus) -> Json {
    let counts = &class.counts;
    let upstream = status.plants.get(class.plant).map_or(Json::Null, |plant| text(&plant.name));
    let levels = class.levels.iter().enumerate().map(|(index, name)| {
        Json::object([
            ("level", Json::Count(index as u64 + 1)),
            ("name", text(name)),
            ("cost_seconds", optional(class.level_cost_seconds.get(index).copied().flatten())),
            ("served", Json::Count(counts.served.get(index + 1).copied().unwrap_or(0))),
        ])
    });
    let model = Json::object([
        ("per_request_seconds", Json::Number(class.model.per_request_seconds)),
        ("per_byte_seconds", Json::Number(class.model.per_byte_seconds)),
        ("confidence", Json::Number(class.model.confidence)),
        ("frozen", Json::Bool(class.model.frozen)),
    ]);
    let reasons = Reason::ALL.map(|reason| (reason.as_str(), Json::Count(counts.reasons[reason as usize])));
    let outcomes =
        Outcome::ALL.map(|outcome| (outcome.as_str(), Json::Count(counts.outcomes[outcome as usize])));
    Json::object([
        ("site", text(&class.site)),
        ("class", text(&class.class)),
        ("upstream", upstream),
        ("level", Json::Number(class.service_level)),
        ("level_of_contract", optional(class.site_level)),
        ("levels", Json::List(levels.collect())),
        ("request_rate_per_second", Json::Number(class.request_rate)),
        ("bandwidth_bytes_per_second", Json::Number(class.bandwidth)),
        ("queue_delay_seconds", seconds(class.queue_delay)),
        ("response_time_seconds", seconds(class.response_time)),
        (
            "promise",
            class
                .response
                .as_ref()
                .map_or(Json::Null, |response| response_json(delay_of(status, class), response)),
        ),
        ("deadline", class.deadline.as_ref().map_or(Json::Null, deadline_json)),
        ("model", model),
        ("heavy_clients", Json::Count(class.heavy_clients.into())),
        ("arrivals", Json::Count(counts.arrivals)),
        ("rejected", Json::Count(counts.rejected())),
        ("in_flight", Json::Count(counts.in_flight())),
        ("delivered_bytes", Json::Count(counts.bytes)),
        ("reasons", Json::object(reasons)),
        ("outcomes", Json::object(outcomes)),
    ])
}

fn text(text: &str) -> Json {
    Json::Text(text.to_owned())
}

fn seconds(duration: Duration) -> Json {
    Json::Number(duration.as_secs_f64())
}

fn optional(value: Option<f64>) -> Json {
    value.map_or(Json::Null, Json::Number)
}
