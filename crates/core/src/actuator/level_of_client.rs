//! The level of a client, chosen from its hash (UC 4.2).
//!
//! At the service level m = I + F a client whose hash, 56 bits, is below F 2^56 is served level I + 1, every other client
//! level I. So a client keeps its level while m stands still, unless it is a heavy client or its class chooses at random: then
//! its level is drawn by request. And raising m never lowers the level of any client. `request/client_hash.rs` makes the hash.
//!
//! If the operator wants the chosen clients to change, the hashes turn: one number is added to all of them, and goes once round
//! in the time that was promised. At any moment as few clients enter the fraction as leave it, and in a whole turn each client
//! is in it for F of the time. A new key would change the level of most clients at once.

use crate::actuator::service_level::{FRACTION_ONE, ServiceLevel};
use crate::time::Duration;

/// The number that is added to all hashes at this time since the Unix epoch, if a turn takes `rekey`. All instances agree on
/// it.
pub(crate) fn turn_at(unix_time: Duration, rekey: Duration) -> u64 {
    let whole = rekey.as_nanos().max(1);
    ((unix_time.as_nanos() % whole) * u128::from(FRACTION_ONE) / whole) as u64
}

/// The hash after a turn.
#[inline]
pub(crate) fn turned(hash: u64, turn: u64) -> u64 {
    (hash + turn) & (FRACTION_ONE - 1)
}

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
    use alloc::vec::Vec;

    #[test]
    fn in_a_turn_each_client_has_its_share_and_few_change_level_at_once() {
        let day = Duration::from_secs(86_400);
        let clients: Vec<u64> = (0..10_000).map(|i| i * (FRACTION_ONE / 10_000) + 17).collect();
        let level = |client: u64, second: u64| {
            ServiceLevel::new(1.3).level_of_client(turned(client, turn_at(Duration::from_secs(second), day)))
        };
        let hour = |client: u64| (0..24).map(|h| u32::from(level(client, 3600 * h + 5) == 2)).sum::<u32>();
        assert!(clients.iter().all(|client| (7..=8).contains(&hour(*client))), "0.3 of 24 hours each");
        for second in [0, 40_000, 86_399] {
            let changed =
                clients.iter().filter(|client| level(**client, second) != level(**client, second + 60));
            assert!(changed.count() <= 14, "of 10,000 in a minute");
        }
        assert_eq!(turn_at(day + Duration::from_secs(5), day), turn_at(Duration::from_secs(5), day));
    }

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
