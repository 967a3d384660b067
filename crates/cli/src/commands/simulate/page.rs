//! The figures as a page with plots.

use super::figures::{Figures, by_name, classes};
use super::inputs::Contender;
use super::promises::{DeadlineFigures, DelayFigures, RatioFigures};
use super::summary::{grouped, headline, notes, short};
use super::{Simulated, promised_page};
use plimsoll_core::request::Outcome;
use plimsoll_core::request::Reason;
use plimsoll_report::{
    Block, Cell, Chart, Color, Column, Fact, Page, Section, Series, Style, Table, Verdict,
};
use plimsoll_sim::{ClassRow, Row, Run};

/// Paths that are shown.
const PATHS: usize = 25;
/// A class with less than this part of the arrivals has no lines of its own.
const SMALL: f64 = 0.001;

pub(crate) fn page(simulated: &Simulated) -> Page {
    let mut sections = vec![loops(simulated)];
    sections.push(served(simulated));
    sections.push(delays(simulated));
    sections.extend(promised_page::section(simulated));
    sections.push(who(simulated));
    let notes = notes(simulated);
    if !notes.is_empty() {
        let section = Section::new("What to know beside the figures");
        sections.push(notes.into_iter().fold(section, Section::note));
    }
    Page {
        title: format!(
            "{} under {}",
            short(&simulated.inputs.contenders[0].name),
            short(&simulated.inputs.arrivals)
        ),
        subtitle: headline(simulated).trim_end().to_owned(),
        lead: lead(&simulated.figures[0], &simulated.inputs.contenders[0]),
        sections,
        footer: format!("plimsoll {} simulate, seed {}", env!("CARGO_PKG_VERSION"), simulated.seed),
    }
}

/// The first contender's figures that decide.
fn lead(figures: &Figures, contender: &Contender) -> Vec<Fact> {
    let total = &figures.total;
    let percent = |count| format!("{:.2}", total.percent(count));
    let none = |count| if count == 0 { Verdict::Good } else { Verdict::Bad };
    let mut facts = Vec::new();
    for plant in &figures.plants {
        facts.push(
            Fact::new(format!("utilization of {}", plant.name), format!("{:.3}", plant.utilization))
                .note(format!("95 % of the time below {:.2}; load line {:.2}", plant.p95, plant.set_point)),
        );
    }
    facts.push(Fact::new("full quality", percent(total.full)).unit("%"));
    if contender.promises.sites.iter().any(|site| site.levels.len() > 1) {
        facts.push(Fact::new("degraded", percent(total.degraded)).unit("%"));
    }
    facts.push(Fact::new("turned away", percent(total.rejected)).unit("%").verdict(none(total.rejected)));
    facts.push(Fact::new("failed", percent(total.failed)).unit("%").verdict(none(total.failed)));
    let p99 = total.response.quantile(0.99).as_secs_f64() * 1e3;
    facts.push(Fact::new("response time p99", format!("{p99:.0}")).unit("ms"));
    let delays = figures.promised.delays.iter().filter(|delay| delay.requests > 0);
    facts.extend(delays.map(DelayFigures::fact));
    facts.extend(figures.promised.deadlines.iter().map(DeadlineFigures::fact));
    facts.extend(figures.promised.ratios.iter().map(RatioFigures::fact));
    facts
}

fn begin(row: &Row) -> f64 {
    row.from.as_secs_f64()
}

/// One value a row.
pub(super) fn series(name: impl Into<String>, run: &Run, of: impl Fn(&Row) -> f64) -> Series {
    Series::new(name, run.rows.iter().map(|row| (begin(row), of(row))))
}

/// A rate from a count.
fn rate(row: &Row, count: u64) -> f64 {
    count as f64 / row.length.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn loops(simulated: &Simulated) -> Section {
    let Simulated { runs, inputs, .. } = simulated;
    let mut section = Section::new("The load line")
        .text("Utilization by the server's own busy time, one value for each control period or several.");
    for (number, plant) in inputs.contenders[0].promises.plants.iter().enumerate() {
        let mut chart = Chart::over_time(format!("Utilization of {}", plant.name), "of all workers")
            .from_zero()
            .up_to(1.0)
            .threshold("load line", plant.set_point);
        for (run, contender) in runs.iter().zip(&inputs.contenders) {
            chart = chart.series(series(short(&contender.name), run, |row| row.plants[number].utilization));
        }
        section = section.chart(chart);
        let offered = |row: &Row| row.plants[number].offered;
        let chart = Chart::over_time(format!("Offered load of {}", plant.name), "of all workers")
            .text("What the gateway believes is asked of the server at the levels given, waiting requests included.")
            .from_zero();
        section = section.chart(chart.series(series("offered", &runs[0], offered).style(Style::Step)));
    }
    let mut levels = Chart::over_time("Service level m", "level")
        .text("m = I + F: the part F of the clients gets level I + 1, the others level I; 0 is rejection.")
        .from_zero();
    let names = classes(&inputs.contenders[0].promises);
    for class in shown(&simulated.figures[0]) {
        levels = levels.series(series(&names[class].0, &runs[0], |row| row.classes[class].service_level));
    }
    section.chart(levels)
}

/// The classes that are worth a line.
fn shown(figures: &Figures) -> Vec<usize> {
    let least = (figures.total.arrivals as f64 * SMALL) as u64;
    let classes = figures.classes.iter().filter(|class| class.share.arrivals > least);
    classes.map(|class| class.class).collect()
}

/// What became of the requests, one chart beside the other at one scale.
fn served(simulated: &Simulated) -> Section {
    let runs = || simulated.runs.iter().zip(&simulated.inputs.contenders);
    let section = Section::new("What clients got")
        .block(Block::Multiples(runs().map(|(run, contender)| by_level(run, contender)).collect()));
    let reasons: Vec<Chart> = runs().map(|(run, contender)| by_reason(run, contender)).collect();
    if reasons.iter().all(|chart| chart.series.is_empty()) {
        return section;
    }
    section.block(Block::Multiples(reasons))
}

/// Requests a second in a row, of all classes.
fn sum(row: &Row, of: impl Fn(&ClassRow) -> u64) -> f64 {
    rate(row, row.classes.iter().map(of).sum())
}

fn by_level(run: &Run, contender: &Contender) -> Chart {
    let title = format!("{}: by what they got", short(&contender.name));
    let mut chart = Chart::over_time(title, "requests/s").from_zero();
    for level in by_name(&contender.promises) {
        let completed = |row: &Row| level.places.iter().map(|at| at.completed(&row.classes)).sum();
        let of = series(level.name.clone(), run, |row| rate(row, completed(row)));
        chart = chart.series(of.style(Style::Area).color(Color::Ordered));
    }
    let lost = |class: &ClassRow| {
        let left = class.ended(Outcome::Abandoned) + class.reasons[Reason::ClientLeft as usize];
        class.rejected + class.ended(Outcome::Failed) + left
    };
    let lost = series("turned away, failed or left", run, |row| sum(row, lost));
    chart.series(lost.style(Style::Area).color(Color::Alarm))
}

fn by_reason(run: &Run, contender: &Contender) -> Chart {
    let title = format!("{}: turned away, by reason", short(&contender.name));
    let mut chart = Chart::over_time(title, "requests/s").from_zero();
    for reason in Reason::ALL.into_iter().filter(|reason| reason.is_rejection()) {
        if run.classes.iter().any(|class| class.reasons[reason as usize] > 0) {
            let of = series(reason.as_str(), run, |row| sum(row, |class| class.reasons[reason as usize]));
            chart = chart.series(of.style(Style::Area));
        }
    }
    chart
}

fn delays(simulated: &Simulated) -> Section {
    let Simulated { runs, inputs, figures, .. } = simulated;
    let mut section = Section::new("Response times")
        .text("From a request's arrival at the gateway to its last byte from the server, of those that were served.");
    for (quantile, title) in [(0.5, "Median"), (0.99, "99th percentile")] {
        let mut chart = Chart::over_time(format!("{title} of response times"), "ms").from_zero();
        for (number, (run, contender)) in runs.iter().zip(&inputs.contenders).enumerate() {
            // Another configuration may have other classes.
            let names = classes(&contender.promises);
            for class in shown(&figures[number]) {
                let several = runs.len() > 1;
                let name = if several {
                    format!("{}: {}", short(&contender.name), names[class].0)
                } else {
                    names[class].0.clone()
                };
                chart = chart.series(series(name, run, |row| {
                    let response = &row.classes[class].response;
                    let time = response.quantile(quantile).as_secs_f64() * 1e3;
                    if response.count() > 0 { time } else { f64::NAN }
                }));
            }
        }
        section = section.chart(chart);
    }
    section
}

fn who(simulated: &Simulated) -> Section {
    let mut classes = Table::new(
        "By class",
        [
            Column::text("class"),
            Column::text("in front"),
            Column::number("arrivals", "", 0),
            Column::number("full", "%", 1),
            Column::number("degraded", "%", 1),
            Column::number("turned away", "%", 1),
            Column::number("failed", "%", 1),
            Column::number("p50", "ms", 1),
            Column::number("p99", "ms", 1),
        ],
    );
    for (figures, contender) in simulated.figures.iter().zip(&simulated.inputs.contenders) {
        for class in &figures.classes {
            let share = &class.share;
            let ms = |q| share.response.quantile(q).as_secs_f64() * 1e3;
            classes = classes.row([
                Cell::from(class.name.clone()),
                short(&contender.name).into(),
                share.arrivals.into(),
                share.percent(share.full).into(),
                share.percent(share.degraded).into(),
                share.percent(share.rejected).into(),
                share.percent(share.failed).into(),
                ms(0.5).into(),
                ms(0.99).into(),
            ]);
        }
    }
    let mut section = Section::new("Who").table(classes);
    let top = &simulated.runs[0].top;
    if !top.is_empty() {
        let columns =
            [Column::code("path"), Column::bars("degraded", "", 0), Column::bars("turned away", "", 0)];
        let title =
            format!("Paths that got less than full quality most often, of {}", grouped(top.len() as u64));
        let rows = top.iter().take(PATHS);
        let table = rows.fold(Table::new(title, columns), |table, heavy| {
            table.row([Cell::from(heavy.path.clone()), heavy.degraded.into(), heavy.rejected.into()])
        });
        section = section.table(table);
    }
    section
}
