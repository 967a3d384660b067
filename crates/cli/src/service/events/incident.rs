//! An incident of a class in figures: for the lines of the log, and for `/incidents` of the admin listener.

use crate::output::units::{grouped, span};
use crate::service::log::{CountedRequests, News, Subject};
use plimsoll_core::promises::Mode;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{ClassStatus, Counts};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// How many incidents are kept once they are over.
const KEPT: usize = 100;

/// The incidents of all classes, as they are shown.
#[derive(Debug, Default)]
pub(crate) struct Incidents {
    /// Those that last.
    pub(super) present: Vec<IncidentFacts>,
    /// Those that are over, the latest last.
    over: VecDeque<IncidentFacts>,
}

impl Incidents {
    pub(super) fn end(&mut self, facts: IncidentFacts) {
        self.over.push_back(facts);
        if self.over.len() > KEPT {
            self.over.pop_front();
        }
    }

    /// All of them, the latest first, as JSON.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            incidents: Vec<&'a IncidentFacts>,
        }
        let incidents = self.present.iter().chain(self.over.iter().rev()).collect();
        // Plain data with text as keys: there is nothing that JSON cannot say.
        serde_json::to_string_pretty(&Document { incidents }).unwrap_or_default() + "\n"
    }
}

/// What became of the requests of a class while it was degraded or rejected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct IncidentFacts {
    pub(super) site: String,
    pub(super) class: String,
    /// When it began, in seconds of Unix time.
    pub(super) began_unix_seconds: u64,
    pub(super) seconds: f64,
    pub(super) is_over: bool,
    #[serde(flatten)]
    pub(super) fate: RequestsFate,
    pub(super) worst_minute: Option<WorstMinute>,
}

/// What became of requests between two looks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RequestsFate {
    /// Whether everything passed at full quality, and these figures are what would have been.
    observed: bool,
    full: u64,
    degraded: u64,
    rejected: u64,
    reasons: BTreeMap<&'static str, u64>,
    failed: u64,
}

/// The minute with the most rejections, and among equals with the most degradations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct WorstMinute {
    pub(super) rejected: u64,
    pub(super) degraded: u64,
    /// How long after the incident's beginning it began.
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
    /// A line with these figures as fields too.
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
    /// A line that says what happened before its end.
    pub(super) fn news(&self, end: &str) -> News {
        let subject = Subject::Class(self.site.clone(), self.class.clone());
        let mut news = self.fate.counted(News::info(subject, format!("{end} {}", self.figures())));
        news.figures.seconds = Some(self.seconds);
        news
    }

    /// How long it took, what became of its requests, and which minute was the worst.
    fn figures(&self) -> String {
        let figures = format!("{} of overload: {}", span(self.seconds), self.fate);
        let Some(worst) = &self.worst_minute else { return figures };
        let (after, rejected) = (span(worst.after_seconds as f64), grouped(worst.rejected));
        let degraded = grouped(worst.degraded);
        format!("{figures}; worst in the minute after {after}: {rejected} rejected, {degraded} degraded")
    }
}
