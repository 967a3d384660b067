//! Requests of a random process: when, what and who, each drawn apart.

use super::content::{Pages, set_client};
use super::process::Moments;
use super::{LogNotes, Source};
use crate::request::Request;
use crate::workload::Clients;
use plimsoll_core::random::Random;
use plimsoll_core::time::Instant;
use std::io;

/// A source of drawn requests.
pub(super) struct Generated {
    /// When.
    pub(super) moments: Moments,
    /// What.
    pub(super) content: Pages,
    /// Who.
    pub(super) clients: Clients,
    /// Of what and who. Times have a generator of their own, so that another page mix does not move them.
    pub(super) random: Random,
    /// The last request's.
    pub(super) last: Instant,
}

impl Source for Generated {
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>> {
        let Some(time) = self.moments.next() else { return Ok(None) };
        // Rounding may put a time a hair before the last one at a change of phase.
        self.last = self.last.max(Instant::from_secs_f64(time));
        if self.last == Instant::FAR {
            return Ok(None);
        }
        self.content.draw(request, &mut self.random);
        set_client(request, &self.clients, &mut self.random);
        Ok(Some(self.last))
    }

    fn notes(&self) -> LogNotes {
        LogNotes::default()
    }
}
