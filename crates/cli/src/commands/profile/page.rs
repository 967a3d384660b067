//! The facts of a profile as a page: tables, which text output shows too, and charts.

use super::facts::{costs, rejecting, sizes};
use super::{Profiled, notes, section};
use crate::output::facts::{Facts, list};
use plimsoll_load::profile::Fit;
use plimsoll_report::{Cell, Chart, Column, Fact, Page, Section, Series, Style, Table, Verdict, XAxis};

const STEPS: usize = 64;
const KIB: f64 = 1024.0;

/// The page of a report file: the page that text shows, why the profile ended if it ended early, and the section to paste.
pub(crate) fn complete(profiled: &Profiled) -> Page {
    let mut page = page(profiled);
    let why = notes::early_end(profiled);
    page.sections.extend(why.map(|why| Section::new("It ended early").note(why)));
    page.sections.extend(section::section(profiled).as_deref().map(to_paste));
    page
}

/// The page that text shows.
pub(crate) fn page(profiled: &Profiled) -> Page {
    let mut sections = Vec::new();
    if let Some(fit) = &profiled.profile.fit {
        let costs = costs_table(profiled);
        sections.push(
            Section::new("Service time by size")
                .chart(service_time(profiled, fit))
                .table(sizes_table(profiled))
                .table(costs),
        );
        sections.push(Section::new("How the highest rates were found").chart(climbs(profiled)));
    }
    let notes = notes::notes(profiled)
        .into_iter()
        .fold(Section::new("What to know beside the figures"), Section::note);
    sections.extend((!notes.blocks.is_empty()).then_some(notes));
    let (requests, seconds) = (profiled.profile.requests, profiled.took.as_secs_f64());
    Page {
        title: format!("What requests cost {}", profiled.servers),
        subtitle: format!("{}: {requests} requests in {seconds:.0} s", profiled.servers),
        assumptions: Vec::new(),
        lead: lead(profiled),
        sections,
        footer: format!("plimsoll {} profile", env!("CARGO_PKG_VERSION")),
    }
}

fn to_paste(text: &str) -> Section {
    let lines = Table::new("To paste", [Column::code("")]);
    Section::new("The section").table(text.lines().fold(lines, |table, line| table.row([Cell::from(line)])))
}

fn lead(profiled: &Profiled) -> Vec<Fact> {
    let tile = |cost: super::facts::Cost| {
        Facts(vec![cost.figure]).tiles().into_iter().map(move |tile| tile.note(cost.what.clone()))
    };
    let mut facts: Vec<Fact> = costs(profiled).into_iter().flat_map(tile).collect();
    if let Some(fit) = &profiled.profile.fit {
        let worst = profiled.profile.points().iter().map(|point| fit.error(*point).abs()).fold(0.0, f64::max);
        let verdict = if worst < 0.05 { Verdict::Good } else { Verdict::Bad };
        facts.push(
            Fact::new("the fit's largest error", format!("{:.1}", worst * 100.0)).unit("%").verdict(verdict),
        );
    }
    facts
}

/// UC's Tables 1 to 3 in one.
fn sizes_table(profiled: &Profiled) -> Table {
    let rejecting = rejecting(profiled).map(|(name, figures, _)| (name + " (rejected)", figures));
    let all = sizes(profiled).map(|(name, figures, _)| (name, figures)).chain(rejecting);
    let all: Vec<(String, Facts)> = all.collect();
    let rows = all.iter().map(|(name, figures)| (vec![Cell::from(name.as_str())], figures));
    list("Sizes", &[""], &rows.collect::<Vec<_>>())
}

fn costs_table(profiled: &Profiled) -> Table {
    let table = Table::new("Costs", [""; 3].map(Column::text));
    costs(profiled).into_iter().fold(table, |table, cost| {
        let tiles = Facts(vec![cost.figure]).tiles();
        tiles.into_iter().fold(table, |table, tile| {
            table.row([tile.name.into(), tile.value.into(), cost.what.clone().into()])
        })
    })
}

fn service_time(profiled: &Profiled, fit: &Fit) -> Chart {
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
    chart.series(Series::new("measured", measured).style(Style::Points))
}

fn climbs(profiled: &Profiled) -> Chart {
    let x = XAxis::Quantity { name: "clients at once".to_owned(), unit: String::new() };
    let chart = Chart::over(x, "Closed loop", "requests/s")
        .text("Answers per second by the number of clients that each ask again after their answer.")
        .from_zero();
    profiled.profile.highest.iter().zip(&profiled.subjects).fold(chart, |chart, (found, name)| {
        let climb = found.climb.iter().map(|(clients, rate)| (f64::from(*clients), *rate));
        chart.series(Series::new(name.clone(), climb))
    })
}
