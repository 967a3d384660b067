//! The queue in front of a plant: which requests wait, and which one is next. Used under the gate's lock.
//!
//! The queue is a list of *fifos* (`fifo.rs`). All requests of a fifo have one relative deadline, so its order of arrival
//! is the order of absolute deadlines too, and nothing is ever sorted. A class that was promised a delay or a ratio has a
//! fifo of its own; all other requests of one rank and site have one together. The next request is the first one of some fifo,
//! chosen in this order:
//!
//! 1. exempt requests, while they have less than half of the places (`gate.rs`);
//! 2. classes with a delay that have fewer requests in service than their quota, because a quota is guaranteed. Among sites
//!    without a contract no quota overtakes a higher priority: while a request of a higher priority waits, the class is served
//!    by rank (3.). A request that would be late if it waited longer belongs here too, whatever the quota, because the delay
//!    loop sees a step of the load only in departures;
//! 3. by rank: requests inside a contract, other requests of sites with a contract, then sites without one. Sites with a
//!    contract take turns by their shares (`site_shares.rs`); within a site, and among sites without a contract, by priority,
//!    then by deadline, then by arrival. The classes of one site with a ratio exchange their turns (`ratio_turns.rs`): the
//!    longest normalized response time uses the next one;
//! 4. classes with a delay whose whole quota is in service: they get a worker that would idle otherwise.
//!
//! A quota need not be whole. At each choice at which a class has exactly the whole part of its quota in service it earns the
//! fractional part of a worker. Once it has earned a whole worker, one more of its requests counts as within the quota (2.).
//! This is dithering.
//!
//! While requests of a class without a promise of its own are rejected for the load, its fifo serves the newest first, and its
//! requests wait less long. In order of arrival every one of them would wait as long as a request may, and then take the server
//! for an answer that its client no longer awaits. If a ratio is promised beside them, which divides a queue in the order of
//! arrival, they only wait less long, and so do the requests of the ratio's classes.
//!
//! The queue of exempt requests has a length of its own. If the queue is full, an arriving request displaces the oldest request
//! of the lowest rank below its own, or of the site with a contract that waits for more of its share. So a flood of best-effort
//! requests does not keep requests inside a contract out of the queue.
//!
//! A choice looks at the first request of each fifo, so it takes as long with ten waiting requests as with ten
//! thousand.

use crate::request::Token;
use crate::request::work::{CostFeatures, Work};
use crate::scheduling::fifo::{Fifo, OwnClass};
use crate::scheduling::precedence::{Order, QueueTurn, Tier};
use crate::scheduling::quota::Quota;
use crate::scheduling::rank::{Rank, Standing};
use crate::scheduling::ratio_turns::RatioGroups;
use crate::scheduling::site_shares::SiteShares;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};

/// A request in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) token: Token,
    pub(crate) site: u16,
    pub(crate) class: u16,
    pub(crate) client: u64,
    pub(crate) standing: Standing,
    /// The rank of its fifo.
    pub(crate) rank: Rank,
    /// The time in which its site's contract promises one request (ns); 0 without a contract.
    pub(crate) pace_ns: u64,
    pub(crate) arrived: Instant,
    /// What its cost is estimated from.
    pub(crate) features: CostFeatures,
    /// The work that was reserved for it, where deadlines are promised.
    pub(crate) work: Option<Work>,
    /// The request holds a right to stream.
    pub(crate) streams: bool,
    /// The highest level at which it may start: it would have been late at a higher one.
    pub(crate) most_level: u8,
    /// The latest start with which it can end by its deadline.
    pub(crate) latest_start: Instant,
    /// The plant at which it waited first, and its ticket there; 0 until it waits.
    pub(crate) home: u16,
    pub(crate) ticket: u64,
}

impl Waiting {
    /// Whether it would end after its deadline if it started now.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.latest_start < now
    }
}

#[cfg(test)]
impl Waiting {
    /// An ordinary request of the first class, for tests.
    pub(super) fn ordinary(token: u64, arrived: Instant) -> Waiting {
        Waiting {
            token: Token(token),
            site: 0,
            class: 0,
            client: 0,
            standing: Standing::Ordinary,
            rank: Rank::ordinary(1, None),
            pace_ns: 0,
            arrived,
            features: Default::default(),
            work: None,
            streams: false,
            most_level: u8::MAX,
            latest_start: Instant::FAR,
            home: 0,
            ticket: 0,
        }
    }
}

/// The queue of one plant. A ticket names a request as long as it waits: taking one out of the middle of a fifo leaves a
/// hole, which is skipped later. No other request of the queue ever has the same ticket.
pub(crate) struct Queue {
    /// In the order of their ranks. A fifo is made when the first request of its rank, or of its class, waits. A reload takes
    /// empty fifos away.
    fifos: Vec<Fifo>,
    last_ticket: u64,
    /// The turns of classes with a ratio.
    groups: RatioGroups,
    /// The shares of sites with a contract.
    shares: SiteShares,
    by_class: Vec<u32>,
    /// For each class, its quota if it was promised a delay or a ratio.
    quotas: Vec<Option<Arc<Quota>>>,
    /// The number of fifos that belong to one class.
    owned: usize,
    /// The number of waiting requests, and of exempt ones among them.
    waiting: usize,
    exempt: usize,
    /// Whether exempt requests are held, since they have all the places that they may have.
    holds_exempt: bool,
    /// Whether requests of a class are rejected for the load, by class.
    rejected: Vec<bool>,
    waits_of_rejected: RejectedWaits,
}

/// How requests wait whose class has no promise of its own and is rejected for the load.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RejectedWaits {
    /// The longest wait, if there is a bound.
    pub(crate) longest: Option<Duration>,
    /// Whether these requests are served in the order of arrival, and not the newest first, because a ratio is promised beside
    /// them.
    pub(crate) keep_order: bool,
}

/// The number of exempt requests that may wait, however short the queue is.
const LEAST_EXEMPT: usize = 64;

impl Queue {
    pub(crate) fn new(classes: usize) -> Self {
        let (by_class, quotas) = (alloc::vec![0; classes], alloc::vec![None; classes]);
        Queue {
            fifos: Vec::new(),
            last_ticket: 0,
            groups: RatioGroups::default(),
            shares: SiteShares::default(),
            by_class,
            quotas,
            owned: 0,
            waiting: 0,
            exempt: 0,
            holds_exempt: false,
            rejected: alloc::vec![false; classes],
            waits_of_rejected: RejectedWaits::default(),
        }
    }

    /// Makes room for more classes, and takes their quotas. Requests that wait already stay in their fifos, which follow the
    /// promise that their class has now.
    pub(crate) fn promise(&mut self, quotas: &[Option<Arc<Quota>>]) {
        let classes = quotas.len().max(self.by_class.len());
        self.by_class.resize(classes, 0);
        self.rejected.resize(classes, false);
        self.quotas = quotas.to_vec();
        self.quotas.resize(classes, None);
        self.fifos.retain(|fifo| !fifo.is_empty());
        self.owned = self.fifos.iter().filter(|fifo| fifo.own.is_some()).count();
        self.shares.forget_settled();
        for fifo in &mut self.fifos {
            fifo.share = self.shares.share(fifo.site, fifo.rank);
            if let Some(OwnClass { class, quota }) = &mut fifo.own {
                quota.clone_from(&self.quotas[usize::from(*class)]);
            }
        }
        self.regroup();
    }

    /// As [`Gate::set_rejected`](crate::scheduling::gate::Gate::set_rejected).
    pub(crate) fn set_rejected(&mut self, waits: RejectedWaits, classes: &[usize]) {
        self.waits_of_rejected = waits;
        // Classes that a reload removed or moved to another plant are not named any more.
        self.rejected.fill(false);
        for class in classes {
            if let Some(known) = self.rejected.get_mut(*class) {
                *known = true;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The number of waiting requests, without the exempt ones.
    pub(crate) fn waiting_for_room(&self) -> usize {
        self.waiting - self.exempt
    }

    /// Whether the queue has no room for a request of this rank. Exempt requests count apart, and some of them always have
    /// room.
    pub(crate) fn is_full(&self, most: usize, rank: Rank) -> bool {
        if rank == Rank::EXEMPT {
            self.exempt >= most.max(LEAST_EXEMPT)
        } else {
            self.waiting_for_room() >= most
        }
    }

    /// Says whether exempt requests are held at the next choice.
    pub(crate) fn hold_exempt(&mut self, hold: bool) {
        self.holds_exempt = hold;
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn lengths(&self) -> [(&'static str, usize); 3] {
        [("fifos", self.fifos.len()), ("groups", self.groups.len()), ("shares", self.shares.len())]
    }

    pub(crate) fn by_class(&self) -> &[u32] {
        &self.by_class
    }

    pub(crate) fn push(&mut self, waiting: Waiting) -> u64 {
        self.waiting += 1;
        self.exempt += usize::from(waiting.rank == Rank::EXEMPT);
        self.by_class[usize::from(waiting.class)] += 1;
        let quota = self.quotas[usize::from(waiting.class)].as_ref();
        let own = quota.filter(|_| waiting.standing != Standing::Exempt).map(|_| waiting.class);
        // Sites with a contract take turns. Best-effort sites are apart since one site's requests may be rejected while
        // another's are not.
        let is_apart = waiting.rank.takes_turns() || (own.is_none() && waiting.rank.is_best_effort());
        let site = if is_apart { waiting.site } else { 0 };
        let key = |fifo: &Fifo| (fifo.rank, fifo.own.as_ref().map(|own| own.class), fifo.site);
        let index = match self.fifos.binary_search_by_key(&(waiting.rank, own, site), key) {
            Ok(index) => index,
            Err(index) => {
                let own = own.map(|class| OwnClass { class, quota: quota.cloned() });
                self.owned += usize::from(own.is_some());
                let mut fifo = Fifo::new(waiting.rank, own, site);
                fifo.join(&mut self.groups);
                fifo.share = self.shares.share(site, waiting.rank);
                self.fifos.insert(index, fifo);
                index
            }
        };
        let fifo = &mut self.fifos[index];
        if let Some(share) = fifo.share {
            self.shares.wait(share, waiting.pace_ns);
        }
        if let Some(group) = fifo.group {
            self.groups.add(group, QueueTurn::new(waiting.rank, waiting.arrived));
        }
        self.last_ticket += 1;
        fifo.push(waiting, self.last_ticket);
        self.last_ticket
    }

    /// Gives each request of a class with a ratio its turn anew, after a promise has changed.
    fn regroup(&mut self) {
        self.groups.clear();
        for fifo in &mut self.fifos {
            fifo.join(&mut self.groups);
            let turns = fifo.group.into_iter().flat_map(|group| fifo.turns().map(move |turn| (group, turn)));
            turns.for_each(|(group, turn)| self.groups.add(group, turn));
        }
    }

    /// Takes the next request to start; `None` if none may start.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting> {
        // The highest rank of a request that may start, among sites without a contract and classes without a quota.
        let mut highest: Option<Rank> = None;
        let mut best: Option<(Order, usize)> = None;
        for (index, fifo) in self.fifos.iter_mut().enumerate() {
            if self.owned == 0 && best.as_ref().is_some_and(|(o, _)| o.turn.is_above(&fifo.rank)) {
                break;
            }
            if self.holds_exempt && fifo.rank == Rank::EXEMPT {
                continue;
            }
            let newest_first = !self.waits_of_rejected.keep_order && fifo.is_rejected(&self.rejected);
            let Some(mut order) = fifo.order(now, &self.groups, newest_first) else { continue };
            if order.tier == Tier::ByRank && highest.is_none() && !fifo.rank.takes_turns() {
                highest = Some(fifo.rank);
            } else if order.tier == Tier::InQuota && highest.is_some_and(|rank| fifo.rank.yields_to(&rank)) {
                order.tier = Tier::ByRank;
            }
            order.share = fifo.share.map_or(0, |share| self.shares.starts(share));
            if best.as_ref().is_none_or(|(other, _)| order.before(other)) {
                best = Some((order, index));
            }
        }
        let (_, index) = best?;
        let fifo = &mut self.fifos[index];
        let newest_first = !self.waits_of_rejected.keep_order && fifo.is_rejected(&self.rejected);
        let waiting = if newest_first { fifo.pop_newest() } else { fifo.pop() };
        if let Some(group) = self.fifos[index].group {
            self.groups.advance(group);
        }
        if let (Some(share), Some(started)) = (self.fifos[index].share, &waiting) {
            self.shares.start(share, started.pace_ns);
        }
        if self.owned > 0 {
            self.fifos.iter_mut().enumerate().for_each(|(other, fifo)| fifo.settle(other == index));
        }
        self.count_out(index, waiting)
    }

    /// When the first of the held requests may start.
    pub(crate) fn next_held(&mut self, now: Instant) -> Instant {
        let held = self.fifos.iter_mut().filter_map(|fifo| Some((fifo.oldest()?, fifo.hold_ns())));
        let due =
            held.filter(|(_, hold)| *hold > 0).map(|(arrived, hold)| arrived + Duration::from_nanos(hold));
        due.filter(|due| *due > now).min().unwrap_or(Instant::FAR)
    }

    /// Takes out requests that have waited `most`, or the bound of their class, except exempt ones; a request with a deadline
    /// waits as long as it can be in time, since it was admitted for that. Returns when the next one expires.
    pub(crate) fn expire(&mut self, now: Instant, most: Duration, mut drop: impl FnMut(Waiting)) -> Instant {
        let mut next = Instant::FAR;
        for index in 0..self.fifos.len() {
            let shorter =
                self.waits_of_rejected.longest.filter(|_| self.fifos[index].is_rejected(&self.rejected));
            let bound = self.fifos[index].bound(shorter.unwrap_or(most));
            if self.fifos[index].rank == Rank::EXEMPT {
                continue;
            }
            while let Some(first) = self.fifos[index].first() {
                let has_deadline = first.latest_start < Instant::FAR;
                let ends = if has_deadline { first.latest_start } else { first.arrived + bound };
                if ends > now {
                    next = next.min(ends);
                    break;
                }
                let waiting = self.fifos[index].pop();
                if let Some(waiting) = self.take_out(index, waiting) {
                    drop(waiting);
                }
            }
        }
        next
    }

    /// The last fifo whose waiting requests rank below this one; else, among sites with a contract, a fifo of the site that
    /// would still have the longest backlog.
    pub(crate) fn lowest_below(&mut self, waiting: &Waiting) -> Option<usize> {
        let Waiting { rank, site, .. } = *waiting;
        // Exempt requests are bounded apart, so a displaced request makes no room for them.
        if rank == Rank::EXEMPT {
            return None;
        }
        let waits = |fifo: &Fifo| fifo.oldest().is_some();
        let last = self.fifos.iter().rposition(waits)?;
        if rank.is_above(&self.fifos[last].rank, self.fifos[last].site == site) {
            return Some(last);
        }
        let share = self.shares.share(site, rank)?;
        let other = self.shares.longest(share);
        let of = |site: u16| {
            move |fifo: &Fifo| waits(fifo) && fifo.site == site && fifo.rank.kind() == rank.kind()
        };
        match other {
            Some(other) => self.fifos.iter().rposition(of(other)),
            None => {
                self.fifos.iter().rposition(of(site)).filter(|own| rank.band < self.fifos[*own].rank.band)
            }
        }
    }

    /// Takes the oldest request out of this fifo.
    pub(crate) fn displace(&mut self, fifo: usize) -> Option<Waiting> {
        let waiting = self.fifos[fifo].pop();
        self.take_out(fifo, waiting)
    }

    pub(crate) fn remove(&mut self, ticket: u64) -> bool {
        let mut fifos = self.fifos.iter_mut().enumerate();
        let found = fifos.find_map(|(index, fifo)| Some((index, fifo.remove(ticket)?)));
        found.is_some_and(|(index, waiting)| self.take_out(index, Some(waiting)).is_some())
    }

    /// Takes out a request by the plant and the ticket that it came from.
    pub(crate) fn remove_passed_down(&mut self, from: (u16, u64)) -> Option<Waiting> {
        let found = self.fifos.iter().enumerate().find_map(|(index, fifo)| Some((index, fifo.find(from)?)));
        let (index, ticket) = found?;
        let waiting = self.fifos[index].remove(ticket);
        self.take_out(index, waiting)
    }

    /// Counts a request that leaves this fifo without a start, if there was one, and gives up its turn.
    fn take_out(&mut self, fifo: usize, waiting: Option<Waiting>) -> Option<Waiting> {
        if let (Some(group), Some(gone)) = (self.fifos[fifo].group, waiting) {
            self.groups.give_up(group, QueueTurn::new(gone.rank, gone.arrived));
        }
        self.count_out(fifo, waiting)
    }

    /// Counts a request that was taken out of its fifo, if there was one.
    fn count_out(&mut self, fifo: usize, waiting: Option<Waiting>) -> Option<Waiting> {
        if let Some(gone) = waiting {
            if let Some(share) = self.fifos[fifo].share {
                self.shares.leave(share, gone.pace_ns);
            }
            self.waiting -= 1;
            self.exempt -= usize::from(gone.rank == Rank::EXEMPT);
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
        queue.push(Waiting { class, ..Waiting::ordinary(ms, at(ms)) })
    }

    /// Starts requests until none may start or `most` have; they stay in service.
    fn classes(queue: &mut Queue, now: Instant, quotas: &[&Arc<Quota>], most: usize) -> Vec<u16> {
        let mut order = Vec::new();
        while order.len() < most
            && let Some(waiting) = queue.pop(now)
        {
            if let Some(quota) = usize::from(waiting.class).checked_sub(1) {
                quotas[quota].enter();
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
    fn requests_whose_class_has_no_delay_any_more_wait_in_the_order_of_arrival() {
        let own = quota(TurnRule::Quota);
        own.set_workers(0.0);
        let mut queue = queue(&[&own]);
        (0..2).for_each(|ms| {
            push(&mut queue, 1, ms);
        });
        push(&mut queue, 0, 5);
        queue.promise(&[None, None]);
        push(&mut queue, 1, 6);
        assert_eq!(classes(&mut queue, at(9), &[&own], 9), [1, 1, 0, 1]);
        // A delay that is promised again counts for the waiting requests.
        (10..12).for_each(|ms| {
            push(&mut queue, (ms % 2) as u16, ms);
        });
        own.set_workers(4.0);
        queue.promise(&[None, Some(own)]);
        push(&mut queue, 1, 12);
        assert_eq!(queue.pop(at(20)).map(|w| w.class), Some(1), "inside its quota");
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
    fn the_newest_of_best_effort_is_first_while_its_class_is_rejected() {
        let own = quota(TurnRule::Quota);
        own.set_workers(0.0);
        let mut queue = queue(&[&own]);
        let tickets: Vec<u64> = (0..4).map(|ms| push(&mut queue, 0, ms)).collect();
        (10..12).for_each(|ms| {
            push(&mut queue, 1, ms);
        });
        queue.set_rejected(
            RejectedWaits { longest: Some(Duration::from_millis(30)), keep_order: false },
            &[0, 1],
        );
        assert_eq!(queue.pop(at(20)).map(|w| w.token.0), Some(3));
        let newer = push(&mut queue, 0, 20);
        assert!(!queue.remove(tickets[3]), "its ticket is spent, and no other request has it");
        assert!(queue.remove(newer) && queue.remove(tickets[1]));
        assert_eq!(queue.pop(at(25)).map(|w| w.token.0), Some(2));
        let mut dropped = Vec::new();
        let next = queue.expire(at(30), Duration::from_millis(100), |waiting| dropped.push(waiting.token.0));
        assert_eq!(
            (dropped, next),
            (alloc::vec![0], at(110)),
            "a class with a delay waits as long as before"
        );
        queue.set_rejected(RejectedWaits::default(), &[]);
        let order: Vec<u64> = core::iter::from_fn(|| queue.pop(at(40))).map(|w| w.token.0).collect();
        assert_eq!(order, [10, 11], "with a promise the oldest is first");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_class_may_be_bound_to_wait_less_long_than_the_rest() {
        let own = quota(TurnRule::Quota);
        own.set_bound(Some(Duration::from_millis(30)));
        let mut queue = queue(&[&own]);
        push(&mut queue, 0, 0);
        push(&mut queue, 1, 0);
        push(&mut queue, 1, 20);
        let mut dropped = Vec::new();
        let next = queue.expire(at(40), Duration::from_millis(100), |waiting| dropped.push(waiting.class));
        assert_eq!((dropped, next, queue.waiting_for_room()), (alloc::vec![1], at(50), 2));
    }
}
