//! Times in which requests of a class are rejected, as events: their beginning, and their end with the number.
//!
//! A time ends when nobody was rejected within the window of [`Recent`], so bursts with less between them are one. One that
//! rejects hardly anybody does not begin: two events a minute would push the others out.

use super::EventKind;
use super::recent::Recent;
use super::sentence::percent;
use plimsoll_core::promises::Mode;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use std::collections::BTreeMap;

/// The part of requests rejected from which on it is an event, and the fewest within the window.
const SOME: f64 = 0.01;
const FEWEST: u64 = 10;

/// The classes whose requests are rejected now, by site and class.
#[derive(Debug, Default)]
pub(super) struct Rejections(BTreeMap<(String, String), Rejecting>);

#[derive(Clone, Copy, Debug)]
struct Rejecting {
    began: Instant,
    /// How many were rejected before.
    before: u64,
    /// When the last one was seen, and how many there were then.
    last: (Instant, u64),
}

/// An event: its kind, its subject, and what happened.
pub(super) type Happening = (EventKind, String, String);

impl Rejections {
    /// Takes a look at the classes, with their last seconds.
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
                // What would be rejected is served, and counted there.
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
