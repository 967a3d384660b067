//! What a gateway or a controller remembers for its operator: since when each promise is kept or missed, what became of
//! requests in the last ten seconds, and the last things that happened, such as a reload or an upstream that does not answer.
//!
//! The journal is written by looking at the status: each quarter of a second by the process that runs the gateway, after each
//! of its ticks by a controller, and each second while somebody watches. Nothing is counted here, and no request waits for it.
//! It keeps [`KEPT`] events and eleven rows of counts.
//!
//! A promise gets worse at once, and better only after [`CALM`], so that a promise that wavers is not news each second. A
//! promise that was idle is judged at once.

mod promise;
mod recent;
mod rejections;
mod sentence;
#[cfg(test)]
mod tests;

use super::ShellKind;
use crate::clock::since_1970;
use crate::sync::lock;
use crate::worker::shared::Reloads;
use crate::worker::shared::Shared;
use crate::worker::tables::PlantRow;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::{Duration, Instant};
use promise::promises;
pub use promise::{PromiseKind, PromiseRow, PromiseState};
pub(super) use recent::Recent;
use recent::Window;
use rejections::Rejections;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// How many events are kept.
const KEPT: usize = 200;
/// How long a promise must have been better before it is shown as better.
const CALM: Duration = Duration::from_secs(5);

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The process began.
    Started,
    /// A configuration took the place of the one before.
    Reloaded,
    /// A configuration was refused, and nothing changed.
    ReloadRefused,
    /// No address of an upstream takes requests.
    UpstreamDown,
    /// One does again.
    UpstreamUp,
    /// A promise is not kept.
    PromiseMissed,
    /// A promise is kept again.
    PromiseKept,
    /// Requests of a class are rejected, one in a hundred or more.
    RejectionsBegan,
    /// For ten seconds none was.
    RejectionsEnded,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OperatorEvent {
    /// The event's number, from 1.
    pub number: u64,
    /// When (s, Unix time).
    pub unix_seconds: f64,
    /// What kind of thing.
    pub kind: EventKind,
    /// What it is about, such as a class or an upstream; empty if about the gateway.
    pub subject: String,
    /// The event in words.
    pub text: String,
}

/// The facts that the journal looks at.
pub(crate) struct Sight<'a> {
    pub kind: ShellKind,
    pub status: &'a Status,
    pub reloads: Reloads,
    /// By plant: whether none of its addresses takes requests.
    pub down: Vec<bool>,
    /// Now, in Unix time (s).
    pub unix_seconds: f64,
}

impl<'a> Sight<'a> {
    /// The present facts of a gateway.
    pub(crate) fn of(shared: &Shared, status: &'a Status) -> Self {
        let is_down = |row: &PlantRow| row.upstream.as_ref().is_some_and(|upstream| upstream.is_down());
        Sight {
            kind: ShellKind::Gateway,
            status,
            reloads: *lock(&shared.reloads),
            down: shared.tables.current().plants.iter().map(is_down).collect(),
            unix_seconds: since_1970().as_secs_f64(),
        }
    }
}

/// Promises and last seconds, as the operator sees them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub unix_seconds: f64,
    /// The worst first.
    pub promises: Vec<PromiseRow>,
    /// What each class did lately, by its number.
    pub recent: Vec<Recent>,
}

/// What happened lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct JournalDocument {
    /// When the process began, which numbers its events from 1 (s, Unix time).
    pub started_unix_seconds: f64,
    /// What happened, the latest last.
    pub events: Vec<OperatorEvent>,
}

/// The journal of a gateway or a controller.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    window: Window,
    standing: BTreeMap<PromiseKey, PromiseStanding>,
    rejections: Rejections,
    events: VecDeque<OperatorEvent>,
    happened: u64,
    /// When the process began (s, Unix time).
    started: f64,
    /// The state of the process at the last look.
    reloads: Reloads,
    down: Vec<bool>,
    at: Option<Instant>,
}

type PromiseKey = (PromiseKind, String, String, String);

/// The shown state of a promise.
#[derive(Clone, Copy, Debug)]
struct PromiseStanding {
    state: PromiseState,
    since_unix_seconds: f64,
    /// Since when the promise has been judged better than shown.
    better: Option<Instant>,
}

impl Journal {
    /// Looks at a status. Promises are judged once a control period.
    pub(crate) fn look(&mut self, sight: &Sight<'_>) {
        self.look_at_shell(sight);
        if self.at.is_some_and(|at| sight.status.at <= at) {
            return;
        }
        self.at = Some(sight.status.at);
        self.window.look(sight.status);
        let recent = self.window.recent(sight.status);
        for (kind, subject, text) in self.rejections.look(sight.status, &recent) {
            self.note(sight.unix_seconds, kind, &subject, &text);
        }
        let mut standing = BTreeMap::new();
        for row in self.judge(sight.status, &recent) {
            let before = self.standing.get(&key(&row)).copied();
            let now = PromiseStanding::next(before, row.state, sight);
            let was_missed = before.is_some_and(|before| before.state == PromiseState::Missed);
            match now.state {
                PromiseState::Missed if !was_missed => {
                    self.note_promise(&row, EventKind::PromiseMissed, sight.unix_seconds);
                }
                PromiseState::Kept | PromiseState::AtRisk if was_missed => {
                    self.note_promise(&row, EventKind::PromiseKept, sight.unix_seconds);
                }
                _ => {}
            }
            standing.insert(key(&row), now);
        }
        self.standing = standing;
    }

    fn look_at_shell(&mut self, sight: &Sight<'_>) {
        let now = sight.unix_seconds;
        if self.happened == 0 {
            self.reloads = sight.reloads;
            self.started = sight.reloads.in_force_since.as_secs_f64();
            self.note(self.started, EventKind::Started, "", &format!("the {} started", sight.kind.as_str()));
        }
        let seen = std::mem::replace(&mut self.reloads, sight.reloads);
        if sight.reloads.applied > seen.applied {
            let at = sight.reloads.in_force_since.as_secs_f64();
            self.note(at, EventKind::Reloaded, "", "the configuration was reloaded");
        }
        if sight.reloads.refused > seen.refused {
            let text = "a reload was refused: everything stays as it was, and the log says why";
            self.note(now, EventKind::ReloadRefused, "", text);
        }
        self.down.resize(sight.down.len(), false);
        for (plant, down) in sight.down.iter().enumerate() {
            if std::mem::replace(&mut self.down[plant], *down) != *down {
                let name = sight.status.plants.get(plant).map_or("", |plant| plant.name.as_str());
                match down {
                    true => self.note(now, EventKind::UpstreamDown, name, &format!("{name} does not answer")),
                    false => self.note(now, EventKind::UpstreamUp, name, &format!("{name} answers again")),
                }
            }
        }
    }

    fn note_promise(&mut self, row: &PromiseRow, kind: EventKind, now: f64) {
        let subject = match row.kind {
            PromiseKind::LoadLine => row.upstream.clone(),
            PromiseKind::Contract => row.site.clone(),
            _ => format!("{}/{}", row.site, row.class),
        };
        let said = if kind == EventKind::PromiseMissed { "missed" } else { "kept again" };
        let text = format!("{subject}: promise {said}: {}; now {}", row.guarantee, row.now);
        self.note(now, kind, &subject, &text);
    }

    fn note(&mut self, unix_seconds: f64, kind: EventKind, subject: &str, text: &str) {
        self.happened += 1;
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        let (number, subject, text) = (self.happened, subject.to_owned(), text.to_owned());
        self.events.push_back(OperatorEvent { number, unix_seconds, kind, subject, text });
    }

    fn judge(&self, status: &Status, recent: &[Recent]) -> Vec<PromiseRow> {
        promises(status, recent, |plant| self.window.utilization(plant))
    }

    /// The promises and last seconds of a status that the journal has looked at.
    pub(super) fn view(&self, sight: &Sight<'_>) -> View {
        let recent = self.window.recent(sight.status);
        let mut promises = self.judge(sight.status, &recent);
        for row in &mut promises {
            let standing = self.standing.get(&key(row));
            row.since_unix_seconds = standing.map_or(sight.unix_seconds, |one| one.since_unix_seconds);
            row.state = standing.map_or(row.state, |one| one.state);
        }
        promises.sort_by(|a, b| {
            let left = |row: &PromiseRow| row.margin.unwrap_or(f64::INFINITY);
            b.state.cmp(&a.state).then(left(a).total_cmp(&left(b)))
        });
        View { unix_seconds: sight.unix_seconds, promises, recent }
    }

    /// The events after this number, the latest last.
    pub(super) fn after(&self, number: u64) -> JournalDocument {
        let events = self.events.iter().filter(|event| event.number > number).cloned().collect();
        JournalDocument { started_unix_seconds: self.started, events }
    }
}

fn key(row: &PromiseRow) -> PromiseKey {
    let upstream = if row.kind == PromiseKind::LoadLine { row.upstream.clone() } else { String::new() };
    (row.kind, row.site.clone(), row.class.clone(), upstream)
}

impl PromiseStanding {
    fn next(before: Option<PromiseStanding>, judged: PromiseState, sight: &Sight<'_>) -> PromiseStanding {
        let changed = PromiseStanding { state: judged, since_unix_seconds: sight.unix_seconds, better: None };
        let Some(before) = before else { return changed };
        if judged == before.state {
            return PromiseStanding { better: None, ..before };
        }
        let better = before.better.unwrap_or(sight.status.at);
        let is_sure = before.state == PromiseState::Idle || sight.status.at.since(better) >= CALM;
        if judged > before.state || is_sure {
            return changed;
        }
        PromiseStanding { better: Some(better), ..before }
    }
}
