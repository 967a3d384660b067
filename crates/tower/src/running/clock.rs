//! The current time, as the engine reads it.

use plimsoll_core::time::Instant;

/// Nanoseconds since the layer was built; all threads count from the same origin.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// The operating system's time.
    System(std::time::Instant),
    /// Time that a test moves.
    #[cfg(test)]
    Virtual(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock::System(std::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Instant {
        match self {
            // The origin of time means "never" to the engine.
            Clock::System(origin) => Instant::from_nanos(origin.elapsed().as_nanos() as u64 + 1),
            #[cfg(test)]
            Clock::Virtual(nanoseconds) => {
                Instant::from_nanos(nanoseconds.load(std::sync::atomic::Ordering::Relaxed))
            }
        }
    }
}
