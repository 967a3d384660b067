//! The charts of a simulation's page.

use super::Simulated;
use super::facts::{RunFacts, SimulationReport, classes, levels_by_name};
use super::inputs::Contender;
use super::promises::{self, DelayFigures, RatioFigures};
use crate::output::promised;
use crate::output::units::short;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::Histogram;
use plimsoll_report::{Block, Chart, Color, Series, Style};
use plimsoll_sim::{ClassRow, Row, Run};

/// A class with less than this part of the arrivals gets no lines of its own.
const SMALL: f64 = 0.001;

/// A series with one value for each row.
fn series(name: impl Into<String>, run: &Run, value: impl Fn(&Row) -> f64) -> Series {
    Series::new(name, run.rows.iter().map(|row| (row.from.as_secs_f64(), value(row))))
}

/// A count of a row as a rate.
fn per_second(row: &Row, count: u64) -> f64 {
    count as f64 / row.length.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// Requests of all classes per second of a row.
fn rate(row: &Row, count: impl Fn(&ClassRow) -> u64) -> f64 {
    per_second(row, row.classes.iter().map(count).sum())
}

/// A statistic of response times (ms); a gap where there were none.
fn ms(response: &Histogram, statistic: impl Fn(&Histogram) -> std::time::Duration) -> f64 {
    if response.count() > 0 { statistic(response).as_secs_f64() * 1e3 } else { f64::NAN }
}

fn runs(simulated: &Simulated) -> impl Iterator<Item = (&Run, &Contender)> {
    simulated.runs.iter().zip(&simulated.inputs.contenders)
}

/// The numbers of the classes that get a line.
fn shown(run: &RunFacts) -> Vec<usize> {
    let all: u64 = run.classes.iter().map(|class| class.arrivals).sum();
    let least = (all as f64 * SMALL) as u64;
    run.classes.iter().filter(|class| class.arrivals > least).map(|class| class.number).collect()
}

/// Utilization with each contender, and what the first contender's loop did about it.
pub(super) fn load_line(simulated: &Simulated, report: &SimulationReport) -> Vec<Block> {
    let (first, contender) = (&simulated.runs[0], &simulated.inputs.contenders[0]);
    let mut blocks = Vec::new();
    for (number, plant) in contender.promises.plants.iter().enumerate() {
        let chart = Chart::over_time(format!("Utilization of {}", plant.name), "of all workers")
            .from_zero()
            .up_to(1.0)
            .threshold("load line", plant.set_point);
        let of = |(run, contender): (&Run, &Contender)| {
            let chart = titled(chart.clone(), simulated, contender);
            chart.series(series(short(&contender.name), run, |row| row.plants[number].utilization))
        };
        blocks.push(beside(runs(simulated).map(of).collect()));
        let offered = series("offered", first, |row| row.plants[number].offered).style(Style::Step);
        let chart = Chart::over_time(format!("Offered load of {}", plant.name), "of all workers")
            .text("The work that the gateway believes is asked of the server at the present levels, with that of waiting requests.")
            .from_zero();
        blocks.push(Block::Chart(chart.series(offered)));
    }
    let levels = Chart::over_time("Service level m", "level")
        .text("m = I + F: the part F of the clients gets level I + 1, the others level I; 0 is rejection. It is 1 or more \
             where a deadline decides which requests are rejected.")
        .from_zero();
    let names = classes(&contender.promises);
    blocks.push(Block::Chart(shown(&report.runs[0]).into_iter().fold(levels, |chart, class| {
        chart.series(series(&names[class].0, first, |row| row.classes[class].service_level))
    })));
    blocks
}

/// The chart of one contender, named after it if there are several contenders.
fn titled(chart: Chart, simulated: &Simulated, contender: &Contender) -> Chart {
    if simulated.runs.len() < 2 {
        return chart;
    }
    let title = format!("{}: {}", short(&contender.name), chart.title);
    Chart { title, ..chart }
}

/// One chart alone, or several side by side at one scale, so that they can be compared.
fn beside(mut charts: Vec<Chart>) -> Block {
    match charts.len() {
        1 => Block::Chart(charts.remove(0)),
        _ => Block::Multiples(charts),
    }
}

/// All contenders in one chart each: the requests answered, the mean response time and, if a deadline is promised, the late
/// requests. If the load is a ramp, these are the curves of throughput, delay and misses over the load.
pub(super) fn against_each_other(simulated: &Simulated, report: &SimulationReport) -> Vec<Block> {
    if simulated.runs.len() < 2 {
        return Vec::new();
    }
    let answered = runs(simulated).fold(
        Chart::over_time("Answered in front of each", "requests/s").from_zero(),
        |chart, (run, contender)| {
            let served = |row: &Row| rate(row, |class| class.ended(Outcome::Completed));
            chart.series(series(short(&contender.name), run, served))
        },
    );
    let took = Chart::over_time("Mean response time in front of each", "ms").from_zero().nothing("nobody");
    let took = runs(simulated).fold(took, |chart, (run, contender)| {
        let mean = |row: &Row| {
            let mut all = Histogram::default();
            row.classes.iter().for_each(|class| all.merge(&class.response));
            ms(&all, Histogram::mean)
        };
        chart.series(series(short(&contender.name), run, mean))
    });
    let deadlines = &report.runs[0].promised.deadlines;
    let late = Chart::over_time("Late, of what was admitted", "%").from_zero();
    let late = runs(simulated).fold(late, |chart, (run, contender)| {
        let names = classes(&contender.promises);
        let class = |name: &str| names.iter().position(|(own, _)| own == name);
        let own: Vec<_> =
            deadlines.iter().filter_map(|one| Some((class(&one.name)?, one.deadline))).collect();
        let share = |row: &Row| {
            let of = |(class, deadline): &(usize, _)| promises::deadline(&row.classes[*class], *deadline);
            let (missed, admitted) =
                own.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            if admitted > 0 { 100.0 * missed as f64 / admitted as f64 } else { f64::NAN }
        };
        chart.series(series(short(&contender.name), run, share))
    });
    [answered, took].into_iter().chain((!deadlines.is_empty()).then_some(late)).map(Block::Chart).collect()
}

/// The fate of the requests, in charts side by side at one scale.
pub(super) fn served(simulated: &Simulated) -> Vec<Block> {
    let levels = runs(simulated).map(|(run, contender)| by_level(run, contender)).collect();
    let all: Vec<Reason> = Reason::ALL
        .into_iter()
        .filter(|reason| reason.is_rejection() && simulated.runs.iter().any(|run| turned_away(run, *reason)))
        .collect();
    let reasons: Vec<Chart> =
        runs(simulated).map(|(run, contender)| by_reason(run, contender, &all)).collect();
    let any = reasons.iter().any(|chart| !chart.series.is_empty());
    std::iter::once(Block::Multiples(levels)).chain(any.then_some(Block::Multiples(reasons))).collect()
}

fn by_level(run: &Run, contender: &Contender) -> Chart {
    let title = format!("{}: by what they got", short(&contender.name));
    let mut chart = Chart::over_time(title, "requests/s").from_zero();
    for level in levels_by_name(&contender.promises) {
        let served = |row: &Row| per_second(row, level.completed(&row.classes));
        let served = series(level.name.clone(), run, served);
        chart = chart.series(served.style(Style::Area).color(Color::Ordered));
    }
    let lost = |class: &ClassRow| {
        let left = class.ended(Outcome::Abandoned) + class.reasons[Reason::ClientLeft as usize];
        class.rejected + class.ended(Outcome::Failed) + left
    };
    let lost = series("turned away, failed or left", run, |row| rate(row, lost));
    chart.series(lost.style(Style::Area).color(Color::Alarm))
}

/// Whether any request was rejected for this reason.
fn turned_away(run: &Run, reason: Reason) -> bool {
    run.classes.iter().any(|class| class.reasons[reason as usize] > 0)
}

/// Each chart has `all` reasons of every contender, so that a reason has the same colour in each.
fn by_reason(run: &Run, contender: &Contender, all: &[Reason]) -> Chart {
    let what = if contender.observes() { "would be turned away" } else { "turned away" };
    let title = format!("{}: {what}, by reason", short(&contender.name));
    let mut chart = Chart::over_time(title, "requests/s").from_zero().nothing("nobody");
    if all.iter().any(|reason| turned_away(run, *reason)) {
        for reason in all {
            let rejected = |row: &Row| rate(row, |class| class.reasons[*reason as usize]);
            chart = chart.series(series(reason.as_str(), run, rejected).style(Style::Area));
        }
    }
    chart
}

pub(super) fn response_times(simulated: &Simulated, report: &SimulationReport) -> Vec<Block> {
    let blocks = [(0.5, "Median"), (0.99, "99th percentile")].map(|(quantile, title)| {
        let chart =
            Chart::over_time(format!("{title} of response times"), "ms").from_zero().nothing("nobody");
        let of = |((run, contender), facts): ((&Run, &Contender), &RunFacts)| {
            // Another configuration may have other classes.
            let names = classes(&contender.promises);
            shown(facts).into_iter().fold(titled(chart.clone(), simulated, contender), |chart, class| {
                let value = |row: &Row| ms(&row.classes[class].response, |times| times.quantile(quantile));
                chart.series(series(&names[class].0, run, value))
            })
        };
        beside(runs(simulated).zip(&report.runs).map(of).collect())
    });
    blocks.into()
}

/// Promised response times: each with its promise as a line, then the quotas that keep them, and the workers found.
pub(super) fn promised(simulated: &Simulated, report: &SimulationReport) -> Vec<Block> {
    let promised = &report.runs[0].promised;
    let delays: Vec<&DelayFigures> = promised.delays.iter().filter(|delay| delay.requests > 0).collect();
    let mut charts: Vec<Chart> = delays.iter().flat_map(|delay| delay_charts(simulated, delay)).collect();
    charts.extend(promised.ratios.iter().map(|ratio| ratio_chart(simulated, ratio)));
    charts.extend((!delays.is_empty()).then(|| quotas(simulated, &delays)));
    charts.extend(workers(simulated));
    charts.into_iter().map(Block::Chart).collect()
}

/// The promised mean or percentile. Each contender has a chart at its own scale, so that the promise shows in each; a class of
/// another configuration is found by its name.
fn delay_charts(simulated: &Simulated, delay: &DelayFigures) -> Vec<Chart> {
    let what = delay.delay.percentile.map_or("mean".to_owned(), |p| format!("{p} % take at most"));
    let charts = runs(simulated).filter_map(|(run, contender)| {
        let front = short(&contender.name);
        let names = classes(&contender.promises);
        let class = names.iter().position(|(name, _)| *name == delay.name)?;
        let value = |row: &Row| {
            let percentile = delay.delay.percentile;
            ms(&row.classes[class].response, |times| {
                percentile.map_or_else(|| times.mean(), |p| times.quantile(p / 100.0))
            })
        };
        let title = match simulated.runs.len() {
            1 => format!("Response times of {}: {what}", delay.name),
            _ => format!("{front}: response times of {}: {what}", delay.name),
        };
        let chart = Chart::over_time(title, "ms")
            .text(format!("Promised: {}.", promised::delay(delay.delay)))
            .from_zero()
            .threshold("promised", delay.delay.target.as_secs_f64() * 1e3);
        Some(chart.series(series(front, run, value)))
    });
    charts.collect()
}

/// Mean response times divided by their ratios: the lines coincide if the ratio is kept.
fn ratio_chart(simulated: &Simulated, ratio: &RatioFigures) -> Chart {
    let chart = Chart::over_time(format!("Response times over their ratio, {}", ratio.site), "ms")
        .text("Means divided by the class's number of the ratio: where the ratio is kept they lie on each other.")
        .from_zero();
    ratio.members.iter().fold(chart, |chart, member| {
        let mean = |row: &Row| ms(&row.classes[member.class].response, Histogram::mean) / member.delta;
        chart.series(series(format!("{} / {}", member.name, member.delta), &simulated.runs[0], mean))
    })
}

fn quotas(simulated: &Simulated, delays: &[&DelayFigures]) -> Chart {
    let chart = Chart::over_time("Quotas", "workers")
        .text("The workers that a class has for itself while it wants them; workers that it does not use are lent.")
        .from_zero();
    delays.iter().fold(chart, |chart, delay| {
        let quota = |row: &Row| row.classes[delay.class].held.and_then(|held| held.quota);
        let quota = series(delay.name.clone(), &simulated.runs[0], |row| quota(row).unwrap_or(f64::NAN));
        chart.series(quota.style(Style::Step))
    })
}

/// For each server whose workers are searched for, the number found and the true number.
fn workers(simulated: &Simulated) -> Vec<Chart> {
    let contender = &simulated.inputs.contenders[0];
    let plants =
        contender.promises.plants.iter().enumerate().filter(|(_, plant)| plant.find_workers.is_some());
    let charts = plants.map(|(number, plant)| {
        let found = series("as found", &simulated.runs[0], |row| f64::from(row.plants[number].workers));
        let chart = Chart::over_time(format!("Workers of {}", plant.name), "requests at once").from_zero();
        let truth = contender.workload.plants.get(number).map(|plant| plant.discipline.servers());
        let chart = truth.into_iter().fold(chart, |chart, truth| chart.threshold("truly", truth.into()));
        chart.series(found.style(Style::Step))
    });
    charts.collect()
}
