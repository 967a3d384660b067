//! Waiting requests that are served first come, first served, and where they stand in the choice of the next request.
//!
//! The queue of a plant (`queue.rs`) is made of such fifos: one for each rank, and one for each class that was promised a
//! delay or a ratio.

use crate::scheduling::order::{BY_RANK, EARNED, EXEMPT, IN_QUOTA, LENT, NONE, Order, QueueTurn};
use crate::scheduling::queue::Waiting;
use crate::scheduling::quota::{Quota, TurnRule, WORKER};
use crate::scheduling::rank::Rank;
use crate::scheduling::turns::Groups;
use crate::time::{Duration, Instant};
use alloc::{collections::VecDeque, sync::Arc};

/// Waiting requests of one rank, in the order of their arrival.
pub(super) struct Fifo {
    pub(super) rank: Rank,
    /// The class that the fifo belongs to, and its quota; `None` where all classes of the rank share it.
    pub(super) own: Option<(u16, Arc<Quota>)>,
    /// The part of one more worker that the class has earned, in 65536ths.
    earned: u32,
    /// The tier of the fifo in the present choice.
    tier: u8,
    /// The group with which the fifo exchanges its turns.
    pub(super) group: Option<usize>,
    /// The fifo's number for life, which its tickets carry.
    pub(super) number: u16,
    /// `None` where a request was taken out of the middle.
    requests: VecDeque<Option<Waiting>>,
    /// The ticket of the first of them.
    first_ticket: u64,
}

impl Fifo {
    pub(super) fn new(rank: Rank, own: Option<(u16, Arc<Quota>)>, number: u16) -> Self {
        Fifo {
            rank,
            own,
            tier: BY_RANK,
            group: None,
            number,
            requests: VecDeque::new(),
            first_ticket: 0,
            earned: 0,
        }
    }

    /// Finds the group with which a class with a ratio exchanges its turns.
    pub(super) fn join(&mut self, groups: &mut Groups) {
        let turn = self.own.as_ref().map(|(_, quota)| quota.turn);
        self.group = match turn {
            Some(TurnRule::Weight { site }) => Some(groups.group(site, self.rank.band)),
            _ => None,
        };
    }

    /// Where the fifo stands in the choice; `None` if it is empty, or its first request is held.
    pub(super) fn order(&mut self, now: Instant, groups: &Groups) -> Option<Order> {
        self.tier = NONE;
        let oldest = self.oldest()?;
        let turn =
            self.group.and_then(|group| groups.first(group)).unwrap_or(QueueTurn::new(self.rank, oldest));
        let mut order = Order { tier: BY_RANK, turn, group: self.group, urgency: 0.0 };
        if self.rank == Rank::EXEMPT {
            order.tier = EXEMPT;
        } else if let Some((_, quota)) = &self.own {
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
                        _ if quota.is_urgent(now, oldest) => IN_QUOTA,
                        n if n < whole => IN_QUOTA,
                        n if n == whole && self.earned >= WORKER => EARNED,
                        _ => LENT,
                    };
                }
            }
        }
        self.tier = order.tier;
        order.tier = if order.tier == EARNED { IN_QUOTA } else { order.tier };
        Some(order)
    }

    /// Ends a choice in which the fifo took part; a chosen one spends what it had earned.
    pub(super) fn settle(&mut self, chosen: bool) {
        self.earned -= if chosen && self.tier == EARNED { WORKER } else { 0 };
        self.tier = NONE;
    }

    pub(super) fn hold_ns(&self) -> u64 {
        self.own.as_ref().map_or(0, |(_, quota)| quota.hold_ns())
    }

    pub(super) fn bound(&self, most: Duration) -> Duration {
        let own = self.own.as_ref().map_or(u64::MAX, |(_, quota)| quota.bound_ns());
        most.min(Duration::from_nanos(own))
    }

    pub(super) fn push(&mut self, waiting: Waiting) -> u64 {
        self.requests.push_back(Some(waiting));
        self.first_ticket + self.requests.len() as u64 - 1
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.skip_holes();
        self.first_ticket += u64::from(!self.requests.is_empty());
        self.requests.pop_front().flatten()
    }

    pub(super) fn first(&mut self) -> Option<Waiting> {
        self.skip_holes();
        self.requests.front().copied().flatten()
    }

    pub(super) fn oldest(&mut self) -> Option<Instant> {
        self.first().map(|waiting| waiting.arrived)
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let index = usize::try_from(ticket.checked_sub(self.first_ticket)?).ok()?;
        self.requests.get_mut(index)?.take()
    }

    /// The turns that its requests came with.
    pub(super) fn turns(&self) -> impl Iterator<Item = QueueTurn> + '_ {
        self.requests.iter().flatten().map(|waiting| QueueTurn::new(self.rank, waiting.arrived))
    }

    fn skip_holes(&mut self) {
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first_ticket += 1;
        }
    }
}
