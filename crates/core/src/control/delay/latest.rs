//! Whether the latest departures of a class are late. Its window still holds the beginning of a crowd for a thousand departures
//! after it, in which other classes would yield for nothing.

use crate::promises::Delay;
use crate::telemetry::departure_window::Seen;

/// The next late departure is overdue after this many times the departures between two late ones where as many are late as may
/// be.
const LATE_AGAIN: f64 = 2.0;

/// A class waits well within its promise while the latest departures wait for less than the rest of this part.
const WELL_WITHIN: f64 = 0.75;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestDepartures {
    /// Departures since the last one that was late.
    since_late: f64,
}

impl LatestDepartures {
    pub(super) fn observe(&mut self, seen: &Seen) {
        self.since_late = if seen.fresh_late > 0.0 { 0.0 } else { self.since_late + seen.fresh };
    }

    /// The part by which the latest departures exceed the wait that the promise leaves beside a mean service time of `service`
    /// (s), or the share that may be late; negative where they are within it.
    pub(super) fn error(&self, seen: &Seen, delay: Delay, service: f64) -> f64 {
        let (target, recent) = (delay.target.as_secs_f64(), seen.recent_response);
        let part = match delay.percentile {
            None if service < target => (recent - service) / (target - service),
            None => recent / target,
            Some(percentile) => LATE_AGAIN / (self.since_late * (1.0 - percentile / 100.0)),
        };
        (part - 1.0).clamp(-1.0, 1.0)
    }

    /// The same while it is well within, beyond chance; else 0.
    pub(super) fn well_within(error: f64) -> f64 {
        if error < -WELL_WITHIN { error } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn a_percentile_is_missed_now_until_the_next_late_departure_is_overdue() {
        let delay = Delay { target: Duration::from_millis(100), percentile: Some(95.0) };
        let mut latest = LatestDepartures::default();
        let mut after = |fresh, fresh_late| {
            let seen = Seen { fresh, fresh_late, ..Seen::default() };
            latest.observe(&seen);
            latest.error(&seen, delay, 0.01)
        };
        assert_eq!(after(10.0, 1.0), 1.0, "one was late");
        assert!(after(20.0, 0.0) > 0.9, "one in twenty may be late");
        assert!(after(25.0, 0.0) < 0.0, "the next one was due for long");
        assert!((after(35.0, 0.0) + 0.5).abs() < 1e-9, "half as many as may be");
        assert_eq!(LatestDepartures::well_within(-0.5), 0.0, "by chance");
    }

    #[test]
    fn a_mean_is_judged_by_the_wait_that_it_leaves() {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let error = |recent_response| {
            LatestDepartures::default().error(&Seen { recent_response, ..Seen::default() }, delay, 0.06)
        };
        assert!((error(0.12) - 0.5).abs() < 1e-9 && error(0.1).abs() < 1e-9);
        assert!(LatestDepartures::well_within(error(0.065)) < -0.8, "hardly any wait");
        assert_eq!(LatestDepartures::well_within(error(0.08)), 0.0);
    }
}
