//! Periods in which requests of a class are rejected, as events: the beginning of each, and its end with the number of
//! rejections.
//!
//! A period ends when no request was rejected within the window of [`Recent`], so bursts with shorter pauses are one period. A
//! period with very few rejections does not begin: two events a minute would push the other events out.

use super::EventKind;
use super::recent::Recent;
use super::sentence::percent;
use plimsoll_core::promises::Mode;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use std::collections::BTreeMap;

/// A period begins if at least this part of the requests is rejected, and at least this number within the window.
const SOME: f64 = 0.01;
const FEWEST: u64 = 10;

/// The classes whose requests are rejected now, by site and class.
#[derive(Debug, Default)]
pub(super) struct Rejections(BTreeMap<(String, String), Rejecting>);

#[derive(Clone, Copy, Debug)]
struct Rejecting {
    began: Instant,
    /// The number of rejections before the period.
    before: u64,
    /// When the last rejection was seen, and the number of rejections then.
    last: (Instant, u64),
}

/// An event: its kind, its subject, and what happened.
pub(super) type Happening = (EventKind, String, String);

impl Rejections {
    /// Looks at the classes and their last seconds; returns the events.
    pub(super) fn look(&mut self, status: &Status, recent: &[Recent]) -> Vec<Happening> {
        let observes = status.mode == Mode::Observe;
        let would = if observes { "would be" } else { "are" };
        // A reload may have removed a class.
        self.0.retain(|(site, class), _| {
            status.classes.iter().any(|own| own.site == *site && own.class == *class)
        });
        let classes = status.classes.iter().zip(recent);
        let news = classes.filter_map(|(class, recent)| {
            let (now, all) = (recent.rejected(), class.counts.rejected());
            if now == 0 && self.0.is_empty() {
                return None;
            }
            let key = (class.site.clone(), class.class.clone());
            let subject = format!("{}/{}", class.site, class.class);
            let Some(rejecting) = self.0.get_mut(&key) else {
                // In observe mode a request that would be rejected is served, and counted among the served.
                let decided = recent.served.iter().sum::<u64>() + if observes { 0 } else { now };
                let part = (now as f64 / decided.max(1) as f64).min(1.0);
                if part < SOME || now < FEWEST {
                    return None;
                }
                let before = all.saturating_sub(now);
                self.0.insert(key, Rejecting { began: status.at, before, last: (status.at, all) });
                let text = format!("{subject}: {} of requests {would} rejected", percent(part));
                return Some((EventKind::RejectionsBegan, subject, text));
            };
            if all != rejecting.last.1 {
                rejecting.last = (status.at, all);
            }
            if now > 0 {
                return None;
            }
            let Rejecting { began, before, last } = *rejecting;
            self.0.remove(&key);
            let (count, seconds) = (last.1.saturating_sub(before), last.0.since(began).as_secs() + 1);
            let text = format!(
                "{subject}: nobody is rejected any more; {count}{} in {seconds} s",
                if observes { " would have been" } else { " were" }
            );
            Some((EventKind::RejectionsEnded, subject, text))
        });
        news.collect()
    }
}
