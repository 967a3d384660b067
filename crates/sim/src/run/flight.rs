//! Requests under way, each in a slot that is used again.

use crate::request::Request;
use plimsoll_core::door::Token;
use plimsoll_core::time::{Duration, Instant};

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the front's queue.
    #[default]
    Waiting,
    /// At this plant.
    Served(usize),
}

/// A request under way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) class: u16,
    pub(super) site: u16,
    pub(super) stream: u16,
    pub(super) level: u8,
    /// How often it came before.
    pub(super) attempt: u32,
    pub(super) stage: Stage,
    pub(super) client: u64,
    pub(super) arrived: Instant,
    /// Before its start at full quality, then at its level.
    pub(super) bytes: u64,
    pub(super) service: Option<Duration>,
    pub(super) work: f64,
    /// While it waits.
    pub(super) path: String,
    /// What its client will ask for again, if it may.
    pub(super) again: Option<Box<Request>>,
}

/// All requests under way. A token is a slot (32 bits) and, above it, how often the slot was used.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Vec<(u32, Option<Flight>)>,
    free: Vec<u32>,
}

impl Flights {
    pub(super) fn begin(&mut self, flight: Flight) -> Token {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, place) = &mut self.slots[slot as usize];
        *generation = generation.wrapping_add(1);
        *place = Some(flight);
        Token(u64::from(*generation) << 32 | u64::from(slot))
    }

    /// The request, unless it has ended.
    pub(super) fn get(&mut self, token: Token) -> Option<&mut Flight> {
        let (generation, flight) = self.slots.get_mut(token.0 as u32 as usize)?;
        flight.as_mut().filter(|_| u64::from(*generation) == token.0 >> 32)
    }

    /// Remembers the path of one that waits.
    pub(super) fn keep_path(&mut self, token: Token, path: &str) {
        if let Some(flight) = self.get(token) {
            path.clone_into(&mut flight.path);
        }
    }

    pub(super) fn end(&mut self, token: Token) -> Option<Flight> {
        self.get(token)?;
        let slot = token.0 as u32;
        self.free.push(slot);
        self.slots[slot as usize].1.take()
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
