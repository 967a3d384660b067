//! The rank of a request: its band and its relative deadline. `precedence.rs` compares them.

use crate::time::Duration;

/// What a request was found to be when it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// An exempt request, which no loop controls.
    Exempt,
    /// Inside its site's contract.
    Guaranteed,
    /// The service level decides on it.
    Ordinary,
}

const PRIORITIES: u16 = 1 + u8::MAX as u16;
/// The kinds of ranks. Kinds 1 and 2 are not used: an earlier version has saved forecasts under their bands, which would be
/// taken for forecasts of other ranks.
const GUARANTEED: u16 = 3;
const CONTRACTED: u16 = 4;
const ORDINARY: u16 = 5;
/// More than the largest kind.
pub(super) const KINDS: usize = 6;
/// More than the largest band.
pub(crate) const BANDS: u16 = 1 + ORDINARY * PRIORITIES;

/// The rank of a waiting request: the lowest comes first, except that sites with a contract take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// 0 for exempt requests; then by kind ([`Rank::kind`]), and by priority in each.
    pub(crate) band: u16,
    /// The relative deadline of its requests (ns); without one the largest number.
    pub(crate) deadline_ns: u64,
}

impl Rank {
    pub(crate) const EXEMPT: Rank = Rank { band: 0, deadline_ns: u64::MAX };

    /// What a request is by its rank: 0 if it is exempt, then inside a contract, beyond the contract of its site, and of a site
    /// without one.
    pub(crate) fn kind(&self) -> u16 {
        Rank::kind_of(self.band)
    }

    pub(super) fn kind_of(band: u16) -> u16 {
        band.div_ceil(PRIORITIES)
    }

    /// Whether its site has a contract. Such sites take turns, so a priority counts among the requests of one site only.
    pub(crate) fn takes_turns(&self) -> bool {
        matches!(self.kind(), GUARANTEED | CONTRACTED)
    }

    /// Whether the requests of another rank come after those of this one: in a later kind, or by a lower priority where
    /// priorities of the two are compared. `one_site`: both ranks are of the same site.
    pub(crate) fn is_above(&self, other: &Rank, one_site: bool) -> bool {
        let compared = one_site || !self.takes_turns();
        self.kind() < other.kind() || (compared && self.band < other.band)
    }

    /// Whether a quota of this rank yields to requests of another one: of a higher priority, where neither site has a contract.
    pub(crate) fn yields_to(&self, other: &Rank) -> bool {
        self.kind() == ORDINARY && other.kind() == ORDINARY && other.band < self.band
    }

    /// Whether its requests were promised nothing by rank: neither a contract nor a deadline.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.kind() >= CONTRACTED && self.deadline_ns == u64::MAX
    }

    /// The priority that a class of this band has; none for exempt requests and those inside a contract.
    pub(crate) fn priority(band: u16) -> Option<u8> {
        Some((band.checked_sub(Rank::of(CONTRACTED, 0, None).band)? % PRIORITIES) as u8)
    }

    fn of(kind: u16, priority: u8, deadline: Option<Duration>) -> Self {
        let deadline_ns = deadline.map_or(u64::MAX, |deadline| deadline.as_nanos() as u64);
        Rank { band: 1 + (kind - 1) * PRIORITIES + u16::from(priority), deadline_ns }
    }

    /// The rank of a request inside a contract, of a class of this priority.
    pub(crate) fn guaranteed(priority: u8, deadline: Option<Duration>) -> Self {
        Rank::of(GUARANTEED, priority, deadline)
    }

    /// The rank of a class of this priority at a site with a contract, which must not wait for best effort.
    pub(crate) fn contracted(priority: u8, deadline: Option<Duration>) -> Self {
        Rank::of(CONTRACTED, priority, deadline)
    }

    /// The rank of a class of this priority at a site without a contract.
    pub(crate) fn ordinary(priority: u8, deadline: Option<Duration>) -> Self {
        Rank::of(ORDINARY, priority, deadline)
    }
}
