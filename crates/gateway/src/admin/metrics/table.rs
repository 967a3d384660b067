//! All metrics, one row each, in the order of the page; and the [`Scrape`] that the rows read.

use super::{Labels, Metric, Read, Sample, Value, of_class, of_level, of_plant, with};
use crate::admin::Owner;
use crate::admin::document::{classes, mode_word, plants};
use crate::runtime::reload::Reloads;
use crate::runtime::worker::Shared;
use plimsoll_core::Engine;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{ClassStatus, PlantStatus, SiteStatus, Status};
use std::sync::{Mutex, PoisonError};

/// What one request of the operator's sees: taken at once, then rendered in the form that was asked for.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Scrape {
    pub(in crate::admin) status: Status,
    pub(in crate::admin) reloads: Reloads,
    pub(in crate::admin) log_lines_dropped: u64,
}

impl Scrape {
    /// What there is to see now.
    pub(in crate::admin) fn take(engine: &Mutex<Engine>, shared: &Shared, owner: Option<&dyn Owner>) -> Self {
        Scrape {
            status: engine.lock().unwrap_or_else(PoisonError::into_inner).status(),
            reloads: *shared.reloads(),
            log_lines_dropped: owner.map_or(0, |owner| owner.log_lines_dropped()),
        }
    }
}

/// The table of metrics: each row is a name, a help text, and where its samples are read.
macro_rules! metrics {
    ($($name:literal, $help:literal, $kind:ident($read:expr);)+) => {
        pub(super) const METRICS: &[Metric] =
            &[$(Metric { name: $name, help: $help, read: Read::$kind($read) },)+];
    };
}

metrics! {
    "plimsoll_mode", "1 for the mode that the loops run in.", Labelled(modes);
    "plimsoll_last_tick_seconds", "When the loops last ran, from the start; a stall keeps it still.",
        Gateway(|all| Some(all.status.at.as_secs_f64()));
    "plimsoll_control_period_seconds", "The control period T.",
        Gateway(|all| Some(all.status.period.as_secs_f64()));
    "plimsoll_rejection_cost_seconds", "Model coefficient c: the gateway's CPU time per rejection.",
        Gateway(|all| all.status.rejection_cost_seconds);
    "plimsoll_workers", "Requests that the upstream works on at once.",
        Plants(|own| Some(own.workers.into()));
    "plimsoll_in_service_limit", "The most requests in service at the upstream at once.",
        Plants(|own| Some(own.limit.into()));
    "plimsoll_in_service", "Requests in service at the upstream.", Plants(|own| Some(own.in_service.into()));
    "plimsoll_waiting", "Requests waiting for the upstream.", Plants(|own| Some(own.waiting.into()));
    "plimsoll_upstream_level", "The service level m that the upstream's loop asks for.",
        Plants(|own| Some(own.service_level));
    "plimsoll_trim", "What the PI controller adds to the set point.", Plants(|own| Some(own.bias));
    "plimsoll_pressure", "By what part the load line is lowered for delays that are missed.",
        Plants(|own| Some(own.set_point_reduction));
    "plimsoll_response_time_override", "1 while the upstream is slower than its limit and counts as full.",
        Plants(|own| Some(own.response_time_override.into()));
    "plimsoll_service_time_seconds", "Mean service time in the last control period.",
        Plants(|own| Some(own.service_time.as_secs_f64()));
    "plimsoll_workers_found",
        "1 once the number of workers was found; until then no request is rejected for the load.",
        Plants(|own| own.workers_found.map(f64::from));
    "plimsoll_unfinished_work_seconds", "Work that was taken on and is not done, in seconds of one worker.",
        Plants(|own| own.unfinished_seconds);
    "plimsoll_utilization",
        "Utilization of the upstream: wanted, measured, by the model, and offered (backlog included).",
        Labelled(utilizations);
    "plimsoll_site_utilization", "Of the upstream: what the site's contract promises it, and what it takes.",
        Labelled(site_utilizations);
    "plimsoll_guaranteed_ratio",
        "Part of the site's requests in the last control period that were inside its contract.",
        Labelled(guaranteed_shares);
    "plimsoll_promised_utilization",
        "Of the upstream: all contracts together with the costs as they are known now, and what they may be.",
        Labelled(promised_utilizations);
    "plimsoll_level", "The service level m of the class: 0 rejects everybody, M is full quality.",
        Classes(|own| Some(own.service_level));
    "plimsoll_request_rate_per_second", "Requests that arrived per second in the last control period.",
        Classes(|own| Some(own.request_rate));
    "plimsoll_bandwidth_bytes_per_second", "Bytes delivered per second in the last control period.",
        Classes(|own| Some(own.bandwidth));
    "plimsoll_queue_delay_seconds", "Mean time from arrival to start in the last control period.",
        Classes(|own| Some(own.queue_delay.as_secs_f64()));
    "plimsoll_response_time_seconds", "Mean time from arrival to release in the last control period.",
        Classes(|own| Some(own.response_time.as_secs_f64()));
    "plimsoll_queue_seconds", "Time from arrival to start, by request.", Times(|own| &own.queue_delays);
    "plimsoll_response_seconds", "Time from arrival to release, by request.",
        Times(|own| &own.response_times);
    "plimsoll_in_flight", "Requests that arrived and neither departed nor were turned away.",
        Classes(|own| Some(own.counts.in_flight() as f64));
    "plimsoll_heavy_clients", "Clients with over a tenth of the load, served at random levels.",
        Classes(|own| Some(own.heavy_clients.into()));
    "plimsoll_cost_per_request_seconds", "Model coefficient a: utilization seconds per request.",
        Classes(|own| Some(own.model.per_request_seconds));
    "plimsoll_cost_per_byte_seconds", "Model coefficient b: utilization seconds per delivered byte.",
        Classes(|own| Some(own.model.per_byte_seconds));
    "plimsoll_model_confidence_ratio", "How well the model is known: 0 not at all, 1 exactly.",
        Classes(|own| Some(own.model.confidence));
    "plimsoll_model_frozen", "1 if the last control period taught the model nothing.",
        Classes(|own| Some(own.model.frozen.into()));
    "plimsoll_promised_delay_seconds", "The response time that the class was promised.",
        Delays(|row| Some(row.delay.target.as_secs_f64()));
    "plimsoll_promised_late_ratio",
        "The part of the class's requests that may take longer; a promised mean has none.",
        Delays(|row| row.delay.percentile.map(|percentile| 1.0 - percentile / 100.0));
    "plimsoll_planned_delay_seconds",
        "The least delay that can be kept at the contracted rate, with the costs as they are known now.",
        Delays(|row| row.least_seconds);
    "plimsoll_quota_workers", "Workers that are the class's own while it wants them.",
        Classes(|own| own.response?.quota);
    "plimsoll_window_response_time_seconds",
        "Mean response time over the window of its promise: the last thousand requests or so.",
        Classes(|own| Some(own.response?.response));
    "plimsoll_late_ratio", "Part of the requests in the window that took longer than was promised.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.late));
    "plimsoll_promise_missed", "1 while the promised delay is not kept.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.missed.into()));
    "plimsoll_quota_at_limit", "1 while the quota is at an end of its range.",
        Classes(|own| own.response.filter(|held| held.quota.is_some()).map(|held| held.at_limit.into()));
    "plimsoll_ratio_infeasible", "1 while the promised ratio cannot be had at this load.",
        Classes(|own| own.response.filter(|held| held.weight.is_some()).map(|held| held.infeasible.into()));
    "plimsoll_promised_ratio",
        "What the class's response times were promised to be to the others' of its site.",
        Classes(|own| own.response?.ratio);
    "plimsoll_reached_ratio", "What they are to them over the window: as promised where the ratio holds.",
        Classes(|own| own.response?.ratio_reached);
    "plimsoll_weight", "The weight of the class's waiting time when the next request is chosen.",
        Classes(|own| own.response?.weight);
    "plimsoll_deadline_seconds", "The relative deadline of the class.",
        Classes(|own| Some(own.deadline?.deadline.as_secs_f64()));
    "plimsoll_expected_wait_seconds", "What a request of the class would wait if it came now.",
        Classes(|own| Some(own.deadline?.wait.as_secs_f64()));
    "plimsoll_deadline_missed_total", "Requests that were started and released after their deadline.",
        ClassCounts(|own| Some(own.deadline?.missed));
    "plimsoll_type_service_seconds",
        "Mean service time of the type at the level, without bodies; of announced costs, of one second announced.",
        Types(|own| own.mean);
    "plimsoll_type_service_deviation_seconds",
        "Standard deviation of the same from request to request, with the doubt about the mean.",
        Types(|own| own.deviation);
    "plimsoll_type_block_seconds", "What each whole 64 KB of a request's body takes on top.",
        Types(|own| own.block);
    "plimsoll_level_cost_seconds", "Utilization seconds that one request takes at this level.",
        Labelled(level_costs);
    "plimsoll_arrivals_total", "Requests that arrived.", ClassCounts(|own| Some(own.counts.arrivals));
    "plimsoll_bytes_total", "Body bytes delivered to clients.", ClassCounts(|own| Some(own.counts.bytes));
    "plimsoll_requests_total", "Decisions by reason.", Labelled(reasons);
    "plimsoll_served_total", "Requests started, by level; in observe mode by the level that would have been.",
        Labelled(served);
    "plimsoll_departures_total", "Requests that departed, by outcome.", Labelled(outcomes);
    "plimsoll_reloads_total",
        "Times that the configuration was read again: applied, or refused because it is wrong.",
        Labelled(reloads);
    "plimsoll_configuration_in_force_timestamp_seconds",
        "When the configuration in force came into force, in Unix time.",
        Gateway(|all| Some(all.reloads.in_force_since.as_secs_f64()));
    "plimsoll_log_lines_dropped_total", "Lines of the log that could not be written, or not in time.",
        Gateway(|all| Some(all.log_lines_dropped as f64));
}

fn modes(scrape: &Scrape) -> Vec<Sample> {
    let all = [Mode::Control, Mode::Observe, Mode::Off];
    let sample = |mode| {
        (vec![("mode", mode_word(mode).to_owned())], Value::Number((mode == scrape.status.mode).into()))
    };
    all.map(sample).into()
}

fn utilizations(scrape: &Scrape) -> Vec<Sample> {
    let of = |plant: &PlantStatus| {
        [
            ("set_point", plant.set_point),
            ("measured", plant.utilization),
            ("model", plant.utilization_model),
            ("offered", plant.utilization_offered),
        ]
        .map(|(kind, value)| (with(of_plant(plant), "kind", kind), Value::Number(value)))
    };
    plants(&scrape.status).flat_map(of).collect()
}

fn promised(scrape: &Scrape) -> impl Iterator<Item = &SiteStatus> {
    scrape.status.sites.iter().filter(|site| site.utilization_promised.is_some())
}

fn of_site(site: &SiteStatus) -> Labels {
    vec![("site", site.name.clone())]
}

fn site_utilizations(scrape: &Scrape) -> Vec<Sample> {
    let of = |site: &SiteStatus| {
        let kinds = [("promised", site.utilization_promised), ("offered", Some(site.utilization))];
        kinds.map(|(kind, value)| {
            (with(of_site(site), "kind", kind), Value::Number(value.unwrap_or(f64::NAN)))
        })
    };
    promised(scrape).flat_map(of).collect()
}

fn guaranteed_shares(scrape: &Scrape) -> Vec<Sample> {
    promised(scrape).map(|site| (of_site(site), Value::Number(site.guaranteed_share))).collect()
}

fn promised_utilizations(scrape: &Scrape) -> Vec<Sample> {
    let plans = scrape.status.plan.iter().filter(|plan| !plan.rows.is_empty());
    let samples = plans.flat_map(|plan| {
        let labels = || vec![("upstream", plan.plant.clone())];
        [("sum", plan.sum), ("ceiling", plan.ceiling)]
            .map(|(kind, value)| (with(labels(), "kind", kind), Value::Number(value)))
    });
    samples.collect()
}

fn level_costs(scrape: &Scrape) -> Vec<Sample> {
    let of = |class: &ClassStatus| {
        let costs = class.level_cost_seconds.iter().enumerate();
        let samples =
            costs.filter_map(|(index, cost)| Some((of_level(class, index + 1), Value::Number((*cost)?))));
        samples.collect::<Vec<_>>()
    };
    classes(&scrape.status).flat_map(of).collect()
}

fn reasons(scrape: &Scrape) -> Vec<Sample> {
    let of = |class: &ClassStatus| {
        Reason::ALL.map(|reason| {
            let labels = with(of_class(class), "reason", reason.as_str());
            (labels, Value::Count(class.counts.reasons[reason as usize]))
        })
    };
    classes(&scrape.status).flat_map(of).collect()
}

fn served(scrape: &Scrape) -> Vec<Sample> {
    let of = |class: &ClassStatus| {
        let levels = 1..=class.levels.len();
        let count = |level: usize| class.counts.served.get(level).copied().unwrap_or(0);
        levels.map(|level| (of_level(class, level), Value::Count(count(level)))).collect::<Vec<_>>()
    };
    classes(&scrape.status).flat_map(of).collect()
}

fn outcomes(scrape: &Scrape) -> Vec<Sample> {
    let of = |class: &ClassStatus| {
        Outcome::ALL.map(|outcome| {
            let labels = with(of_class(class), "outcome", outcome.as_str());
            (labels, Value::Count(class.counts.outcomes[outcome as usize]))
        })
    };
    classes(&scrape.status).flat_map(of).collect()
}

fn reloads(scrape: &Scrape) -> Vec<Sample> {
    let results = [("applied", scrape.reloads.applied), ("refused", scrape.reloads.refused)];
    results.map(|(result, count)| (vec![("result", result.to_owned())], Value::Count(count))).into()
}
