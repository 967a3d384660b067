//! The state as JSON: version 1. Service levels in it are used for a minute.
//!
//! From a damaged state, or one of another version, only the seed is read, which every version stores in the same way: with
//! another seed most clients would get another level. The next write replaces the file. The engine leaves out what belongs to
//! names that the configuration does not have, and says so.

use plimsoll_core::{LearnedClass, LearnedPlant, LearnedSite, LearnedState};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// The age up to which a state's service levels still fit the present load.
const AT_ONCE: Duration = Duration::from_secs(60);

/// The file's content.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StateDocument {
    version: u32,
    /// When the state was written, in seconds since 1970.
    written: u64,
    /// The seed that assigns clients to levels, if it was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    /// The learned rate forecasts by hour of the day, if no other file keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_forecasts: Option<String>,
    #[serde(default)]
    classes: Vec<LearnedClass>,
    #[serde(default)]
    plants: Vec<LearnedPlant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sites: Vec<LearnedSite>,
}

impl StateDocument {
    /// The state to be kept now.
    pub(super) fn new(learned: LearnedState, seed: Option<u64>, rate_forecasts: Option<String>) -> Self {
        StateDocument {
            version: VERSION,
            written: now(),
            seed,
            rate_forecasts,
            classes: learned.classes,
            plants: learned.plants,
            sites: learned.sites,
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Why the text is no usable state, without a full stop; and the seed, if that can be read.
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
        // Numbers and names can always be written as JSON.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// The learned state, and whether it is so new that its service levels still fit the load.
    pub(super) fn learned(&self) -> (LearnedState, bool) {
        let at_once = now().abs_diff(self.written) <= AT_ONCE.as_secs();
        let learned = LearnedState {
            classes: self.classes.clone(),
            plants: self.plants.clone(),
            sites: self.sites.clone(),
        };
        (learned, at_once)
    }
}

/// Whether a file with this content is a gateway's state of any version: it is empty; or it begins as every state does, even if
/// it is damaged or cut short further on; or it is a state that another program has formatted.
pub(super) fn is_own(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Own {
        #[serde(rename = "version")]
        _version: u32,
        written: Option<u64>,
        seed: Option<u64>,
    }
    let bytes = bytes.trim_ascii_start();
    let begins = |rest: &[u8]| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, next) = (&rest[digits..], b",\"written\":".as_slice());
        digits > 0 && (rest.starts_with(next) || next.starts_with(rest))
    };
    bytes.is_empty()
        || bytes.strip_prefix(b"{\"version\":").is_some_and(begins)
        || serde_json::from_slice::<Own>(bytes).is_ok_and(|own| own.written.or(own.seed).is_some())
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::Engine;
    use plimsoll_core::control::{KnownContract, KnownRule, KnownTypeCost, KnownTypes};
    use plimsoll_core::model::KnownCost;
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
        let contract = KnownContract {
            site: "shop".to_owned(),
            rate: 100.0,
            planned: [0.1 + 0.2, 0.0, 0.0],
            ..KnownContract::default()
        };
        learned.plants[0].contracts = vec![contract];
        let text = StateDocument::new(learned.clone(), Some(7), Some("hour\n".to_owned())).text();
        let read = StateDocument::parse(&text).unwrap();
        assert_eq!((read.learned(), read.seed), ((learned, true), Some(7)));
        assert_eq!(read.rate_forecasts.as_deref(), Some("hour\n"));
        let old = StateDocument { written: 1_700_000_000, ..read };
        assert!(!old.learned().1, "the crowd of long ago says nothing");
    }

    #[test]
    fn a_state_is_known_by_what_every_version_has() {
        let text = StateDocument::new(LearnedState::default(), None, None).text();
        let damaged = &text[..text.len() - 5];
        for own in ["", " \n", &text, damaged, "{\"version\":1,", r#"{"seed": 8, "version": 2}"#] {
            assert!(is_own(own.as_bytes()), "{own}");
        }
        for other in [
            "{}",
            r#"{"name":"my-app"}"#,
            r#"{"version":"1.0.0","written":1}"#,
            r#"{"version":1}"#,
            "[1]",
            "key",
        ] {
            assert!(!is_own(other.as_bytes()), "{other}");
        }
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
