//! The plan: what the upstreams carry, what the sites serve at which level, and what is not known yet.
//!
//! Before a and b of UC eq. 1 are known a plan is *unverified*, not refused (UC 5): the gateway measures them while it
//! runs.

use crate::output::facts::{Facts, Value, figure, hidden, list};
use crate::output::failure::Failure;
use crate::output::units::Unit;
use crate::output::{promised, text};
use plimsoll_config::{Backend, Configuration};
use plimsoll_core::promises::plan::{self, Ceiling, ContractRow, Feasibility, PlantPlan};
use plimsoll_core::promises::{Identity, Level, Mode, Plant, Promises, Sense, Site, UtilizationLaw};
use plimsoll_gateway::admin::DelayDocument;
use plimsoll_gateway::settings::Rewrite;
use plimsoll_report::{Cell, Table};
use serde::{Serialize, Serializer};

const UNVERIFIED: &str =
    "costs unknown: the plan is unverified until they are measured (the gateway does so while it runs)";
const VERIFIED: &str = "costs are given: the rates are upper bounds, for answers without a body";

/// The plan of a configuration, as `check --json` prints it.
#[derive(Serialize)]
pub(crate) struct Plan {
    mode: &'static str,
    law: &'static str,
    period_seconds: f64,
    listen: Vec<String>,
    admin: Option<String>,
    upstreams: Vec<Facts>,
    sites: Vec<SitePlan>,
    #[serde(serialize_with = "as_contracts")]
    contracts: Vec<PlantPlan>,
    verified: bool,
}

#[derive(Serialize)]
struct SitePlan {
    name: String,
    hosts: Vec<String>,
    /// Lowest quality first.
    levels: Vec<Facts>,
    classes: Vec<String>,
    promises: Vec<Facts>,
    strict_ratios: bool,
    exempt: usize,
    client: String,
}

/// The contracts of one upstream.
#[derive(Serialize)]
struct Contracts<'a> {
    upstream: &'a str,
    ceiling: f64,
    sum: f64,
    reserve: f64,
    verdict: &'static str,
    guarantees: Vec<Facts>,
    delays: Vec<DelayDocument<'a>>,
}

fn as_contracts<S: Serializer>(plans: &[PlantPlan], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(plans.iter().map(Contracts::of))
}

impl Plan {
    pub(crate) fn of(configuration: &Configuration) -> Plan {
        let Configuration { promises, gateway } = configuration;
        let sites = promises.sites.iter().zip(&gateway.settings.rewrites);
        Plan {
            mode: match promises.control.mode {
                Mode::Control => "control",
                Mode::Observe => "observe",
                Mode::Off => "off",
            },
            law: match promises.control.law {
                UtilizationLaw::FeedForward => "feed-forward",
                UtilizationLaw::Paper { .. } => "paper",
            },
            period_seconds: promises.control.period.as_secs_f64(),
            listen: gateway.settings.listen.iter().map(ToString::to_string).collect(),
            admin: gateway.settings.admin.map(|admin| admin.to_string()),
            upstreams: promises.plants.iter().zip(&gateway.backends).map(upstream).collect(),
            sites: sites.map(|(site, rewrites)| SitePlan::of(site, rewrites, &promises.plants)).collect(),
            contracts: plans(promises),
            verified: promises.plants.iter().all(|plant| plant.costs.is_some()),
        }
    }
}

/// The plan as text.
pub(crate) fn text(configuration: &Configuration) -> String {
    let promises = &configuration.promises;
    let plan = Plan::of(configuration);
    let upstreams: Vec<_> = plan.upstreams.iter().map(|facts| (Vec::new(), facts)).collect();
    let mode = match promises.control.mode {
        Mode::Control => "",
        Mode::Observe => {
            "mode observe: everything is decided and counted, and every request passes at full quality\n"
        }
        Mode::Off => "mode off: nothing is decided\n",
    };
    let costs = if plan.verified { VERIFIED } else { UNVERIFIED };
    let plans = &plan.contracts;
    let contracts: String = plans.iter().filter(|plan| !plan.rows.is_empty()).map(contracts).collect();
    format!(
        "{}\n{}\n{}{contracts}{mode}{costs}\n",
        text::table(&list("Upstreams", &[], &upstreams)),
        text::table(&sites(&plan.sites)),
        promised::table(promises, plans)
    )
}

/// One row for each level of each site, highest quality first.
fn sites(sites: &[SitePlan]) -> Table {
    let rows = sites.iter().flat_map(|site| {
        site.levels.iter().rev().enumerate().map(|(place, level)| {
            let names = [site.name.clone(), site.classes.join(", ")];
            let names = names.map(|name| if place == 0 { Cell::Text(name) } else { Cell::Empty });
            (names.into(), level)
        })
    });
    list("Sites", &["site", "classes"], &rows.collect::<Vec<_>>())
}

/// The plans with the costs that the file tells.
fn plans(promises: &Promises) -> Vec<PlantPlan> {
    plan::plan(promises, |site| plan::promised_costs(promises, &promises.sites[site]))
}

/// Refuses promises that cannot be kept.
///
/// # Errors
/// [`Failure::Input`] with the table of which site takes how much, and what would fit.
pub(crate) fn keep(promises: &Promises, name: &str) -> Result<(), Failure> {
    let plans = plans(promises);
    let broken = plans.iter().filter(|plan| plan.verdict == Feasibility::Exceeds).map(contracts);
    let tables: Vec<String> = broken.chain(plans.iter().filter_map(promised::refusal)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{name}: more is promised than can be kept\n\n{}",
        tables.join("\n").trim_end()
    )))
}

/// The contracts of one plant: how much each site takes, and whether all fit.
pub(crate) fn contracts(plan: &PlantPlan) -> String {
    let rows: Vec<Facts> = plan.rows.iter().map(|row| guarantee(row, plan)).collect();
    let rows: Vec<_> = rows.iter().map(|facts| (Vec::new(), facts)).collect();
    let mut table = list("Contracts", &[], &rows);
    if plan.reserve > 0.0 {
        let reserve = Unit::Plain(3).show(plan.reserve);
        table = table.row(["reserve for rejections".into(), Cell::Empty, Cell::Empty, reserve.into()]);
    }
    let from = match plan.ceiling_from {
        Ceiling::LoadLine => "its load line",
        Ceiling::Operator => "its ceiling",
        Ceiling::Deadlines => "the planning rule where deadlines are promised",
    };
    let says = match plan.verdict {
        Feasibility::Fits => "fits",
        Feasibility::Unverified => "unverified until all costs are measured",
        Feasibility::Exceeds => "does not fit: lower the guarantees, or raise what the upstream can carry",
    };
    let (sum, ceiling) = (plan.sum, plan.ceiling);
    let plant = &plan.plant;
    format!("{}{plant}: {sum:.3} of {ceiling:.3} ({from}): {says}\n\n", text::table(&table))
}

fn guarantee(row: &ContractRow, plan: &PlantPlan) -> Facts {
    let (rate, bandwidth) = (row.guarantee.rate, row.guarantee.bandwidth_bytes_per_second);
    let megabits = |bytes: f64| format!("{:.1}", bytes / 125e3);
    let part = plan.fitting_part();
    let fitting = format!("{:.0}/s", (rate * part).floor());
    let would_fit = match (plan.verdict, bandwidth) {
        (Feasibility::Exceeds, Some(bandwidth)) => {
            format!("{fitting}, {} Mbit/s", megabits(bandwidth * part))
        }
        (Feasibility::Exceeds, None) => fitting,
        _ => "all".to_owned(),
    };
    Facts(vec![
        figure("site", "guarantee", row.site.as_str()),
        figure("requests_per_second", "requests/s", Value::Number(rate, Unit::Plain(0))),
        figure(
            "bandwidth_bytes_per_second",
            "Mbit/s",
            Value::from(bandwidth).said(bandwidth.map_or("any".to_owned(), megabits)),
        ),
        figure(
            "utilization",
            "of the upstream",
            row.utilization.map_or_else(|| Value::Absent.said("unknown"), Value::from),
        ),
        figure("", "would fit", Value::Text(would_fit)),
    ])
}

impl<'a> Contracts<'a> {
    fn of(plan: &'a PlantPlan) -> Self {
        Contracts {
            upstream: &plan.plant,
            ceiling: plan.ceiling,
            sum: plan.sum,
            reserve: plan.reserve,
            verdict: plan.verdict.as_str(),
            guarantees: plan.rows.iter().map(|row| guarantee(row, plan)).collect(),
            delays: plan.delays.iter().map(DelayDocument::new).collect(),
        }
    }
}

fn upstream((plant, backend): (&Plant, &Backend)) -> Facts {
    let workers = Value::from(plant.workers);
    let bounds = plant.find_workers;
    let may_wait = format!("{} for {} s", plant.queue.max_waiting, plant.queue.max_wait.as_secs_f64());
    let rate = carried(plant);
    let carries = rate.map_or("unknown".to_owned(), |rate| format!("up to {rate:.0} requests/s"));
    Facts(vec![
        figure("name", "upstream", plant.name.as_str()),
        figure(
            "kind",
            "kind",
            match backend {
                Backend::Upstream { .. } => "servers",
                Backend::Files { .. } => "folder",
            },
        ),
        figure(
            "workers",
            "workers",
            match bounds {
                Some(bounds) => workers.said(format!("found, {} to {}", bounds.least, bounds.most)),
                None => workers,
            },
        ),
        hidden(
            "find_workers",
            bounds.map(|bounds| {
                Value::Map(Facts(vec![hidden("least", bounds.least), hidden("most", bounds.most)]))
            }),
        ),
        figure("load_line", "load line", Value::Number(plant.set_point, Unit::Plain(2))),
        hidden(
            "sense",
            match plant.sense {
                Sense::Gap => "gap",
                Sense::Reported => "reported",
            },
        ),
        figure("max_connections", "max connections", plant.max_connections),
        figure("max_waiting", "may wait", Value::from(plant.queue.max_waiting).said(may_wait)),
        hidden("max_wait_seconds", plant.queue.max_wait.as_secs_f64()),
        hidden("bandwidth_bytes_per_second", plant.bandwidth_bytes_per_second),
        figure("requests_per_second", "carries", Value::from(rate).said(carries)),
    ])
}

/// R = U* / a: the requests per second at the load line, for answers without a body.
fn carried(plant: &Plant) -> Option<f64> {
    let cost = plant.costs?.per_request_seconds;
    (cost > 0.0).then(|| plant.set_point / cost)
}

impl SitePlan {
    fn of(site: &Site, rewrites: &[Rewrite], plants: &[Plant]) -> SitePlan {
        let levels = site.levels.iter().zip(rewrites).enumerate();
        let classes = site.classes.iter().map(|class| class.name.clone());
        SitePlan {
            name: site.name.clone(),
            hosts: site.hosts.clone(),
            levels: levels.map(|(place, (own, rewrite))| level(site, place, own, rewrite, plants)).collect(),
            classes: classes.chain(["default".to_owned()]).collect(),
            promises: promised::of(site).map(|promised| promised.facts()).collect(),
            strict_ratios: site.strict_ratios,
            exempt: site.exempt.len(),
            client: match &site.identity {
                Identity::Address => "address".to_owned(),
                Identity::Header(name) => format!("header:{name}"),
                Identity::Cookie(name) => format!("cookie:{name}"),
            },
        }
    }
}

fn level(site: &Site, place: usize, level: &Level, rewrite: &Rewrite, plants: &[Plant]) -> Facts {
    let prefix = Some(rewrite.prefix.as_str()).filter(|prefix| !prefix.is_empty());
    let cost = match (level.cost_ratio, site.levels.get(place + 1)) {
        (Some(ratio), Some(above)) => format!("{ratio} of {}", above.name),
        _ => "unknown".to_owned(),
    };
    let headers = rewrite.headers.iter().map(|(name, value)| figure(name.clone(), "", value.as_str()));
    Facts(vec![
        figure("name", "level", level.name.as_str()),
        figure("upstream", "served by", plants[level.plant.unwrap_or(site.plant)].name.as_str()),
        figure("", "rewrite", Value::Text(changed(prefix, rewrite))),
        hidden("prefix", prefix),
        hidden("headers", Value::Map(Facts(headers.collect()))),
        figure("", "cost", Value::Text(cost)),
        hidden("cost_ratio", level.cost_ratio),
    ])
}

/// What is changed in a request of a level.
fn changed(prefix: Option<&str>, rewrite: &Rewrite) -> String {
    let prefix = prefix.map(|prefix| format!("{prefix}/..."));
    let headers = rewrite.headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let fallback = rewrite.falls_back.then(|| "else as the next level".to_owned());
    let all: Vec<String> = prefix.into_iter().chain(headers).chain(fallback).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;
    use crate::output::json;

    const TWO_LEVELS: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n\
        [upstream.app.capacity]\nworkers = 8\ncosts = { request = \"8ms\" }\n\
        [[site]]\nname = \"shop\"\nupstream = \"app\"\n\
        [[site.level]]\nname = \"light\"\nprefix = \"/light\"\ncost = 0.15\n[[site.level]]\nname = \"full\"\n";

    #[test]
    fn a_plan_with_costs_says_what_is_carried() {
        let plan = text(&understand(TWO_LEVELS, "test.toml").unwrap());
        for part in ["up to 106 requests/s", "0.15 of full", "/light/...", "default", VERIFIED] {
            assert!(plan.contains(part), "{part} in\n{plan}");
        }
    }

    #[test]
    fn contracts_that_do_not_fit_are_refused_with_what_would() {
        // 100/s of 8 ms take 0.8 of it, and as many again do not fit below 0.85.
        let one =
            TWO_LEVELS.replace("upstream = \"app\"\n", "upstream = \"app\"\nguarantee.rate = \"100/s\"\n");
        let configuration = understand(&one, "test.toml").unwrap();
        assert!(
            text(&configuration).contains("app: 0.800 of 0.850 (its load line): fits"),
            "{}",
            text(&configuration)
        );
        let two = format!(
            "{}[[site]]\nname = \"blog\"\nguarantee.rate = \"100/s\"\n",
            one.replace("upstream = \"app\"\ng", "host = \"shop.example\"\nupstream = \"app\"\ng")
        );
        let Err(Failure::Input(refusal)) = understand(&two, "test.toml") else {
            panic!("it was not refused")
        };
        for part in ["test.toml: more is promised", "app: 1.600 of 0.850", "does not fit", "53/s"] {
            assert!(refusal.contains(part), "{part} in\n{refusal}");
        }
    }

    #[test]
    fn a_plan_without_costs_is_unverified() {
        let source = TWO_LEVELS.replace("costs = { request = \"8ms\" }\n", "");
        let configuration = understand(&source, "test.toml").unwrap();
        assert!(
            text(&configuration).contains("costs unknown: the plan is unverified until they are measured")
        );
        assert!(json::line(&Plan::of(&configuration)).contains("\"verified\":false"));
    }
}
