//! The figures as one JSON object.

use super::Profiled;
use super::{section, summary};
use plimsoll_gateway::admin::json::Json;
use plimsoll_load::profile::{Ended, Fit, Highest, Overload, Point};

pub(crate) fn report(profiled: &Profiled) -> Json {
    let Profiled { profile, servers, subjects, took, .. } = profiled;
    let ended = match profile.ended {
        Ended::Complete => "complete",
        Ended::Interrupted => "interrupted",
        Ended::RequestsUsedUp => "requests used up",
        Ended::Died(..) => "server died",
    };
    let sizes = profile.highest.iter().zip(subjects).map(|(found, name)| {
        let Json::Object(mut fields) = highest(found, name) else { unreachable!("a size is an object") };
        if let Some(fit) = &profile.fit {
            let point = Point { bytes: found.bytes, seconds: found.service_seconds() };
            fields.push(("fit_seconds".to_owned(), Json::Number(fit.seconds(found.bytes))));
            fields.push(("fit_error".to_owned(), rounded(fit.error(point))));
        }
        Json::Object(fields)
    });
    let rejecting = profile.rejecting.as_ref().zip(profiled.rejecting.as_ref());
    let workers = profile.workers().map(u64::from);
    Json::object([
        ("servers", word(servers)),
        ("ended", word(ended)),
        ("why", summary::early_end(profiled).map_or(Json::Null, word)),
        ("requests", Json::Count(profile.requests)),
        ("seconds", rounded(took.as_secs_f64())),
        ("sizes", Json::List(sizes.collect())),
        ("rejecting", rejecting.map_or(Json::Null, |(found, name)| highest(found, name))),
        (
            "overload",
            profile.overload.as_ref().map_or(Json::Null, |overload| self::overload(overload, subjects)),
        ),
        ("costs", profile.fit.as_ref().map_or(Json::Null, |fit| costs(fit, profile.rejecting.as_ref()))),
        ("workers", workers.map_or(Json::Null, Json::Count)),
        ("busy_clients", profile.busy_clients().map_or(Json::Null, |clients| Json::Count(clients.into()))),
        ("section", section::section(profiled).map_or(Json::Null, word)),
        ("notes", Json::List(summary::notes(profiled).iter().map(word).collect())),
    ])
}

fn word(word: impl ToString) -> Json {
    Json::Text(word.to_string())
}

fn optional(value: Option<f64>) -> Json {
    value.map_or(Json::Null, Json::Number)
}

fn highest(found: &Highest, name: &str) -> Json {
    let climb = found.climb.iter().map(|(clients, rate)| {
        Json::object([("clients", Json::Count(u64::from(*clients))), ("rate", rounded(*rate))])
    });
    Json::object([
        ("name", word(name)),
        ("bytes", rounded(found.bytes)),
        ("highest_rate", rounded(found.rate)),
        ("uncertainty", rounded(found.uncertainty)),
        ("service_seconds", Json::Number(found.service_seconds())),
        ("clients", Json::Count(found.clients.into())),
        ("busy_clients", Json::Count(found.busy_clients.into())),
        ("rate_of_one_client", rounded(found.alone)),
        ("sustained", optional(found.sustained)),
        ("response_seconds", optional(found.response_seconds)),
        ("late_seconds", rounded(found.late_seconds)),
        ("client_cpu", found.client_cpu.map_or(Json::Null, rounded)),
        ("machine_cpu", found.machine_cpu.map_or(Json::Null, rounded)),
        ("climb", Json::List(climb.collect())),
    ])
}

fn overload(overload: &Overload, subjects: &[String]) -> Json {
    Json::object([
        ("name", subjects.get(overload.subject).map_or(Json::Null, word)),
        ("offered", rounded(overload.offered)),
        ("answered", rounded(overload.answered)),
        ("failed", rounded(overload.failed)),
        ("bytes_per_second", rounded(overload.bytes_per_second)),
        ("response_seconds", optional(overload.response_seconds)),
        ("late_seconds", rounded(overload.late_seconds)),
        ("client_cpu", overload.client_cpu.map_or(Json::Null, rounded)),
        ("failure_seconds", optional(overload.per_failure_seconds)),
        ("failure_error_seconds", optional(overload.per_failure_error_seconds)),
        ("failure_by_bytes_seconds", optional(overload.per_failure_by_bytes_seconds)),
    ])
}

/// In seconds of the whole server.
fn costs(fit: &Fit, rejecting: Option<&Highest>) -> Json {
    Json::object([
        ("request", Json::Number(fit.per_request_seconds)),
        ("byte", Json::Number(fit.per_byte_seconds)),
        ("link_byte", optional(fit.link_per_byte_seconds)),
        ("rejection", optional(rejecting.map(Highest::service_seconds))),
    ])
}

/// Four digits behind the point are more than the noise leaves.
fn rounded(value: f64) -> Json {
    Json::Number((value * 1e4).round() / 1e4)
}
