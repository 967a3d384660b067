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
mod haproxy_format;
mod input;
mod json_format;
mod notes;
mod on_off;
mod own_log;
mod process;
mod rate;
mod read_ahead;
mod replay;
mod sample;
mod sorted;
mod surge;
mod surge_files;
mod times;
mod timestamp;
mod window;

pub use access_log::{LoggedTimes, logged_bytes, logged_times, views};
pub use notes::{FoundFormat, FoundTimes, LeftOut, LogNotes};
pub use own_log::LoggedLevel;
pub use surge_files::surge_files;
pub use window::MOST_WAITING;

use crate::request::Request;
use crate::workload::{Arrivals, Content, Replay, Stream};
use access_log::AccessLog;
use content::Pages;
use counts::Counts;
use generated::{Generated, What, When};
use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use process::Moments;
use read_ahead::ReadAhead;
use replay::ReplayedLog;
use sample::Sample;
use std::io;

/// A stream of requests in order of time. Each source has a seed of its own, so that what happens to requests does not change
/// which requests come.
pub(crate) trait Source: Send {
    /// Fills in the next request and says when it arrives, never earlier than the one before; `None` after the last.
    ///
    /// # Errors
    /// The source's input cannot be read.
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>>;

    /// Called when a request has ended whose user waited for the answer. Fills in the user's next request and gives its time;
    /// `None` if the user asks no more, and if users do not wait.
    fn after_answer(&mut self, _now: Instant, _request: &mut Request) -> Option<Instant> {
        None
    }

    /// How much of the input was read, in [0, 1]; `None` for standard input, and if nothing is read.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// The time of day at which the requests came; `None` if nothing states it.
    fn origin(&self) -> Option<TimeOrigin> {
        None
    }

    /// Notes on the logs that are read so far: the log of the requests, and the log of their contents.
    fn notes(&self) -> Vec<LogNotes>;
}

/// When the recorded requests came: the Unix time at the run's beginning, and recorded seconds per second of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeOrigin {
    pub(crate) began: Duration,
    pub(crate) speed: f64,
}

impl TimeOrigin {
    /// The Unix time at an instant of the run.
    pub(crate) fn unix_time(&self, now: Instant) -> Duration {
        self.began + Duration::from_secs_f64(now.as_secs_f64() * self.speed)
    }
}

/// The source of a stream for a run until `end`. Its seed is its own: another stream must have another.
///
/// # Errors
/// A file cannot be read, or what it holds is no log.
pub(crate) fn source(stream: &Stream, seed: u64, end: Instant) -> io::Result<Box<dyn Source>> {
    let mut seeds = Random::new(seed);
    let (times, mut rest) = (Random::new(seeds.bits()), Random::new(seeds.bits()));
    let moments = match &stream.arrivals {
        Arrivals::Process { process, rate } => When::Process(Moments::new(*process, rate, times)),
        Arrivals::Counts { input, every, replay } => {
            When::Counts(Box::new(Counts::open(input, *every, checked(*replay)?, times)?))
        }
        Arrivals::Log { input, format, options, replay } => {
            let replay = checked(*replay)?;
            let log = ReplayedLog::new(AccessLog::open(input, format, options)?, replay, times);
            return Ok(Box::new(ReadAhead::of(Box::new(log), end)?));
        }
    };
    let (content, is_log) = match &stream.content {
        Content::Pages(pages) => (What::Pages(Pages::new(pages)), false),
        Content::Log(input, format) => {
            (What::Sample(Box::new(Sample::read(input, format, &mut rest)?)), true)
        }
    };
    let drawn =
        Box::new(Generated { moments, content, clients: stream.clients, random: rest, last: Instant::ZERO });
    // What users that wait ask for cannot be drawn before their answers.
    Ok(if is_log && !stream.waits() { Box::new(ReadAhead::of(drawn, end)?) } else { drawn })
}

/// A replay with a speed of zero would never reach its second request.
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
