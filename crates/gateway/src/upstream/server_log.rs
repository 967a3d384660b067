//! What was logged of a server, so that a server that comes and goes does not fill it.
//!
//! A server that goes out of use is reported at once, and so is its return. A server that changes again soon is reported
//! only after a pause. The pause doubles with each line, and is as it was once the server has been quiet for that long: a
//! server that fails ten times a minute has some lines in the first minutes, and then one every ten minutes with how often
//! it has failed.

use plimsoll_core::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    /// Whether the last line said that the server is out of use, and how often the server had been ejected then.
    is_out: bool,
    ejections: u32,
    at: Instant,
    pause: Duration,
    /// Whether the return after the last line may be logged at once.
    owes_return: bool,
}

impl Said {
    /// Whether the state of a server is to be logged now: how often it was ejected since the last line.
    pub(super) fn take(&mut self, now: Instant, is_out: bool, ejections: u32) -> Option<u32> {
        if is_out == self.is_out {
            return None;
        }
        let since = now.since(self.at);
        if since >= self.pause * 2 {
            (self.pause, self.owes_return) = (Duration::ZERO, true);
        }
        let is_return = !is_out && self.owes_return;
        if since < self.pause && !is_return {
            return None;
        }
        let times = ejections.wrapping_sub(self.ejections);
        let pause = if is_return { self.pause } else { (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
        *self = Said { is_out, ejections, at: now, pause, owes_return: is_out && self.pause.is_zero() };
        Some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_server_that_fails_and_returns_has_two_lines() {
        let mut said = Said::default();
        assert_eq!(said.take(at(100), false, 0), None, "it was in use all the time");
        assert_eq!(said.take(at(101), true, 1), Some(1));
        assert_eq!([102, 110].map(|second| said.take(at(second), true, 3)), [None, None], "it stays out");
        assert_eq!(said.take(at(111), false, 3), Some(2));
        assert_eq!(said.take(at(112), false, 3), None);
        assert_eq!(said.take(at(500), true, 4), Some(1), "and much later it is news again");
        assert_eq!(said.take(at(500), false, 4), Some(0), "its return at once");
    }

    #[test]
    fn a_server_that_comes_and_goes_has_few_lines() {
        let (mut said, mut lines, mut counted) = (Said::default(), Vec::new(), 0);
        for second in 100..3700 {
            let (is_out, ejections) = (second % 4 < 2, (second as u32 - 96) / 4);
            if let Some(times) = said.take(at(second), is_out, ejections) {
                lines.push(second - 100);
                counted += times;
            }
        }
        let first_minutes = lines.iter().filter(|second| **second < 300).count();
        assert!(first_minutes <= 8 && lines.len() <= 14, "{lines:?}");
        assert!(lines.iter().any(|second| *second > 2400), "it goes on to be logged: {lines:?}");
        assert!(counted > 700, "each ejection is counted in some line: {counted}");
    }
}
