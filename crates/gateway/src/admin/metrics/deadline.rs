//! Deadlines: what was promised, what a request would wait now, and what requests of each type cost. Without a deadline
//! there are no samples.

use super::{Exposition, Kind, Value, classes, of, plants, upstream};
use plimsoll_core::telemetry::status::{DeadlineStatus, Status, TypeStatus};

/// Of a class with a deadline.
type Promised = (&'static str, &'static str, fn(&DeadlineStatus) -> f64);

const PROMISED: &[Promised] = &[
    ("plimsoll_deadline_seconds", "The relative deadline of the class.", |own| own.deadline.as_secs_f64()),
    ("plimsoll_expected_wait_seconds", "What a request of the class would wait if it came now.", |own| {
        own.wait.as_secs_f64()
    }),
];

/// Of a type at a level.
type Costs = (&'static str, &'static str, fn(&TypeStatus) -> f64);

const COSTS: &[Costs] = &[
    (
        "plimsoll_type_service_seconds",
        "Mean service time of the type at the level, without bodies; of announced costs, of one second announced.",
        |own| own.mean,
    ),
    (
        "plimsoll_type_service_deviation_seconds",
        "Standard deviation of the same from request to request, with the doubt about the mean.",
        |own| own.deviation,
    ),
    ("plimsoll_type_block_seconds", "What each whole 64 KB of a request's body takes on top.", |own| {
        own.block
    }),
];

/// Every class's, plant's and type's.
pub(super) fn promises(text: &mut Exposition, status: &Status) {
    let samples =
        plants(status).filter_map(|plant| Some((upstream(plant), Value::Number(plant.unfinished_seconds?))));
    let help = "Work that was taken on and is not done, in seconds of one worker.";
    text.family(Kind::Gauge, ("plimsoll_unfinished_work_seconds", help), samples);
    for (name, help, value) in PROMISED {
        let samples = classes(status)
            .filter_map(|class| Some((of(class), Value::Number(value(class.deadline.as_ref()?)))));
        text.family(Kind::Gauge, (name, help), samples);
    }
    let missed =
        classes(status).filter_map(|class| Some((of(class), Value::Count(class.deadline.as_ref()?.missed))));
    let help = "Requests that were started and released after their deadline.";
    text.family(Kind::Counter, ("plimsoll_deadline_missed_total", help), missed);
    for (name, help, value) in COSTS {
        let types = status.sites.iter().flat_map(|site| site.types.iter().map(move |own| (site, own)));
        let samples = types.map(|(site, own)| {
            let announced = if own.announced { "yes" } else { "no" };
            let labels = vec![
                ("site", site.name.clone()),
                ("type", own.name.clone()),
                ("level_name", own.level.clone()),
                ("announced", announced.to_owned()),
            ];
            (labels, Value::Number(value(own)))
        });
        text.family(Kind::Gauge, (name, help), samples);
    }
}
