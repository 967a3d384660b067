//! The double queue (AC, section 3.3).
//!
//! Requests that a period admitted wait in the primary queue; those that the period left unfinished go to the backup
//! queue when the next one begins. In each queue, higher priorities come first, and equal ones in order of arrival. The
//! backup is served only while the primary is empty: new requests never wait for what an earlier period admitted too
//! much. When the backup would hold more than it may, room is made: by clearing it, as the paper does, or more gently
//! ("other methods [...] can be explored").

use plimsoll_core::request::Token;
use std::collections::BTreeMap;

/// Which requests are dropped when the backup queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::front) enum DropPolicy {
    /// All requests in the queue.
    #[default]
    All,
    /// Those that have waited longest, until the others have room.
    Oldest,
    /// Those that are estimated to take longest, until the others have room.
    Costliest,
}

/// A place in a queue: priority, then order of arrival.
pub(super) type Place = (usize, u64);

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiter {
    pub(super) token: Token,
    pub(super) level: u8,
    /// Service-seconds.
    pub(super) estimate: f64,
    /// The number of the period that admitted it.
    pub(super) period: u64,
}

/// Both queues.
#[derive(Debug)]
pub(super) struct Queues {
    primary: BTreeMap<Place, Waiter>,
    backup: BTreeMap<Place, Waiter>,
    most: usize,
    policy: DropPolicy,
}

impl Queues {
    /// Empty queues that hold at most `most` requests each.
    pub(super) fn new(most: usize, policy: DropPolicy) -> Self {
        Queues { primary: BTreeMap::new(), backup: BTreeMap::new(), most, policy }
    }

    pub(super) fn is_full(&self) -> bool {
        self.primary.len() >= self.most
    }

    pub(super) fn is_empty(&self) -> bool {
        self.primary.is_empty() && self.backup.is_empty()
    }

    pub(super) fn push(&mut self, place: Place, waiter: Waiter) {
        self.primary.insert(place, waiter);
    }

    /// The next to be served.
    pub(super) fn pop(&mut self) -> Option<(Place, Waiter)> {
        self.primary.pop_first().or_else(|| self.backup.pop_first())
    }

    /// Removes a request whose client has left.
    pub(super) fn remove(&mut self, place: Place) {
        if self.primary.remove(&place).is_none() {
            self.backup.remove(&place);
        }
    }

    /// All requests that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&Place, &Waiter)> {
        self.primary.iter().chain(&self.backup)
    }

    /// Begins a period: the primary's requests go to the backup. Returned are the requests that are dropped for them.
    pub(super) fn turn(&mut self) -> Vec<Waiter> {
        let dropped = match (self.primary.len() + self.backup.len()).checked_sub(self.most) {
            None | Some(0) => Vec::new(),
            Some(over) => self.make_room(over),
        };
        self.backup.append(&mut self.primary);
        dropped
    }

    fn make_room(&mut self, over: usize) -> Vec<Waiter> {
        if self.policy == DropPolicy::All {
            return std::mem::take(&mut self.backup).into_values().collect();
        }
        // The primary holds at most what the backup may, so that those to drop are all in the backup where the oldest go.
        let mut all: Vec<(Place, f64)> = match self.policy {
            DropPolicy::Costliest => {
                self.waiting().map(|(place, waiter)| (*place, waiter.estimate)).collect()
            }
            _ => self.backup.keys().map(|place| (*place, -(place.1 as f64))).collect(),
        };
        all.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(other.cmp(one)));
        let of =
            |place: &(Place, f64)| self.backup.remove(&place.0).or_else(|| self.primary.remove(&place.0));
        all.iter().take(over).filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(token: u64) -> Waiter {
        Waiter { token: Token(token), level: 1, estimate: 1.0 + (token * 7 % 5) as f64, period: 0 }
    }

    fn tokens(dropped: &[Waiter]) -> Vec<u64> {
        dropped.iter().map(|waiter| waiter.token.0).collect()
    }

    /// The first four in the backup, the others in the primary.
    fn queues(most: usize, policy: DropPolicy) -> Queues {
        let mut queues = Queues::new(most, policy);
        for token in 0..4 {
            queues.push((usize::from(token == 0), token), waiter(token));
        }
        assert!(queues.turn().is_empty());
        for token in 4..7 {
            queues.push((usize::from(token == 4), token), waiter(token));
        }
        queues
    }

    fn order(mut queues: Queues) -> Vec<u64> {
        std::iter::from_fn(|| queues.pop()).map(|(_, waiter)| waiter.token.0).collect()
    }

    #[test]
    fn the_backup_is_served_when_the_primary_is_empty() {
        assert_eq!(order(queues(9, DropPolicy::All)), [5, 6, 4, 1, 2, 3, 0]);
        let mut left = queues(9, DropPolicy::All);
        left.remove((0, 5));
        left.remove((0, 2));
        left.remove((0, 2));
        assert_eq!(order(left), [6, 4, 1, 3, 0]);
    }

    #[test]
    fn nobody_is_dropped_while_there_is_room() {
        for policy in [DropPolicy::All, DropPolicy::Oldest, DropPolicy::Costliest] {
            let mut queues = queues(7, policy);
            assert!(queues.turn().is_empty());
            assert_eq!(order(queues), [1, 2, 3, 5, 6, 0, 4]);
        }
    }

    #[test]
    fn a_full_backup_is_cleared_or_relieved() {
        let dropped = |policy| {
            let mut queues = queues(5, policy);
            let dropped = tokens(&queues.turn());
            (dropped, order(queues))
        };
        assert_eq!(dropped(DropPolicy::All), (vec![1, 2, 3, 0], vec![5, 6, 4]));
        assert_eq!(dropped(DropPolicy::Oldest), (vec![0, 1], vec![2, 3, 5, 6, 4]));
        // Estimates by token: 1, 3, 5, 2, 4, 1, 3.
        assert_eq!(dropped(DropPolicy::Costliest), (vec![2, 4], vec![1, 3, 5, 6, 0]));
    }
}
