//! Promised response times: what was promised, and how it is kept. Classes without a promise have no samples here, nor
//! has what does not concern a promise: a delay has no weight, a ratio no quota.

use super::{Exposition, Kind, Value, classes, delay_of, of, plants, upstream};
use plimsoll_core::promises::plan::DelayRow;
use plimsoll_core::telemetry::status::ResponseStatus;
use plimsoll_core::telemetry::status::Status;

/// Of a class with a delay.
type Promised = (&'static str, &'static str, fn(&DelayRow) -> Option<f64>);

const PROMISED: &[Promised] = &[
    ("plimsoll_promised_delay_seconds", "The response time that the class was promised.", |row| {
        Some(row.delay.target.as_secs_f64())
    }),
    (
        "plimsoll_promised_late_ratio",
        "The part of the class's requests that may take longer; of a promised mean there is none.",
        |row| row.delay.percentile.map(|percentile| 1.0 - percentile / 100.0),
    ),
    (
        "plimsoll_planned_delay_seconds",
        "The least delay that can be kept at the contracted rate, with the costs as they are known now.",
        |row| row.least_seconds,
    ),
];

/// Of a class with a promise.
type Held = (&'static str, &'static str, fn(&ResponseStatus) -> Option<f64>);

const HELD: &[Held] = &[
    ("plimsoll_quota_workers", "Workers that are the class's own while it wants them.", |held| held.quota),
    (
        "plimsoll_window_response_time_seconds",
        "Mean response time over the window of its promise: the last thousand requests or so.",
        |held| Some(held.response),
    ),
    (
        "plimsoll_late_ratio",
        "Part of the requests in the window that took longer than was promised.",
        |held| held.quota.map(|_| held.late),
    ),
    ("plimsoll_promise_missed", "1 while the promised delay is not kept.", |held| {
        held.quota.map(|_| held.missed.into())
    }),
    ("plimsoll_quota_at_limit", "1 while the quota is at an end of its range.", |held| {
        held.quota.map(|_| held.at_limit.into())
    }),
    ("plimsoll_ratio_infeasible", "1 while the promised ratio cannot be had at this load.", |held| {
        held.weight.map(|_| held.infeasible.into())
    }),
    (
        "plimsoll_promised_ratio",
        "What the class's response times were promised to be to the others' of its site.",
        |held| held.ratio,
    ),
    (
        "plimsoll_reached_ratio",
        "What they are to them over the window: as promised where the ratio holds.",
        |held| held.ratio_reached,
    ),
    ("plimsoll_weight", "What the class's waiting counts for when it is said who is next.", |held| {
        held.weight
    }),
];

/// Every class's.
pub(super) fn promises(text: &mut Exposition, status: &Status) {
    for (name, help, value) in PROMISED {
        let samples = classes(status)
            .filter_map(|class| Some((of(class), Value::Number(value(delay_of(status, class)?)?))));
        text.family(Kind::Gauge, (name, help), samples);
    }
    for (name, help, value) in HELD {
        let samples = classes(status)
            .filter_map(|class| Some((of(class), Value::Number(value(class.response.as_ref()?)?))));
        text.family(Kind::Gauge, (name, help), samples);
    }
}

/// Of upstreams whose workers are looked for.
pub(super) fn workers_found(text: &mut Exposition, status: &Status) {
    let samples = plants(status)
        .filter_map(|plant| Some((upstream(plant), Value::Number(plant.workers_found?.into()))));
    let help = "1 once the number of workers was found; until then nobody is turned away for the load.";
    text.family(Kind::Gauge, ("plimsoll_workers_found", help), samples);
}
