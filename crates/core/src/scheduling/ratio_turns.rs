//! Turns that classes with a ratio exchange among themselves.
//!
//! Each request comes with a turn: its rank, its absolute deadline and its arrival. The classes of one site with a ratio are a
//! group, and so are their turns: whenever the group's first turn comes, the class with the longest normalized response time
//! uses it. So a ratio decides which class of the group is served, and never when the group is served. The rest of the queue
//! waits exactly as if the group were first come, first served.

use crate::scheduling::precedence::QueueTurn;
use alloc::{collections::VecDeque, vec::Vec};

/// The groups of a queue: their sites and bands, and for each as many turns as it has requests, in order.
#[derive(Default)]
pub(super) struct RatioGroups(Vec<((u16, u16), VecDeque<QueueTurn>)>);

impl RatioGroups {
    /// The number of the group of a site in a band.
    pub(super) fn group(&mut self, site: u16, band: u16) -> usize {
        let known = self.0.iter().position(|(own, _)| *own == (site, band));
        known.unwrap_or_else(|| {
            self.0.push(((site, band), VecDeque::new()));
            self.0.len() - 1
        })
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn first(&self, group: usize) -> Option<QueueTurn> {
        self.0[group].1.front().copied()
    }

    pub(super) fn add(&mut self, group: usize, turn: QueueTurn) {
        let turns = &mut self.0[group].1;
        let index = if turns.back().is_none_or(|last| *last <= turn) {
            turns.len()
        } else {
            turns.partition_point(|other| *other <= turn)
        };
        turns.insert(index, turn);
    }

    /// Uses the first turn, for whichever request of the group starts.
    pub(super) fn advance(&mut self, group: usize) {
        self.0[group].1.pop_front();
    }

    /// Takes out the turn of a request that leaves without a start; if another request has used that turn, the next turn.
    pub(super) fn give_up(&mut self, group: usize, turn: QueueTurn) {
        let turns = &mut self.0[group].1;
        let index = turns.partition_point(|other| *other < turn);
        turns.remove(index.min(turns.len().saturating_sub(1)));
    }

    /// Forgets all groups and their turns.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::scheduling::rank::Rank;
    use crate::time::Instant;

    fn turn(ms: u64) -> QueueTurn {
        QueueTurn::new(Rank::ordinary(1, None), Instant::from_nanos(ms * 1_000_000))
    }

    #[test]
    fn a_turn_is_used_once_and_a_request_that_leaves_takes_the_next_one_with_it() {
        let mut groups = RatioGroups::default();
        let group = groups.group(0, 1);
        assert_ne!(group, groups.group(1, 1));
        [30, 10, 20].iter().for_each(|ms| groups.add(group, turn(*ms)));
        assert_eq!(groups.first(group), Some(turn(10)));
        groups.advance(group);
        // The request that came at 10 ms still waits, since another one used its turn.
        groups.give_up(group, turn(10));
        assert_eq!(groups.first(group), Some(turn(30)));
        groups.give_up(group, turn(40));
        assert_eq!(groups.first(group), None);
    }
}
