//! Few connections: if clients wait for an answer before their next request, no more requests wait than there are connections.
//!
//! If one request of each connection takes together at most half a second of work, no request is rejected: clients that retry
//! at once when they are rejected would look like an overload for as long as they are rejected.

use super::Observation;

/// No request is rejected while one request of every connection takes together at most this many seconds of the capacity.
const FEW_AT_ONCE: f64 = 0.5;
/// The part of the largest such work that is kept after a period. While requests are rejected, clients that wait before a
/// connection are not seen: the pool of another gateway is then as small as under a small load.
const KEPT: f64 = 0.99;

/// The work of one request of every connection (s), as in [`Observation`]: a maximum that fades slowly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkAtOnce(f64);

impl WorkAtOnce {
    /// If no connection is known to have sent several requests, each request counts as a connection of its own.
    pub(super) fn follow(&mut self, seen: &Observation<'_>) {
        self.0 = seen.at_once.min(seen.demand.offered(1.0, 0.0)).max(KEPT * self.0);
    }

    /// Whether the connections are few for this capacity. They never are while no connection is known to have sent several
    /// requests.
    pub(super) fn is_little(self, seen: &Observation<'_>, capacity: f64) -> bool {
        seen.at_once.is_finite() && self.0 <= FEW_AT_ONCE * capacity.min(1.0)
    }
}
