//! Deadlines: logs a line when too many of the admitted requests are late, and one when that is over.
//!
//! An estimate is wrong now and then, so single misses are not logged; their share over the last [`WINDOW`] looks is.

use crate::output::promised;
use crate::service::log::{News, Subject};
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::ClassStatus;
use std::collections::VecDeque;

/// Looks, one a period, over which the share is taken.
const WINDOW: usize = 10;
/// A missed deadline counts as kept again once the late share is below this part of what may be late.
const KEPT_AGAIN: f64 = 0.5;

#[derive(Debug, Default)]
pub(super) struct Misses {
    /// The counts of late and admitted requests since the start, at the last looks.
    looks: VecDeque<(u64, u64)>,
    said: bool,
}

impl Misses {
    pub(super) fn look(&mut self, class: &ClassStatus) -> Option<News> {
        let Some(own) = class.deadline else {
            *self = Misses::default();
            return None;
        };
        let counts = &class.counts;
        let dropped = counts.reasons[Reason::Late as usize];
        let started: u64 = counts.served.iter().sum();
        self.looks.push_back((own.missed + dropped, started + dropped));
        if self.looks.len() > WINDOW {
            self.looks.pop_front();
        }
        let (first, last) = (self.looks.front()?, self.looks.back()?);
        let (missed, admitted) = (last.0 - first.0, last.1 - first.1);
        let lasts = self.said && missed as f64 > KEPT_AGAIN * own.may_be_late(admitted);
        let is = lasts || own.is_missed(missed, admitted);
        if is == self.said {
            return None;
        }
        self.said = is;
        let subject = Subject::of(class);
        let promise = promised::deadline(own.deadline, own.in_time);
        Some(if is {
            let why = if own.admitted_from < own.in_time {
                "requests of lower priorities take long, so that fewer are refused than if all of the admitted were in time"
            } else {
                "do its types cost as much as each other? See `types` in /status"
            };
            let message =
                format!("promise missed: {promise}; lately {missed} of {admitted} admitted were late: {why}");
            News::warn(subject, message)
        } else {
            News::info(subject, format!("promise kept again: {promise}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::telemetry::status::DeadlineStatus;
    use plimsoll_core::time::Duration;

    fn class(missed: u64, dropped: u64, started: u64) -> ClassStatus {
        let deadline = DeadlineStatus {
            deadline: Duration::from_secs(1),
            in_time: 99.0,
            admitted_from: 99.0,
            missed,
            ..DeadlineStatus::default()
        };
        let mut class = ClassStatus {
            site: "shop".to_owned(),
            class: "all".to_owned(),
            deadline: Some(deadline),
            ..ClassStatus::default()
        };
        class.counts.served[1] = started;
        class.counts.reasons[Reason::Late as usize] = dropped;
        class
    }

    #[test]
    fn a_share_of_misses_is_logged_once_and_its_end() {
        let mut misses = Misses::default();
        assert_eq!(misses.look(&class(100, 0, 1000)), None, "what was before is not news");
        assert_eq!(misses.look(&class(101, 1, 1100)), None, "one now and then is not either");
        let line = misses.look(&class(105, 2, 1200)).expect("it is missed").to_string();
        assert!(
            line.starts_with("shop/all: promise missed: 99 % of the admitted within 1 s; lately 7 of 202"),
            "{line}"
        );
        assert_eq!(misses.look(&class(110, 2, 1300)), None, "said once");
        let lines: Vec<_> = (1..=20)
            .filter_map(|n| misses.look(&class(110, 2, 1300 + 100 * n)))
            .map(|news| news.to_string())
            .collect();
        assert_eq!(lines, ["shop/all: promise kept again: 99 % of the admitted within 1 s"]);
        assert_eq!(misses.look(&ClassStatus::default()), None, "a reload took it back");
    }
}
