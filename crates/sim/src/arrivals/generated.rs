//! Requests that are drawn: arrival times, contents and clients, independently of each other.

use super::content::{Pages, set_client};
use super::counts::Counts;
use super::process::Moments;
use super::sample::Sample;
use super::{LogNotes, Source};
use crate::request::Request;
use crate::workload::Clients;
use plimsoll_core::random::Random;
use plimsoll_core::time::Instant;
use std::io;

/// A source of drawn requests.
pub(super) struct Generated {
    /// Times.
    pub(super) moments: When,
    /// Contents.
    pub(super) content: What,
    /// Clients.
    pub(super) clients: Clients,
    /// Draws contents and clients. Arrival times have a generator of their own, so that another page mix does not change them.
    pub(super) random: Random,
    /// The time of the last request.
    pub(super) last: Instant,
}

/// When requests come.
pub(super) enum When {
    /// A random process.
    Process(Moments),
    /// A count for each interval.
    Counts(Box<Counts>),
}

/// What requests ask for.
pub(super) enum What {
    /// Pages of the workload.
    Pages(Pages),
    /// Requests of a log.
    Sample(Box<Sample>),
}

impl What {
    /// Fills in what is asked for.
    fn draw(&self, request: &mut Request, random: &mut Random) {
        match self {
            What::Pages(pages) => pages.draw(request, random),
            What::Sample(sample) => sample.draw(request, random),
        }
    }
}

impl Source for Generated {
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>> {
        let time = match &mut self.moments {
            When::Process(moments) => moments.next(),
            When::Counts(counts) => counts.next()?,
        };
        let Some(time) = time else { return Ok(None) };
        // At a change of phase, rounding may put a time slightly before the last one.
        self.last = self.last.max(Instant::from_secs_f64(time));
        if self.last == Instant::FAR {
            return Ok(None);
        }
        self.content.draw(request, &mut self.random);
        set_client(request, &self.clients, &mut self.random);
        if let When::Process(moments) = &self.moments {
            request.files_left = moments.files_left();
        }
        Ok(Some(self.last))
    }

    fn after_answer(&mut self, now: Instant, request: &mut Request) -> Option<Instant> {
        let (When::Process(moments), Some(left)) = (&mut self.moments, request.files_left) else {
            return None;
        };
        let (time, left) = moments.after_answer(now.as_secs_f64(), left)?;
        let client = request.client;
        self.content.draw(request, &mut self.random);
        (request.client, request.files_left) = (client, Some(left));
        Some(now.max(Instant::from_secs_f64(time)))
    }

    fn progress(&self) -> Option<f64> {
        match &self.moments {
            When::Process(_) => None,
            When::Counts(counts) => counts.progress(),
        }
    }

    fn notes(&self) -> Vec<LogNotes> {
        let counts = match &self.moments {
            When::Process(_) => None,
            When::Counts(counts) => Some(&counts.notes),
        };
        let content = match &self.content {
            What::Pages(_) => None,
            What::Sample(sample) => Some(&sample.notes),
        };
        counts.into_iter().chain(content).cloned().collect()
    }
}
