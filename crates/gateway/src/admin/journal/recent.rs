//! What became of requests in the last ten seconds: differences of counters, by class.
//!
//! Ten seconds are enough for a share to be read, and few enough to show what happens now. For this the counts of all classes
//! are kept for each second: eleven rows, whatever the load.

use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::telemetry::status::{ClassStatus, Counts, DurationHistogram, Status};
use plimsoll_core::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// How far back the window goes.
const WINDOW: Duration = Duration::from_secs(10);
/// The least time between two rows of counts.
const STEP: Duration = Duration::from_secs(1);

/// The counts of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Window {
    marks: VecDeque<Mark>,
}

#[derive(Debug)]
struct Mark {
    at: Instant,
    /// By class.
    classes: Vec<ClassMark>,
    /// By plant: the utilization of its last period.
    utilizations: Vec<f64>,
}

/// The counters of a class at one time.
#[derive(Clone, Copy, Debug, Default)]
struct ClassMark {
    counts: Counts,
    responses: DurationHistogram,
    late: u64,
}

impl ClassMark {
    fn of(class: &ClassStatus) -> Self {
        let late = class.deadline.map_or(0, |deadline| deadline.missed);
        ClassMark { counts: class.counts, responses: class.response_times, late }
    }
}

/// What became of a class's requests within the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::admin) struct Recent {
    /// How long the window is (s); 0 before anything was seen twice.
    pub seconds: f64,
    pub arrivals: u64,
    /// Started, by level from 1; at 0 those that would have been rejected, in observe mode.
    pub served: Vec<u64>,
    /// Turned away, by the number of their reason.
    pub reasons: [u64; Reason::ALL.len()],
    pub failed: u64,
    /// Answered later than their deadline.
    pub late: u64,
    /// The response times of the requests released.
    pub responses: DurationHistogram,
}

impl Recent {
    pub(in crate::admin) fn rejected(&self) -> u64 {
        let reasons = Reason::ALL.iter().filter(|reason| reason.is_rejection());
        reasons.map(|reason| self.reasons[*reason as usize]).sum()
    }

    /// Whether any request was degraded or rejected; `top` is the highest level.
    pub(super) fn is_hit(&self, top: usize) -> bool {
        self.rejected() > 0 || self.served.iter().take(top).any(|count| *count > 0)
    }

    /// The reasons that some request had, with their counts.
    pub(in crate::admin) fn reasons_seen(&self) -> BTreeMap<&'static str, u64> {
        let counts = Reason::ALL.map(|reason| (reason.as_str(), self.reasons[reason as usize]));
        counts.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// The response time that this part of all requests kept (s): within its bucket as if times were spread evenly on a
    /// logarithmic axis. `None` if nothing was answered.
    pub(in crate::admin) fn quantile(&self, part: f64) -> Option<f64> {
        let rank = part * self.responses.count() as f64;
        let mut below = 0.0;
        let upper = DurationHistogram::bounds().map(|bound| bound.as_secs_f64());
        for (count, upper) in self.responses.buckets.iter().zip(upper.chain([f64::INFINITY])) {
            let count = *count as f64;
            if count > 0.0 && below + count >= rank {
                let lower = if upper.is_infinite() { LONGEST } else { upper / 2.0 };
                let inside = if upper.is_infinite() { 0.0 } else { (rank - below) / count };
                return Some(lower * inside.exp2());
            }
            below += count;
        }
        None
    }
}

/// The last bound of a histogram (s).
const LONGEST: f64 = 65.536;

impl Window {
    /// Takes the counts of a status, at most once a second.
    pub(super) fn look(&mut self, status: &Status) {
        if self.marks.back().is_some_and(|last| status.at.since(last.at) < STEP) {
            return;
        }
        while self.marks.len() > 1 && status.at.since(self.marks[1].at) >= WINDOW {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark {
            at: status.at,
            classes: status.classes.iter().map(ClassMark::of).collect(),
            utilizations: status.plants.iter().map(|plant| plant.utilization).collect(),
        });
    }

    /// What became of the requests of each class until `status`, by number.
    pub(super) fn recent(&self, status: &Status) -> Vec<Recent> {
        let classes = status.classes.iter().enumerate();
        classes.map(|(number, class)| self.recent_of(number, class, status.at)).collect()
    }

    fn recent_of(&self, number: usize, class: &ClassStatus, now: Instant) -> Recent {
        let first = self.marks.front();
        let Some((at, before)) = first.and_then(|mark| Some((mark.at, mark.classes.get(number)?))) else {
            return Recent::default();
        };
        let after = ClassMark::of(class);
        let since = |count: fn(&ClassMark) -> u64| count(&after).saturating_sub(count(before));
        let served = (0..=class.levels.len()).map(|level| {
            let [after, before] = [&after, before].map(|mark| mark.counts.served.get(level).copied());
            after.unwrap_or(0).saturating_sub(before.unwrap_or(0))
        });
        let mut recent = Recent {
            seconds: now.since(at).as_secs_f64(),
            arrivals: since(|mark| mark.counts.arrivals),
            served: served.collect(),
            late: since(|mark| mark.late),
            failed: since(|mark| mark.counts.outcomes[Outcome::Failed as usize]),
            ..Recent::default()
        };
        for reason in Reason::ALL.map(|reason| reason as usize) {
            recent.reasons[reason] =
                after.counts.reasons[reason].saturating_sub(before.counts.reasons[reason]);
        }
        let buckets = after.responses.buckets.iter().zip(before.responses.buckets);
        let counted = recent.responses.buckets.iter_mut().zip(buckets);
        counted.for_each(|(counted, (after, before))| *counted = after.saturating_sub(before));
        recent
    }

    /// The mean utilization of a plant over the window.
    pub(super) fn utilization(&self, plant: usize) -> Option<f64> {
        let seen: Vec<f64> =
            self.marks.iter().filter_map(|mark| mark.utilizations.get(plant).copied()).collect();
        (!seen.is_empty()).then(|| seen.iter().sum::<f64>() / seen.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(seconds: u64, arrivals: u64) -> Status {
        let counts = Counts { arrivals, ..Counts::default() };
        let classes = vec![ClassStatus { counts, ..ClassStatus::default() }];
        let at = Instant::from_nanos(seconds * 1_000_000_000);
        Status { at, classes, ..crate::admin::tests::empty() }
    }

    #[test]
    fn the_window_is_ten_seconds_long() {
        let mut window = Window::default();
        for second in 0..60 {
            window.look(&status(second, 5 * second));
        }
        assert_eq!(window.marks.len(), 11);
        let recent = window.recent(&status(59, 5 * 59)).remove(0);
        assert_eq!((recent.seconds, recent.arrivals), (10.0, 50));
    }

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let mut recent = Recent::default();
        assert_eq!(recent.quantile(0.5), None);
        // These responses took from 64 ms to 128 ms.
        recent.responses.buckets[7] = 90;
        recent.responses.buckets[DurationHistogram::BOUNDS] = 10;
        let median = recent.quantile(0.45).unwrap_or(0.0);
        assert!((median - 0.064 * 2f64.sqrt()).abs() < 1e-9, "{median}");
        assert_eq!(recent.quantile(0.99), Some(LONGEST));
    }
}
