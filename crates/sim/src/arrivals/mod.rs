//! Where requests come from: random processes, counts per interval, access logs.
//!
//! Comes in: a stream of the workload. Goes out: a [`Source`], which gives requests in order of time, and notes of what
//! was found in a log ([`LogNotes`]).

mod access_log;
mod alias;
mod clock;
mod common_format;
mod content;
mod counts;
mod entry;
mod generated;
mod input;
mod json_format;
mod logged;
mod on_off;
mod process;
mod rate;
mod read_ahead;
mod replay;
mod sample;
mod skipped;
mod timestamp;
mod views;

pub use logged::logged_bytes;
pub use views::views;

use crate::request::Request;
use crate::workload::{Arrivals, Content, Replay, Stream};
use content::Pages;
use counts::Counts;
use generated::{Generated, What, When};
use plimsoll_core::random::Random;
use plimsoll_core::time::Instant;
use process::Moments;
use read_ahead::ReadAhead;
use replay::ReplayedLog;
use sample::Sample;
use std::fmt;
use std::io;

/// A stream of requests in order of time. It has a seed of its own, so that the same requests come whatever becomes of
/// them.
pub(crate) trait Source: Send {
    /// Fills in the next request and says when it arrives, never earlier than the one before; `None` after the last.
    ///
    /// # Errors
    /// What was to be read cannot be read.
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>>;

    /// How much of what is to be read has been read, in [0, 1]; `None` for standard input, and where nothing is read.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// What was found in a log so far.
    fn notes(&self) -> LogNotes {
        LogNotes::default()
    }

    /// What was found in the log from which content is drawn, if there is one.
    fn content_notes(&self) -> Option<&LogNotes> {
        None
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
    /// Lines whose time lies before that of an earlier line. Their requests come at that line's time.
    pub backwards: u64,
    /// The first of them: its number, and by how much (s).
    pub first_backwards: Option<(u64, f64)>,
    /// Times that the log's clock went back for good (two logs in one file, say): from there on it is moved to go on.
    pub restarts: u64,
    /// Gaps of more than an hour, which are cut to an hour, and how much was cut (s).
    pub gaps: (u64, f64),
    /// Lines alone more than an hour ahead of those around them. They come at the time of the line before.
    pub strays: u64,
    /// Requests that came of it so far.
    pub requests: u64,
    /// Requests whose line has the server's own time; and requests whose line has none, or one too small to be written:
    /// zero.
    pub timed: (u64, u64),
    /// What the first line that was understood looks like. Counts have none.
    pub format: Option<FoundFormat>,
}

/// What a log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundFormat {
    /// The Common log format.
    Common,
    /// The same with referer and agent.
    Combined,
    /// A JSON object a line.
    Json,
}

impl fmt::Display for FoundFormat {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            FoundFormat::Common => "Common log format",
            FoundFormat::Combined => "Combined log format",
            FoundFormat::Json => "JSON lines",
        })
    }
}

/// The source of a stream. Its seed is its own: another stream must have another.
///
/// # Errors
/// A file cannot be read, or what it holds is no log.
pub(crate) fn source(stream: &Stream, seed: u64) -> io::Result<Box<dyn Source>> {
    let mut seeds = Random::new(seed);
    let (times, mut rest) = (Random::new(seeds.bits()), Random::new(seeds.bits()));
    let moments = match &stream.arrivals {
        Arrivals::Process { process, rate } => When::Process(Moments::new(*process, rate, times)),
        Arrivals::Counts { input, every, replay } => {
            When::Counts(Counts::open(input, *every, checked(*replay)?, times)?)
        }
        Arrivals::Log { input, format, replay } => {
            let log = ReplayedLog::open(input, format, checked(*replay)?, times)?;
            return Ok(Box::new(ReadAhead::of(Box::new(log))?));
        }
    };
    let (content, is_log) = match &stream.content {
        Content::Pages(pages) => (What::Pages(Pages::new(pages)), false),
        Content::Log(input, format) => (What::Sample(Sample::read(input, format, &mut rest)?), true),
    };
    let drawn =
        Box::new(Generated { moments, content, clients: stream.clients, random: rest, last: Instant::ZERO });
    Ok(if is_log { Box::new(ReadAhead::of(drawn)?) } else { drawn })
}

/// A speed of zero would never come to the second request.
fn checked(replay: Replay) -> io::Result<Replay> {
    let positive = replay.speed > 0.0 && replay.speed.is_finite();
    if positive && replay.scale >= 0.0 && replay.scale.is_finite() {
        return Ok(replay);
    }
    let Replay { speed, scale } = replay;
    let message = format!("speed {speed} must be above 0, scale {scale} 0 or more, and both finite");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests;
