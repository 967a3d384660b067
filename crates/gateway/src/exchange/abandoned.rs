//! A request whose client leaves while the upstream works on it.
//!
//! The exchange goes on to the end of the response and throws it away: most servers do not notice that a connection was closed,
//! so that the place is free no sooner. An upstream that stops at once may say so (`stops_when_abandoned`); its connection is
//! closed then.

use super::moves::{End, Exchange};
use crate::client::wire::Wire;
use plimsoll_core::request::Outcome;

/// What is read at most of a response to a client that has left (bytes). The upstream of a longer one is busy with sending,
/// and notices a closed connection.
const MOST_FOR_NOBODY: u64 = 1 << 20;

impl<W: Wire> Exchange<'_, W> {
    /// The client has left. `None` if the upstream works on its request and finishes it for nobody.
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

    /// Discards the bytes of a response whose client has left. `Some` at its end, or if it goes on for longer than it is
    /// worth.
    pub(super) fn throw_away(&mut self) -> Option<End> {
        self.client.outbox.clear();
        let goes_on = self.lease.is_some() && self.response.bytes <= MOST_FOR_NOBODY;
        if goes_on { None } else { Some(self.give_up(End::Broken(Outcome::Abandoned))) }
    }
}
