//! `/metrics`: the status in Prometheus' text format, version 0.0.4.
//!
//! Names follow its conventions: base units, the unit last, `_total` for what only grows. A class is named by the labels
//! `site` and `class`, a plant by `upstream`. What is not known yet is left out and not written as zero.

mod deadline;
mod response;

use super::document::{classes, delay_of, mode_word, plants};
use crate::reload::Reloads;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::{ClassStatus, PlantStatus, SiteStatus, Status};
use std::fmt::Write;

/// All metrics.
pub fn render_metrics(status: &Status) -> String {
    let mut text = Exposition(String::with_capacity(16 * 1024));
    engine(&mut text, status);
    for (name, help, value) in PLANT_GAUGES {
        let samples = plants(status).map(|plant| (upstream(plant), Value::Number(value(plant))));
        text.family(Kind::Gauge, (name, help), samples);
    }
    response::workers_found(&mut text, status);
    utilizations(&mut text, status);
    contracts(&mut text, status);
    for (name, help, value) in CLASS_GAUGES {
        let samples = classes(status).map(|class| (of(class), Value::Number(value(class))));
        text.family(Kind::Gauge, (name, help), samples);
    }
    response::promises(&mut text, status);
    deadline::promises(&mut text, status);
    level_costs(&mut text, status);
    counters(&mut text, status);
    text.0
}

/// The metrics of reloads, which the engine does not know: a file that is wrong never comes to it.
pub fn render_reloads(reloads: Reloads) -> String {
    let mut text = Exposition(String::new());
    let samples = [("applied", reloads.applied), ("refused", reloads.refused)]
        .map(|(result, count)| (vec![("result", result.to_owned())], Value::Count(count)));
    let help = "Times that the configuration was read again: applied, or refused because it is wrong.";
    text.family(Kind::Counter, ("plimsoll_reloads_total", help), samples);
    let help = "When the configuration in force came into force, in Unix time.";
    let since = [(Vec::new(), Value::Number(reloads.in_force_since.as_secs_f64()))];
    text.family(Kind::Gauge, ("plimsoll_configuration_in_force_timestamp_seconds", help), since);
    text.0
}

type Gauge<T> = (&'static str, &'static str, fn(&T) -> f64);

const PLANT_GAUGES: &[Gauge<PlantStatus>] = &[
    ("plimsoll_workers", "Requests that the upstream works on at once.", |plant| plant.workers.into()),
    ("plimsoll_in_service_limit", "The most requests in service at the upstream at once.", |plant| {
        plant.limit.into()
    }),
    ("plimsoll_in_service", "Requests in service at the upstream.", |plant| plant.in_service.into()),
    ("plimsoll_waiting", "Requests waiting for the upstream.", |plant| plant.waiting.into()),
    ("plimsoll_upstream_level", "The service level m that the upstream's loop asks for.", |plant| {
        plant.service_level
    }),
    ("plimsoll_trim", "What the PI controller adds to the set point.", |plant| plant.trim),
    ("plimsoll_pressure", "By what part the load line is lowered for delays that are missed.", |plant| {
        plant.pressure
    }),
    (
        "plimsoll_response_time_override",
        "1 while the upstream is slower than its limit and counts as full.",
        |plant| plant.response_time_override.into(),
    ),
    ("plimsoll_service_time_seconds", "Mean service time in the last control period.", |plant| {
        plant.service_time.as_secs_f64()
    }),
];

const CLASS_GAUGES: &[Gauge<ClassStatus>] = &[
    (
        "plimsoll_level",
        "The service level m of the class: 0 rejects everybody, M is full quality.",
        |class| class.service_level,
    ),
    (
        "plimsoll_request_rate_per_second",
        "Requests that arrived per second in the last control period.",
        |class| class.request_rate,
    ),
    (
        "plimsoll_bandwidth_bytes_per_second",
        "Bytes delivered per second in the last control period.",
        |class| class.bandwidth,
    ),
    (
        "plimsoll_queue_delay_seconds",
        "Mean time from arrival to start in the last control period.",
        |class| class.queue_delay.as_secs_f64(),
    ),
    (
        "plimsoll_response_time_seconds",
        "Mean time from arrival to release in the last control period.",
        |class| class.response_time.as_secs_f64(),
    ),
    ("plimsoll_in_flight", "Requests that arrived and neither departed nor were turned away.", |class| {
        class.counts.in_flight() as f64
    }),
    ("plimsoll_heavy_clients", "Clients with over a tenth of the load, served at random levels.", |class| {
        class.heavy_clients.into()
    }),
    ("plimsoll_cost_per_request_seconds", "Model coefficient a: utilization seconds per request.", |class| {
        class.model.per_request_seconds
    }),
    (
        "plimsoll_cost_per_byte_seconds",
        "Model coefficient b: utilization seconds per delivered byte.",
        |class| class.model.per_byte_seconds,
    ),
    ("plimsoll_model_confidence_ratio", "How well the model is known: 0 not at all, 1 exactly.", |class| {
        class.model.confidence
    }),
    ("plimsoll_model_frozen", "1 if the last control period taught the model nothing.", |class| {
        class.model.frozen.into()
    }),
];

fn engine(text: &mut Exposition, status: &Status) {
    let modes = [Mode::Control, Mode::Observe, Mode::Off].map(|mode| {
        let labels = vec![("mode", mode_word(mode).to_owned())];
        (labels, Value::Number((mode == status.mode).into()))
    });
    text.family(Kind::Gauge, ("plimsoll_mode", "1 for the mode that the loops run in."), modes);
    let one = |value| [(Vec::new(), Value::Number(value))];
    let name =
        ("plimsoll_last_tick_seconds", "When the loops last ran, from the start; a stall keeps it still.");
    text.family(Kind::Gauge, name, one(status.at.as_secs_f64()));
    let name = ("plimsoll_control_period_seconds", "The control period T.");
    text.family(Kind::Gauge, name, one(status.period.as_secs_f64()));
    let name =
        ("plimsoll_rejection_cost_seconds", "Model coefficient c: the gateway's CPU time per rejection.");
    text.family(Kind::Gauge, name, status.rejection_cost_seconds.into_iter().flat_map(one));
}

fn utilizations(text: &mut Exposition, status: &Status) {
    let samples = plants(status).flat_map(|plant| {
        let kinds = [
            ("set_point", plant.set_point),
            ("measured", plant.utilization),
            ("model", plant.utilization_model),
            ("offered", plant.utilization_offered),
        ];
        kinds.map(|(kind, value)| (with(upstream(plant), "kind", kind), Value::Number(value)))
    });
    let help = "Utilization of the upstream: wanted, measured, by the model, and offered (backlog included).";
    text.family(Kind::Gauge, ("plimsoll_utilization", help), samples);
}

/// What was promised to sites, and whether it can be kept with the costs as they are known now.
fn contracts(text: &mut Exposition, status: &Status) {
    let promised = status.sites.iter().filter(|site| site.utilization_promised.is_some());
    let labels = |site: &SiteStatus| vec![("site", site.name.clone())];
    let samples = promised.clone().flat_map(|site| {
        let kinds = [("promised", site.utilization_promised), ("offered", Some(site.utilization))];
        kinds
            .map(|(kind, value)| (with(labels(site), "kind", kind), Value::Number(value.unwrap_or(f64::NAN))))
    });
    let help = "Of the upstream: what the site's contract promises it, and what it takes.";
    text.family(Kind::Gauge, ("plimsoll_site_utilization", help), samples);
    let samples = promised.map(|site| (labels(site), Value::Number(site.guaranteed_share)));
    let help = "Part of the site's requests in the last control period that were inside its contract.";
    text.family(Kind::Gauge, ("plimsoll_guaranteed_ratio", help), samples);
    let plans = status.plan.iter().filter(|plan| !plan.rows.is_empty());
    let samples = plans.flat_map(|plan| {
        [("sum", plan.sum), ("ceiling", plan.ceiling)].map(|(kind, value)| {
            (vec![("upstream", plan.plant.clone()), ("kind", kind.to_owned())], Value::Number(value))
        })
    });
    let help =
        "Of the upstream: all contracts together with the costs as they are known now, and what they may be.";
    text.family(Kind::Gauge, ("plimsoll_promised_utilization", help), samples);
}

fn level_costs(text: &mut Exposition, status: &Status) {
    let samples = classes(status).flat_map(|class| {
        class
            .level_cost_seconds
            .iter()
            .enumerate()
            .filter_map(|(index, cost)| Some((with_level(class, index + 1), Value::Number((*cost)?))))
    });
    let help = "Utilization seconds that one request takes at this level.";
    text.family(Kind::Gauge, ("plimsoll_level_cost_seconds", help), samples);
}

fn counters(text: &mut Exposition, status: &Status) {
    let each = |value: fn(&ClassStatus) -> u64| {
        classes(status).map(move |class| (of(class), Value::Count(value(class))))
    };
    let name = ("plimsoll_arrivals_total", "Requests that arrived.");
    text.family(Kind::Counter, name, each(|class| class.counts.arrivals));
    let name = ("plimsoll_bytes_total", "Body bytes delivered to clients.");
    text.family(Kind::Counter, name, each(|class| class.counts.bytes));

    let samples = classes(status).flat_map(|class| {
        Reason::ALL.map(|reason| {
            (with(of(class), "reason", reason.as_str()), Value::Count(class.counts.reasons[reason as usize]))
        })
    });
    text.family(Kind::Counter, ("plimsoll_requests_total", "Decisions by reason."), samples);

    let samples = classes(status).flat_map(|class| {
        (1..=class.levels.len()).map(|level| {
            (with_level(class, level), Value::Count(class.counts.served.get(level).copied().unwrap_or(0)))
        })
    });
    let help = "Requests started, by level; in observe mode by the level that would have been.";
    text.family(Kind::Counter, ("plimsoll_served_total", help), samples);

    let samples = classes(status).flat_map(|class| {
        Outcome::ALL.map(|outcome| {
            (
                with(of(class), "outcome", outcome.as_str()),
                Value::Count(class.counts.outcomes[outcome as usize]),
            )
        })
    });
    text.family(Kind::Counter, ("plimsoll_departures_total", "Requests that departed, by outcome."), samples);
}

type Labels = Vec<(&'static str, String)>;

fn of(class: &ClassStatus) -> Labels {
    vec![("site", class.site.clone()), ("class", class.class.clone())]
}

fn upstream(plant: &PlantStatus) -> Labels {
    vec![("upstream", plant.name.clone())]
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}

/// The level's number and its name.
fn with_level(class: &ClassStatus, level: usize) -> Labels {
    let name = class.levels.get(level - 1).map_or("", String::as_str);
    with(with(of(class), "level", &level.to_string()), "level_name", name)
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Counters stay exact beyond 2^53.
enum Value {
    Count(u64),
    Number(f64),
}

struct Exposition(String);

impl Exposition {
    /// One metric with its head; nothing if there are no samples. Writing to a string cannot fail.
    fn family(
        &mut self,
        kind: Kind,
        (name, help): (&str, &str),
        samples: impl IntoIterator<Item = (Labels, Value)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            self.0.push_str(name);
            for (number, (label, text)) in labels.iter().enumerate() {
                let _ = write!(self.0, "{}{label}=\"", if number == 0 { '{' } else { ',' });
                escape(&mut self.0, text);
                self.0.push('"');
            }
            self.0.push_str(if labels.is_empty() { " " } else { "} " });
            let _ = match value {
                Value::Count(count) => writeln!(self.0, "{count}"),
                Value::Number(number) if number == f64::INFINITY => writeln!(self.0, "+Inf"),
                Value::Number(number) if number == f64::NEG_INFINITY => writeln!(self.0, "-Inf"),
                Value::Number(number) => writeln!(self.0, "{number}"),
            };
        }
    }
}

/// A label's value: backslash, quote and line feed are escaped, everything else is itself.
fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}
