//! The plan: what the upstreams carry, what the sites serve at which level, and what is not known yet.
//!
//! Before a and b of UC eq. 1 are known a plan is *unverified*, not refused (UC 5): the gateway measures them while it
//! runs.

use crate::output::failure::Failure;
use crate::output::{promised, text};
use plimsoll_config::{Backend, Configuration};
use plimsoll_core::promises::plan::{self, Ceiling, Feasibility, PlantPlan};
use plimsoll_core::promises::{
    Guarantee, Identity, Level, Mode, Plant, Promises, Sense, Site, UtilizationLaw, WorkerBounds,
};
use plimsoll_gateway::admin::json::{Json, delay_json};
use plimsoll_gateway::settings::Rewrite;

const UNVERIFIED: &str =
    "costs unknown: the plan is unverified until they are measured (the gateway does so while it runs)";
const VERIFIED: &str = "costs are given: the rates are upper bounds, for answers without a body";

/// As text.
pub(crate) fn table(configuration: &Configuration) -> String {
    let promises = &configuration.promises;
    let mut plants =
        vec![cells(["upstream", "kind", "workers", "load line", "max connections", "may wait", "carries"])];
    plants.extend(promises.plants.iter().zip(&configuration.gateway.backends).map(plant_row));
    let mut sites = vec![cells(["site", "level", "served by", "rewrite", "cost", "classes"])];
    for (site, rewrites) in promises.sites.iter().zip(&configuration.gateway.settings.rewrites) {
        sites.extend(site_rows(site, rewrites, &promises.plants));
    }
    let mode = match promises.control.mode {
        Mode::Control => "",
        Mode::Observe => {
            "mode observe: everything is decided and counted, and every request passes at full quality\n"
        }
        Mode::Off => "mode off: nothing is decided\n",
    };
    let costs = if is_verified(configuration) { VERIFIED } else { UNVERIFIED };
    let plans = plans(promises);
    let contracts: String = plans.iter().filter(|plan| !plan.rows.is_empty()).map(contracts).collect();
    let promised = promised::table(promises, &plans);
    format!(
        "{}\n{}\n{promised}{contracts}{mode}{costs}\n",
        text::rows(&plants, &[2, 3, 4]),
        text::rows(&sites, &[])
    )
}

/// The plans with the costs that the file tells.
fn plans(promises: &Promises) -> Vec<PlantPlan> {
    plan::plan(promises, |site| plan::told(promises, &promises.sites[site]))
}

/// Refuses promises that cannot be kept.
///
/// # Errors
/// [`Failure::Input`] with the table of who takes how much, and what would fit.
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

/// The contracts of one plant: who takes how much, and whether it fits.
pub(crate) fn contracts(plan: &PlantPlan) -> String {
    let fits = plan.verdict != Feasibility::Exceeds;
    let mut rows = vec![cells(["guarantee", "requests/s", "Mbit/s", "of the upstream", "would fit"])];
    rows.extend(plan.rows.iter().map(|row| {
        let Guarantee { rate, bandwidth_bytes_per_second, .. } = row.guarantee;
        let megabits = |bytes: f64| format!("{:.1}", bytes / 125e3);
        let part = plan.fitting_part();
        let bandwidth = bandwidth_bytes_per_second;
        let would_fit = match bandwidth.filter(|_| !fits) {
            Some(bandwidth) => {
                format!("{:.0}/s, {} Mbit/s", (rate * part).floor(), megabits(bandwidth * part))
            }
            None if !fits => format!("{:.0}/s", (rate * part).floor()),
            None => "all".to_owned(),
        };
        vec![
            row.site.clone(),
            format!("{rate:.0}"),
            bandwidth.map_or("any".to_owned(), megabits),
            row.utilization.map_or("unknown".to_owned(), |utilization| format!("{utilization:.3}")),
            would_fit,
        ]
    }));
    if plan.reserve > 0.0 {
        let reserve = format!("{:.3}", plan.reserve);
        rows.push(cells(["reserve for rejections", "", "", &reserve, ""]));
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
    format!("{}{plant}: {sum:.3} of {ceiling:.3} ({from}): {says}\n\n", text::rows(&rows, &[1, 2, 3]))
}

fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn is_verified(configuration: &Configuration) -> bool {
    configuration.promises.plants.iter().all(|plant| plant.costs.is_some())
}

fn plant_row((plant, backend): (&Plant, &Backend)) -> Vec<String> {
    vec![
        plant.name.clone(),
        kind(backend).to_owned(),
        plant.find_workers.map_or(plant.workers.to_string(), |bounds| {
            format!("found, {} to {}", bounds.least, bounds.most)
        }),
        format!("{:.2}", plant.set_point),
        plant.max_connections.to_string(),
        format!("{} for {} s", plant.queue.max_waiting, plant.queue.max_wait.as_secs_f64()),
        carried(plant).map_or("unknown".to_owned(), |rate| format!("up to {rate:.0} requests/s")),
    ]
}

const fn kind(backend: &Backend) -> &'static str {
    match backend {
        Backend::Upstream { .. } => "servers",
        Backend::Files(_) => "folder",
    }
}

/// R = U* / a: requests per second at the load line, if they had no body.
fn carried(plant: &Plant) -> Option<f64> {
    let cost = plant.costs?.per_request_seconds;
    (cost > 0.0).then(|| plant.set_point / cost)
}

/// One row for each level, highest quality first.
fn site_rows(site: &Site, rewrites: &[Rewrite], plants: &[Plant]) -> Vec<Vec<String>> {
    let levels = site.levels.iter().zip(rewrites).enumerate().rev();
    let rows = levels.map(|(index, (level, rewrite))| {
        let is_first = index + 1 == site.levels.len();
        let only_first = |text: String| if is_first { text } else { String::new() };
        vec![
            only_first(site.name.clone()),
            level.name.clone(),
            plants[level.plant.unwrap_or(site.plant)].name.clone(),
            changed(rewrite),
            cost(site, index, level),
            only_first(classes(site).join(", ")),
        ]
    });
    rows.collect()
}

fn changed(rewrite: &Rewrite) -> String {
    let prefix = given(&rewrite.prefix).map(|prefix| format!("{prefix}/..."));
    let headers = rewrite.headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let fallback = rewrite.falls_back.then(|| "else as the next level".to_owned());
    let all: Vec<String> = prefix.into_iter().chain(headers).chain(fallback).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// A prefix, unless it is empty: then the path stays as it is.
fn given(prefix: &str) -> Option<&str> {
    (!prefix.is_empty()).then_some(prefix)
}

fn cost(site: &Site, index: usize, level: &Level) -> String {
    match (level.cost_ratio, site.levels.get(index + 1)) {
        (Some(ratio), Some(above)) => format!("{ratio} of {}", above.name),
        _ => "unknown".to_owned(),
    }
}

/// The classes with the built-in last one.
fn classes(site: &Site) -> Vec<String> {
    site.classes.iter().map(|class| class.name.clone()).chain(["default".to_owned()]).collect()
}

/// As JSON.
pub(crate) fn json(configuration: &Configuration) -> Json {
    let Configuration { promises, gateway } = configuration;
    let mode = match promises.control.mode {
        Mode::Control => "control",
        Mode::Observe => "observe",
        Mode::Off => "off",
    };
    let law = match promises.control.law {
        UtilizationLaw::FeedForward => "feed-forward",
        UtilizationLaw::Paper { .. } => "paper",
    };
    let plants = promises.plants.iter().zip(&gateway.backends).map(plant_json);
    let sites = promises
        .sites
        .iter()
        .zip(&gateway.settings.rewrites)
        .map(|(site, rewrites)| site_json(site, rewrites, &promises.plants));
    Json::object([
        ("mode", word(mode)),
        ("law", word(law)),
        ("period_seconds", Json::Number(promises.control.period.as_secs_f64())),
        ("listen", Json::List(gateway.settings.listen.iter().map(word).collect())),
        ("admin", gateway.settings.admin.map_or(Json::Null, word)),
        ("upstreams", Json::List(plants.collect())),
        ("sites", Json::List(sites.collect())),
        ("contracts", Json::List(self::plans(promises).iter().map(contracts_json).collect())),
        ("verified", Json::Bool(is_verified(configuration))),
    ])
}

fn word(word: impl ToString) -> Json {
    Json::Text(word.to_string())
}

fn plant_json((plant, backend): (&Plant, &Backend)) -> Json {
    let sense = match plant.sense {
        Sense::Gap => "gap",
        Sense::Reported => "reported",
    };
    Json::object([
        ("name", word(&plant.name)),
        ("kind", word(kind(backend))),
        ("workers", Json::Count(plant.workers.into())),
        ("find_workers", plant.find_workers.map_or(Json::Null, bounds)),
        ("load_line", Json::Number(plant.set_point)),
        ("sense", word(sense)),
        ("max_connections", Json::Count(plant.max_connections.into())),
        ("max_waiting", Json::Count(plant.queue.max_waiting.into())),
        ("max_wait_seconds", Json::Number(plant.queue.max_wait.as_secs_f64())),
        ("bandwidth_bytes_per_second", number(plant.bandwidth_bytes_per_second)),
        ("requests_per_second", number(carried(plant))),
    ])
}

fn bounds(bounds: WorkerBounds) -> Json {
    Json::object([("least", Json::Count(bounds.least.into())), ("most", Json::Count(bounds.most.into()))])
}

fn contracts_json(plan: &PlantPlan) -> Json {
    let row = |row: &plan::ContractRow| {
        Json::object([
            ("site", word(&row.site)),
            ("requests_per_second", Json::Number(row.guarantee.rate)),
            ("bandwidth_bytes_per_second", number(row.guarantee.bandwidth_bytes_per_second)),
            ("utilization", number(row.utilization)),
        ])
    };
    Json::object([
        ("upstream", word(&plan.plant)),
        ("ceiling", Json::Number(plan.ceiling)),
        ("sum", Json::Number(plan.sum)),
        ("reserve", Json::Number(plan.reserve)),
        ("verdict", word(plan.verdict.as_str())),
        ("guarantees", Json::List(plan.rows.iter().map(row).collect())),
        ("delays", Json::List(plan.delays.iter().map(delay_json).collect())),
    ])
}

fn number(value: Option<f64>) -> Json {
    value.map_or(Json::Null, Json::Number)
}

fn site_json(site: &Site, rewrites: &[Rewrite], plants: &[Plant]) -> Json {
    let levels = site.levels.iter().zip(rewrites).map(|(level, rewrite)| {
        let headers = rewrite.headers.iter().map(|(name, value)| (name.as_str(), word(value)));
        Json::object([
            ("name", word(&level.name)),
            ("upstream", word(&plants[level.plant.unwrap_or(site.plant)].name)),
            ("prefix", given(&rewrite.prefix).map_or(Json::Null, word)),
            ("headers", Json::object(headers)),
            ("cost_ratio", number(level.cost_ratio)),
        ])
    });
    let client = match &site.identity {
        Identity::Address => "address".to_owned(),
        Identity::Header(name) => format!("header:{name}"),
        Identity::Cookie(name) => format!("cookie:{name}"),
    };
    Json::object([
        ("name", word(&site.name)),
        ("hosts", Json::List(site.hosts.iter().map(word).collect())),
        ("levels", Json::List(levels.collect())),
        ("classes", Json::List(classes(site).iter().map(word).collect())),
        ("promises", Json::List(promised::of(site).map(|promised| promised.json()).collect())),
        ("strict_ratios", Json::Bool(site.strict_ratios)),
        ("exempt", Json::Count(site.exempt.len() as u64)),
        ("client", word(client)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;

    const TWO_LEVELS: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n\
        [upstream.app.capacity]\nworkers = 8\ncosts = { request = \"8ms\" }\n\
        [[site]]\nname = \"shop\"\nupstream = \"app\"\n\
        [[site.level]]\nname = \"light\"\nprefix = \"/light\"\ncost = 0.15\n[[site.level]]\nname = \"full\"\n";

    #[test]
    fn a_plan_with_costs_says_what_is_carried() {
        let plan = table(&understand(TWO_LEVELS, "test.toml").unwrap());
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
            table(&configuration).contains("app: 0.800 of 0.850 (its load line): fits"),
            "{}",
            table(&configuration)
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
            table(&configuration).contains("costs unknown: the plan is unverified until they are measured")
        );
        assert!(json(&configuration).to_string().contains("\"verified\":false"));
    }
}
