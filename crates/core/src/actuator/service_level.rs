//! The service level m of a class: the actuator of UC 4.2, in one word that never tears.
//!
//! m = I + F in `[0, M]` is packed as I in the top byte and F in the 56 bits below, so service levels compare as their
//! words do. `level_of_client.rs` has the level at which each client is served.

use core::sync::atomic::{AtomicU64, Ordering};

const FRACTION_BITS: u32 = 56;
/// The fraction 1. Client hashes lie below it.
pub(crate) const FRACTION_ONE: u64 = 1 << FRACTION_BITS;

/// The service level that loops write and requests read.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct AtomicServiceLevel(AtomicU64);

/// A service level m, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceLevel(u64);

impl ServiceLevel {
    /// Packs m; anything that is not a positive number becomes 0.
    pub(crate) fn new(m: f64) -> Self {
        let m = m.clamp(0.0, crate::promises::MAX_LEVELS as f64);
        let integral = m as u64;
        let fraction = ((m - integral as f64) * FRACTION_ONE as f64) as u64;
        ServiceLevel(integral << FRACTION_BITS | fraction.min(FRACTION_ONE - 1))
    }

    /// m.
    pub(crate) fn as_number(self) -> f64 {
        f64::from(self.integral()) + self.fraction() as f64 / FRACTION_ONE as f64
    }

    /// I.
    #[inline]
    pub(super) fn integral(self) -> u8 {
        (self.0 >> FRACTION_BITS) as u8
    }

    /// F, in units of 2^-56.
    #[inline]
    pub(super) fn fraction(self) -> u64 {
        self.0 & (FRACTION_ONE - 1)
    }
}

impl AtomicServiceLevel {
    pub(crate) fn set(&self, m: f64) {
        self.0.store(ServiceLevel::new(m).0, Ordering::Relaxed);
    }

    pub(crate) fn follow(&self, other: &Self) {
        self.0.store(other.get().0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> ServiceLevel {
        ServiceLevel(self.0.load(Ordering::Relaxed))
    }
}
