//! The facts of an impact study as a page: tables, which text output shows too, and the distribution over sites.

use super::Site;
use super::facts::{ImpactReport, SiteFacts};
use crate::output::facts::{Facts, list};
use plimsoll_content::{Costs, Ratios, curve};
use plimsoll_report::{Cell, Chart, Column, Fact, Page, Section, Series, Style, Table, XAxis};

/// The improvements at which the curves are printed (%).
const STEPS: [f64; 8] = [50.0, 100.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1000.0];

pub(super) fn page(sites: &[Site], report: &ImpactReport, costs: Costs) -> Page {
    let full =
        |site: &SiteFacts| [("full", site.full.clone())].into_iter().chain(site.levels.clone()).collect();
    let figures = table("Figures", report, full);
    let ratios = table("How many times as many visitors", report, |site| site.ratios.clone());
    let mut sections =
        vec![Section::new("What pages load").table(figures), Section::new("What it is worth").table(ratios)];
    sections.extend((sites.len() > 1).then(|| distribution(sites)));
    let notes = sites.iter().flat_map(notes).fold(terms(), Section::note);
    sections.push(notes);
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let (a, b) = (costs.per_request * 1e3, costs.per_byte * 1e3 * 1024.0);
    Page {
        title: format!("What adaptation is worth: {}", names.join(", ")),
        subtitle: format!("a = {a:.3} ms a request, b = {b:.4} ms per KB"),
        assumptions: Vec::new(),
        lead: sites.first().filter(|_| sites.len() == 1).map(lead).unwrap_or_default(),
        sections,
        footer: format!("plimsoll {} impact", env!("CARGO_PKG_VERSION")),
    }
}

fn lead(site: &Site) -> Vec<Fact> {
    let how = if site.impact.measured { "measured" } else { "estimated" };
    let fact = |(name, ratios): &(&'static str, Ratios)| {
        Fact::new(format!("visitors at {name}"), format!("{:.2}", ratios.counted))
            .unit("times as many")
            .note(format!("{how}; {:.2} to {:.2} by CA 3", ratios.pessimistic, ratios.optimistic))
    };
    site.ratios.iter().map(fact).collect()
}

/// A table with a row for each level of each site. A single site is named in the page's title instead.
fn table(
    title: &str,
    report: &ImpactReport,
    levels: impl Fn(&SiteFacts) -> Vec<(&'static str, Facts)>,
) -> Table {
    let all: Vec<_> = report.sites.iter().map(|site| (site.name.as_str(), levels(site))).collect();
    let names = if all.len() > 1 { &["site", "level"][..] } else { &["level"] };
    let rows = all.iter().flat_map(|(site, levels)| {
        levels.iter().map(move |(level, facts)| {
            let site = (names.len() > 1).then(|| Cell::from(*site));
            (site.into_iter().chain([Cell::from(*level)]).collect(), facts)
        })
    });
    list(title, names, &rows.collect::<Vec<_>>())
}

/// The meaning of the columns, for the page and the terminal.
fn terms() -> Section {
    Section::new("What the figures mean")
        .note("objects: files that pages load besides themselves; Emb: objects that a page embeds, in the mean; Emb_min: objects by pages")
        .note("H, I: bytes of a page and of an object, in the mean; a view: a page and all that it loads")
        .note("not counted: backgrounds and fonts of style sheets, of which pages load some")
        .note("optimistic: no visitor has a cache; pessimistic: every visitor sees the whole site, and has a cache; as counted: a view, object by object")
        .note("text (CA): the paper's bound, the pages as they are and nothing else; text, lean, light: the levels of `plimsoll adapt`")
}

/// The assumptions behind the figures of a site.
fn notes(site: &Site) -> Vec<String> {
    let impact = &site.impact;
    let how = if impact.measured { "measured in its trees" } else { "estimated" };
    let packed =
        if impact.compressed { "texts as they are compressed" } else { "nothing compressed beforehand" };
    let mut all = vec![format!(
        "{}: the lower levels are {how}; full and levels are counted alike, {packed}",
        site.name
    )];
    all.extend(impact.changed_since.then(|| {
        format!("{}: the site has other files now than when its trees were made; `plimsoll adapt` makes them again", site.name)
    }));
    all.extend(impact.matched.map(|(matched, of)| {
        format!("{}: {matched} of the log's {of} requests are for pages of this site", site.name)
    }));
    let (dangling, external) = impact.uncounted;
    all.extend((dangling + external > 0).then(|| {
        format!(
            "{}: {dangling} references to files that are not there and {external} to other hosts are not counted",
            site.name
        )
    }));
    all
}

/// CA Fig. 2 and 3, as a table and as a chart.
fn distribution(sites: &[Site]) -> Section {
    let count = sites.len();
    let first = Column::text(format!("of {count} sites improve by at least"));
    let steps = STEPS.map(|step| Column::number(format!("{step:.0} %")));
    let mut table = Table::new("Improvement", std::iter::once(first).chain(steps));
    let x = XAxis::Quantity { name: "improvement".to_owned(), unit: "%".to_owned() };
    let title = format!("The part of {count} sites that improves by at least so much");
    let mut chart = Chart::over(x, title, "%").from_zero().up_to(100.0);
    for (name, points) in curves(sites) {
        let part = |step: f64| points.iter().find(|(x, _)| *x >= step).map_or(0.0, |(_, part)| *part);
        let cells = STEPS.map(|step| Cell::from(format!("{:.0} %", part(step))));
        table = table.row(std::iter::once(Cell::from(name.clone())).chain(cells));
        chart = chart.series(Series::new(name, points).style(Style::Step));
    }
    Section::new("Sites").text("As in CA Fig. 2 (text) and 3 (lean).").chart(chart).table(table)
}

/// The two curves of each level.
fn curves(sites: &[Site]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut all = Vec::new();
    for (place, (name, _)) in sites.first().into_iter().flat_map(|site| site.ratios.iter().enumerate()) {
        let over = |pick: fn(&Ratios) -> f64| {
            curve(sites.iter().filter_map(|site| site.ratios.get(place)).map(|(_, ratios)| pick(ratios)))
        };
        all.push((format!("{name}, optimistic"), over(|ratios| ratios.optimistic)));
        all.push((format!("{name}, pessimistic"), over(|ratios| ratios.pessimistic)));
    }
    all
}
