//! The double queue (AC, section 3.3).
//!
//! Requests that a period admitted wait in the primary queue; those that are still waiting when the next period begins move to
//! the backup queue. In each queue higher priorities come first, and equal ones in order of arrival. The backup is served only
//! while the primary is empty, so new requests never wait for what an earlier period admitted too much. Both queues together
//! hold a limited number of requests (table 1: "total queue length"). When they are full, room is made in the backup: by
//! clearing it, as the paper does, or more gently ("other methods [...] can be explored"). If the backup is empty too, the
//! arriving request is rejected.

use plimsoll_core::request::Token;
use std::collections::BTreeMap;

/// Which requests are dropped when the backup queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::front) enum DropPolicy {
    /// All requests in the backup queue.
    #[default]
    All,
    /// The request that has waited longest.
    Oldest,
    /// The request with the largest estimate.
    Costliest,
}

/// A place in a queue: priority, then order of arrival.
pub(super) type Place = (usize, u64);

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiter {
    pub(super) token: Token,
    pub(super) level: u8,
    /// The estimated service-seconds.
    pub(super) estimate: f64,
    /// The number of the period that admitted the request.
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
    /// Empty queues that hold at most `most` requests together.
    pub(super) fn new(most: usize, policy: DropPolicy) -> Self {
        Queues { primary: BTreeMap::new(), backup: BTreeMap::new(), most, policy }
    }

    fn is_full(&self) -> bool {
        self.primary.len() + self.backup.len() >= self.most
    }

    pub(super) fn is_empty(&self) -> bool {
        self.primary.is_empty() && self.backup.is_empty()
    }

    /// Adds a request, and returns the requests that are dropped for it; `None` if there is no room for it.
    pub(super) fn push(&mut self, place: Place, waiter: Waiter) -> Option<Vec<Waiter>> {
        let dropped = if self.is_full() { self.make_room() } else { Vec::new() };
        if self.is_full() {
            return None;
        }
        self.primary.insert(place, waiter);
        Some(dropped)
    }

    /// Removes the next request to be served.
    pub(super) fn pop(&mut self) -> Option<(Place, Waiter)> {
        self.primary.pop_first().or_else(|| self.backup.pop_first())
    }

    /// Removes a request whose client has left.
    pub(super) fn remove(&mut self, place: Place) -> Option<Waiter> {
        self.primary.remove(&place).or_else(|| self.backup.remove(&place))
    }

    /// All requests that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&Place, &Waiter)> {
        self.primary.iter().chain(&self.backup)
    }

    /// Begins a period: the primary's requests go to the backup.
    pub(super) fn turn(&mut self) {
        self.backup.append(&mut self.primary);
    }

    fn make_room(&mut self) -> Vec<Waiter> {
        let one = match self.policy {
            DropPolicy::All => return std::mem::take(&mut self.backup).into_values().collect(),
            DropPolicy::Oldest => self.backup.keys().min_by_key(|(_, arrival)| *arrival).copied(),
            DropPolicy::Costliest => {
                let costlier = |one: &(&Place, &Waiter), other: &(&Place, &Waiter)| {
                    one.1.estimate.total_cmp(&other.1.estimate).then(one.0.cmp(other.0))
                };
                self.backup.iter().max_by(costlier).map(|(place, _)| *place)
            }
        };
        one.and_then(|place| self.backup.remove(&place)).into_iter().collect()
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
            assert!(queues.push((usize::from(token == 0), token), waiter(token)).is_some());
        }
        queues.turn();
        for token in 4..7 {
            assert!(queues.push((usize::from(token == 4), token), waiter(token)).is_some());
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
            queues.turn();
            assert_eq!(order(queues), [1, 2, 3, 5, 6, 0, 4]);
        }
    }

    #[test]
    fn full_queues_make_room_in_the_backup() {
        let dropped = |policy| {
            let mut queues = queues(7, policy);
            let dropped = queues.push((0, 7), waiter(7)).map(|dropped| tokens(&dropped));
            (dropped, order(queues))
        };
        assert_eq!(dropped(DropPolicy::All), (Some(vec![1, 2, 3, 0]), vec![5, 6, 7, 4]));
        assert_eq!(dropped(DropPolicy::Oldest), (Some(vec![0]), vec![5, 6, 7, 4, 1, 2, 3]));
        // Estimates by token: 1, 3, 5, 2.
        assert_eq!(dropped(DropPolicy::Costliest), (Some(vec![2]), vec![5, 6, 7, 4, 1, 3, 0]));
    }

    #[test]
    fn without_a_backup_there_is_no_room_to_make() {
        let mut queues = Queues::new(1, DropPolicy::All);
        assert_eq!(queues.push((0, 0), waiter(0)), Some(vec![]));
        assert_eq!(queues.push((0, 1), waiter(1)), None);
        assert_eq!(order(queues), [0]);
    }
}
