//! Waiting requests that are served first come, first served, and where they stand in the choice of the next request.
//!
//! The queue of a plant (`queue.rs`) is made of such fifos: one for each rank, and one for each class that was promised a
//! delay or a ratio.

use crate::scheduling::precedence::{Order, QueueTurn, Tier};
use crate::scheduling::queue::Waiting;
use crate::scheduling::quota::{Quota, TurnRule, WORKER};
use crate::scheduling::rank::Rank;
use crate::scheduling::ratio_turns::RatioGroups;
use crate::time::{Duration, Instant};
use alloc::{collections::VecDeque, sync::Arc};

/// A class with a fifo of its own.
pub(super) struct OwnClass {
    pub(super) class: u16,
    /// `None` if a reload has taken the class's promise back while its requests wait.
    pub(super) quota: Option<Arc<Quota>>,
}

/// Waiting requests of one rank, in the order of their arrival.
pub(super) struct Fifo {
    pub(super) rank: Rank,
    /// The class that the fifo belongs to; `None` where all classes of the rank share it.
    pub(super) own: Option<OwnClass>,
    /// The site of its requests, if the site has a contract or the requests have no promise of their own; else 0.
    pub(super) site: u16,
    /// The share of a site with a contract.
    pub(super) share: Option<usize>,
    /// The part of one more worker that the class has earned, in 65536ths.
    earned: u32,
    /// Whether its first request, if it is chosen now, uses the worker that was earned.
    spends: bool,
    /// The group with which the fifo exchanges its turns.
    pub(super) group: Option<usize>,
    /// The requests with their tickets, which increase; `None` is a hole where a request was taken out of the middle. No hole
    /// is at an end.
    requests: VecDeque<(u64, Option<Waiting>)>,
}

impl Fifo {
    pub(super) fn new(rank: Rank, own: Option<OwnClass>, site: u16) -> Self {
        Fifo {
            rank,
            own,
            site,
            share: None,
            spends: false,
            group: None,
            requests: VecDeque::new(),
            earned: 0,
        }
    }

    fn quota(&self) -> Option<&Arc<Quota>> {
        self.own.as_ref().and_then(|own| own.quota.as_ref())
    }

    /// Finds the group with which a class with a ratio exchanges its turns.
    pub(super) fn join(&mut self, groups: &mut RatioGroups) {
        let turn = self.quota().map(|quota| quota.turn);
        self.group = match turn {
            Some(TurnRule::Weight { site }) => Some(groups.group(site, self.rank.band)),
            _ => None,
        };
    }

    /// Where the fifo stands in the choice; `None` if it is empty, or its first request is held.
    pub(super) fn order(&mut self, now: Instant, groups: &RatioGroups, newest_first: bool) -> Option<Order> {
        self.spends = false;
        let oldest = self.oldest()?;
        let first = if newest_first { self.newest()? } else { oldest };
        let turn = self.group.and_then(|group| groups.first(group));
        let turn = turn.unwrap_or(QueueTurn::new(self.rank, first));
        let mut order = Order { tier: Tier::ByRank, share: 0, turn, group: self.group, urgency: 0.0 };
        if self.rank == Rank::EXEMPT {
            order.tier = Tier::Exempt;
        } else if let Some(OwnClass { quota: Some(quota), .. }) = &self.own {
            match quota.turn {
                TurnRule::Weight { .. } if now.nanos_since(oldest) < quota.hold_ns() => return None,
                TurnRule::Weight { .. } => order.urgency = quota.urgency(now, oldest),
                TurnRule::Quota => {
                    let (whole, part) = quota.workers();
                    let in_service = quota.in_service();
                    if in_service == whole {
                        self.earned = (self.earned + part).min(2 * WORKER);
                    }
                    order.tier = match in_service {
                        _ if quota.is_urgent(now, oldest) => Tier::InQuota,
                        n if n < whole => Tier::InQuota,
                        n if n == whole && self.earned >= WORKER => {
                            self.spends = true;
                            Tier::InQuota
                        }
                        _ => Tier::Lent,
                    };
                }
            }
        }
        Some(order)
    }

    /// Ends a choice in which the fifo took part. A chosen fifo that used its earned worker has spent it.
    pub(super) fn settle(&mut self, chosen: bool) {
        self.earned -= if chosen && self.spends { WORKER } else { 0 };
        self.spends = false;
    }

    pub(super) fn hold_ns(&self) -> u64 {
        self.quota().map_or(0, |quota| quota.hold_ns())
    }

    pub(super) fn bound(&self, most: Duration) -> Duration {
        let own = self.quota().map_or(u64::MAX, |quota| quota.bound_ns());
        most.min(Duration::from_nanos(own))
    }

    /// Whether its requests have no promise of their own and are rejected for the load. All its classes are of one site and
    /// one priority, and so have one service level.
    pub(super) fn is_rejected(&self, rejected: &[bool]) -> bool {
        self.own.is_none()
            && self.rank.is_best_effort()
            && self.first().is_some_and(|first| rejected[usize::from(first.class)])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Puts a request at the end, with this ticket. A request that is passed down to another plant keeps its first ticket too.
    pub(super) fn push(&mut self, mut waiting: Waiting, ticket: u64) {
        if waiting.ticket == 0 {
            waiting.ticket = ticket;
        }
        self.requests.push_back((ticket, Some(waiting)));
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let (_, waiting) = self.requests.pop_front()?;
        self.skip_holes();
        waiting
    }

    pub(super) fn pop_newest(&mut self) -> Option<Waiting> {
        let (_, waiting) = self.requests.pop_back()?;
        self.skip_holes();
        waiting
    }

    pub(super) fn first(&self) -> Option<Waiting> {
        self.requests.front().and_then(|(_, waiting)| *waiting)
    }

    pub(super) fn oldest(&self) -> Option<Instant> {
        self.first().map(|waiting| waiting.arrived)
    }

    fn newest(&self) -> Option<Instant> {
        self.requests.back().and_then(|(_, waiting)| *waiting).map(|waiting| waiting.arrived)
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let index = self.requests.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()?;
        let waiting = self.requests[index].1.take();
        self.skip_holes();
        waiting
    }

    /// The ticket of a request that came from this plant with this ticket.
    pub(super) fn find(&self, from: (u16, u64)) -> Option<u64> {
        let is_it = |waiting: &Waiting| (waiting.home, waiting.ticket) == from;
        let found = self.requests.iter().find(|(_, waiting)| waiting.as_ref().is_some_and(is_it));
        found.map(|(ticket, _)| *ticket)
    }

    /// The turns that its requests came with.
    pub(super) fn turns(&self) -> impl Iterator<Item = QueueTurn> + '_ {
        let waiting = self.requests.iter().filter_map(|(_, waiting)| *waiting);
        waiting.map(|waiting| QueueTurn::new(self.rank, waiting.arrived))
    }

    fn skip_holes(&mut self) {
        while let Some((_, None)) = self.requests.front() {
            self.requests.pop_front();
        }
        while let Some((_, None)) = self.requests.back() {
            self.requests.pop_back();
        }
    }
}
