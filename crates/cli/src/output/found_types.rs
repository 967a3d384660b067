//! Types of requests that a gateway found: as sections of a configuration, and read from a saved status.

use crate::output::failure::Failure;
use plimsoll_core::promises::{Condition, Promises, RequestType};
use plimsoll_core::telemetry::status::{FoundType, SiteStatus};
use serde::Deserialize;
use std::path::Path;

/// What a small static file is taken to cost (s): a configuration tells costs relative to it.
const STATIC_SECONDS: f64 = 1e-3;

/// The sections of a site, to be put into its `[[site]]`; none if nothing was found.
pub(crate) fn sections(site: &SiteStatus) -> Option<String> {
    let mean = |name: &str| {
        // The last is that of the highest level.
        let own = site.types.iter().rfind(|own| own.name == name && !own.announced && own.requests > 0);
        own.map(|own| own.mean)
    };
    let section = |found: &FoundType| {
        let FoundType { name, condition, .. } = found;
        let keys = [("path", &condition.paths), ("method", &condition.methods), ("query", &condition.query)];
        let given = keys.into_iter().filter(|(_, values)| !values.is_empty());
        let given: Vec<String> = given.map(|(key, values)| format!("{key} = {values:?}")).collect();
        let cost = mean(name).map_or(10.0, |mean| (mean / STATIC_SECONDS).max(0.01));
        let cost = if cost < 10.0 { format!("{cost:.2}") } else { format!("{cost:.0}") };
        format!("[[site.type]]\nname = \"{name}\"\nmatch = {{ {} }}\ncost = {cost}\n", given.join(", "))
    };
    let all: Vec<String> = site.found_types.iter().map(section).collect();
    (!all.is_empty()).then(|| format!("# of [[site]] {}\n{}", site.name, all.join("\n")))
}

/// A status, as far as it tells of types.
#[derive(Deserialize)]
struct SavedStatus {
    sites: Vec<SavedSite>,
}

#[derive(Deserialize)]
struct SavedSite {
    name: String,
    #[serde(default)]
    found_types: Vec<SavedType>,
    #[serde(default)]
    types: Vec<SavedCosts>,
}

#[derive(Deserialize)]
struct SavedCosts {
    name: String,
    requests: u64,
    #[serde(default)]
    in_time_alone: Option<f64>,
}

/// By site, the types of a saved status and the share of their requests that is in time alone, as far as it is known.
pub(crate) type SavedShares = Vec<(String, Vec<(String, f64)>)>;

#[derive(Deserialize)]
struct SavedType {
    name: String,
    path: Vec<String>,
    method: Vec<String>,
    query: Vec<String>,
}

/// Adds the types of a saved `/status` to the sites that tell none.
pub(crate) fn read_into(promises: &mut Promises, path: &Path) -> Result<SavedShares, Failure> {
    let wrong = |why: String| {
        Failure::Input(format!(
            "error: {}: {why}\nSave it by `curl -o {0} http://ADMIN/status`.",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let saved: SavedStatus =
        serde_json::from_str(&text).map_err(|error| wrong(format!("is no status of a gateway: {error}")))?;
    let mut shares = Vec::new();
    for SavedSite { name, found_types, types } in saved.sites {
        let known = types.into_iter().filter(|own| own.requests > 0);
        let known = known.filter_map(|own| Some((own.name, own.in_time_alone?)));
        shares.push((name.clone(), known.collect()));
        let Some(site) = promises.sites.iter_mut().find(|site| site.name == name && site.types.is_empty())
        else {
            continue;
        };
        site.types = found_types
            .into_iter()
            .map(|SavedType { name, path, method, query }| {
                let condition = Condition { paths: path, methods: method, query, ..Condition::default() };
                RequestType { name, condition, quantum: 10.0 }
            })
            .collect();
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::telemetry::status::TypeStatus;

    #[test]
    fn sections_can_be_pasted() {
        let own = |name: &str, mean| TypeStatus {
            name: name.to_owned(),
            requests: 9,
            mean,
            ..TypeStatus::default()
        };
        let condition = Condition {
            paths: vec!["/report".to_owned(), "/report/*".to_owned()],
            methods: vec!["POST".to_owned()],
            query: vec!["deep".to_owned()],
            ..Condition::default()
        };
        let found = FoundType { name: "report".to_owned(), within: "dynamic".to_owned(), condition };
        let site = SiteStatus {
            name: "shop".to_owned(),
            types: vec![own("dynamic", 2e-3), own("report", 0.2)],
            found_types: vec![found],
            ..SiteStatus::default()
        };
        let text = sections(&site).expect("one was found");
        let expected = "# of [[site]] shop\n[[site.type]]\nname = \"report\"\nmatch = { path = [\"/report\", \
                        \"/report/*\"], method = [\"POST\"], query = [\"deep\"] }\ncost = 200\n";
        assert_eq!(text, expected);
        assert_eq!(sections(&SiteStatus::default()), None);
    }
}
