//! The figures as a page with plots.

use super::Profiled;
use super::section;
use super::summary::{costs, early_end, headline, notes};
use plimsoll_load::profile::{Fit, Point};
use plimsoll_report::{Cell, Chart, Column, Fact, Page, Section, Series, Style, Table, Verdict, XAxis};

/// Points of a fit's line.
const STEPS: usize = 64;
const KIB: f64 = 1024.0;

pub(crate) fn page(profiled: &Profiled) -> Page {
    let mut sections = Vec::new();
    if let Some(fit) = &profiled.profile.fit {
        sections.push(service_time(profiled, fit));
        sections.push(rates(profiled));
    }
    if let Some(text) = section::section(profiled) {
        let lines = text
            .lines()
            .fold(Table::new("To paste", [Column::code("")]), |table, line| table.row([Cell::from(line)]));
        sections.push(Section::new("The section").table(lines));
    }
    let notes: Vec<String> = early_end(profiled).into_iter().chain(notes(profiled)).collect();
    if !notes.is_empty() {
        let section = Section::new("What to know beside the figures");
        sections.push(notes.into_iter().fold(section, Section::note));
    }
    Page {
        title: format!("What requests cost {}", profiled.servers),
        subtitle: headline(profiled),
        lead: lead(profiled),
        sections,
        footer: format!("plimsoll {} profile", env!("CARGO_PKG_VERSION")),
    }
}

fn lead(profiled: &Profiled) -> Vec<Fact> {
    let fact = |row: Vec<String>| match row.as_slice() {
        [symbol, value, what] => Some(Fact::new(symbol.clone(), value.clone()).note(what.clone())),
        _ => None,
    };
    let mut facts: Vec<Fact> = costs(profiled).into_iter().filter_map(fact).collect();
    if let Some(fit) = &profiled.profile.fit {
        let worst = profiled.profile.points().iter().map(|point| fit.error(*point).abs()).fold(0.0, f64::max);
        let verdict = if worst < 0.05 { Verdict::Good } else { Verdict::Bad };
        facts.push(
            Fact::new("the fit's largest error", format!("{:.1}", worst * 100.0)).unit("%").verdict(verdict),
        );
    }
    facts
}

fn service_time(profiled: &Profiled, fit: &Fit) -> Section {
    let points = profiled.profile.points();
    let largest = points.iter().map(|point| point.bytes).fold(0.0, f64::max);
    let steps = || (0..=STEPS).map(|step| largest * step as f64 / STEPS as f64);
    let ms = |seconds: f64| seconds * 1e3;
    let x = XAxis::Quantity { name: "size".to_owned(), unit: "KiB".to_owned() };
    let mut chart = Chart::over(x, "Service time", "ms")
        .text("The time that a request takes of the whole server: 1 / highest rate. The fit is max(a + b x, b' x).")
        .from_zero()
        .series(Series::new("fit", steps().map(|x| (x / KIB, ms(fit.seconds(x))))));
    if fit.link_per_byte_seconds.is_some() {
        let own = |x: f64| ms(fit.per_request_seconds + fit.per_byte_seconds * x);
        chart = chart.series(Series::new("a + b x", steps().map(|x| (x / KIB, own(x)))).style(Style::Dashed));
    }
    let measured = points.iter().map(|point| (point.bytes / KIB, ms(point.seconds)));
    chart = chart.series(Series::new("measured", measured).style(Style::Points));
    let columns = [
        Column::code("path"),
        Column::number("size", "KiB", 1),
        Column::number("highest rate", "1/s", 1),
        Column::number("+/-", "%", 1),
        Column::number("service time", "ms", 4),
        Column::number("fit", "ms", 4),
        Column::number("error", "%", 1),
        Column::number("clients", "", 0),
        Column::number("sustained", "%", 0),
        Column::number("response time", "ms", 1),
        Column::number("client's thread", "%", 0),
    ];
    let rows = profiled.profile.highest.iter().zip(&profiled.subjects);
    let table = rows.fold(Table::new("Sizes", columns), |table, (found, name)| {
        let point = Point { bytes: found.bytes, seconds: found.service_seconds() };
        table.row([
            Cell::from(name.clone()),
            (found.bytes / KIB).into(),
            found.rate.into(),
            found.uncertainty.is_finite().then_some(found.uncertainty * 100.0).into(),
            ms(point.seconds).into(),
            ms(fit.seconds(point.bytes)).into(),
            (fit.error(point) * 100.0).into(),
            u64::from(found.clients).into(),
            found.sustained.map(|share| share * 100.0).into(),
            found.response_seconds.map(ms).into(),
            found.client_cpu.map(|share| share * 100.0).into(),
        ])
    });
    Section::new("Service time by size").chart(chart).table(table)
}

fn rates(profiled: &Profiled) -> Section {
    let x = XAxis::Quantity { name: "clients at once".to_owned(), unit: String::new() };
    let chart = Chart::over(x, "Closed loop", "requests/s")
        .text("Answers per second by the number of clients that each ask again after their answer.")
        .from_zero();
    let found = profiled.profile.highest.iter().zip(&profiled.subjects);
    let chart = found.fold(chart, |chart, (found, name)| {
        let climb = found.climb.iter().map(|(clients, rate)| (f64::from(*clients), *rate));
        chart.series(Series::new(name.clone(), climb))
    });
    Section::new("How the highest rates were found").chart(chart)
}
