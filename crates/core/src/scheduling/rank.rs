//! The rank of a request: its band and its relative deadline. `order.rs` compares them.

use crate::time::Duration;

/// What a request was found to be when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not controlled.
    Exempt,
    /// Inside its site's contract.
    Guaranteed,
    /// The service level decides on it.
    Ordinary,
}

/// The rank of a waiting request: the lowest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// 0 for exempt requests, 1 inside a contract, from 2 on by priority, first at sites with a contract, then at those
    /// without.
    pub(crate) band: u16,
    /// The relative deadline of its requests (ns); without one the largest number.
    pub(crate) deadline_ns: u64,
}

impl Rank {
    pub(crate) const EXEMPT: Rank = Rank { band: 0, deadline_ns: u64::MAX };

    /// Whether its requests were promised nothing by rank: neither a contract nor a deadline.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.band >= 2 && self.deadline_ns == u64::MAX
    }

    /// The priority that a class of this band has; none for exempt requests and those inside a contract.
    pub(crate) fn priority(band: u16) -> Option<u8> {
        Some((band.checked_sub(2)? % (1 + u16::from(u8::MAX))) as u8)
    }

    /// The rank of a request inside a contract.
    pub(crate) fn guaranteed(deadline: Option<Duration>) -> Self {
        Rank { band: 1, ..Rank::contracted(0, deadline) }
    }

    /// The rank of a class of this priority at a site with a contract, which must not wait for best effort.
    pub(crate) fn contracted(priority: u8, deadline: Option<Duration>) -> Self {
        let deadline_ns = deadline.map_or(u64::MAX, |deadline| deadline.as_nanos() as u64);
        Rank { band: 2 + u16::from(priority), deadline_ns }
    }

    /// The rank of a class of this priority at a site without a contract.
    pub(crate) fn ordinary(priority: u8, deadline: Option<Duration>) -> Self {
        let Rank { band, deadline_ns } = Rank::contracted(priority, deadline);
        Rank { band: band + 1 + u16::from(u8::MAX), deadline_ns }
    }
}
