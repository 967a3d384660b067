//! What requests ask for, drawn from an access log: each of its requests is as likely as another.
//!
//! The log is read once. Of one with more than [`MOST`] requests a random sample of that size is kept, each request with
//! the same probability (algorithm R: Vitter, "Random Sampling with a Reservoir", 1985), so that memory is constant.
//! Equal requests are not merged: then one draw would need a table of weights, and sizes differ anyway.

use super::LogNotes;
use super::access_log::AccessLog;
use super::content::set;
use super::entry::Record;
use crate::request::Request;
use crate::workload::{Input, LogFormat};
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;
use std::io;

/// The most requests that are kept.
const MOST: u64 = 100_000;

/// Requests of a log.
pub(super) struct Sample {
    asked: Vec<Asked>,
    notes: LogNotes,
}

struct Asked {
    method: String,
    host: String,
    path: String,
    bytes: u64,
    service: Option<Duration>,
}

impl Sample {
    /// Reads the log.
    ///
    /// # Errors
    /// The file cannot be read, or has no request in it.
    pub(super) fn read(input: &Input, format: &LogFormat, random: &mut Random) -> io::Result<Self> {
        let mut log = AccessLog::open(input, format)?;
        let (mut asked, mut record, mut seen) = (Vec::new(), Record::default(), 0);
        while log.read(&mut record)? {
            seen += 1;
            if seen <= MOST {
                asked.push(Asked::of(&record));
            } else if let Some(place) = Some(random.below(seen)).filter(|place| *place < MOST) {
                asked[place as usize] = Asked::of(&record);
            }
        }
        log.notes.requests = seen;
        if asked.is_empty() {
            return Err(log.invalid("it is empty, so that there is no request to draw"));
        }
        Ok(Sample { asked, notes: log.notes })
    }

    /// Fills in one of them.
    pub(super) fn draw(&self, request: &mut Request, random: &mut Random) {
        let asked = &self.asked[random.below(self.asked.len() as u64) as usize];
        set(&mut request.method, &asked.method);
        set(&mut request.host, &asked.host);
        set(&mut request.path, &asked.path);
        request.headers.clear();
        request.bytes = asked.bytes;
        request.service = asked.service;
        // What a log tells is what it took, not a mean.
        request.work = asked.service.map(|_| 1.0);
    }

    /// What was found in the log.
    pub(super) fn notes(&self) -> &LogNotes {
        &self.notes
    }
}

impl Asked {
    fn of(record: &Record) -> Self {
        Asked {
            method: record.method.clone(),
            host: record.host.clone(),
            path: record.path.clone(),
            bytes: record.bytes,
            service: record.service,
        }
    }
}
