//! The facts of a profile: sizes with their highest rates, costs, overload.

use super::{Profiled, notes, section};
use crate::output::facts::{Facts, Figure, Value, figure, hidden, rounded};
use crate::output::units::{Unit, rate, size, time};
use plimsoll_load::profile::{Ended, Fit, Highest, MOST_LATE, Overload, Point};

/// A cost: its figure, whose label is the symbol, and a description.
pub(crate) struct Cost {
    pub(crate) figure: Figure,
    pub(crate) what: String,
}

/// The facts of a profile, as `profile --json` prints them.
pub(crate) fn facts(profiled: &Profiled) -> Facts {
    let Profiled { profile, servers, subjects, took, .. } = profiled;
    let four = |value: f64| rounded(value, Unit::Plain(4));
    let size = |(name, mut figures, found): (String, Facts, &Highest)| {
        let climb = found.climb.iter();
        let climb = climb
            .map(|(clients, rate)| Facts(vec![hidden("clients", *clients), hidden("rate", four(*rate))]));
        figures.0.insert(0, hidden("name", name));
        figures.0.push(hidden("climb", climb.collect::<Vec<_>>()));
        figures
    };
    let costs = || Facts(costs(profiled).into_iter().map(|cost| cost.figure).collect());
    Facts(vec![
        hidden("servers", servers.as_str()),
        hidden(
            "ended",
            match profile.ended {
                Ended::Complete => "complete",
                Ended::Interrupted => "interrupted",
                Ended::RequestsUsedUp => "requests used up",
                Ended::Died(..) => "server died",
            },
        ),
        hidden("why", notes::early_end(profiled)),
        hidden("requests", profile.requests),
        hidden("seconds", rounded(took.as_secs_f64(), Unit::Seconds)),
        hidden("sizes", sizes(profiled).map(size).collect::<Vec<_>>()),
        hidden("rejecting", rejecting(profiled).map(size)),
        hidden("overload", profile.overload.as_ref().map(|found| overload(found, subjects))),
        hidden("costs", profile.fit.map(|_| costs())),
        hidden("workers", profile.workers()),
        hidden("busy_clients", profile.busy_clients()),
        hidden("section", section::section(profiled)),
        hidden("notes", notes::notes(profiled)),
    ])
}

/// Each size: its name, its figures, and the measurement itself.
pub(crate) fn sizes(profiled: &Profiled) -> impl Iterator<Item = (String, Facts, &Highest)> {
    let Profiled { profile, subjects, .. } = profiled;
    let sizes = profile.highest.iter().zip(subjects);
    sizes.map(|(found, name)| (name.clone(), measured(found, profile.fit.as_ref()), found))
}

/// The same for the URL that is always rejected.
pub(crate) fn rejecting(profiled: &Profiled) -> Option<(String, Facts, &Highest)> {
    let (found, name) = profiled.profile.rejecting.as_ref().zip(profiled.rejecting.clone())?;
    Some((name, measured(found, None), found))
}

fn measured(found: &Highest, fit: Option<&Fit>) -> Facts {
    let point = Point { bytes: found.bytes, seconds: found.service_seconds() };
    let four = |value| rounded(value, Unit::Plain(4));
    let seconds = |value| Value::Number(value, Unit::Seconds);
    let sustained = match found.sustained {
        Some(share) => Value::from(share).said(format!("at {:.0} %", share * 100.0)),
        None => Value::Absent.said("no"),
    };
    let mut figures = vec![
        figure("bytes", "size", rounded(found.bytes, Unit::Size)),
        figure("highest_rate", "highest rate", rounded(found.rate, Unit::PerSecond)),
        figure("uncertainty", "+/-", rounded(found.uncertainty, Unit::Percent(1))),
        figure("service_seconds", "service time", seconds(point.seconds)),
        figure("clients", "clients", found.clients),
        hidden("busy_clients", found.busy_clients),
        hidden("rate_of_one_client", four(found.alone)),
        figure("sustained", "sustained", sustained),
        figure("response_seconds", "response", found.response_seconds.map(seconds)),
        hidden("late_seconds", four(found.late_seconds)),
        hidden("client_cpu", found.client_cpu.map(four)),
        hidden("machine_cpu", found.machine_cpu.map(four)),
    ];
    if let Some(fit) = fit {
        let fitted = [
            figure("fit_seconds", "fit", seconds(fit.seconds(found.bytes))),
            figure("fit_error", "error", rounded(fit.error(point), Unit::Percent(1))),
        ];
        figures.splice(4..4, fitted);
    }
    Facts(figures)
}

fn overload(overload: &Overload, subjects: &[String]) -> Facts {
    let four = |value| rounded(value, Unit::Plain(4));
    Facts(vec![
        hidden("name", subjects.get(overload.subject).map(String::as_str)),
        hidden("offered", four(overload.offered)),
        hidden("answered", four(overload.answered)),
        hidden("failed", four(overload.failed)),
        hidden("bytes_per_second", four(overload.bytes_per_second)),
        hidden("response_seconds", overload.response_seconds),
        hidden("late_seconds", four(overload.late_seconds)),
        hidden("client_cpu", overload.client_cpu.map(four)),
        hidden("failure_seconds", overload.per_failure_seconds),
        hidden("failure_error_seconds", overload.per_failure_error_seconds),
        hidden("failure_by_bytes_seconds", overload.per_failure_by_bytes_seconds),
    ])
}

/// The costs, in seconds of the whole server; none if no size was measured.
pub(crate) fn costs(profiled: &Profiled) -> Vec<Cost> {
    let profile = &profiled.profile;
    let Some(fit) = profile.fit else { return Vec::new() };
    let cost = |key, symbol: &'static str, value: Option<f64>, what: &str| Cost {
        figure: figure(key, symbol, value.map(|seconds| Value::Number(seconds, Unit::Seconds))).rare(),
        what: what.to_owned(),
    };
    let (own, byte) = (fit.per_request_seconds, fit.per_byte_seconds);
    let link = fit.link_per_byte_seconds.map_or(String::new(), |link| {
        let (rate, from) = (rate(1.0 / link), size(own / (link - byte)));
        format!("a byte on the second resource, the link: {rate}, what binds from {from} on")
    });
    let rejection = profile.rejecting.as_ref().map(Highest::service_seconds);
    let mut all = vec![
        cost("request", "a", Some(own), "a request, whatever its size"),
        cost("byte", "b", Some(byte), &format!("a byte; {} a KiB", time(byte * 1024.0))),
        cost("link_byte", "b'", fit.link_per_byte_seconds, &link),
        cost("rejection", "c", rejection, "a rejection"),
    ];
    all.extend(profile.overload.as_ref().map(failure));
    all
}

/// The cost of a failed request. Only text has it as a cost, because in JSON the overload's facts have it.
fn failure(overload: &Overload) -> Cost {
    let Overload { offered, answered, failed, .. } = overload;
    let seen = format!("offered {offered:.0}/s, answered {answered:.0}/s, failed {failed:.0}/s");
    let (value, what) = match (overload.per_failure_seconds, overload.per_failure_by_bytes_seconds) {
        (Some(own), Some(by_bytes)) => {
            let error = time(overload.per_failure_error_seconds.unwrap_or_default());
            let by_bytes = time(by_bytes);
            let what = format!(
                "a request that fails above the highest rate, give or take {error}; {by_bytes} by its lost bytes alone \
                 ({seen})"
            );
            (time(own), what)
        }
        _ if overload.late_seconds > MOST_LATE => {
            ("-".to_owned(), format!("a request that fails: the client could not offer enough ({seen})"))
        }
        _ => ("-".to_owned(), format!("a request that fails: next to none did ({seen})")),
    };
    Cost { figure: figure("", "T_f", value), what }
}
