//! The figures as one JSON object: the same files and seed give the same text.

use super::Simulated;
use super::figures::{ClassFigures, Figures, PlantFigures, Share, classes};
use super::inputs::{Contender, Kind};
use super::summary::notes;
use plimsoll_core::telemetry::Histogram;
use plimsoll_gateway::admin::json::Json;
use plimsoll_sim::{ClassRow, Heavy, LogNotes, Row, Run};

pub(crate) fn report(simulated: &Simulated) -> Json {
    let Simulated { inputs, seed, runs, figures, .. } = simulated;
    let contenders = runs.iter().zip(figures).zip(&inputs.contenders);
    let workload = &inputs.contenders[0].workload;
    let logs = runs[0].notes.iter().map(|(stream, notes)| log(&workload.streams[*stream].name, notes));
    Json::object([
        ("arrivals", word(&inputs.arrivals)),
        ("seed", Json::Count(*seed)),
        ("runs", Json::List(contenders.map(|((run, figures), one)| self::run(run, figures, one)).collect())),
        ("logs", Json::List(logs.collect())),
        ("notes", Json::List(notes(simulated).iter().map(word).collect())),
    ])
}

fn word(word: impl ToString) -> Json {
    Json::Text(word.to_string())
}

fn run(run: &Run, figures: &Figures, contender: &Contender) -> Json {
    let kind = match contender.kind {
        Kind::Configuration => "configuration",
        Kind::Comparator(_) => "comparator",
    };
    let promised = &figures.promised;
    let classes =
        figures.classes.iter().map(|one| class(one, promised.json_of(one.class, run.classes.get(one.class))));
    let levels = figures.levels.iter().map(|(name, count)| (name.as_str(), Json::Count(*count)));
    Json::object([
        ("name", word(&contender.name)),
        ("kind", word(kind)),
        ("complete", Json::Bool(run.complete)),
        ("seconds", Json::Number(run.ended.as_secs_f64())),
        ("requests", Json::Count(run.requests)),
        ("retries", Json::Count(run.retries)),
        ("no_site", Json::Count(run.unmatched)),
        ("upstreams", Json::List(figures.plants.iter().map(plant).collect())),
        ("total", share(&figures.total)),
        ("levels", Json::object(levels)),
        ("classes", Json::List(classes.collect())),
        ("most_affected_paths", Json::List(run.top.iter().take(100).map(heavy).collect())),
        ("periods", Json::List(run.rows.iter().map(|row| period(row, contender)).collect())),
    ])
}

fn plant(plant: &PlantFigures) -> Json {
    Json::object([
        ("name", word(&plant.name)),
        ("load_line", rounded(plant.set_point)),
        ("utilization", rounded(plant.utilization)),
        ("utilization_p95", rounded(plant.p95)),
        ("utilization_highest", rounded(plant.highest)),
        ("link_utilization", rounded(plant.link)),
        ("lost", Json::Count(plant.lost)),
    ])
}

fn share(share: &Share) -> Json {
    let reasons = share.reasons.iter().map(|(reason, count)| (reason.as_str(), Json::Count(*count)));
    Json::object([
        ("arrivals", Json::Count(share.arrivals)),
        ("full", Json::Count(share.full)),
        ("degraded", Json::Count(share.degraded)),
        ("rejected", Json::Count(share.rejected)),
        ("rejected_by_reason", Json::object(reasons)),
        ("failed", Json::Count(share.failed)),
        ("abandoned", Json::Count(share.abandoned)),
        ("under_way", Json::Count(share.under_way)),
        ("bytes", Json::Count(share.bytes)),
        ("response_ms", times(&share.response)),
    ])
}

fn times(response: &Histogram) -> Json {
    let ms = |time: std::time::Duration| Json::Number((time.as_secs_f64() * 1e6).round() / 1e3);
    Json::object([
        ("mean", ms(response.mean())),
        ("p50", ms(response.quantile(0.5))),
        ("p95", ms(response.quantile(0.95))),
        ("p99", ms(response.quantile(0.99))),
        ("max", ms(response.max())),
    ])
}

fn class(class: &ClassFigures, promised: Option<Json>) -> Json {
    let Json::Object(mut fields) = share(&class.share) else { unreachable!("a share is an object") };
    fields.insert(0, ("name".to_owned(), word(&class.name)));
    fields.push(("promise".to_owned(), promised.unwrap_or(Json::Null)));
    Json::Object(fields)
}

fn heavy(heavy: &Heavy) -> Json {
    Json::object([
        ("path", word(&heavy.path)),
        ("degraded", Json::Count(heavy.degraded)),
        ("rejected", Json::Count(heavy.rejected)),
        ("at_most_too_many", Json::Count(heavy.error)),
    ])
}

fn log(name: &str, notes: &LogNotes) -> Json {
    let first = notes.first_skipped.as_ref().map(|(line, text, wrong)| {
        Json::object([("line", Json::Count(*line)), ("text", word(text)), ("wrong", word(wrong))])
    });
    Json::object([
        ("name", word(name)),
        ("lines", Json::Count(notes.lines)),
        ("skipped", Json::Count(notes.skipped)),
        ("first_skipped", first.unwrap_or(Json::Null)),
        ("backwards", Json::Count(notes.backwards)),
        ("format", notes.format.map_or(Json::Null, word)),
        ("requests", Json::Count(notes.requests)),
        ("timed", Json::Count(notes.timed.0)),
        ("timed_zero", Json::Count(notes.timed.1)),
        ("strays", Json::Count(notes.strays)),
        ("clock_restarts", Json::Count(notes.restarts)),
        ("gaps_cut", Json::Count(notes.gaps.0)),
        ("gaps_cut_seconds", Json::Number(notes.gaps.1)),
    ])
}

/// One control period, or several of a long run.
fn period(row: &Row, contender: &Contender) -> Json {
    let plants = row.plants.iter().map(|plant| {
        Json::object([
            ("utilization", rounded(plant.utilization)),
            ("offered", rounded(plant.offered)),
            ("workers", Json::Count(plant.workers.into())),
        ])
    });
    let names = classes(&contender.promises);
    let is_there = |class: &ClassRow| class.arrivals + class.served() + class.rejected > 0;
    let classes = row.classes.iter().zip(&names).filter(|(class, _)| is_there(class));
    let classes = classes.map(|(class, (name, _))| {
        let levels = class.completed.iter().enumerate().filter(|(_, count)| **count > 0);
        let levels = levels.map(|(level, count)| (level.to_string(), Json::Count(*count)));
        Json::object([
            ("name", word(name)),
            ("service_level", rounded(class.service_level)),
            ("arrivals", Json::Count(class.arrivals)),
            ("completed_by_level", Json::object(levels)),
            ("rejected", Json::Count(class.rejected)),
            ("quota", class.held.and_then(|held| held.quota).map_or(Json::Null, rounded)),
            ("response_ms_mean", Json::Number(class.response.mean().as_secs_f64() * 1e3)),
            ("response_ms_p99", Json::Number(class.response.quantile(0.99).as_secs_f64() * 1e3)),
        ])
    });
    Json::object([
        ("from", Json::Number(row.from.as_secs_f64())),
        ("seconds", Json::Number(row.length.as_secs_f64())),
        ("upstreams", Json::List(plants.collect())),
        ("classes", Json::List(classes.collect())),
    ])
}

/// Four digits are more than the noise leaves.
fn rounded(value: f64) -> Json {
    Json::Number((value * 1e4).round() / 1e4)
}
