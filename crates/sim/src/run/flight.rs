//! Requests in progress, each in a slot that is used again.

use crate::request::Request;
use crate::service::FullService;
use plimsoll_core::request::Token;
use plimsoll_core::time::Instant;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FlightStage {
    /// In the front's queue.
    #[default]
    Waiting,
    /// At this plant.
    Served(usize),
    /// Its connection is not answered by its plant.
    Connecting,
}

/// A request in progress.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) class: u16,
    pub(super) site: u16,
    pub(super) stream: u16,
    pub(super) level: u8,
    /// How many attempts came before this one.
    pub(super) attempt: u32,
    pub(super) stage: FlightStage,
    /// Its client has left; it goes on to its plant, or its plant works on.
    pub(super) is_abandoned: bool,
    pub(super) client: u64,
    pub(super) arrived: Instant,
    pub(super) full: FullService,
    /// Body bytes at its level; set when it starts.
    pub(super) bytes: u64,
    /// Its path; kept while it waits.
    pub(super) path: String,
    /// The request to retry, if the client may; for a user that waits for its answer, always kept.
    pub(super) again: Option<Box<Request>>,
    generation: u32,
    under_way: bool,
}

/// What is kept of a request that has ended.
#[derive(Debug)]
pub(super) struct EndedFlight {
    pub(super) class: u16,
    pub(super) site: u16,
    pub(super) stream: u16,
    pub(super) attempt: u32,
    /// Its client had left before.
    pub(super) is_abandoned: bool,
    pub(super) again: Option<Box<Request>>,
}

impl Flight {
    /// Its client has left, and it goes on.
    pub(super) fn abandon(&mut self) -> EndedFlight {
        self.is_abandoned = true;
        self.left()
    }

    fn left(&mut self) -> EndedFlight {
        let Flight { class, site, stream, attempt, is_abandoned, .. } = *self;
        EndedFlight { class, site, stream, attempt, is_abandoned, again: self.again.take() }
    }
}

/// All requests in progress. A token is a slot (32 bits) and, above it, how often the slot was used. Slots are written in
/// place, because moving a whole slot for each request would cost more than all the rest of its bookkeeping.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    /// The token and slot of a new request. The slot still has the last request's values, to be overwritten; only the buffer
    /// `path` is to be kept.
    pub(super) fn begin(&mut self) -> (Token, &mut Flight) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Flight::default());
            self.slots.len() as u32 - 1
        });
        let flight = &mut self.slots[slot as usize];
        flight.generation = flight.generation.wrapping_add(1);
        flight.under_way = true;
        flight.stage = FlightStage::Waiting;
        flight.is_abandoned = false;
        (Token(u64::from(flight.generation) << 32 | u64::from(slot)), flight)
    }

    /// The request, unless it has ended.
    pub(super) fn get(&mut self, token: Token) -> Option<&mut Flight> {
        let flight = self.slots.get_mut(token.0 as u32 as usize)?;
        (flight.under_way && u64::from(flight.generation) == token.0 >> 32).then_some(flight)
    }

    /// Ends the request, unless it has ended.
    pub(super) fn end(&mut self, token: Token) -> Option<EndedFlight> {
        let flight = self.get(token)?;
        flight.under_way = false;
        let ended = flight.left();
        self.free.push(token.0 as u32);
        Some(ended)
    }

    /// How many requests have a client that is still there.
    pub(super) fn awaited(&self) -> usize {
        self.slots.iter().filter(|flight| flight.under_way && !flight.is_abandoned).count()
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_its_request_ends_and_never_again() {
        let mut flights = Flights::default();
        let (first, flight) = flights.begin();
        flight.class = 3;
        assert_eq!((flights.count(), flights.get(first).map(|flight| flight.class)), (1, Some(3)));
        assert_eq!(flights.end(first).map(|ended| ended.class), Some(3));
        assert!(flights.end(first).is_none() && flights.get(first).is_none());
        let (second, _) = flights.begin();
        assert!(second != first && second.0 as u32 == first.0 as u32, "the slot is used again");
        assert!(flights.get(first).is_none() && flights.get(second).is_some());
    }
}
