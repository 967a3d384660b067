//! The figures as a page with plots.

use super::Site;
use super::text::curves;
use plimsoll_content::Costs;
use plimsoll_report::{Cell, Chart, Column, Fact, Page, Section, Series, Style, Table, XAxis};

pub(super) fn page(sites: &[Site], costs: Costs) -> Page {
    let mut sections = vec![figures(sites), ratios(sites)];
    if sites.len() > 1 {
        sections.insert(0, distribution(sites));
    }
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    Page {
        title: format!("What adaptation is worth: {}", names.join(", ")),
        subtitle: format!(
            "a = {:.3} ms a request, b = {:.4} ms per KB",
            costs.per_request * 1e3,
            costs.per_byte * 1e3 * 1024.0
        ),
        lead: sites.first().filter(|_| sites.len() == 1).map(lead).unwrap_or_default(),
        sections,
        footer: format!("plimsoll {} impact", env!("CARGO_PKG_VERSION")),
    }
}

fn lead(site: &Site) -> Vec<Fact> {
    let how = if site.impact.measured { "measured" } else { "estimated" };
    let fact = |(name, ratios): &(&'static str, plimsoll_content::Ratios)| {
        Fact::new(format!("visitors at {name}"), format!("{:.2}", ratios.counted))
            .unit("times as many")
            .note(format!("{how}; {:.2} to {:.2} by CA 3", ratios.pessimistic, ratios.optimistic))
    };
    site.ratios.iter().map(fact).collect()
}

fn distribution(sites: &[Site]) -> Section {
    let x = XAxis::Quantity { name: "improvement".to_owned(), unit: "%".to_owned() };
    let title = format!("The part of {} sites that improves by at least so much", sites.len());
    let chart = curves(sites)
        .into_iter()
        .fold(Chart::over(x, title, "%").from_zero().up_to(100.0), |chart, (name, points)| {
            chart.series(Series::new(name, points).style(Style::Step))
        });
    Section::new("Sites").text("As in CA Fig. 2 (text) and 3 (light).").chart(chart)
}

fn figures(sites: &[Site]) -> Section {
    let columns = [
        Column::text("site"),
        Column::text("level"),
        Column::number("pages", "", 0),
        Column::number("objects", "", 0),
        Column::number("Emb", "", 2),
        Column::number("Emb_min", "", 2),
        Column::number("H", "byte", 0),
        Column::number("I", "byte", 0),
        Column::bars("requests a view", "", 2),
        Column::bars("bytes a view", "", 0),
    ];
    let mut table = Table::new("Figures", columns);
    for site in sites {
        let levels = site.impact.levels.iter().map(|(level, figures)| (level.name(), figures));
        for (name, figures) in [("full", &site.impact.full)].into_iter().chain(levels) {
            table = table.row([
                Cell::from(site.name.clone()),
                name.into(),
                figures.pages.into(),
                figures.objects.into(),
                figures.embedded.into(),
                figures.embedded_least().into(),
                figures.page_bytes.into(),
                figures.object_bytes.into(),
                figures.view_requests().into(),
                figures.view_bytes.into(),
            ]);
        }
    }
    Section::new("What pages load")
        .text("Emb: objects embedded in a page; Emb_min: objects by pages; H, I: mean bytes of a page and of an object.")
        .table(table)
}

fn ratios(sites: &[Site]) -> Section {
    let columns = [
        Column::text("site"),
        Column::text("level"),
        Column::number("optimistic", "", 2),
        Column::number("pessimistic", "", 2),
        Column::bars("as counted", "", 2),
        Column::number("weighted by views", "", 2),
    ];
    let mut table = Table::new("How many times as many visitors", columns);
    for site in sites {
        for (name, ratios) in &site.ratios {
            table = table.row([
                Cell::from(site.name.clone()),
                (*name).into(),
                ratios.optimistic.into(),
                ratios.pessimistic.into(),
                ratios.counted.into(),
                ratios.popular.into(),
            ]);
        }
    }
    Section::new("What it is worth")
        .text("Optimistic: nobody has a cache. Pessimistic: everybody sees the whole site, and has one. `text (CA)` is the paper's bound: the pages as they are, and nothing else.")
        .table(table)
}
