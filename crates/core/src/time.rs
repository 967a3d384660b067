//! Time as an argument: the core has no clock.
//!
//! An [`Instant`] is a count of nanoseconds from an origin that the shell chose once (the gateway: its start; the simulator:
//! zero). 64 bits reach 584 years. A difference saturates at zero: readings of two threads may arrive some nanoseconds in the
//! wrong order, and a negative interval means nothing to a monitor.

use core::ops::{Add, AddAssign};
pub use core::time::Duration;

/// A point in time: nanoseconds from the shell's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin, from which all instants count.
    pub const ZERO: Instant = Instant(0);
    /// An instant later than any for which a loop asks; it means that nothing is due.
    pub const FAR: Instant = Instant(u64::MAX);

    /// The instant `nanoseconds` after the origin.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Instant(nanoseconds)
    }

    /// The instant `seconds` after the origin: the origin if `seconds` is negative or not a number, [`Instant::FAR`] if it is
    /// too large.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Instant((seconds * 1e9) as u64)
    }

    /// Nanoseconds from the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds from the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The nanoseconds since `earlier`; zero if `earlier` is later.
    pub const fn nanos_since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        let whole = duration.as_secs().saturating_mul(1_000_000_000);
        Instant(self.0.saturating_add(whole.saturating_add(duration.subsec_nanos().into())))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}
