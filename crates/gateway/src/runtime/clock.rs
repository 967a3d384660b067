//! The gateway's clock: nanoseconds since its start, one origin for all threads.

use plimsoll_core::time::Instant;

/// Reads time for the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        // The clock begins a little after zero, which means "never" to the engine.
        let now = std::time::Instant::now();
        Clock { origin: now.checked_sub(std::time::Duration::from_millis(1)).unwrap_or(now) }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
