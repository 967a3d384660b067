//! What a supervisor such as systemd is told, by the protocol of sd_notify(3): that the gateway serves, reads its configuration
//! anew, ends, lives, or has another process in its place. Without `NOTIFY_SOCKET` nobody listens, and nothing is said.
//!
//! The watchdog is told that the gateway lives as long as the control loops run: if they stand still, service levels stand
//! still with them, and requests pass as before, so that no client would show it.

use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use sd_notify::NotifyState;
use std::time::Duration;

/// Tells, and takes no notice of a supervisor that has gone.
fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}

/// The gateway serves.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The configuration is read anew; [`ready`] follows, whatever comes of it.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Requests under way have time to finish.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("requests under way have time to finish")]);
}

/// Another process has this one's place.
pub(crate) fn is_replaced_by(process: u32) {
    tell(&[NotifyState::MainPid(process)]);
}

/// Says that the gateway lives, as often as the supervisor wants it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// The longest silence that the supervisor takes for life.
    limit: Option<Duration>,
    said: Option<std::time::Instant>,
    /// The engine's time at the last word.
    at: Option<Instant>,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        Watchdog { limit: sd_notify::watchdog_enabled(), said: None, at: None }
    }

    /// Takes a look at the loops; says that they run if they do and it is time.
    pub(crate) fn look(&mut self, status: &Status) {
        if self.is_due(std::time::Instant::now(), status.at) {
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// The engine's time must have moved since the last word: between two ticks it stands.
    fn is_due(&mut self, now: std::time::Instant, at: Instant) -> bool {
        let Some(limit) = self.limit else { return false };
        // A third of the limit, so that two words may be late.
        let is_time = self.said.is_none_or(|said| now.duration_since(said) >= limit / 3);
        let is_due = is_time && self.at != Some(at);
        if is_due {
            (self.said, self.at) = (Some(now), Some(at));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_is_told_while_the_loops_run() {
        let mut watchdog = Watchdog { limit: Some(Duration::from_secs(9)), said: None, at: None };
        let began = std::time::Instant::now();
        let mut looked = |second: u64, at: u64| {
            watchdog.is_due(began + Duration::from_secs(second), Instant::from_nanos(at * 1_000_000_000))
        };
        assert!(looked(0, 1) && !looked(1, 2) && !looked(2, 3), "not more often than it must");
        assert!(looked(3, 4) && !looked(5, 4) && !looked(6, 4) && !looked(7, 4), "the loops stand still");
        assert!(looked(8, 5), "and run again");
        assert!(!Watchdog { limit: None, said: None, at: None }.is_due(began, Instant::ZERO));
    }
}
