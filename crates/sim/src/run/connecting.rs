//! Connections that a plant with a full listen queue does not answer ([`FullQueue::Drops`]): when each is tried again, and when
//! the attempt is given up.
//!
//! [`FullQueue::Drops`]: crate::workload::FullQueue::Drops

use crate::plant::Work;
use plimsoll_core::request::Token;
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// A request whose connection its plant has not accepted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub(super) token: Token,
    pub(super) plant: usize,
    pub(super) work: Work,
    /// When the connection was tried first, and how often since.
    began: Instant,
    tries: u32,
    /// When the attempt is given up.
    until: Instant,
}

/// The pause before the first retry; each further pause is twice as long as the one before (RFC 6298).
const PAUSE: Duration = Duration::from_secs(1);

impl Connection {
    pub(super) fn begin(now: Instant, token: Token, plant: usize, work: Work) -> Self {
        Connection { token, plant, work, began: now, tries: 0, until: Instant::FAR }
    }

    pub(super) fn is_given_up(&self, now: Instant) -> bool {
        now >= self.until
    }
}

/// All connections that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct Connecting {
    waiting: BTreeMap<(Instant, u64), Connection>,
    scheduled: u64,
}

impl Connecting {
    /// Keeps a connection that the plant did not answer, for `patience` in all.
    pub(super) fn wait(&mut self, connection: Connection, patience: Duration) {
        let tries = connection.tries + 1;
        let until = connection.began + patience;
        let again = connection.began + PAUSE * (2_u32.saturating_pow(tries) - 1);
        self.scheduled += 1;
        self.waiting.insert((again.min(until), self.scheduled), Connection { tries, until, ..connection });
    }

    pub(super) fn due(&self) -> Instant {
        self.waiting.first_key_value().map_or(Instant::FAR, |((at, _), _)| *at)
    }

    /// A connection that is to be tried again, or given up, now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Connection> {
        if self.due() > now {
            return None;
        }
        self.waiting.pop_first().map(|(_, connection)| connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_tried_after_one_and_three_seconds_and_given_up() {
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        let work = Work { service: Duration::from_millis(40), bytes: 0 };
        let mut connecting = Connecting::default();
        connecting.wait(Connection::begin(at(500), Token(7), 0, work), Duration::from_secs(5));
        let mut tried = Vec::new();
        while let Some(connection) = connecting.next(connecting.due()) {
            let due = connecting.due();
            assert_eq!(due, Instant::FAR, "there is one");
            let now = [at(1500), at(3500), at(5500)][tried.len()];
            tried.push(connection.is_given_up(now));
            if !connection.is_given_up(now) {
                assert!(connecting.next(at(10_000)).is_none());
                connecting.wait(connection, Duration::from_secs(5));
                assert!(connecting.due() > now);
            }
        }
        assert_eq!(tried, [false, false, true]);
    }
}
