//! Load: an incident of a class is a time in which its requests are degraded or rejected. A line says that it began, one a
//! minute what became of its requests so far, and one at its end how long it took and which minute was the worst. Bursts with
//! less than [`CALM`] between them are one incident. In observe mode the same lines say what would have been.

use crate::output::units::{grouped, span};
use plimsoll_core::promises::Mode;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{ClassStatus, Counts, Status};
use plimsoll_core::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
/// An incident is over when no request was degraded or rejected for this long.
const CALM: Duration = Duration::from_secs(10);

/// The load of one class.
#[derive(Debug, Default)]
pub(super) struct ClassLoad {
    /// The last look, and the counts then.
    seen: (Instant, Counts),
    incident: Option<Incident>,
}

#[derive(Clone, Copy, Debug)]
struct Incident {
    began: Instant,
    /// The counts at its beginning, and after the last period in which requests were degraded or rejected.
    before: Counts,
    last: (Instant, Counts),
    /// When the present minute began, and the counts then.
    minute: (Instant, Counts),
    worst: Option<Minute>,
}

/// What one minute of an incident did. The worst has the most rejections, then the most degradations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Minute {
    rejected: u64,
    degraded: u64,
    began: Instant,
}

impl ClassLoad {
    pub(super) fn look(&mut self, class: &ClassStatus, status: &Status) -> Option<String> {
        let now = class.counts;
        let (began, seen) = std::mem::replace(&mut self.seen, (status.at, now));
        let top = class.levels.len();
        let is_hit = now.rejected() > seen.rejected() || degraded(&now, top) > degraded(&seen, top);
        let name = format!("{}/{}", class.site, class.class);
        let Some(incident) = &mut self.incident else {
            if is_hit {
                let last = (status.at, now);
                self.incident =
                    Some(Incident { began, before: seen, last, minute: (began, seen), worst: None });
            }
            return is_hit.then(|| {
                let what = became(&seen, &now, top, status.mode);
                format!("{name}: overload: {what}; {}", loop_state(class, status))
            });
        };
        if is_hit {
            incident.last = (status.at, now);
        } else if status.at.since(incident.last.0) >= CALM {
            let incident = *incident;
            self.incident = None;
            return Some(format!("{name}: calm again {}", incident.summary(top, status.mode)));
        }
        if !is_hit || status.at.since(incident.minute.0) < MINUTE {
            return None;
        }
        incident.end_minute(status.at, &now, top);
        let what = became(&incident.before, &now, top, status.mode);
        let since = span(status.at.since(incident.began).as_secs_f64());
        Some(format!("{name}: overload for {since} so far: {what}; {}", loop_state(class, status)))
    }
}

impl Incident {
    fn end_minute(&mut self, at: Instant, now: &Counts, top: usize) {
        let (began, before) = std::mem::replace(&mut self.minute, (at, *now));
        let minute = Minute {
            rejected: now.rejected() - before.rejected(),
            degraded: degraded(now, top) - degraded(&before, top),
            began,
        };
        self.worst = self.worst.max(Some(minute));
    }

    /// Its duration, what became of its requests, and its worst minute if it had more than one.
    fn summary(mut self, top: usize, mode: Mode) -> String {
        let (at, now) = self.last;
        let several = self.worst.is_some();
        self.end_minute(at, &now, top);
        let worst = self.worst.filter(|_| several).map_or(String::new(), |worst| {
            format!(
                "; worst in the minute after {}: {} rejected, {} degraded",
                span(worst.began.since(self.began).as_secs_f64()),
                grouped(worst.rejected),
                grouped(worst.degraded)
            )
        });
        let what = became(&self.before, &now, top, mode);
        format!("after {} of overload: {what}{worst}", span(at.since(self.began).as_secs_f64()))
    }
}

/// Requests that started at a lower level than the highest.
fn degraded(counts: &Counts, top: usize) -> u64 {
    counts.served[1..top].iter().sum()
}

/// What became of the requests between two counts.
fn became(before: &Counts, now: &Counts, top: usize, mode: Mode) -> String {
    let since = |count: &dyn Fn(&Counts) -> u64| count(now) - count(before);
    let full = since(&|counts| counts.served[top]);
    let lower = since(&|counts| degraded(counts, top));
    let rejected = since(&Counts::rejected);
    let failed = since(&|counts| counts.outcomes[Outcome::Failed as usize]);
    let all = (full + lower + rejected).max(1) as f64;
    let share = |count: u64| match count {
        0 => "0".to_owned(),
        _ => format!("{} ({:.1} %)", grouped(count), 100.0 * count as f64 / all),
    };
    let would = if mode == Mode::Observe { "would be " } else { "" };
    let reasons = Reason::ALL.into_iter().filter(|reason| reason.is_rejection()).filter_map(|reason| {
        let count = since(&|counts| counts.reasons[reason as usize]);
        (count > 0).then(|| format!("{reason} {}", grouped(count)))
    });
    let reasons: Vec<String> = reasons.collect();
    let reasons = if reasons.is_empty() { String::new() } else { format!(" for {}", reasons.join(", ")) };
    format!(
        "{} full, {} {would}degraded, {} {would}rejected{reasons}, {} failed",
        share(full),
        share(lower),
        share(rejected),
        grouped(failed)
    )
}

/// What the loop is doing about it.
fn loop_state(class: &ClassStatus, status: &Status) -> String {
    let (plant, top) = (&status.plants[class.plant], class.levels.len());
    let (name, utilization, line) = (&plant.name, plant.utilization, plant.set_point);
    format!("{name} at {utilization:.2} of its line {line:.2}, level {:.2} of {top}", class.service_level)
}
