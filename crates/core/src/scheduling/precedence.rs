//! The order in which waiting requests start: by tier, then by kind, by the share of the site if it has a contract, by turn
//! (rank, absolute deadline, arrival), then, among classes that exchange their turns, by urgency. `queue.rs` has the whole rule
//! in words.

use crate::scheduling::rank::Rank;
use crate::time::Instant;
use core::cmp::Ordering;

/// When a request is served if requests keep their order: the least is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueueTurn {
    band: u16,
    /// The absolute deadline (ns).
    due_ns: u64,
    arrived: Instant,
}

impl QueueTurn {
    pub(super) fn new(rank: Rank, arrived: Instant) -> Self {
        let due_ns = arrived.as_nanos().saturating_add(rank.deadline_ns);
        QueueTurn { band: rank.band, due_ns, arrived }
    }

    fn kind(&self) -> u16 {
        Rank::kind_of(self.band)
    }

    /// Whether the requests of a rank come after this turn, of whatever site they are: see [`Rank::is_above`].
    pub(super) fn is_above(&self, rank: &Rank) -> bool {
        Rank { band: self.band, ..*rank }.is_above(rank, false)
    }
}

/// The tiers of a choice: a lower one is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Exempt,
    /// The class has fewer requests in service than the whole part of its quota, or as many and has earned one worker more, or
    /// its first request is urgent.
    InQuota,
    /// The rank decides.
    ByRank,
    /// The whole quota of the class is in service: it gets workers that would idle.
    Lent,
}

/// The order of fifos in a choice: the first request of the least is next. Fifos that exchange their turns have the same
/// turn, so the order is total, and the order in which classes were declared decides nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Order {
    pub(super) tier: Tier,
    /// When the site's share of the server lets it start, where sites with a contract take turns; else 0.
    pub(super) share: u64,
    pub(super) turn: QueueTurn,
    /// The group of the fifos that exchange their turns; `None` if the fifo keeps its own.
    pub(super) group: Option<usize>,
    /// The normalized response time in a group.
    pub(super) urgency: f64,
}

impl Order {
    pub(super) fn before(&self, other: &Order) -> bool {
        let key = |order: &Order| (order.tier, order.turn.kind(), order.share, order.turn, order.group);
        match key(self).cmp(&key(other)) {
            Ordering::Equal => self.urgency > other.urgency,
            order => order == Ordering::Less,
        }
    }
}
