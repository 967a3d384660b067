//! The queue in front of a plant: which requests wait, and which one is next. Used under the gate's lock.
//!
//! Requests stand in *lines*. A line is first come, first served, and all its requests have one relative deadline, so
//! it is in the order of absolute deadlines too, and nothing is ever sorted. A class that was promised a delay or a
//! ratio has a line of its own; all other requests of one rank share one. The next request is the first one of some
//! line, chosen in this order:
//!
//! 1. exempt requests;
//! 2. classes with a delay that have fewer requests in service than their quota, since a quota is a guaranteed share. A
//!    request that would be late if it waited longer belongs here too, whatever the quota, because a loop needs
//!    departures to learn of a step;
//! 3. by rank: requests inside a contract, other requests of sites with a contract, then sites without one, each by
//!    priority; within a rank by deadline, then by arrival. The classes of one site with a ratio exchange their turns
//!    (`turns.rs`): the longest normalized response time uses the next one;
//! 4. classes with a delay whose quota is in service: idle workers are lent, busy ones are not.
//!
//! A quota need not be whole. At each choice with exactly the whole part of its quota in service a class earns the
//! fraction of one more worker, and it spends a whole one when it has earned it (dithering).
//!
//! If the queue is full, an arriving request takes the place of the oldest request of the lowest rank below its own, so
//! that a flood of best effort does not keep a contract out of the queue.
//!
//! A choice looks at the first request of each line, so it takes as long with ten waiting requests as with ten
//! thousand.

use crate::request::Token;
use crate::request::work::Work;
use crate::scheduling::line::{Line, Order};
use crate::scheduling::quota::Quota;
use crate::scheduling::rank::{Rank, Standing};
use crate::scheduling::turns::{Groups, Turn};
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) token: Token,
    pub(crate) class: u16,
    pub(crate) client: u64,
    pub(crate) standing: Standing,
    /// The rank of its line.
    pub(crate) rank: Rank,
    pub(crate) arrived: Instant,
    /// The work that was reserved for it, where deadlines are promised.
    pub(crate) work: Option<Work>,
    /// A later start would end after the deadline.
    pub(crate) latest: Instant,
}

/// The queue of one plant. A ticket names a place in a line for good: taking a request out of the middle leaves a hole
/// that is skipped.
pub(crate) struct Queue {
    /// In the order of their ranks. A line is made when the first request of its rank, or of its class, waits.
    lines: Vec<Line>,
    /// The turns of classes with a ratio.
    groups: Groups,
    by_class: Vec<u32>,
    /// For each class, its quota if it was promised a delay or a ratio.
    quotas: Vec<Option<Arc<Quota>>>,
    /// The number of lines that belong to one class.
    owned: usize,
    live: usize,
}

/// The upper bits of a ticket name the line.
const LINE_SHIFT: u32 = 48;

impl Queue {
    pub(crate) fn new(classes: usize) -> Self {
        let (by_class, quotas) = (alloc::vec![0; classes], alloc::vec![None; classes]);
        Queue { lines: Vec::new(), groups: Groups::default(), by_class, quotas, owned: 0, live: 0 }
    }

    /// Makes room for more classes, and takes their quotas. Requests that wait already stay in their lines.
    pub(crate) fn promise(&mut self, quotas: &[Option<Arc<Quota>>]) {
        let classes = quotas.len().max(self.by_class.len());
        self.by_class.resize(classes, 0);
        self.quotas = quotas.to_vec();
        self.quotas.resize(classes, None);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn by_class(&self) -> &[u32] {
        &self.by_class
    }

    pub(crate) fn push(&mut self, waiting: Waiting) -> u64 {
        self.live += 1;
        self.by_class[usize::from(waiting.class)] += 1;
        let quota = self.quotas[usize::from(waiting.class)].as_ref();
        let own = quota.filter(|_| waiting.standing != Standing::Exempt).map(|_| waiting.class);
        let key = |line: &Line| (line.rank, line.own.as_ref().map(|(class, _)| *class));
        let place = match self.lines.binary_search_by_key(&(waiting.rank, own), key) {
            Ok(place) => place,
            Err(place) => {
                let own = own.zip(quota.cloned());
                self.owned += usize::from(own.is_some());
                let mut line = Line::new(waiting.rank, own, self.lines.len() as u16);
                line.join(&mut self.groups);
                self.lines.insert(place, line);
                place
            }
        };
        // A renewed promise has a quota of its own.
        if let (Some((_, known)), Some(quota)) = (&mut self.lines[place].own, quota)
            && !Arc::ptr_eq(known, quota)
        {
            *known = quota.clone();
            self.regroup();
        }
        let line = &mut self.lines[place];
        if let Some(group) = line.group {
            self.groups.add(group, Turn::new(waiting.rank, waiting.arrived));
        }
        u64::from(line.number) << LINE_SHIFT | line.push(waiting)
    }

    /// Gives each request of a class with a ratio its turn again, for a promise that changed.
    fn regroup(&mut self) {
        self.groups.clear();
        for line in &mut self.lines {
            line.join(&mut self.groups);
            let turns = line.group.into_iter().flat_map(|group| line.turns().map(move |turn| (group, turn)));
            turns.for_each(|(group, turn)| self.groups.add(group, turn));
        }
    }

    /// Takes the next request to start; `None` if none may start.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting> {
        let mut best: Option<(Order, usize)> = None;
        for (place, line) in self.lines.iter_mut().enumerate() {
            if self.owned == 0 && best.as_ref().is_some_and(|(o, _)| o.band() < line.rank.band) {
                break;
            }
            let Some(order) = line.order(now, &self.groups) else { continue };
            if best.as_ref().is_none_or(|(other, _)| order.before(other)) {
                best = Some((order, place));
            }
        }
        let (_, place) = best?;
        let waiting = self.lines[place].pop();
        if let Some(group) = self.lines[place].group {
            self.groups.advance(group);
        }
        if self.owned > 0 {
            self.lines.iter_mut().enumerate().for_each(|(other, line)| line.settle(other == place));
        }
        self.count_out(waiting)
    }

    /// When the first of the held requests may start.
    pub(crate) fn next_held(&mut self, now: Instant) -> Instant {
        let held = self.lines.iter_mut().filter_map(|line| Some((line.oldest()?, line.hold_ns())));
        let due =
            held.filter(|(_, hold)| *hold > 0).map(|(arrived, hold)| arrived + Duration::from_nanos(hold));
        due.filter(|due| *due > now).min().unwrap_or(Instant::FAR)
    }

    /// Takes out requests that have waited `most`, or as long as their class may, or are late, except exempt ones.
    /// Returns when the next one will have.
    pub(crate) fn expire(&mut self, now: Instant, most: Duration, mut drop: impl FnMut(Waiting)) -> Instant {
        let mut next = Instant::FAR;
        for place in 0..self.lines.len() {
            let bound = self.lines[place].bound(most);
            if self.lines[place].rank == Rank::EXEMPT {
                continue;
            }
            while let Some(first) = self.lines[place].first() {
                let ends = (first.arrived + bound).min(first.latest);
                if ends > now {
                    next = next.min(ends);
                    break;
                }
                let waiting = self.lines[place].pop();
                if let Some(waiting) = self.forget(place, waiting) {
                    drop(waiting);
                }
            }
        }
        next
    }

    /// The last line with a waiting request, if its band is lower.
    fn lowest_below(&mut self, rank: Rank) -> Option<usize> {
        let last = self.lines.iter_mut().rposition(|line| line.oldest().is_some())?;
        (self.lines[last].rank.band > rank.band).then_some(last)
    }

    pub(crate) fn may_displace(&mut self, rank: Rank) -> bool {
        self.lowest_below(rank).is_some()
    }

    pub(crate) fn displace(&mut self, rank: Rank) -> Option<Waiting> {
        let lowest = self.lowest_below(rank)?;
        let waiting = self.lines[lowest].pop();
        self.forget(lowest, waiting)
    }

    pub(crate) fn remove(&mut self, ticket: u64) -> bool {
        let number = (ticket >> LINE_SHIFT) as u16;
        let Some(place) = self.lines.iter().position(|line| line.number == number) else { return false };
        let waiting = self.lines[place].remove(ticket & (u64::MAX >> (64 - LINE_SHIFT)));
        self.forget(place, waiting).is_some()
    }

    /// Forgets a request that leaves its line without a start.
    fn forget(&mut self, line: usize, waiting: Option<Waiting>) -> Option<Waiting> {
        if let (Some(group), Some(gone)) = (self.lines[line].group, waiting) {
            self.groups.give_up(group, Turn::new(gone.rank, gone.arrived));
        }
        self.count_out(waiting)
    }

    fn count_out(&mut self, waiting: Option<Waiting>) -> Option<Waiting> {
        if let Some(gone) = waiting {
            self.live -= 1;
            self.by_class[usize::from(gone.class)] -= 1;
        }
        waiting
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    use crate::scheduling::quota::TurnRule;

    const RATIO: TurnRule = TurnRule::Weight { site: 0 };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn quota(turn: TurnRule) -> Arc<Quota> {
        Arc::new(Quota::new(turn, None))
    }

    /// Class 0 is best effort; the others have these quotas.
    fn queue(quotas: &[&Arc<Quota>]) -> Queue {
        let mut queue = Queue::new(0);
        let own = quotas.iter().map(|quota| Some(Arc::clone(quota)));
        queue.promise(&core::iter::once(None).chain(own).collect::<Vec<_>>());
        queue
    }

    fn push(queue: &mut Queue, class: u16, ms: u64) -> u64 {
        let (standing, rank) = (Standing::Ordinary, Rank::ordinary(1, None));
        queue.push(Waiting {
            token: Token(ms),
            class,
            client: 0,
            standing,
            rank,
            arrived: at(ms),
            work: None,
            latest: Instant::FAR,
        })
    }

    /// Starts requests until none may start or `most` have; they stay in service.
    fn classes(queue: &mut Queue, now: Instant, words: &[&Arc<Quota>], most: usize) -> Vec<u16> {
        let mut order = Vec::new();
        while order.len() < most
            && let Some(waiting) = queue.pop(now)
        {
            if let Some(quota) = usize::from(waiting.class).checked_sub(1) {
                words[quota].enter();
            }
            order.push(waiting.class);
        }
        order
    }

    #[test]
    fn a_quota_comes_first_and_what_is_over_it_last() {
        let own = quota(TurnRule::Quota);
        own.set_workers(2.0);
        let mut queue = queue(&[&own]);
        (0..3).for_each(|ms| {
            push(&mut queue, 0, ms);
        });
        (10..14).for_each(|ms| {
            push(&mut queue, 1, ms);
        });
        assert_eq!(
            classes(&mut queue, at(20), &[&own], 9),
            [1, 1, 0, 0, 0, 1, 1],
            "lent when no other request waits"
        );
    }

    #[test]
    fn a_request_that_would_be_late_does_not_wait_for_the_quota() {
        let own = quota(TurnRule::Quota);
        own.set_workers(0.0);
        own.set_urgent(Some(Duration::from_millis(50)));
        let mut queue = queue(&[&own]);
        push(&mut queue, 1, 0);
        push(&mut queue, 0, 1);
        push(&mut queue, 0, 2);
        assert_eq!(queue.pop(at(49)).map(|w| w.class), Some(0));
        assert_eq!(queue.pop(at(50)).map(|w| w.class), Some(1));
    }

    #[test]
    fn a_part_of_a_worker_is_that_part_of_the_choices() {
        let own = quota(TurnRule::Quota);
        own.set_workers(0.3);
        let mut queue = queue(&[&own]);
        (0..1000).for_each(|ms| {
            push(&mut queue, (ms % 2) as u16, ms);
        });
        let mut chosen = 0;
        for _ in 0..500 {
            let waiting = queue.pop(at(2000)).expect("a request waits");
            // There is one worker, and it is free again before the next choice.
            chosen += u32::from(waiting.class);
        }
        assert!((148..=152).contains(&chosen), "{chosen}");
    }

    #[test]
    fn the_longest_normalized_response_is_next_and_a_held_request_is_not() {
        let (first, second) = (quota(RATIO), quota(RATIO));
        first.set_weight(1.0, 0.0, 0.01);
        second.set_weight(0.25, 0.0, 0.01);
        let mut queue = queue(&[&first, &second]);
        push(&mut queue, 2, 0);
        push(&mut queue, 1, 60);
        // 110 ms and 50 ms with service: normalized 27.5 and 50.
        assert_eq!(queue.pop(at(100)).map(|w| w.class), Some(1));
        second.set_hold(Duration::from_millis(200));
        assert_eq!(queue.pop(at(100)), None);
        assert_eq!(queue.next_held(at(100)), at(200));
        assert_eq!(queue.pop(at(200)).map(|w| w.class), Some(2));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_class_may_be_told_to_wait_less_long_than_the_rest() {
        let own = quota(TurnRule::Quota);
        own.set_bound(Some(Duration::from_millis(30)));
        let mut queue = queue(&[&own]);
        push(&mut queue, 0, 0);
        push(&mut queue, 1, 0);
        push(&mut queue, 1, 20);
        let mut dropped = Vec::new();
        let next = queue.expire(at(40), Duration::from_millis(100), |waiting| dropped.push(waiting.class));
        assert_eq!((dropped, next, queue.len()), (alloc::vec![1], at(50), 2));
    }
}
