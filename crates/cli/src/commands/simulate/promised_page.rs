//! Promised response times on the page: each with its promise as a line, the quotas that hold them, workers found.

use super::Simulated;
use super::figures::classes;
use super::page::series;
use super::promises::DelayFigures;
use super::summary::short;
use crate::output::promised;
use plimsoll_core::telemetry::Histogram;
use plimsoll_report::{Chart, Section, Style};

/// `None` where nothing was promised and nothing looked for.
pub(super) fn section(simulated: &Simulated) -> Option<Section> {
    let promised = &simulated.figures[0].promised;
    let workers = workers(simulated);
    if promised.is_empty() && workers.is_empty() {
        return None;
    }
    let mut section = Section::new("Promised response times").text(
        "Of one control period or several each, so that single values lie on both sides of what is kept over a longer \
         time.",
    );
    for delay in promised.delays.iter().filter(|delay| delay.requests > 0) {
        section = delay_charts(simulated, delay).into_iter().fold(section, Section::chart);
    }
    section = promised
        .ratios
        .iter()
        .enumerate()
        .fold(section, |section, (number, _)| section.chart(ratio_chart(simulated, number)));
    if promised.delays.iter().any(|delay| delay.requests > 0) {
        section = section.chart(quotas(simulated));
    }
    Some(workers.into_iter().fold(section, Section::chart))
}

fn ms(response: &Histogram, time: impl Fn(&Histogram) -> std::time::Duration) -> f64 {
    if response.count() > 0 { time(response).as_secs_f64() * 1e3 } else { f64::NAN }
}

/// The mean, or the percentile, that was promised: a chart for each in front, at its own scale, so that the promise is to
/// be seen in each. Another configuration's class is found by its name.
fn delay_charts(simulated: &Simulated, delay: &DelayFigures) -> Vec<Chart> {
    let what = delay.delay.percentile.map_or("mean".to_owned(), |p| format!("{p} % take at most"));
    let runs = simulated.runs.iter().zip(&simulated.inputs.contenders);
    let charts = runs.filter_map(|(run, contender)| {
        let front = short(&contender.name);
        let names = classes(&contender.promises);
        let class = names.iter().position(|(name, _)| *name == delay.name)?;
        let value = |response: &Histogram| match delay.delay.percentile {
            Some(percentile) => ms(response, |of| of.quantile(percentile / 100.0)),
            None => ms(response, Histogram::mean),
        };
        let title = match simulated.runs.len() {
            1 => format!("Response times of {}: {what}", delay.name),
            _ => format!("{front}: response times of {}: {what}", delay.name),
        };
        let chart = Chart::over_time(title, "ms")
            .text(format!("Promised: {}.", promised::delay(delay.delay)))
            .from_zero()
            .threshold("promised", delay.delay.target.as_secs_f64() * 1e3);
        Some(chart.series(series(front, run, |row| value(&row.classes[class].response))))
    });
    charts.collect()
}

/// Means over their ratios: one line where the ratio is kept.
fn ratio_chart(simulated: &Simulated, number: usize) -> Chart {
    let ratio = &simulated.figures[0].promised.ratios[number];
    let mut chart = Chart::over_time(format!("Response times over their ratio, {}", ratio.site), "ms")
        .text("Means divided by the class's number of the ratio: where the ratio is kept they lie on each other.")
        .from_zero();
    for member in &ratio.members {
        let name = format!("{} / {}", member.name, member.delta);
        chart = chart.series(series(name, &simulated.runs[0], |row| {
            ms(&row.classes[member.class].response, Histogram::mean) / member.delta
        }));
    }
    chart
}

fn quotas(simulated: &Simulated) -> Chart {
    let chart = Chart::over_time("Quotas", "workers")
        .text("Workers that are a class's own while it wants them. What it does not use is lent.")
        .from_zero();
    let delays = simulated.figures[0].promised.delays.iter().filter(|delay| delay.requests > 0);
    delays.fold(chart, |chart, delay| {
        let quota = |row: &plimsoll_sim::Row| row.classes[delay.class].held.and_then(|held| held.quota);
        let of = series(delay.name.clone(), &simulated.runs[0], |row| quota(row).unwrap_or(f64::NAN));
        chart.series(of.style(Style::Step))
    })
}

/// Of servers whose workers are looked for.
fn workers(simulated: &Simulated) -> Vec<Chart> {
    let contender = &simulated.inputs.contenders[0];
    let plants =
        contender.promises.plants.iter().enumerate().filter(|(_, plant)| plant.find_workers.is_some());
    let charts = plants.map(|(number, plant)| {
        let known = series("as found", &simulated.runs[0], |row| f64::from(row.plants[number].workers));
        let chart = Chart::over_time(format!("Workers of {}", plant.name), "requests at once").from_zero();
        let truth = contender.workload.plants.get(number).map(|plant| plant.discipline.servers());
        let chart = truth.into_iter().fold(chart, |chart, truth| chart.threshold("truly", truth.into()));
        chart.series(known.style(Style::Step))
    });
    charts.collect()
}
