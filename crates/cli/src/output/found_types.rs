//! Types of requests that a gateway found: written as sections of a configuration, and read from a saved status.

use crate::output::facts::{Facts, figure};
use crate::output::failure::Failure;
use plimsoll_core::promises::{Condition, Promises, RequestType};
use plimsoll_core::telemetry::status::{FoundType, SiteStatus};
use serde::Deserialize;
use std::path::Path;

/// The assumed cost of a small static file (s), because a configuration states costs relative to it.
const STATIC_SECONDS: f64 = 1e-3;

/// The sections to paste into a site's `[[site]]`; `None` if no type was found.
pub(crate) fn sections(site: &SiteStatus) -> Option<String> {
    let mean = |name: &str| {
        // The last entry of a type is that of the highest level.
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

/// The parts of a status that concern types and the limits of upstreams on requests at once.
#[derive(Deserialize)]
struct SavedStatus {
    #[serde(default)]
    upstreams: Vec<SavedLimit>,
    sites: Vec<SavedSite>,
}

/// An upstream's limit on requests at once, and the reason if the limit is not the configured one.
#[derive(Deserialize)]
pub(crate) struct SavedLimit {
    name: String,
    limit: u32,
    #[serde(default)]
    limit_reason: Option<String>,
}

impl SavedLimit {
    /// The upstream, its limit and the word for the reason, as figures.
    pub(crate) fn facts(&self) -> Option<Facts> {
        let reason = self.limit_reason.as_deref()?;
        let facts = [
            figure("upstream", "upstream", self.name.as_str()),
            figure("limit", "limit", self.limit),
            figure("limit_reason", "reason", reason),
        ];
        Some(Facts(facts.into()))
    }

    /// The same as a sentence.
    pub(crate) fn sentence(&self) -> Option<String> {
        let why = match self.limit_reason.as_deref()? {
            "refusals" => "it refuses more",
            "outage" => "some of its servers are out of use",
            "search" => "its workers are searched for",
            "reported" => "its server reports so many workers",
            "promises" => "requests wait here, where promised times put them in order",
            _ => "its status says so",
        };
        let (name, limit, word) = (&self.name, self.limit, self.limit_reason.as_deref()?);
        Some(format!("{name} is given at most {limit} requests at once ({word}): {why}"))
    }
}

/// What was read from a saved status: for each type, the share of requests that would be in time if served alone, and the
/// limits of upstreams.
#[derive(Default)]
pub(crate) struct Saved {
    pub(crate) shares: SavedShares,
    pub(crate) limits: Vec<SavedLimit>,
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

/// For each site, the types of a saved status and the share of their requests that would be in time if served alone, if that is
/// known.
pub(crate) type SavedShares = Vec<(String, Vec<(String, f64)>)>;

#[derive(Deserialize)]
struct SavedType {
    name: String,
    path: Vec<String>,
    method: Vec<String>,
    query: Vec<String>,
}

/// Adds the types of a saved `/status` to the sites that name none.
pub(crate) fn read_into(promises: &mut Promises, path: &Path) -> Result<Saved, Failure> {
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
    Ok(Saved { shares, limits: saved.upstreams })
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
