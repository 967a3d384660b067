//! The service level: the actuator of UC 4.2 in one word that never tears.
//!
//! m = I + F in `[0, M]` is packed as I in the top byte and F in the 56 bits below, so service levels compare as their
//! words do. A request whose client hash, 56 bits, is below F 2^56 is served level I + 1, else I. Both are monotone in
//! m: raising m never lowers the level of a client.

use core::sync::atomic::{AtomicU64, Ordering};

const FRACTION_BITS: u32 = 56;
/// Client hashes lie below this.
pub(crate) const FRACTION_ONE: u64 = 1 << FRACTION_BITS;

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

    /// The level, 0..=M, of the client with this hash.
    pub(crate) fn level_of(self, client: u64) -> u8 {
        let integral = (self.0 >> FRACTION_BITS) as u8;
        integral + u8::from(client < self.0 & (FRACTION_ONE - 1))
    }
}

impl AtomicServiceLevel {
    pub(crate) fn new(m: f64) -> Self {
        AtomicServiceLevel(AtomicU64::new(ServiceLevel::new(m).0))
    }

    pub(crate) fn set(&self, m: f64) {
        self.0.store(ServiceLevel::new(m).0, Ordering::Relaxed);
    }

    pub(crate) fn copy(&self) -> Self {
        AtomicServiceLevel(AtomicU64::new(self.get().0))
    }

    pub(crate) fn get(&self) -> ServiceLevel {
        ServiceLevel(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_clients_gets_the_higher_level() {
        let m = ServiceLevel::new(1.25);
        assert_eq!(m.level_of(0), 2);
        assert_eq!(m.level_of(FRACTION_ONE / 4 - 1), 2);
        assert_eq!(m.level_of(FRACTION_ONE / 4), 1);
        assert_eq!(ServiceLevel::new(2.0).level_of(0), 2);
        assert_eq!(ServiceLevel::new(0.0).level_of(0), 0);
        assert_eq!(ServiceLevel::new(f64::NAN).level_of(0), 0);
    }

    #[test]
    fn levels_are_monotone_in_m_for_every_client() {
        for client in (0..FRACTION_ONE).step_by((FRACTION_ONE / 97) as usize) {
            let levels = (0..=300).map(|i| ServiceLevel::new(f64::from(i) / 100.0).level_of(client));
            assert!(levels.clone().zip(levels.skip(1)).all(|(low, high)| low <= high));
        }
    }
}
