//! The plan: what the upstreams carry, what the sites serve at which level, and what is not known yet. `keep` refuses a plan
//! that cannot be kept, by the verdict of [`plan`].
//!
//! Until the costs a and b of UC eq. 1 are measured, a plan is *unverified*, not refused (UC 5).

use crate::output::facts::{Facts, Value, figure, hidden, list};
use crate::output::failure::Failure;
use crate::output::units::Unit;
use crate::output::{level_order, promised, text};
use plimsoll_config::{Backend, Configuration};
use plimsoll_core::promises::plan::{self, Ceiling, ContractRow, Feasibility, PlantPlan};
use plimsoll_core::promises::{Class, Identity, Level, Mode, Plant, Promises, Sense, Site, UtilizationLaw};
use plimsoll_gateway::admin::mode_word;
use plimsoll_gateway::http1::field::is_set_by_proxies;
use plimsoll_gateway::settings::{Rewrite, Settings};
use plimsoll_report::{Cell, Table};

const UNVERIFIED: &str =
    "costs unknown: the plan is unverified until they are measured (the gateway does so while it runs)";
const VERIFIED: &str = "costs are given: the rates are upper bounds, for answers without a body";

/// The plan of a configuration, as `check --json` prints it.
pub(crate) fn facts(configuration: &Configuration) -> Facts {
    let Configuration { promises, gateway } = configuration;
    let addresses = gateway.settings.listen.iter().map(ToString::to_string);
    let sites = promises.sites.iter().zip(&gateway.settings.rewrites);
    let sites = sites.map(|(site, rewrites)| site_facts(site, rewrites, &promises.plants));
    let law = match promises.control.law {
        UtilizationLaw::FeedForward => "feed-forward",
        UtilizationLaw::Paper { .. } => "paper",
    };
    Facts(vec![
        hidden("mode", mode_word(promises.control.mode)),
        hidden("law", law),
        hidden("period_seconds", promises.control.period.as_secs_f64()),
        hidden("listen", addresses.collect::<Vec<_>>()),
        hidden("admin", gateway.settings.admin.map(|admin| admin.to_string())),
        hidden("upstreams", upstreams(configuration)),
        hidden("sites", sites.collect::<Vec<_>>()),
        hidden("contracts", plans(promises).iter().map(contract_facts).collect::<Vec<_>>()),
        hidden("verified", is_verified(promises)),
        hidden("warnings", warnings(configuration)),
    ])
}

fn is_verified(promises: &Promises) -> bool {
    promises.plants.iter().all(|plant| plant.costs.is_some())
}

pub(crate) fn text(configuration: &Configuration) -> String {
    let promises = &configuration.promises;
    let upstreams = upstreams(configuration);
    let upstreams: Vec<_> = upstreams.iter().map(|facts| (Vec::new(), facts)).collect();
    let mode = match promises.control.mode {
        Mode::Control => "",
        Mode::Observe => {
            "mode observe: everything is decided and counted, and every request passes at full quality\n"
        }
        Mode::Off => "mode off: nothing is decided\n",
    };
    let costs = if is_verified(promises) { VERIFIED } else { UNVERIFIED };
    let plans = plans(promises);
    let contracts: String = plans.iter().filter(|plan| !plan.rows.is_empty()).map(contracts).collect();
    let warnings: String =
        warnings(configuration).iter().map(|warning| format!("warning: {warning}\n")).collect();
    format!(
        "{}\n{}\n{}{contracts}{mode}{costs}\n{warnings}",
        text::table(&list("Upstreams", &[], &upstreams)),
        text::table(&sites(configuration)),
        promised::table(promises, &plans)
    )
}

/// Settings that are valid but may surprise.
pub(crate) fn warnings(configuration: &Configuration) -> Vec<String> {
    let mut warnings = level_order::warnings(configuration);
    warnings.extend(configuration.gateway.warnings.iter().cloned());
    warnings.extend(open_exemptions(&configuration.promises));
    for site in &configuration.promises.sites {
        warnings.extend(open_classes(site, &configuration.gateway.settings));
        warnings.extend(open_identity(site, &configuration.gateway.settings));
    }
    warnings
}

/// Advice for an operator whose site trusts a header or cookie that any client may send.
const SIGN: &str =
    "name it in `signed_headers` or `signed_cookies`, or in `trusted_headers` if proxies of yours set it";

/// Whether any client may set a header that the site uses, because it is neither signed nor trusted.
fn is_open_header(settings: &Settings, name: &str) -> bool {
    let mut known = settings.signed.headers.iter().chain(&settings.trusted_headers);
    !is_set_by_proxies(name) && !known.any(|known| known == name)
}

fn is_open_cookie(settings: &Settings, name: &str) -> bool {
    !settings.signed.cookies.iter().any(|known| known == name)
}

/// The classes of a site that clients may choose for themselves.
fn open_classes(site: &Site, settings: &Settings) -> Option<String> {
    let chosen = |class: &&Class| {
        let condition = &class.condition;
        let header = condition.headers.iter().any(|(name, _)| is_open_header(settings, name));
        let cookie = condition.cookies.iter().any(|(name, _)| is_open_cookie(settings, name));
        condition.clients.is_empty() && (header || cookie)
    };
    let names: Vec<String> =
        site.classes.iter().filter(chosen).map(|class| format!("`{}`", class.name)).collect();
    (!names.is_empty()).then(|| {
        let classes = if names.len() == 1 { "the class" } else { "the classes" };
        format!(
            "site {}: anybody may send the header or cookie that decides {classes} {}; {SIGN}",
            site.name,
            names.join(", ")
        )
    })
}

/// A warning if clients may choose their own identity.
fn open_identity(site: &Site, settings: &Settings) -> Option<String> {
    let what = match &site.identity {
        Identity::Header(name) if is_open_header(settings, name) => format!("header:{name}"),
        Identity::Cookie(name) if is_open_cookie(settings, name) => format!("cookie:{name}"),
        _ => return None,
    };
    Some(format!(
        "site {}: a client (`{what}`) may send another value until it gets the better level; {SIGN}",
        site.name
    ))
}

fn open_exemptions(promises: &Promises) -> Vec<String> {
    let open = promises.sites.iter().filter(|site| site.exempt.iter().any(|rule| rule.clients.is_empty()));
    open.map(|site| {
        format!(
            "site {}: anybody may send what is `exempt`, which is rejected only at a limit (a full queue) and takes up to half \
             of the places at the server; name your own networks there, such as `client = \"10.0.0.0/8\"`",
            site.name
        )
    })
    .collect()
}

/// One row for each level of each site, highest quality first.
fn sites(configuration: &Configuration) -> Table {
    let Configuration { promises, gateway } = configuration;
    let mut rows = Vec::new();
    for (site, rewrites) in promises.sites.iter().zip(&gateway.settings.rewrites) {
        let mut names = vec![Cell::Text(site.name.clone()), Cell::Text(class_names(site).join(", "))];
        for level in levels(site, rewrites, &promises.plants).into_iter().rev() {
            rows.push((std::mem::replace(&mut names, vec![Cell::Empty; 2]), level));
        }
    }
    let rows: Vec<_> = rows.iter().map(|(names, level)| (names.clone(), level)).collect();
    list("Sites", &["site", "classes"], &rows)
}

/// The plans, computed with the costs in the file.
fn plans(promises: &Promises) -> Vec<PlantPlan> {
    plan::plan(promises, |site| plan::promised_costs(promises, &promises.sites[site]))
}

/// Refuses promises that cannot be kept.
pub(crate) fn keep(promises: &Promises, name: &str) -> Result<(), Failure> {
    let plans = plans(promises);
    let broken = plans.iter().filter(|plan| plan.verdict == Feasibility::Exceeds).map(contracts);
    let late = plans.iter().filter_map(promised::refusal).chain(promised::short_deadlines(promises));
    let tables: Vec<String> = broken.chain(late).collect();
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
        Ceiling::Chance => "what chance leaves to contracts",
        Ceiling::Operator => "its ceiling",
        Ceiling::Deadlines => "the planning rule where deadlines are promised",
    };
    let says = match plan.verdict {
        Feasibility::Fits => "fits",
        Feasibility::Unverified => "unverified until all costs and sizes of responses are measured",
        Feasibility::Exceeds => "does not fit: lower the guarantees, or raise what the upstream can carry",
    };
    let (ceiling, plant) = (plan.ceiling, &plan.plant);
    let sum = match plan.verdict {
        Feasibility::Unverified if is_unknown(plan) => "unknown".to_owned(),
        Feasibility::Unverified => format!("at least {:.3}", plan.sum),
        Feasibility::Fits | Feasibility::Exceeds => format!("{:.3}", plan.sum),
    };
    format!("{}{plant}: {sum} of {ceiling:.3} ({from}): {says}\n\n", text::table(&table))
}

/// Whether nothing is known of what a plant's contracts cost.
fn is_unknown(plan: &PlantPlan) -> bool {
    plan.verdict == Feasibility::Unverified && plan.rows.iter().all(|row| row.utilization.is_none())
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
        (Feasibility::Unverified, _) => "unknown".to_owned(),
        (Feasibility::Fits, _) => "all".to_owned(),
    };
    let megabits = Value::from(bandwidth).said(bandwidth.map_or("any".to_owned(), megabits));
    let utilization = row.utilization.map_or_else(|| Value::Absent.said("unknown"), Value::from);
    Facts(vec![
        figure("site", "guarantee", row.site.as_str()),
        figure("requests_per_second", "requests/s", Value::Number(rate, Unit::Plain(0))),
        figure("bandwidth_bytes_per_second", "Mbit/s", megabits),
        figure("utilization", "of the upstream", utilization),
        figure("", "would fit", would_fit),
    ])
}

fn contract_facts(plan: &PlantPlan) -> Facts {
    Facts(vec![
        hidden("upstream", plan.plant.as_str()),
        hidden("ceiling", plan.ceiling),
        hidden("sum", (!is_unknown(plan)).then_some(plan.sum)),
        hidden("reserve", plan.reserve),
        hidden("verdict", plan.verdict.as_str()),
        hidden("guarantees", plan.rows.iter().map(|row| guarantee(row, plan)).collect::<Vec<_>>()),
        hidden("delays", plan.delays.iter().map(promised::delay_facts).collect::<Vec<_>>()),
    ])
}

fn upstreams(configuration: &Configuration) -> Vec<Facts> {
    let Configuration { promises, gateway } = configuration;
    promises.plants.iter().zip(&gateway.backends).map(upstream).collect()
}

fn upstream((plant, backend): (&Plant, &Backend)) -> Facts {
    let (kind, page) = match backend {
        Backend::Upstream { workers_from, .. } => ("servers", workers_from.as_ref().map(ToString::to_string)),
        Backend::Files { .. } => ("folder", None),
    };
    let bounds = plant.find_workers;
    let workers = match bounds {
        Some(bounds) => {
            let asked = page.as_ref().map_or_else(String::new, |page| format!("as {page} says, else "));
            Value::Absent.said(format!("{asked}found, {} to {}", bounds.least, bounds.most))
        }
        None => plant.workers.into(),
    };
    let sense = match plant.sense {
        Sense::Gap => "gap",
        Sense::Reported => "reported",
    };
    let may_wait = format!("{} for {} s", plant.queue.max_waiting, plant.queue.longest_wait().as_secs_f64());
    let rate = carried(plant);
    let carries = rate.map_or("unknown".to_owned(), |rate| format!("up to {rate:.0} requests/s"));
    let bounds = bounds.map(|bounds| {
        Facts(vec![
            hidden("least", bounds.least),
            hidden("most", bounds.most),
            hidden("begins_with", plant.workers),
            hidden("asked_of", page),
        ])
    });
    Facts(vec![
        figure("name", "upstream", plant.name.as_str()),
        figure("kind", "kind", kind),
        figure("workers", "workers", workers),
        hidden("find_workers", bounds),
        figure("load_line", "load line", Value::Number(plant.set_point, Unit::Plain(2))),
        hidden("sense", sense),
        figure("max_connections", "max connections", plant.max_connections),
        figure("max_waiting", "may wait", Value::from(plant.queue.max_waiting).said(may_wait)),
        hidden("max_wait_seconds", plant.queue.longest_wait().as_secs_f64()),
        hidden("bandwidth_bytes_per_second", plant.bandwidth_bytes_per_second),
        figure("requests_per_second", "carries", Value::from(rate).said(carries)),
    ])
}

/// R = U* / a: the requests per second at the load line, for answers without a body.
fn carried(plant: &Plant) -> Option<f64> {
    let cost = plant.costs?.per_request_seconds;
    (cost > 0.0).then(|| plant.set_point / cost)
}

fn site_facts(site: &Site, rewrites: &[Rewrite], plants: &[Plant]) -> Facts {
    let client = match &site.identity {
        Identity::Address => "address".to_owned(),
        Identity::Header(name) => format!("header:{name}"),
        Identity::Cookie(name) => format!("cookie:{name}"),
    };
    Facts(vec![
        hidden("name", site.name.as_str()),
        hidden("hosts", site.hosts.clone()),
        hidden("levels", levels(site, rewrites, plants)),
        hidden("classes", class_names(site)),
        hidden("promises", promised::of(site).map(|promised| promised.facts()).collect::<Vec<_>>()),
        hidden("strict_ratios", site.strict_ratios),
        hidden("exempt", site.exempt.len()),
        hidden("client", client),
    ])
}

fn class_names(site: &Site) -> Vec<String> {
    promised::of(site).map(|promised| promised.class.to_owned()).collect()
}

fn levels(site: &Site, rewrites: &[Rewrite], plants: &[Plant]) -> Vec<Facts> {
    let levels = site.levels.iter().zip(rewrites).enumerate();
    levels.map(|(place, (own, rewrite))| level(site, place, own, rewrite, plants)).collect()
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
        figure("", "rewrite", changed(prefix, rewrite)),
        hidden("prefix", prefix),
        hidden("headers", Facts(headers.collect())),
        figure("", "cost", cost),
        hidden("cost_ratio", level.cost_ratio),
    ])
}

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
    fn an_exemption_for_anybody_is_warned_of() {
        let exempt = |rule: &str| {
            TWO_LEVELS.replace("name = \"shop\"\n", &format!("name = \"shop\"\nexempt = [{rule}]\n"))
        };
        let open = understand(&exempt("{ path = \"/healthz\" }"), "test.toml").unwrap();
        assert!(
            text(&open).contains("warning: site shop: anybody may send what is `exempt`"),
            "{}",
            text(&open)
        );
        // Requests are also rejected if the queue is full.
        assert!(text(&open).contains("rejected only at a limit (a full queue)"), "{}", text(&open));
        assert!(json::line(&facts(&open)).contains("\"warnings\":[\"site shop: anybody"));
        let own = exempt("{ path = \"/healthz\", client = \"10.0.0.0/8\" }");
        assert!(!text(&understand(&own, "test.toml").unwrap()).contains("warning"));
    }

    #[test]
    fn a_priority_that_default_has_too_is_warned_of() {
        let class = "[[site.class]]\nname = \"premium\"\nmatch.path = \"/p/*\"\npriority = 1\n";
        let with = |keys: &str| {
            let site = format!("name = \"shop\"\n{keys}\n");
            let source = TWO_LEVELS.replace("name = \"shop\"\n", &site) + class;
            text(&understand(&source, "test.toml").unwrap())
        };
        for promise in ["deadline", "delay"] {
            let plan = with(&format!("{promise} = \"1s\""));
            for part in [
                "warning: site shop: class premium has priority 1, and so has `default`",
                promise,
                "write `default_priority = 2` under [[site]] if premium is to",
            ] {
                assert!(plan.contains(part), "{part} in\n{plan}");
            }
        }
        for keys in ["", "deadline = \"1s\"\ndefault_priority = 2", "deadline = \"1s\"\ndefault_priority = 1"]
        {
            assert!(!with(keys).contains("warning"), "{}", with(keys));
        }
    }

    #[test]
    fn contracts_that_do_not_fit_are_refused_with_what_would() {
        // 100 requests a second of 8 ms take 0.8 of the upstream, and as many again do not fit below 0.85.
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
    fn workers_that_are_to_be_found_are_no_number() {
        let page = "workers_from = \"http://127.0.0.1:81/server-status?auto\"";
        let configuration = understand(&TWO_LEVELS.replace("workers = 8", page), "test.toml").unwrap();
        let plan = text(&configuration);
        assert!(
            plan.contains("as http://127.0.0.1:81/server-status?auto says, else found, 1 to 1024"),
            "{plan}"
        );
        let json = json::line(&facts(&configuration));
        let bounds = "\"workers\":null,\"find_workers\":{\"least\":1,\"most\":1024,\"begins_with\":16,\
                      \"asked_of\":\"http://127.0.0.1:81/server-status?auto\"}";
        assert!(json.contains(bounds), "{json}");
    }

    #[test]
    fn a_plan_without_costs_is_unverified() {
        let source = TWO_LEVELS.replace("costs = { request = \"8ms\" }\n", "");
        let configuration = understand(&source, "test.toml").unwrap();
        assert!(
            text(&configuration).contains("costs unknown: the plan is unverified until they are measured")
        );
        assert!(json::line(&facts(&configuration)).contains("\"verified\":false"));
        let contract =
            source.replace("upstream = \"app\"\n", "upstream = \"app\"\nguarantee.rate = \"100/s\"\n");
        let plan = text(&understand(&contract, "test.toml").unwrap());
        assert!(plan.contains("app: unknown of 0.850 (its load line): unverified"), "{plan}");
        let row =
            plan.lines().find(|line| line.starts_with("shop") && line.contains("100")).unwrap_or_default();
        assert!(row.trim_end().ends_with("unknown"), "{plan}");
        let json = json::line(&facts(&understand(&contract, "test.toml").unwrap()));
        assert!(json.contains("\"sum\":null"), "{json}");
    }
}
