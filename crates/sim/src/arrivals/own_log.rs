//! The gateway's own access log: turns a line's time and bytes into those of full quality.
//!
//! A line of the gateway's own log has the field `class` and also `reason` or `client_share`. Its `level` names the level that
//! was served: time and bytes are divided by that level's shares, which gives those of full quality. If a line has no level,
//! its request was never served; it takes what the last served request of its path took, or, if there is none, what the last
//! served request of any path took. A mean would give the same load, but would remove the variation of service times from a log
//! of which most was rejected. A line that has a level and no time gets its time in the same way.
//!
//! If the gateway answered a request before it decided on it, the request was no load and is left out ([`no_load`]).
//!
//! The `level` of any other log is ignored: there it may be the severity of a message.

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

/// The fields that a line of the gateway's own log has beyond those of all logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnFields<'a> {
    site: Option<&'a str>,
    class: &'a str,
    /// The level served; `None` if the request was not served.
    level: Option<&'a str>,
}

impl<'a> OwnFields<'a> {
    /// The fields of an object that is a line of the own log.
    pub(super) fn of(object: &'a Value) -> Option<Self> {
        let text = |name: &str| object.get(name)?.as_str();
        let is_own = text("reason").is_some() || object.get("client_share").is_some_and(Value::is_number);
        let class = text("class").filter(|_| is_own)?;
        Some(OwnFields { site: text("site"), class, level: text("level") })
    }
}

/// If the gateway answered a line's request before it decided on it, the status of that answer: a redirect to TLS, or an error
/// for the request's head or body. A request that waited and found no memory or no place in time (503, 504) was load. `unread`
/// says that the line names no request.
pub(super) fn no_load(object: &Value, unread: bool) -> Option<u16> {
    let has = |name: &str| object.get(name).is_some();
    let status = object.get("status")?.as_u64().and_then(|status| u16::try_from(status).ok())?;
    let is_decided = has("reason") || matches!(status, 503 | 504);
    let is_refused = has("error") && has("protocol") && !has("class");
    let is_known = OwnFields::of(object).is_some() && !is_decided;
    let has_no_site = is_refused && status == 421;
    (is_known || has_no_site || (is_refused && unread)).then_some(status)
}

/// What a gateway's log says became of a line's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnLine {
    /// The line names the level served, and has a time, unless no line before it has one.
    Served,
    /// The line names the level served but has no time; the time of an earlier request was taken.
    Untimed,
    /// The line's request was not served.
    Unserved,
    /// The line is from another proxy's log, and no server answered its request.
    Unanswered,
}

/// What a request took or would have taken at full quality.
#[derive(Clone, Copy, Debug, Default)]
struct FullFigures {
    time: Option<Duration>,
    bytes: u64,
}

/// Turns the figures of a level into those of full quality.
#[derive(Debug, Default)]
pub(super) struct OwnLog {
    levels: Vec<LoggedLevel>,
    /// The last served request of each path, by the path's hash.
    last_of_path: BTreeMap<u64, FullFigures>,
    last: Option<FullFigures>,
    /// The time and level of the line that was restored last.
    pub(super) latest: Option<LevelTime>,
}

impl OwnLog {
    pub(super) fn new(levels: &[LoggedLevel]) -> Self {
        OwnLog { levels: levels.to_vec(), ..OwnLog::default() }
    }

    /// Replaces a line's time and bytes by those of full quality.
    pub(super) fn restore(&mut self, entry: &mut Entry<'_>) -> Option<OwnLine> {
        let own = entry.own?;
        self.latest = None;
        let Some(name) = own.level else {
            self.fill(entry);
            return Some(OwnLine::Unserved);
        };
        let matches =
            |level: &LoggedLevel| level.name == name && own.site.is_none_or(|site| site == level.site);
        if let Some(number) = self.levels.iter().position(matches) {
            let level = &self.levels[number];
            self.latest = entry.service.map(|time| LevelTime { class: hash(own.class), level: number, time });
            entry.service = entry.service.map(|time| divided(time, level.time));
            if level.bytes > 0.0 {
                entry.bytes = (entry.bytes as f64 / level.bytes).round() as u64;
            }
        }
        if entry.service.is_none()
            && let Some(known) = self.known(path(entry))
        {
            entry.service = known.time;
            return Some(OwnLine::Untimed);
        }
        self.remember(entry);
        Some(OwnLine::Served)
    }

    /// Does the same for a line of another proxy, which serves only one level.
    pub(super) fn restore_others(&mut self, entry: &mut Entry<'_>, is_answered: bool) -> Option<OwnLine> {
        if is_answered {
            self.remember(entry);
            return None;
        }
        self.fill(entry);
        Some(OwnLine::Unanswered)
    }

    /// Gives a request that was not served the figures of the last served request of its path.
    fn fill(&self, entry: &mut Entry<'_>) {
        if let Some(last) = self.known(path(entry)) {
            (entry.service, entry.bytes) = (last.time, last.bytes);
        }
    }

    fn known(&self, path: u64) -> Option<&FullFigures> {
        self.last_of_path.get(&path).or(self.last.as_ref())
    }

    fn remember(&mut self, entry: &Entry<'_>) {
        if entry.service.is_none() {
            return;
        }
        let (path, figures) = (path(entry), FullFigures { time: entry.service, bytes: entry.bytes });
        self.last = Some(figures);
        if self.last_of_path.len() < MOST || self.last_of_path.contains_key(&path) {
            self.last_of_path.insert(path, figures);
        }
    }
}

/// The hash of a request's path.
fn path(entry: &Entry<'_>) -> u64 {
    hash(entry.target.split('?').next().unwrap_or_default())
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// A line's time, and the level that took it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelTime {
    /// The hash of the class's name.
    class: u64,
    /// The index of the level in `OwnLog::levels`.
    level: usize,
    time: Duration,
}

/// With fewer lines than this of a level, or of its site's highest level, their ratio is not trusted.
const FEWEST: f64 = 20.0;

/// Learns each level's time relative to its site's highest: by class and level, the number of lines and the sum of their times
/// (s).
#[derive(Debug, Default)]
pub(super) struct LevelTimes(BTreeMap<(u64, usize), (f64, f64)>);

impl LevelTimes {
    pub(super) fn add(&mut self, line: LevelTime) {
        let (lines, seconds) = self.0.entry((line.class, line.level)).or_default();
        *lines += 1.0;
        *seconds += line.time.as_secs_f64();
    }

    /// The relative time of each level. Classes ask for different pages, so each class is weighted by the lines that both
    /// levels have.
    pub(super) fn shares(&self, levels: &[LoggedLevel]) -> Vec<Option<f64>> {
        let share = |number: usize| {
            let highest = levels.iter().rposition(|level| level.site == levels[number].site)?;
            let (mut lines, mut own, mut full) = (0.0, 0.0, 0.0);
            for ((class, _), (count, seconds)) in self.0.iter().filter(|((_, level), _)| *level == number) {
                let Some((full_count, full_seconds)) = self.0.get(&(*class, highest)) else { continue };
                let weight = count.min(*full_count);
                lines += weight;
                own += weight * seconds / count;
                full += weight * full_seconds / full_count;
            }
            (lines >= FEWEST && full > 0.0).then(|| own / full)
        };
        (0..levels.len()).map(share).collect()
    }
}

/// The time at full quality. A level whose share is zero says nothing about it, so the time stays.
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
    fn what_was_answered_before_the_decision_is_no_load() {
        let line = |more: Value| {
            let mut line = serde_json::json!({"client": "192.0.2.1", "protocol": "HTTP/1.1", "method": "GET", "path": "/"});
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            line
        };
        let of = |more: Value| no_load(&line(more), false);
        let known =
            |status: u16| serde_json::json!({"class": "default", "client_share": 0.5, "status": status});
        for status in [301, 308, 408, 413] {
            assert_eq!(of(known(status)), Some(status));
        }
        assert_eq!(of(serde_json::json!({"status": 421, "error": "no site"})), Some(421));
        // The counter-examples: the request waited; the gateway decided on it; the line is another server's.
        assert_eq!([503, 504].map(|status| of(known(status))), [None, None]);
        assert_eq!(of(serde_json::json!({"class": "default", "reason": "full", "status": 301})), None);
        assert_eq!(of(serde_json::json!({"status": 301})), None);
        assert_eq!(of(serde_json::json!({"class": "default", "status": 301})), None);
        // A head that could not be read names no request.
        let unread = serde_json::json!({"protocol": "HTTP/1.1", "status": 400, "error": "no request"});
        assert_eq!((no_load(&unread, true), no_load(&unread, false)), (Some(400), None));
        assert_eq!(no_load(&serde_json::json!({"status": 400}), true), None);
    }

    #[test]
    fn a_line_without_a_time_takes_what_its_path_did() {
        let mut log = OwnLog::default();
        let own = serde_json::json!({"class": "default", "reason": "full", "level": "full"});
        let mut restored = |target: &str, time: Option<u64>| {
            let mut entry = entry(target, &own, time);
            (log.restore(&mut entry), entry.service.map(|time| time.as_millis()), entry.bytes)
        };
        assert_eq!(restored("/socket", None), (Some(OwnLine::Served), None, 100), "nothing is known");
        assert_eq!(restored("/socket", Some(7)).1, Some(7));
        assert_eq!(restored("/page", Some(40)).1, Some(40));
        assert_eq!(restored("/socket?x", None), (Some(OwnLine::Untimed), Some(7), 100));
        assert_eq!(restored("/other", None), (Some(OwnLine::Untimed), Some(40), 100));
    }

    #[test]
    fn what_a_level_takes_is_learned_class_by_class_from_lines_of_both() {
        let level = |site: &str, name: &str| LoggedLevel {
            site: site.to_owned(),
            name: name.to_owned(),
            time: 0.5,
            bytes: 1.0,
        };
        let levels =
            [level("shop", "light"), level("shop", "full"), level("blog", "light"), level("blog", "full")];
        let mut log = OwnLog::new(&levels);
        let mut times = LevelTimes::default();
        let mut lines = |site: &str, class: &str, level: &str, count: usize, milliseconds: u64| {
            let object = serde_json::json!({"class": class, "reason": "full", "site": site, "level": level});
            for _ in 0..count {
                log.restore(&mut entry("/", &object, Some(milliseconds)));
                times.add(log.latest.unwrap());
            }
        };
        // Gold's pages take ten times as long, and gold is seldom served light ones.
        lines("shop", "gold", "light", 10, 30);
        lines("shop", "gold", "full", 1000, 100);
        lines("shop", "basic", "light", 1000, 3);
        lines("shop", "basic", "full", 10, 10);
        // There are too few lines of the light level, and none of the highest level.
        lines("blog", "gold", "light", 19, 3);
        lines("blog", "gold", "full", 100, 10);
        lines("blog", "basic", "light", 100, 3);
        let shares = times.shares(&levels);
        assert!((shares[0].unwrap() - 0.3).abs() < 1e-9, "{shares:?}");
        assert_eq!((shares[1], shares[2]), (Some(1.0), None));
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
