//! A request whose client leaves while the upstream works on it.
//!
//! The exchange goes on to the end of the response and drops it: most servers do not notice that a connection was closed, so
//! that a close would not free the place sooner. If an upstream stops at once (`stops_when_abandoned`), its connection is
//! closed.

use super::moves::{End, Exchange};
use crate::client::wire::Wire;
use plimsoll_core::request::Outcome;

/// The most bytes that are read of a response to a client that has left. An upstream with a longer response is busy sending,
/// and notices that the connection was closed.
const MOST_FOR_NOBODY: u64 = 1 << 20;

impl<W: Wire> Exchange<'_, W> {
    /// The client has left. `None` if the exchange goes on because the upstream is working on the request.
    pub(super) fn abandon(&mut self) -> Option<End> {
        let works = self.request.is_sent() && !self.response.is_committed();
        if self.stops_when_abandoned || !works {
            return Some(self.give_up(End::Broken(Outcome::Abandoned)));
        }
        self.is_abandoned = true;
        self.permit.abandon();
        self.client.outbox.clear();
        None
    }

    /// Drops bytes of a response whose client has left. `Some` at the end of the response, or after [`MOST_FOR_NOBODY`] bytes.
    pub(super) fn throw_away(&mut self) -> Option<End> {
        self.client.outbox.clear();
        let goes_on = self.lease.is_some() && self.response.bytes <= MOST_FOR_NOBODY;
        if goes_on { None } else { Some(self.give_up(End::Broken(Outcome::Abandoned))) }
    }
}
