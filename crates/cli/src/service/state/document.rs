//! The state as JSON: version 1.
//!
//! A state of another version, or a damaged one, tells the seed alone, which every version has in the same way: with another
//! seed most clients would get another level. The next state that is written takes its place. What belongs to other names
//! than the configuration has is left out by the engine, which says so.

use plimsoll_core::control::{KnownRule, KnownTypeCost, KnownTypes, KnownWorkers};
use plimsoll_core::model::{KnownCost, KnownLine};
use plimsoll_core::{LearnedClass, LearnedLevel, LearnedPart, LearnedPlant, LearnedSite, LearnedState};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// A state that is older says nothing of the crowd of this moment.
const AT_ONCE: Duration = Duration::from_secs(60);

/// The file's content.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    version: u32,
    /// When it was written, in seconds since 1970.
    written: u64,
    /// The seed by which clients are chosen, if it was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    /// How rates go on by the hour of the day, where no other file keeps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_forecasts: Option<String>,
    #[serde(default)]
    classes: Vec<KeptClass>,
    #[serde(default)]
    plants: Vec<KeptPlant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sites: Vec<KeptSite>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptClass {
    site: String,
    class: String,
    /// m as applied and as allocated.
    service_level: [f64; 2],
    calibration: f64,
    levels: Vec<KeptLevel>,
    line: KeptLine,
    promised_costs: Option<[f64; 3]>,
    /// The service levels at the other plants that serve some of its levels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lower: Vec<KeptPart>,
}

/// What the types of a site's requests cost, where deadlines are promised, and which were found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptSite {
    site: String,
    costs: Vec<KeptTypeCost>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    found: Vec<KeptRule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    crowded: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    apart: Vec<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptTypeCost {
    name: String,
    level: String,
    announced: bool,
    requests: u64,
    mean: f64,
    variance: f64,
    weight: f64,
    block: f64,
    times: Vec<(u16, f32)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptRule {
    name: String,
    value: String,
    number: u8,
    parent: u8,
    kind: u8,
    token: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptPart {
    plant: String,
    service_level: [f64; 2],
    calibration: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptLevel {
    name: String,
    plant: String,
    requests: f64,
    seconds: f64,
    bytes: f64,
    variance: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptLine {
    theta: [f64; 2],
    information: [f64; 3],
    variance: f64,
    periods: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptPlant {
    name: String,
    service_level: f64,
    bias: f64,
    workers: Option<KeptWorkers>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeptWorkers {
    workers: u32,
    limit: u32,
    possible: u32,
    found: bool,
    highest: u32,
    evidence: Vec<f64>,
    #[serde(default = "whole")]
    found_with: f64,
}

/// What is there of a plant in states that do not say.
fn whole() -> f64 {
    1.0
}

impl StateDocument {
    /// What is to be kept now.
    pub(super) fn new(learned: LearnedState, seed: Option<u64>, rate_forecasts: Option<String>) -> Self {
        StateDocument {
            version: VERSION,
            written: now(),
            seed,
            rate_forecasts,
            classes: learned.classes.into_iter().map(KeptClass::from).collect(),
            plants: learned.plants.into_iter().map(KeptPlant::from).collect(),
            sites: learned.sites.into_iter().map(KeptSite::from).collect(),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Why it is no state that can be used whole, without a full stop; with the seed, if that can be read.
    pub(crate) fn parse(text: &str) -> Result<Self, (String, Option<u64>)> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
            seed: Option<u64>,
        }
        let Versioned { version, seed } = serde_json::from_str(text)
            .map_err(|error| (format!("it is no state of a gateway: {error}"), None))?;
        if version != VERSION {
            return Err((
                format!("it has version {version}, and this program reads version {VERSION}"),
                seed,
            ));
        }
        serde_json::from_str(text).map_err(|error| (format!("it is damaged: {error}"), seed))
    }

    /// The text, in one line.
    pub(super) fn text(&self) -> String {
        // Numbers and names are always text.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// What was learned, and whether it is so new that the crowd is still the same.
    pub(super) fn learned(&self) -> (LearnedState, bool) {
        let at_once = now().abs_diff(self.written) <= AT_ONCE.as_secs();
        let learned = LearnedState {
            classes: self.classes.iter().cloned().map(LearnedClass::from).collect(),
            plants: self.plants.iter().cloned().map(LearnedPlant::from).collect(),
            sites: self.sites.iter().cloned().map(LearnedSite::from).collect(),
        };
        (learned, at_once)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl From<LearnedClass> for KeptClass {
    fn from(own: LearnedClass) -> Self {
        let level = |LearnedLevel { name, plant, cost }| {
            let KnownCost { weight, seconds, bytes, variance } = cost;
            KeptLevel { name, plant, requests: weight, seconds, bytes, variance }
        };
        let part = |LearnedPart { plant, service_level, calibration }| KeptPart {
            plant,
            service_level,
            calibration,
        };
        let KnownLine { theta, information, residual_variance, periods } = own.line;
        KeptClass {
            site: own.site,
            class: own.class,
            service_level: own.service_level,
            calibration: own.calibration,
            levels: own.levels.into_iter().map(level).collect(),
            line: KeptLine { theta, information, variance: residual_variance, periods },
            promised_costs: own.promised,
            lower: own.lower.into_iter().map(part).collect(),
        }
    }
}

impl From<KeptClass> for LearnedClass {
    fn from(own: KeptClass) -> Self {
        let level = |KeptLevel { name, plant, requests, seconds, bytes, variance }| {
            let cost = KnownCost { weight: requests, seconds, bytes, variance };
            LearnedLevel { name, plant, cost }
        };
        let part = |KeptPart { plant, service_level, calibration }| LearnedPart {
            plant,
            service_level,
            calibration,
        };
        let KeptLine { theta, information, variance, periods } = own.line;
        LearnedClass {
            site: own.site,
            class: own.class,
            levels: own.levels.into_iter().map(level).collect(),
            line: KnownLine { theta, information, residual_variance: variance, periods },
            promised: own.promised_costs,
            lower: own.lower.into_iter().map(part).collect(),
            service_level: own.service_level,
            calibration: own.calibration,
        }
    }
}

impl From<LearnedPlant> for KeptPlant {
    fn from(own: LearnedPlant) -> Self {
        let workers = own.workers.map(|found| {
            let KnownWorkers { workers, limit, possible, found, highest, evidence, found_with } = found;
            KeptWorkers { workers, limit, possible, found, highest, evidence, found_with }
        });
        KeptPlant { name: own.name, service_level: own.service_level, bias: own.bias, workers }
    }
}

impl From<KeptPlant> for LearnedPlant {
    fn from(own: KeptPlant) -> Self {
        let workers = own.workers.map(|found| {
            let KeptWorkers { workers, limit, possible, found, highest, evidence, found_with } = found;
            KnownWorkers { workers, limit, possible, found, highest, evidence, found_with }
        });
        LearnedPlant { name: own.name, service_level: own.service_level, bias: own.bias, workers }
    }
}

impl From<LearnedSite> for KeptSite {
    fn from(LearnedSite { site, types }: LearnedSite) -> Self {
        let cost = |own: KnownTypeCost| {
            let KnownTypeCost { name, level, announced, requests, mean, variance, weight, block, times } =
                own;
            KeptTypeCost { name, level, announced, requests, mean, variance, weight, block, times }
        };
        let rule = |KnownRule { name, value, number, parent, kind, token }| KeptRule {
            name,
            value,
            number,
            parent,
            kind,
            token,
        };
        let KnownTypes { costs, found, crowded, apart } = types;
        let (costs, found) = (costs.into_iter().map(cost).collect(), found.into_iter().map(rule).collect());
        KeptSite { site, costs, found, crowded, apart }
    }
}

impl From<KeptSite> for LearnedSite {
    fn from(KeptSite { site, costs, found, crowded, apart }: KeptSite) -> Self {
        let cost = |own: KeptTypeCost| {
            let KeptTypeCost { name, level, announced, requests, mean, variance, weight, block, times } = own;
            KnownTypeCost { name, level, announced, requests, mean, variance, weight, block, times }
        };
        let rule = |KeptRule { name, value, number, parent, kind, token }| KnownRule {
            name,
            value,
            number,
            parent,
            kind,
            token,
        };
        let (costs, found) = (costs.into_iter().map(cost).collect(), found.into_iter().map(rule).collect());
        LearnedSite { site, types: KnownTypes { costs, found, crowded, apart } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Engine;
    use plimsoll_core::promises::{Plant, Promises, Site, WorkerBounds};

    #[test]
    fn everything_is_read_as_it_was_written() {
        let mut plant = Plant::new("app", 8);
        plant.find_workers = Some(WorkerBounds { least: 1, most: 64 });
        let promises = Promises::of(plant, Site::new("shop", &["light", "full"]));
        let mut learned = Engine::new(&promises, 1, 1).unwrap().0.learned();
        learned.classes[0].levels[1].cost =
            KnownCost { weight: 12.5, seconds: 0.1 + 0.2, bytes: 1e4, variance: 1e-3 };
        (learned.classes[0].service_level, learned.plants[0].bias) = ([0.75, 0.7], -0.01);
        let cost = KnownTypeCost {
            name: "static".to_owned(),
            level: "full".to_owned(),
            mean: 0.1 + 0.2,
            times: vec![(3, 0.7), (336, 1e-3)],
            ..KnownTypeCost::default()
        };
        let rule = KnownRule {
            name: "dear".to_owned(),
            value: "/dear".to_owned(),
            number: 4,
            token: 77,
            ..KnownRule::default()
        };
        let types = KnownTypes { costs: vec![cost], found: vec![rule], crowded: vec![1], apart: vec![2, 3] };
        learned.sites = vec![LearnedSite { site: "shop".to_owned(), types }];
        let text = StateDocument::new(learned.clone(), Some(7), Some("hour\n".to_owned())).text();
        let read = StateDocument::parse(&text).unwrap();
        assert_eq!((read.learned(), read.seed), ((learned, true), Some(7)));
        assert_eq!(read.rate_forecasts.as_deref(), Some("hour\n"));
        let old = StateDocument { written: 1_700_000_000, ..read };
        assert!(!old.learned().1, "the crowd of long ago says nothing");
    }

    #[test]
    fn what_is_no_state_is_refused_with_a_reason() {
        for (text, part, seed) in [
            ("", "no state of a gateway", None),
            ("{}", "no state of a gateway", None),
            (r#"{"version":2,"classes":7}"#, "it has version 2, and this program reads version 1", None),
            (r#"{"version":2,"classes":7,"seed":8}"#, "it has version 2", Some(8)),
            (r#"{"version":1,"written":1,"seed":9,"classes":[{"site":"a"}]}"#, "it is damaged", Some(9)),
        ] {
            let (wrong, kept) = StateDocument::parse(text).unwrap_err();
            assert!(wrong.contains(part), "{text}: {wrong}");
            assert_eq!(kept, seed, "{text}");
        }
    }
}
