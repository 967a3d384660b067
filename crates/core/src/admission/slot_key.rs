//! Which requests a slot of unfinished work is of (`unfinished_work.rs`).

use crate::scheduling::quota::Quota;
use crate::scheduling::rank::Rank;
use alloc::sync::Arc;

/// Which requests a slot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(crate) rank: Rank,
    /// The requests' site, where sites take turns.
    pub(super) site: Option<u16>,
    /// The requests' class, if that has a delay.
    pub(crate) quota_of: Option<u16>,
}

/// A slot that promises need.
pub(crate) struct NeededSlot {
    pub(crate) key: SlotKey,
    pub(crate) quota: Option<Arc<Quota>>,
    /// The time in which the contract of its site promises one request (ns); 0 without a contract.
    pub(crate) pace_ns: u64,
}

impl SlotKey {
    pub(crate) fn new(rank: Rank, site: u16, quota_of: Option<u16>) -> Self {
        SlotKey { rank, site: rank.takes_turns().then_some(site), quota_of }
    }

    pub(crate) fn without_quota(self) -> Self {
        SlotKey { quota_of: None, ..self }
    }
}
