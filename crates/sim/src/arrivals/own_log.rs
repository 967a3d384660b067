//! The gateway's own access log: which level a line's figures are of.
//!
//! A line of the gateway's own log has the fields `class` and `reason`. Its `level` names the level that was served: time and
//! bytes are divided by that level's shares, which makes them those of full quality. A line without a level is of a request
//! that was never served: what it would have taken is what the last served request of its path took, or, before one of its path
//! was, the last one of any. A mean would say the same of the load, but would take the variation of service times out of a log
//! of which most was rejected.
//!
//! No other log's `level` is believed: there it may be the severity of a message.

use super::entry::Entry;
use plimsoll_core::time::Duration;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A level that lines of the gateway's own log name.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedLevel {
    /// The site's name.
    pub site: String,
    /// The level's name.
    pub name: String,
    /// Its service time relative to full quality.
    pub time: f64,
    /// Its body bytes relative to full quality.
    pub bytes: f64,
}

/// The most paths whose last request is remembered.
const MOST: usize = 1 << 16;

/// What a line of the own log says beside what all logs say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnFields<'a> {
    site: Option<&'a str>,
    /// `None`: it was not served.
    level: Option<&'a str>,
}

impl<'a> OwnFields<'a> {
    /// The fields of an object that is a line of the own log.
    pub(super) fn of(object: &'a Value) -> Option<Self> {
        let text = |name: &str| object.get(name)?.as_str();
        (text("class").is_some() && text("reason").is_some())
            .then(|| OwnFields { site: text("site"), level: text("level") })
    }
}

/// What a line of the own log was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnLine {
    /// It tells which level was served.
    Served,
    /// It is of a request that was not served.
    Unserved,
}

/// What a request took or would have taken at full quality.
#[derive(Clone, Copy, Debug, Default)]
struct FullFigures {
    time: Option<Duration>,
    bytes: u64,
}

/// Makes figures of a level those of full quality.
#[derive(Debug, Default)]
pub(super) struct OwnLog {
    levels: Vec<LoggedLevel>,
    /// By the hash of the path.
    last_of_path: BTreeMap<u64, FullFigures>,
    last: Option<FullFigures>,
}

impl OwnLog {
    pub(super) fn new(levels: &[LoggedLevel]) -> Self {
        OwnLog { levels: levels.to_vec(), ..OwnLog::default() }
    }

    /// Replaces a line's time and bytes by those of full quality.
    pub(super) fn restore(&mut self, entry: &mut Entry<'_>) -> Option<OwnLine> {
        let own = entry.own?;
        let path = entry.target.split('?').next().unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let path = hasher.finish();
        let Some(name) = own.level else {
            if let Some(last) = self.last_of_path.get(&path).or(self.last.as_ref()) {
                (entry.service, entry.bytes) = (last.time, last.bytes);
            }
            return Some(OwnLine::Unserved);
        };
        let matches =
            |level: &&LoggedLevel| level.name == name && own.site.is_none_or(|site| site == level.site);
        if let Some(level) = self.levels.iter().find(matches) {
            entry.service = entry.service.map(|time| divided(time, level.time));
            if level.bytes > 0.0 {
                entry.bytes = (entry.bytes as f64 / level.bytes).round() as u64;
            }
        }
        if entry.service.is_some() {
            let figures = FullFigures { time: entry.service, bytes: entry.bytes };
            self.last = Some(figures);
            if self.last_of_path.len() < MOST || self.last_of_path.contains_key(&path) {
                self.last_of_path.insert(path, figures);
            }
        }
        Some(OwnLine::Served)
    }
}

/// A time at full quality. A level that takes nothing says nothing of it.
fn divided(time: Duration, share: f64) -> Duration {
    if share > 0.0 { Duration::try_from_secs_f64(time.as_secs_f64() / share).unwrap_or(time) } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::timestamp::Stamp;

    fn entry<'a>(target: &'a str, object: &'a Value, milliseconds: Option<u64>) -> Entry<'a> {
        Entry {
            stamp: Stamp::default(),
            client: "192.0.2.1",
            method: "GET",
            host: "",
            target,
            bytes: 100,
            service: milliseconds.map(Duration::from_millis),
            own: OwnFields::of(object),
        }
    }

    #[test]
    fn figures_are_those_of_full_quality_and_what_was_not_served_takes_what_its_path_did() {
        let level = |site: &str, share: f64| LoggedLevel {
            site: site.to_owned(),
            name: "light".to_owned(),
            time: share,
            bytes: share / 2.0,
        };
        let mut log = OwnLog::new(&[level("shop", 0.2), level("blog", 0.5)]);
        let line = |site: &str, level: &str| serde_json::json!({"class": "default", "reason": "degraded", "site": site, "level": level});
        let rejected = serde_json::json!({"class": "default", "reason": "rejected", "site": "shop"});
        let foreign = serde_json::json!({"level": "light"});
        let mut restored = |target: &str, object: &Value, time: Option<u64>| {
            let mut entry = entry(target, object, time);
            let found = log.restore(&mut entry);
            (found, entry.service.map(|time| time.as_millis()), entry.bytes)
        };
        let unserved = Some(OwnLine::Unserved);
        assert_eq!(restored("/a", &rejected, None), (unserved, None, 100), "nothing is known");
        assert_eq!(
            restored("/a?x", &line("shop", "light"), Some(2)),
            (Some(OwnLine::Served), Some(10), 1000)
        );
        assert_eq!(restored("/b", &line("blog", "light"), Some(2)), (Some(OwnLine::Served), Some(4), 400));
        assert_eq!(restored("/b", &line("blog", "full"), Some(3)), (Some(OwnLine::Served), Some(3), 100));
        assert_eq!(restored("/a?y", &rejected, None), (unserved, Some(10), 1000), "as its path did");
        assert_eq!(restored("/c", &rejected, None), (unserved, Some(3), 100), "as the last one did");
        assert_eq!(restored("/a", &foreign, Some(2)), (None, Some(2), 100), "another log's level is none");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut log = OwnLog::default();
        let own = serde_json::json!({"class": "default", "reason": "full", "level": "full"});
        for number in 0..MOST + 10 {
            let path = format!("/{number}");
            log.restore(&mut entry(&path, &own, Some(1)));
        }
        assert_eq!(log.last_of_path.len(), MOST);
    }
}
