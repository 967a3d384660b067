//! Where requests come from: random processes, counts per interval, access logs.

mod alias;
mod content;
mod generated;
mod on_off;
mod process;
mod rate;

use crate::request::Request;
use crate::workload::{Arrivals, Content, Stream};
use content::Pages;
use generated::Generated;
use plimsoll_core::random::Random;
use plimsoll_core::time::Instant;
use process::Moments;
use std::io;

/// A stream of requests in order of time. It has a seed of its own, so that the same requests come whatever becomes of
/// them.
pub(crate) trait Source {
    /// Fills in the next request and says when it arrives, never earlier than the one before; `None` after the last.
    ///
    /// # Errors
    /// What was to be read cannot be read.
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>>;

    /// How much of what is to be read has been read, in [0, 1]; `None` where nobody knows (standard input), or where
    /// nothing is read.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// What was found in a log so far.
    fn notes(&self) -> LogNotes {
        LogNotes::default()
    }
}

/// What a log turned out to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogNotes {
    /// Lines read.
    pub lines: u64,
    /// Lines that could not be understood and were skipped.
    pub skipped: u64,
    /// The first of them: its number, from 1, its text cut to a sensible length, and what is wrong with it.
    pub first_skipped: Option<(u64, String, String)>,
    /// Lines whose time lies before that of an earlier line. They come at that line's time.
    pub backwards: u64,
    /// The first of them: its number, and by how much [s].
    pub first_backwards: Option<(u64, f64)>,
    /// Times that the log's clock went back for good (two logs in one file, say): from there on it is moved to go on.
    pub restarts: u64,
    /// Requests that came of it so far.
    pub requests: u64,
    /// Gaps of more than an hour, which are cut to an hour, and how much was cut [s].
    pub gaps: (u64, f64),
}

/// The source of a stream. Its seed is its own: another stream must have another.
///
/// # Errors
/// A file cannot be read, or what it holds is no log.
pub(crate) fn source(stream: &Stream, seed: u64) -> io::Result<Box<dyn Source>> {
    let mut seeds = Random::new(seed);
    let (times, rest) = (Random::new(seeds.bits()), Random::new(seeds.bits()));
    let unsupported = |what: &str| Err(io::Error::new(io::ErrorKind::Unsupported, what.to_owned()));
    let content = match &stream.content {
        Content::Pages(pages) => Pages::new(pages),
        Content::Log(..) => return unsupported("pages of a log"),
    };
    match &stream.arrivals {
        Arrivals::Process { process, rate } => Ok(Box::new(Generated {
            moments: Moments::new(*process, rate, times),
            content,
            clients: stream.clients,
            random: rest,
            last: Instant::ZERO,
        })),
        Arrivals::Counts { .. } => unsupported("counts"),
        Arrivals::Log { .. } => unsupported("logs"),
    }
}
