//! Whether a rare class misses its mean: one that never has a hundred departures within ten minutes. Its window forgets
//! departures that are older, and so never holds enough of them as evidence. The last hundred departures are evidence, however
//! long they took to come.

use super::class::EVIDENCE;
use crate::promises::Delay;
use crate::telemetry::departure_window::Seen;

/// The departures since the last hundred, and whether those missed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RareDepartures {
    ends: f64,
    response_seconds: f64,
    missed: bool,
}

impl RareDepartures {
    /// Takes the departures of an update; whether the last hundred missed a mean, while the window holds fewer.
    pub(super) fn miss(&mut self, seen: &Seen, delay: Delay) -> bool {
        if seen.departures >= EVIDENCE || delay.percentile.is_some() {
            *self = RareDepartures::default();
            return false;
        }
        self.ends += seen.fresh_ends;
        self.response_seconds += seen.fresh_sum;
        if self.ends >= EVIDENCE {
            let most = Delay::MISSED_MEAN * delay.target.as_secs_f64();
            let missed = self.response_seconds > most * self.ends;
            *self = RareDepartures { missed, ..RareDepartures::default() };
        }
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn the_last_hundred_departures_show_a_miss_until_the_next_hundred_do_or_the_window() {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let mut rare = RareDepartures::default();
        let mut missed = |departures: f64, response: f64, delay| {
            let seen = Seen { departures, fresh_ends: 10.0, fresh_sum: 10.0 * response, ..Seen::default() };
            rare.miss(&seen, delay)
        };
        assert!((0..9).all(|_| !missed(60.0, 0.2, delay)), "ninety are no evidence");
        assert!(missed(60.0, 0.2, delay));
        assert!((0..9).all(|_| missed(60.0, 0.105, delay)), "nor are they evidence of the contrary");
        assert!(!missed(60.0, 0.105, delay));
        (0..9).for_each(|_| _ = missed(60.0, 0.2, delay));
        assert!(!missed(100.0, 0.2, delay), "the window holds a hundred");
        let percentile = Delay { percentile: Some(95.0), ..delay };
        assert!((0..20).all(|_| !missed(60.0, 0.2, percentile)));
    }
}
