//! Load: an incident of a class is a time in which its requests are degraded or rejected. A line says that it began, one a
//! minute says what became of its requests so far, and one at its end says how long it lasted and which minute was the worst.
//! Bursts with less than [`CALM`] between them are one incident. In observe mode the same lines say what would have happened.

use super::incident::{IncidentFacts, RequestsFate, WorstMinute, degraded};
use crate::output::units::span;
use crate::service::log::{News, Subject};
use plimsoll_core::promises::Mode;
use plimsoll_core::telemetry::status::{ClassStatus, Counts, Status};
use plimsoll_core::time::{Duration, Instant};
use std::time::SystemTime;

const MINUTE: Duration = Duration::from_secs(60);
/// An incident is over when no request was degraded or rejected for this long.
const CALM: Duration = Duration::from_secs(10);

/// The load of one class.
#[derive(Debug, Default)]
pub(super) struct ClassLoad {
    /// The time of the last look, and the counts then.
    seen: (Instant, Counts),
    incident: Option<Incident>,
    /// The incident that ended at the last look.
    pub(super) ended: Option<IncidentFacts>,
}

#[derive(Clone, Copy, Debug)]
struct Incident {
    began: (Instant, SystemTime),
    /// The counts at the incident's beginning, and after the last period in which requests were degraded or rejected.
    before: Counts,
    last: (Instant, Counts),
    /// When the present minute began, and the counts then.
    minute: (Instant, Counts),
    /// Whether a minute has ended without its line, because no request was degraded or rejected just then and the incident
    /// might be over.
    owes_line: bool,
    worst: Option<WorstMinute>,
}

impl ClassLoad {
    /// The load of a class whose counts are older than the loops.
    pub(super) fn going_on(class: &ClassStatus, status: &Status) -> Self {
        ClassLoad { seen: (status.at, class.counts), ..ClassLoad::default() }
    }

    /// A line if there is news of the class; `loops_began` is when the loops began.
    pub(super) fn look(
        &mut self,
        class: &ClassStatus,
        status: &Status,
        loops_began: Instant,
    ) -> Option<News> {
        let now = class.counts;
        let (began, seen) = std::mem::replace(&mut self.seen, (status.at, now));
        self.ended = None;
        let top = class.levels.len();
        let is_hit = is_hit(&seen, class);
        let fate = |before: &Counts| RequestsFate::between(before, &now, class, status.mode);
        let Some(incident) = &mut self.incident else {
            if !is_hit {
                return None;
            }
            let (began, last) = ((began, SystemTime::now()), (status.at, now));
            let minute = (began.0, seen);
            self.incident =
                Some(Incident { began, before: seen, last, minute, owes_line: false, worst: None });
            // In observe mode no request is rejected.
            let news = if status.mode == Mode::Observe { News::info } else { News::warn };
            let fate = fate(&seen);
            let message = format!("overload: {fate}; {}", loop_state(class, status, loops_began));
            return Some(fate.counted(news(Subject::of(class), message)));
        };
        if is_hit {
            incident.last = (status.at, now);
        } else if status.at.since(incident.last.0) >= CALM {
            self.ended = self.present(class, status).map(|facts| IncidentFacts { is_over: true, ..facts });
            self.incident = None;
            return self.ended.as_ref().map(|facts| facts.news("calm again after"));
        }
        if status.at.since(incident.minute.0) >= MINUTE {
            incident.end_minute(status.at, &now, top);
            incident.owes_line = true;
        }
        if !is_hit || !std::mem::take(&mut incident.owes_line) {
            return None;
        }
        let since = span(status.at.since(incident.began.0).as_secs_f64());
        let fate = fate(&incident.before);
        let message =
            format!("overload for {since} so far: {fate}; {}", loop_state(class, status, loops_began));
        Some(fate.counted(News::info(Subject::of(class), message)))
    }

    /// A line about an incident that is still in progress when the gateway ends.
    pub(super) fn end(&self, class: &ClassStatus, status: &Status) -> Option<News> {
        let mut incident = self.incident?;
        // Requests since the last look count too.
        if is_hit(&incident.last.1, class) {
            incident.last = (status.at, class.counts);
        }
        let facts = incident.facts(class, status);
        Some(facts.news("stopped after"))
    }

    /// The incident in progress.
    pub(super) fn present(&self, class: &ClassStatus, status: &Status) -> Option<IncidentFacts> {
        self.incident.map(|incident| incident.facts(class, status))
    }
}

/// Whether requests were degraded or rejected since `before`.
fn is_hit(before: &Counts, class: &ClassStatus) -> bool {
    let (now, top) = (&class.counts, class.levels.len());
    now.rejected() > before.rejected() || degraded(now, top) > degraded(before, top)
}

impl Incident {
    fn facts(mut self, class: &ClassStatus, status: &Status) -> IncidentFacts {
        let (at, now) = self.last;
        // An incident of less than a minute has no worst minute.
        if self.worst.is_some() {
            self.end_minute(at, &now, class.levels.len());
        }
        let began = self.began.1.duration_since(SystemTime::UNIX_EPOCH);
        IncidentFacts {
            site: class.site.clone(),
            class: class.class.clone(),
            began_unix_seconds: began.map_or(0, |since| since.as_secs()),
            seconds: at.since(self.began.0).as_secs_f64(),
            is_over: false,
            fate: RequestsFate::between(&self.before, &now, class, status.mode),
            worst_minute: self.worst,
        }
    }

    fn end_minute(&mut self, at: Instant, now: &Counts, top: usize) {
        let (began, before) = std::mem::replace(&mut self.minute, (at, *now));
        let minute = WorstMinute {
            rejected: now.rejected() - before.rejected(),
            degraded: degraded(now, top) - degraded(&before, top),
            after_seconds: began.since(self.began.0).as_secs(),
        };
        self.worst = self.worst.max(Some(minute));
    }
}

/// A phrase about what the loop is doing against the load.
fn loop_state(class: &ClassStatus, status: &Status, began: Instant) -> String {
    let (plant, top) = (&status.plants[class.plant], class.levels.len());
    let (name, utilization, line) = (&plant.name, plant.utilization, plant.set_point);
    // A process that replaced another degrades requests from the first moment, because it goes on from what the other learned.
    let measured = if status.at <= began + status.period {
        format!("{name}'s utilization is not measured yet")
    } else {
        format!("{name}'s utilization is {utilization:.2}")
    };
    format!("{measured}, its load line {line:.2}; level {:.2} of {top}", class.service_level)
}
