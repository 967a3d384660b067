//! Notifies a supervisor such as systemd, by the protocol of sd_notify(3), that the gateway serves, reads its configuration
//! again, ends, is alive, or was replaced by another process. Without `NOTIFY_SOCKET` nothing is sent.
//!
//! The watchdog is told that the gateway is alive as long as the control loops run. If the loops stop, service levels no longer
//! change and requests still pass, so no client would notice.

use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use sd_notify::NotifyState;
use std::time::Duration;

/// Reports to the supervisor, and takes no notice of one that has gone.
fn report(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

/// The gateway serves.
pub(crate) fn ready() {
    report(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The configuration is read again; [`ready`] follows, whatever the result.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => report(&[NotifyState::Reloading, now]),
        Err(_) => report(&[NotifyState::Reloading]),
    }
}

/// The gateway ends, and requests in progress have time to finish.
pub(crate) fn stopping() {
    report(&[NotifyState::Stopping, NotifyState::Status("requests under way have time to finish")]);
}

/// Another process has taken this one's place.
pub(crate) fn is_replaced_by(process: u32) {
    report(&[NotifyState::MainPid(process)]);
}

/// Notifies the watchdog as often as the supervisor wants it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// The longest silence that the supervisor accepts.
    limit: Option<Duration>,
    said: Option<std::time::Instant>,
    /// The engine's time at its last period, and since when it has not changed.
    last: Option<(Instant, std::time::Instant)>,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Watchdog { limit: sd_notify::watchdog_enabled(), said: None, last: None }
    }

    /// Checks whether the loops run, and notifies the watchdog if they do and a notification is due.
    pub(crate) fn look(&mut self, status: &Status) {
        if self.is_due(std::time::Instant::now(), status.at, status.period) {
            report(&[NotifyState::Watchdog]);
        }
    }

    /// The engine's time changes only at each period, and a period may be longer than the supervisor's limit. So the loops
    /// count as running while that time is no older than a period and the lateness that a period may have.
    fn is_due(&mut self, now: std::time::Instant, at: Instant, period: Duration) -> bool {
        let Some(limit) = self.limit else { return false };
        let since = match self.last {
            Some((known, since)) if known == at => since,
            _ => {
                self.last = Some((at, now));
                now
            }
        };
        // A third of the limit, so that two messages may be lost or late.
        let pause = limit / 3;
        let is_time = self.said.is_none_or(|said| now.duration_since(said) >= pause);
        let is_due = is_time && now.duration_since(since) <= period + pause;
        if is_due {
            self.said = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(250);

    fn watchdog(limit: u64) -> Watchdog {
        Watchdog { limit: Some(Duration::from_secs(limit)), said: None, last: None }
    }

    /// The times (s) of notifications, if the loops run with this period for `runs` seconds, and looks go on for as long again.
    fn words(mut watchdog: Watchdog, period: u64, runs: u64) -> Vec<f64> {
        let began = std::time::Instant::now();
        let mut words = Vec::new();
        for look in 0..8 * runs as u32 {
            let now = LOOK * look;
            let periods = now.as_secs().min(runs) / period;
            let at = Instant::from_nanos(periods * period * 1_000_000_000);
            if watchdog.is_due(began + now, at, Duration::from_secs(period)) {
                words.push(now.as_secs_f64());
            }
        }
        words
    }

    #[test]
    fn life_is_reported_while_the_loops_run_whatever_their_period_is() {
        for (limit, period) in [(30, 1), (30, 20), (30, 60), (1, 1), (3, 60)] {
            let words = words(watchdog(limit), period, 240);
            let longest = words.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
            let third = limit as f64 / 3.0;
            assert!(longest <= third + 0.25, "{longest} s between two words, of {limit} s at most");
            assert!(words.windows(2).all(|two| two[1] - two[0] >= third), "not more often than it must");
            let last = words[words.len() - 1];
            let latest = (240 / period * period + period) as f64 + third;
            assert!((239.0 - third..=latest).contains(&last), "the loops stand still from 240 s on: {last}");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_reported() {
        let none = Watchdog { limit: None, said: None, last: None };
        assert!(words(none, 1, 10).is_empty());
    }
}
