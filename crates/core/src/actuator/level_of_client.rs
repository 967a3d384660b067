//! The level of a client, chosen from its hash (UC 4.2).
//!
//! At the service level m = I + F a client whose hash, 56 bits, is below F 2^56 is served level I + 1, every other client
//! level I. So a client keeps its level while m stands still, unless it is a heavy client, whose level is drawn by request; and raising m never lowers the level of any client.
//! `request/client_hash.rs` makes the hash.

use crate::actuator::service_level::ServiceLevel;

impl ServiceLevel {
    /// The level, 0..=M, of the client with this hash.
    #[inline]
    pub(crate) fn level_of_client(self, hash: u64) -> u8 {
        self.integral() + u8::from(hash < self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actuator::service_level::FRACTION_ONE;

    #[test]
    fn a_fraction_of_clients_gets_the_higher_level() {
        let m = ServiceLevel::new(1.25);
        assert_eq!(m.level_of_client(0), 2);
        assert_eq!(m.level_of_client(FRACTION_ONE / 4 - 1), 2);
        assert_eq!(m.level_of_client(FRACTION_ONE / 4), 1);
        assert_eq!(ServiceLevel::new(2.0).level_of_client(0), 2);
        assert_eq!(ServiceLevel::new(0.0).level_of_client(0), 0);
        assert_eq!(ServiceLevel::new(f64::NAN).level_of_client(0), 0);
    }

    #[test]
    fn levels_are_monotone_in_m_for_every_client() {
        for hash in (0..FRACTION_ONE).step_by((FRACTION_ONE / 97) as usize) {
            let levels = (0..=300).map(|i| ServiceLevel::new(f64::from(i) / 100.0).level_of_client(hash));
            assert!(levels.clone().zip(levels.skip(1)).all(|(low, high)| low <= high));
        }
    }
}
