//! Whether the latest departures of a class are late. Its window still holds the beginning of a crowd for a thousand departures
//! after it, in which other classes would yield for nothing.

use crate::promises::Delay;
use crate::telemetry::departure_window::Seen;

/// The next late departure is overdue after this many times the departures between two late ones where as many are late as may
/// be.
const LATE_AGAIN: f64 = 2.0;

/// The latest departures keep the promise beyond chance once their mean is below it by more than this part of it.
const WELL_WITHIN: f64 = 0.5;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentDepartures {
    /// Departures since the last one that was late.
    since_late: f64,
}

impl RecentDepartures {
    pub(super) fn observe(&mut self, seen: &Seen) {
        self.since_late = if seen.fresh_late > 0.0 { 0.0 } else { self.since_late + seen.fresh };
    }

    /// The part of the promise by which the latest departures miss it; negative where they are within it.
    pub(super) fn error(&self, seen: &Seen, delay: Delay) -> f64 {
        let part = match delay.percentile {
            None => seen.recent_response / delay.target.as_secs_f64(),
            Some(percentile) => LATE_AGAIN / (self.since_late * (1.0 - percentile / 100.0)),
        };
        (part - 1.0).clamp(-1.0, 1.0)
    }

    /// Such an error while it is within the promise beyond chance; else 0.
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
        let mut latest = RecentDepartures::default();
        let mut after = |fresh, fresh_late| {
            let seen = Seen { fresh, fresh_late, ..Seen::default() };
            latest.observe(&seen);
            latest.error(&seen, delay)
        };
        assert_eq!(after(10.0, 1.0), 1.0, "one was late");
        assert!(after(20.0, 0.0) > 0.9, "one in twenty may be late");
        assert!(after(25.0, 0.0) < 0.0, "the next one was due for long");
        assert!((after(35.0, 0.0) + 0.5).abs() < 1e-9, "half as many as may be");
    }

    #[test]
    fn a_mean_is_well_kept_below_its_half() {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let error = |recent_response| {
            RecentDepartures::default().error(&Seen { recent_response, ..Seen::default() }, delay)
        };
        assert!((error(0.12) - 0.2).abs() < 1e-9 && error(0.1).abs() < 1e-9);
        assert_eq!(RecentDepartures::well_within(error(0.06)), 0.0, "by chance");
        assert_eq!(RecentDepartures::well_within(error(0.04)), error(0.04));
    }
}
