//! Whether the loops still run.
//!
//! If `tick` stalls, service levels freeze at their last value and requests pass as before, so nothing else would tell.
//! The status says when the last tick ran, in the engine's time. If that time stands still between two looks that are far
//! enough apart, the loops stand still. No clock is shared with the engine.

use plimsoll_core::telemetry::status::Status;
use std::time::{Duration, Instant};

/// What the looks so far say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// The last tick is new, or it is too early to tell.
    Running,
    /// No tick was seen for this long.
    Stalled(Duration),
}

/// Compares one look at the status with the last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulse {
    /// The engine's time of the last tick, and when it was first seen.
    last: Option<(plimsoll_core::time::Instant, Instant)>,
}

impl Pulse {
    /// Takes a look. Five periods without a tick, and at least five seconds, are a stall.
    pub(super) fn look(&mut self, now: Instant, status: &Status) -> Health {
        match self.last {
            Some((at, seen)) if at == status.at => {
                let since = now.saturating_duration_since(seen);
                let limit = (status.period * 5).max(Duration::from_secs(5));
                if since > limit { Health::Stalled(since) } else { Health::Running }
            }
            _ => {
                self.last = Some((status.at, now));
                Health::Running
            }
        }
    }
}
