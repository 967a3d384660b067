//! Few connections: if clients wait for their answers before they ask again, no more requests wait than there are connections.
//!
//! Where one request of each is at most half a second of work, none is rejected: clients that ask again as soon as they are
//! turned away would seem to be an overload for as long as they are turned away.

use super::Observation;

/// No request is rejected while one request of every connection is together at most this part of the capacity, in work.
const FEW_AT_ONCE: f64 = 0.5;
/// What is kept of the largest such work after a period. While requests are turned away, connections in front of which others
/// wait are not seen: a pool of another gateway is as small then as if the load were small.
const KEPT: f64 = 0.99;

/// The work of one request of every connection (s), as in [`Observation`]: a maximum that fades slowly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkAtOnce(f64);

impl WorkAtOnce {
    /// Where no connection is known to have sent several requests, each request is of one of its own.
    pub(super) fn follow(&mut self, seen: &Observation<'_>) {
        self.0 = seen.at_once.min(seen.demand.offered(1.0, 0.0)).max(KEPT * self.0);
    }

    /// Whether the connections are few for this capacity. Where a request needs no connection they never are.
    pub(super) fn is_little(self, seen: &Observation<'_>, capacity: f64) -> bool {
        seen.at_once.is_finite() && self.0 <= FEW_AT_ONCE * capacity.min(1.0)
    }
}
