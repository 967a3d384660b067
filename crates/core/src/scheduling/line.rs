//! A line of waiting requests, and where it stands in the choice of the next request.

use crate::scheduling::queue::Waiting;
use crate::scheduling::quota::{Quota, TurnRule, WORKER};
use crate::scheduling::rank::Rank;
use crate::scheduling::turns::{Groups, Turn};
use crate::time::{Duration, Instant};
use alloc::{collections::VecDeque, sync::Arc};
use core::cmp::Ordering;

/// A line of requests, first come, first served.
pub(super) struct Line {
    pub(super) rank: Rank,
    /// The class that the line belongs to, and its quota.
    pub(super) own: Option<(u16, Arc<Quota>)>,
    /// The part of one more worker that the class has earned, in 65536ths.
    earned: u32,
    /// The tier of the line in the present choice.
    tier: u8,
    /// The group with which the line exchanges its turns.
    pub(super) group: Option<usize>,
    /// The line's number for life, which its tickets carry.
    pub(super) number: u16,
    places: VecDeque<Option<Waiting>>,
    first_ticket: u64,
}

/// The tiers of a choice. A worker that a class has earned is spent in the tier of shares.
const EXEMPT: u8 = 0;
const SHARE: u8 = 1;
const EARNED: u8 = 2;
const OURS: u8 = 3;
const LENT: u8 = 4;
/// Not part of the choice.
const NONE: u8 = 5;

/// The order of lines in a choice: the least is next. Lines that exchange their turns have the same turn, so the order
/// is total, and the order in which classes were declared decides nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    tier: u8,
    turn: Turn,
    /// The group of the lines that exchange their turns; `None` if the line keeps its own.
    group: Option<usize>,
    /// The normalized response time in a group.
    urgency: f64,
}

impl Order {
    pub(super) fn band(&self) -> u16 {
        self.turn.rank.band
    }

    pub(super) fn before(&self, other: &Order) -> bool {
        let key = |order: &Order| (order.tier, order.turn, order.group);
        match key(self).cmp(&key(other)) {
            Ordering::Equal => self.urgency > other.urgency,
            order => order == Ordering::Less,
        }
    }
}

impl Line {
    pub(super) fn new(rank: Rank, own: Option<(u16, Arc<Quota>)>, number: u16) -> Self {
        Line {
            rank,
            own,
            tier: OURS,
            group: None,
            number,
            places: VecDeque::new(),
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

    /// Where the line stands in the choice; `None` if it is empty, or its first request is held.
    pub(super) fn order(&mut self, now: Instant, groups: &Groups) -> Option<Order> {
        self.tier = NONE;
        let oldest = self.oldest()?;
        let turn = self.group.and_then(|group| groups.first(group)).unwrap_or(Turn::new(self.rank, oldest));
        let mut order = Order { tier: OURS, turn, group: self.group, urgency: 0.0 };
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
                        _ if quota.is_urgent(now, oldest) => SHARE,
                        n if n < whole => SHARE,
                        n if n == whole && self.earned >= WORKER => EARNED,
                        _ => LENT,
                    };
                }
            }
        }
        self.tier = order.tier;
        // An earned worker is spent in the tier of shares.
        order.tier = if order.tier == EARNED { SHARE } else { order.tier };
        Some(order)
    }

    /// Ends a choice that the line took part in.
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
        self.places.push_back(Some(waiting));
        self.first_ticket + self.places.len() as u64 - 1
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.skip_holes();
        self.first_ticket += u64::from(!self.places.is_empty());
        self.places.pop_front().flatten()
    }

    pub(super) fn first(&mut self) -> Option<Waiting> {
        self.skip_holes();
        self.places.front().copied().flatten()
    }

    pub(super) fn oldest(&mut self) -> Option<Instant> {
        self.first().map(|waiting| waiting.arrived)
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let place = usize::try_from(ticket.checked_sub(self.first_ticket)?).ok()?;
        self.places.get_mut(place)?.take()
    }

    /// The turns that its requests came with.
    pub(super) fn turns(&self) -> impl Iterator<Item = Turn> + '_ {
        self.places.iter().flatten().map(|waiting| Turn::new(self.rank, waiting.arrived))
    }

    fn skip_holes(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first_ticket += 1;
        }
    }
}
