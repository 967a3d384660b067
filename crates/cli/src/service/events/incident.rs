//! The figures of a class's incident: for the lines of the log, and for `/incidents` of the admin listener.

use crate::output::units::{grouped, span};
use crate::service::log::{CountedRequests, News, Subject};
use plimsoll_core::promises::Mode;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{ClassStatus, Counts};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// How many finished incidents are kept.
const KEPT: usize = 100;

/// The incidents of all classes, as they are shown.
#[derive(Debug, Default)]
pub(crate) struct Incidents {
    /// The incidents in progress.
    pub(super) present: Vec<IncidentFacts>,
    /// The finished incidents, the latest last.
    over: VecDeque<IncidentFacts>,
}

impl Incidents {
    pub(super) fn end(&mut self, facts: IncidentFacts) {
        self.over.push_back(facts);
        if self.over.len() > KEPT {
            self.over.pop_front();
        }
    }

    /// All incidents, the latest first, as JSON.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            incidents: Vec<&'a IncidentFacts>,
        }
        let incidents = self.present.iter().chain(self.over.iter().rev()).collect();
        // Plain data with text keys can always be written as JSON.
        serde_json::to_string_pretty(&Document { incidents }).unwrap_or_default() + "\n"
    }
}

/// The fate of a class's requests while any of them were degraded or rejected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct IncidentFacts {
    pub(super) site: String,
    pub(super) class: String,
    /// When the incident began, in seconds of Unix time.
    pub(super) began_unix_seconds: u64,
    pub(super) seconds: f64,
    pub(super) is_over: bool,
    #[serde(flatten)]
    pub(super) fate: RequestsFate,
    pub(super) worst_minute: Option<WorstMinute>,
}

/// The fate of the requests between two looks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RequestsFate {
    /// Whether the mode is observe: then all requests passed at full quality, and the figures say what would have happened.
    observed: bool,
    full: u64,
    degraded: u64,
    rejected: u64,
    reasons: BTreeMap<&'static str, u64>,
    failed: u64,
}

/// The minute with the most rejections, and of equal ones the one with the most degradations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct WorstMinute {
    pub(super) rejected: u64,
    pub(super) degraded: u64,
    /// How long after the incident's beginning this minute began.
    pub(super) after_seconds: u64,
}

/// Requests that started at a lower level than the highest.
pub(super) fn degraded(counts: &Counts, top: usize) -> u64 {
    counts.served[1..top].iter().sum()
}

impl RequestsFate {
    pub(super) fn between(before: &Counts, now: &Counts, class: &ClassStatus, mode: Mode) -> Self {
        let top = class.levels.len();
        let since = |count: &dyn Fn(&Counts) -> u64| count(now) - count(before);
        let reasons = Reason::ALL.into_iter().filter(|reason| reason.is_rejection()).map(|reason| {
            let count = since(&|counts| counts.reasons[reason as usize]);
            (reason.as_str(), count)
        });
        RequestsFate {
            observed: mode == Mode::Observe,
            full: since(&|counts| counts.served[top]),
            degraded: since(&|counts| degraded(counts, top)),
            rejected: since(&Counts::rejected),
            reasons: reasons.filter(|(_, count)| *count > 0).collect(),
            failed: since(&|counts| counts.outcomes[Outcome::Failed as usize]),
        }
    }
}

impl RequestsFate {
    /// A line that also has these figures as fields.
    pub(super) fn counted(&self, news: News) -> News {
        let RequestsFate { full, degraded, rejected, failed, .. } = *self;
        let [full, degraded, rejected, failed] = [full, degraded, rejected, failed].map(Some);
        News { figures: CountedRequests { seconds: None, full, degraded, rejected, failed }, ..news }
    }
}

impl fmt::Display for RequestsFate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestsFate { full, degraded, rejected, failed, .. } = *self;
        let all = (full + degraded + rejected).max(1) as f64;
        let share = |count: u64| match count {
            0 => "0".to_owned(),
            _ => format!("{} ({:.1} %)", grouped(count), 100.0 * count as f64 / all),
        };
        let would = if self.observed { "would be " } else { "" };
        let reasons: Vec<String> =
            self.reasons.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" for {}", reasons.join(", ")) };
        let (full, degraded, rejected) = (share(full), share(degraded), share(rejected));
        write!(
            to,
            "{full} full, {degraded} {would}degraded, {rejected} {would}rejected{reasons}, {} failed",
            grouped(failed)
        )
    }
}

impl IncidentFacts {
    /// A line about the incident that ends with `end`.
    pub(super) fn news(&self, end: &str) -> News {
        let subject = Subject::Class(self.site.clone(), self.class.clone());
        let mut news = self.fate.counted(News::info(subject, format!("{end} {}", self.figures())));
        news.figures.seconds = Some(self.seconds);
        news
    }

    /// How long the incident lasted, the fate of its requests, and its worst minute.
    fn figures(&self) -> String {
        let figures = format!("{} of overload: {}", span(self.seconds), self.fate);
        let Some(worst) = &self.worst_minute else { return figures };
        let (after, rejected) = (span(worst.after_seconds as f64), grouped(worst.rejected));
        let degraded = grouped(worst.degraded);
        format!("{figures}; worst in the minute after {after}: {rejected} rejected, {degraded} degraded")
    }
}
