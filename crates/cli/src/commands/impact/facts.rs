//! The facts of an impact study: what pages load at each level, and how many times as many visitors that allows.

use super::Site;
use crate::output::facts::{Facts, Value, figure, hidden};
use crate::output::units::Unit;
use plimsoll_content::{Costs, Figures, Ratios};
use serde::Serialize;

/// The facts of all sites.
#[derive(Serialize)]
pub(super) struct ImpactReport {
    per_request_seconds: f64,
    per_byte_seconds: f64,
    pub(super) sites: Vec<SiteFacts>,
}

/// The facts of one site.
#[derive(Serialize)]
pub(super) struct SiteFacts {
    #[serde(rename = "site")]
    pub(super) name: String,
    pub(super) measured: bool,
    /// Whether texts are counted as compressed, in the site and in its trees.
    compressed: bool,
    pub(super) full: Facts,
    /// By level.
    #[serde(serialize_with = "by_name")]
    pub(super) levels: Vec<(&'static str, Facts)>,
    /// By level, with the text level in the paper's sense.
    #[serde(serialize_with = "by_name")]
    pub(super) ratios: Vec<(&'static str, Facts)>,
    #[serde(flatten)]
    counts: Facts,
}

fn by_name<S: serde::Serializer>(all: &[(&'static str, Facts)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(all.iter().map(|(name, facts)| (name, facts)))
}

impl ImpactReport {
    pub(super) fn of(sites: &[Site], costs: Costs) -> ImpactReport {
        ImpactReport {
            per_request_seconds: costs.per_request,
            per_byte_seconds: costs.per_byte,
            sites: sites.iter().map(SiteFacts::of).collect(),
        }
    }
}

impl SiteFacts {
    fn of(site: &Site) -> SiteFacts {
        let impact = &site.impact;
        SiteFacts {
            name: site.name.clone(),
            measured: impact.measured,
            compressed: impact.compressed,
            full: figures(&impact.full),
            levels: impact.levels.iter().map(|(level, one)| (level.name(), figures(one))).collect(),
            ratios: site.ratios.iter().map(|(name, one)| (*name, ratios(one))).collect(),
            counts: Facts(vec![
                hidden("log_requests_for_pages", impact.matched.map(|(matched, _)| matched)),
                hidden("log_requests", impact.matched.map(|(_, all)| all)),
                hidden("dangling", impact.uncounted.0),
                hidden("external", impact.uncounted.1),
            ]),
        }
    }
}

fn figures(of: &Figures) -> Facts {
    let two = |value| Value::Number(value, Unit::Plain(2));
    let whole = |value| Value::Number(value, Unit::Plain(0));
    Facts(vec![
        figure("pages", "pages", of.pages),
        figure("objects", "objects", of.objects),
        figure("embedded", "Emb", two(of.embedded)),
        figure("embedded_least", "Emb_min", two(of.embedded_least())),
        figure("page_bytes", "H", whole(of.page_bytes)),
        figure("object_bytes", "I", whole(of.object_bytes)),
        figure("view_requests", "requests a view", two(of.view.requests)),
        figure("view_bytes", "bytes a view", whole(of.view.bytes)),
        hidden("view_requests_weighted", of.popular.map(|view| view.requests)),
        hidden("view_bytes_weighted", of.popular.map(|view| view.bytes)),
    ])
}

fn ratios(of: &Ratios) -> Facts {
    let two = |value| Value::Number(value, Unit::Plain(2));
    Facts(vec![
        figure("optimistic", "optimistic", two(of.optimistic)),
        figure("pessimistic", "pessimistic", two(of.pessimistic)),
        figure("counted", "as counted", two(of.counted)),
        figure("weighted_by_views", "weighted by views", of.popular.map(two)).rare(),
    ])
}
