//! The time, for the engine and for people.

use plimsoll_core::time::Instant;
use std::time::{Duration, SystemTime};

/// The gateway's clock for the engine: nanoseconds since its start, one origin for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        // The clock begins a little after zero, which means "never" to the engine.
        let now = std::time::Instant::now();
        Clock { origin: now.checked_sub(Duration::from_millis(1)).unwrap_or(now) }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}

/// The time since 1970 by the machine's calendar, for times that operators read; no decision depends on it.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
