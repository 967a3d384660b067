//! The figures as text and as JSON.

use super::Site;
use crate::output::text;
use plimsoll_content::{Costs, Figures, Ratios, curve};
use plimsoll_gateway::admin::json::Json;

/// The improvements at which the curves are printed (%).
const STEPS: [f64; 8] = [50.0, 100.0, 200.0, 300.0, 400.0, 600.0, 800.0, 1000.0];

pub(super) fn text(sites: &[Site], costs: Costs) -> String {
    let mut out = String::new();
    for site in sites {
        out += &one(site);
        out.push('\n');
    }
    if sites.len() > 1 {
        out += &distribution(sites);
    }
    out + &format!(
        "a = {:.3} ms a request, b = {:.4} ms per KB\n",
        costs.per_request * 1e3,
        costs.per_byte * 1e3 * 1024.0
    )
}

fn one(site: &Site) -> String {
    let impact = &site.impact;
    let full = &impact.full;
    let how = if impact.measured { "measured in its trees" } else { "estimated" };
    let mut out = format!("{}: {} pages with {} objects; {how}\n", site.name, full.pages, full.objects);
    let cells = |cells: [&str; 10]| cells.map(str::to_owned).to_vec();
    let mut rows = vec![cells([
        "",
        "Emb",
        "Emb_min",
        "H",
        "I",
        "requests a view",
        "bytes a view",
        "optimistic",
        "pessimistic",
        "as counted",
    ])];
    let mut row = |name: &str, figures: Option<&Figures>, ratios: Option<&Ratios>| {
        let mut cells = vec![name.to_owned()];
        cells.extend(figures.map_or_else(
            || vec![String::new(); 6],
            |one| {
                vec![
                    format!("{:.2}", one.embedded),
                    format!("{:.2}", one.embedded_least()),
                    format!("{:.0}", one.page_bytes),
                    format!("{:.0}", one.object_bytes),
                    format!("{:.2}", one.view_requests()),
                    format!("{:.0}", one.view_bytes),
                ]
            },
        ));
        if let Some(ratios) = ratios {
            cells.extend(
                [ratios.optimistic, ratios.pessimistic, ratios.counted].map(|ratio| format!("{ratio:.2}")),
            );
            cells.extend(ratios.popular.map(|ratio| format!("{ratio:.2} weighted by views")));
        }
        rows.push(cells);
    };
    row("full", Some(full), None);
    for (name, ratios) in &site.ratios {
        let figures =
            impact.levels.iter().find(|(level, _)| level.name() == *name).map(|(_, figures)| figures);
        row(name, figures, Some(ratios));
    }
    out += &text::rows(&rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    if let Some((matched, all)) = impact.matched {
        out += &format!("{matched} of the log's {all} requests are for pages of this site\n");
    }
    if impact.uncounted != (0, 0) {
        let (dangling, external) = impact.uncounted;
        out += &format!(
            "not counted: {dangling} references to files that are not there, {external} to other hosts\n"
        );
    }
    out
}

/// CA Fig. 2 and 3 as a table.
fn distribution(sites: &[Site]) -> String {
    let mut header = vec![format!("of {} sites improve by at least", sites.len())];
    header.extend(STEPS.map(|step| format!("{step:.0} %")));
    let mut rows = vec![header];
    for (name, points) in curves(sites) {
        let mut row = vec![name];
        row.extend(STEPS.map(|step| {
            let part = points.iter().find(|(x, _)| *x >= step).map_or(0.0, |(_, part)| *part);
            format!("{part:.0} %")
        }));
        rows.push(row);
    }
    text::rows(&rows, &[1, 2, 3, 4, 5, 6, 7, 8]) + "\n"
}

/// The two curves of each level.
pub(super) fn curves(sites: &[Site]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut all = Vec::new();
    for (place, (name, _)) in sites.first().into_iter().flat_map(|site| site.ratios.iter().enumerate()) {
        let of = |pick: fn(&Ratios) -> f64| {
            curve(sites.iter().filter_map(|site| site.ratios.get(place)).map(|(_, ratios)| pick(ratios)))
        };
        all.push((format!("{name}, optimistic"), of(|ratios| ratios.optimistic)));
        all.push((format!("{name}, pessimistic"), of(|ratios| ratios.pessimistic)));
    }
    all
}

pub(super) fn json(sites: &[Site], costs: Costs) -> Json {
    Json::object([
        ("per_request_seconds", Json::Number(costs.per_request)),
        ("per_byte_seconds", Json::Number(costs.per_byte)),
        ("sites", Json::List(sites.iter().map(site).collect())),
    ])
}

fn site(site: &Site) -> Json {
    let impact = &site.impact;
    let count = |pair: Option<(u64, u64)>, which: fn((u64, u64)) -> u64| {
        pair.map_or(Json::Null, |pair| Json::Count(which(pair)))
    };
    let levels = impact.levels.iter().map(|(level, one)| (level.name(), figures(one)));
    let ratios = site.ratios.iter().map(|(name, ratios)| {
        let fields = [
            ("optimistic", Json::Number(ratios.optimistic)),
            ("pessimistic", Json::Number(ratios.pessimistic)),
            ("counted", Json::Number(ratios.counted)),
            ("weighted_by_views", ratios.popular.map_or(Json::Null, Json::Number)),
        ];
        (*name, Json::object(fields))
    });
    Json::object([
        ("site", Json::Text(site.name.clone())),
        ("measured", Json::Bool(impact.measured)),
        ("full", figures(&impact.full)),
        ("levels", Json::object(levels)),
        ("ratios", Json::object(ratios)),
        ("log_requests_for_pages", count(impact.matched, |pair| pair.0)),
        ("log_requests", count(impact.matched, |pair| pair.1)),
        ("dangling", Json::Count(impact.uncounted.0)),
        ("external", Json::Count(impact.uncounted.1)),
    ])
}

fn figures(of: &Figures) -> Json {
    let weighted =
        |which: fn((f64, f64)) -> f64| of.popular.map_or(Json::Null, |pair| Json::Number(which(pair)));
    Json::object([
        ("pages", Json::Count(of.pages)),
        ("objects", Json::Count(of.objects)),
        ("embedded", Json::Number(of.embedded)),
        ("embedded_least", Json::Number(of.embedded_least())),
        ("page_bytes", Json::Number(of.page_bytes)),
        ("object_bytes", Json::Number(of.object_bytes)),
        ("view_requests", Json::Number(of.view_requests())),
        ("view_bytes", Json::Number(of.view_bytes)),
        ("view_requests_weighted", weighted(|pair| pair.0)),
        ("view_bytes_weighted", weighted(|pair| pair.1)),
    ])
}
