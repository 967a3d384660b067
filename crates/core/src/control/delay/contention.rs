//! The departures of a class while other classes competed with it: what the law learns from.
//!
//! A quota decides how long a class waits only while requests of other classes wait too. In calm, idle workers are lent, so
//! responses are short whatever the quota is, and say nothing of it. If the law learned from them, its integral would run
//! down to the least quota, and a step of the other classes' load would be paid for by minutes of late responses. So the
//! law's window holds the last departures of contended times alone. The promise itself is judged by all departures.

use crate::promises::Delay;
use crate::telemetry::Seen;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Departures between two updates.
#[derive(Clone, Copy, Debug)]
struct Update {
    at: Instant,
    departures: f64,
    /// Answers, and clients that hung up.
    answers: f64,
    dropped: f64,
    response_seconds: f64,
    late: f64,
}

/// The window of the law.
#[derive(Clone, Debug, Default)]
pub(super) struct ContendedWindow {
    /// Whether requests of other classes waited at the last update.
    waited: bool,
    updates: VecDeque<Update>,
    departures: f64,
    /// Departures and their response times (s), of the last [`RECENT`] or so.
    recent: (f64, f64),
}

/// What the law observes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contended {
    /// Mean response time (s).
    pub(super) response: f64,
    /// The same of the last [`RECENT`] or so (s).
    pub(super) recent_response: f64,
    /// The share that was late or dropped.
    pub(super) late: f64,
    /// The share that was dropped after waiting.
    pub(super) dropped: f64,
}

/// Departures that count as recent.
const RECENT: f64 = 50.0;

impl ContendedWindow {
    /// Takes what was seen at an update; `waits`: whether requests of other classes wait. Returns whether they do or did at the
    /// one before: only then the departures count, about the last `most` of them.
    pub(super) fn observe(&mut self, now: Instant, waits: bool, seen: &Seen, most: f64) -> bool {
        let contended = core::mem::replace(&mut self.waited, waits) || waits;
        if contended {
            self.add(now, seen, most);
        }
        self.expire(now);
        contended
    }

    /// Adds the departures of an update; the oldest leave, so that about `most` stay.
    fn add(&mut self, now: Instant, seen: &Seen, most: f64) {
        let update = Update {
            at: now,
            departures: seen.fresh,
            answers: seen.fresh_ends,
            dropped: seen.fresh_dropped,
            response_seconds: seen.fresh_sum,
            late: seen.fresh_late,
        };
        self.updates.push_back(update);
        self.departures += update.departures;
        while let Some(first) = self.updates.front()
            && self.departures - first.departures >= most
        {
            self.departures -= first.departures;
            self.updates.pop_front();
        }
        let kept = (1.0 - update.answers / RECENT).max(0.0);
        let (answers, responses) = self.recent;
        self.recent = (answers * kept + update.answers, responses * kept + update.response_seconds);
    }

    /// Forgets what is as old as a departure in the window of the promise may not be: it is of another traffic, and the law
    /// would act on it until the class competes again.
    fn expire(&mut self, now: Instant) {
        while let Some(first) = self.updates.front()
            && now.since(first.at) > Delay::EXPIRY
        {
            self.departures -= first.departures;
            self.updates.pop_front();
        }
        if self.updates.is_empty() {
            self.recent = (0.0, 0.0);
        }
    }

    /// `None` if the class did not have to compete of late.
    pub(super) fn seen(&self) -> Option<Contended> {
        let sum = |of: fn(&Update) -> f64| self.updates.iter().map(of).sum::<f64>();
        let (answers, dropped) = (sum(|update| update.answers), sum(|update| update.dropped));
        (answers > 0.0).then(|| Contended {
            response: sum(|update| update.response_seconds) / answers,
            recent_response: self.recent.1 / self.recent.0,
            late: sum(|update| update.late) / (answers + dropped),
            dropped: dropped / (answers + dropped),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn a_window_holds_the_last_departures_that_were_added() {
        let mut window = ContendedWindow::default();
        assert_eq!(window.seen(), None);
        let mut add = |response: f64, late: f64| {
            let seen = Seen {
                fresh: 25.0,
                fresh_ends: 25.0,
                fresh_sum: 25.0 * response,
                fresh_late: 25.0 * late,
                ..Seen::default()
            };
            window.add(Instant::ZERO, &seen, 100.0);
            window.seen().expect("departures")
        };
        assert_eq!(add(1.0, 0.0), Contended { response: 1.0, recent_response: 1.0, late: 0.0, dropped: 0.0 });
        (0..3).for_each(|_| {
            add(2.0, 1.0);
        });
        // Four updates fill it; the first one has left.
        let seen = add(4.0, 1.0);
        assert_eq!((seen.response, seen.late), (2.5, 1.0));
        assert!(seen.recent_response > 2.9 && seen.recent_response < 4.0, "{seen:?}");
    }

    #[test]
    fn what_is_too_old_leaves_the_window() {
        let mut window = ContendedWindow::default();
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let seen =
            |response| Seen { fresh: 25.0, fresh_ends: 25.0, fresh_sum: 25.0 * response, ..Seen::default() };
        window.add(at(0), &seen(3.0), 100.0);
        window.add(at(500), &seen(1.0), 100.0);
        window.expire(at(590));
        assert_eq!(window.seen().map(|seen| seen.response), Some(2.0));
        window.expire(at(700));
        assert_eq!(window.seen().map(|seen| seen.response), Some(1.0));
        window.expire(at(86_400));
        assert_eq!(window.seen(), None, "of yesterday");
        window.add(at(86_401), &seen(0.5), 100.0);
        assert_eq!(window.seen().map(|seen| (seen.response, seen.recent_response)), Some((0.5, 0.5)));
    }
}
