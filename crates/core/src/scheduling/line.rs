//! A line of waiting requests, and where it stands in the choice of the next request.

use crate::scheduling::queue::Waiting;
use crate::scheduling::quota::{Quota, TurnRule, WORKER};
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};
use alloc::{collections::VecDeque, sync::Arc};

/// A line of requests, first come, first served.
pub(super) struct Line {
    pub(super) rank: Rank,
    /// The class that the line belongs to, and its quota.
    pub(super) own: Option<(u16, Arc<Quota>)>,
    /// The part of one more worker that the class has earned, in 65536ths.
    earned: u32,
    /// The tier of the line in the present choice.
    turn: u8,
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

/// The order of lines in a choice: the least is next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    tier: u8,
    /// The rank with its deadline made absolute.
    pub(super) rank: Rank,
    arrived: Instant,
    /// The normalized response time in a class with a ratio.
    urgency: Option<f64>,
}

impl Order {
    pub(super) fn before(&self, other: &Order) -> bool {
        match (self.urgency, other.urgency) {
            (Some(own), Some(its)) if self.rank.band == other.rank.band => own > its,
            _ => (self.tier, self.rank, self.arrived) < (other.tier, other.rank, other.arrived),
        }
    }
}

impl Line {
    pub(super) fn new(rank: Rank, own: Option<(u16, Arc<Quota>)>, number: u16) -> Self {
        Line { rank, own, turn: OURS, number, places: VecDeque::new(), first_ticket: 0, earned: 0 }
    }

    /// Where the line stands in the choice; `None` if it is empty, or its first request is held.
    pub(super) fn order(&mut self, now: Instant) -> Option<Order> {
        self.turn = NONE;
        let oldest = self.oldest()?;
        let deadline_ns = oldest.as_nanos().saturating_add(self.rank.deadline_ns);
        let rank = Rank { deadline_ns, ..self.rank };
        let mut order = Order { tier: OURS, rank, arrived: oldest, urgency: None };
        if self.rank == Rank::EXEMPT {
            order.tier = EXEMPT;
        } else if let Some((_, quota)) = &self.own {
            match quota.turn {
                TurnRule::Weight if now.nanos_since(oldest) < quota.hold_ns() => return None,
                TurnRule::Weight => order.urgency = Some(quota.urgency(now, oldest)),
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
        self.turn = order.tier;
        // An earned worker is spent in the tier of shares.
        order.tier = if order.tier == EARNED { SHARE } else { order.tier };
        Some(order)
    }

    /// Ends a choice that the line took part in.
    pub(super) fn settle(&mut self, chosen: bool) {
        self.earned -= if chosen && self.turn == EARNED { WORKER } else { 0 };
        self.turn = NONE;
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

    fn skip_holes(&mut self) {
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first_ticket += 1;
        }
    }
}
