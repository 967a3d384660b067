//! What requests ask for, drawn from an access log, in which each request is equally likely.
//!
//! The log is read once. If it has more than [`MOST`] requests, a uniform random sample of that size is kept (algorithm R:
//! Vitter, "Random Sampling with a Reservoir", 1985), so memory is constant. Equal requests are stored once: there are few
//! different ones, so they stay in the processor's caches; otherwise a draw takes several times as long.

use super::LogNotes;
use super::access_log::AccessLog;
use super::entry::Record;
use crate::request::Request;
use crate::workload::{Input, LogFormat, LogOptions};
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;
use std::io;

/// The most requests that are kept.
const MOST: u64 = 100_000;

/// Requests of a log.
pub(super) struct Sample {
    /// For each request, its index in `different`.
    requests: Vec<u32>,
    different: Vec<Request>,
    /// What was found in the log.
    pub(super) notes: LogNotes,
}

impl Sample {
    /// Reads the log.
    ///
    /// # Errors
    /// The file cannot be read, or has no request in it.
    pub(super) fn read(input: &Input, format: &LogFormat, random: &mut Random) -> io::Result<Self> {
        let mut log = AccessLog::open(input, format, &LogOptions::default())?;
        let (mut kept, mut record, mut seen) = (Vec::new(), Record::default(), 0);
        while log.read(&mut record)? {
            seen += 1;
            // The stream draws its own clients.
            record.request.client = Request::default().client;
            if seen <= MOST {
                kept.push(record.request.clone());
            } else if let Some(place) = Some(random.below(seen)).filter(|place| *place < MOST) {
                kept[place as usize].copy_from(&record.request);
            }
        }
        log.notes.requests = seen;
        if kept.is_empty() {
            return Err(log.invalid("it is empty, so that there is no request to draw"));
        }
        kept.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let (mut requests, mut different) = (Vec::new(), Vec::new());
        for request in kept {
            if different.last() != Some(&request) {
                different.push(request);
            }
            requests.push(different.len() as u32 - 1);
        }
        Ok(Sample { requests, different, notes: log.notes })
    }

    /// Fills in a random request of the sample.
    pub(super) fn draw(&self, request: &mut Request, random: &mut Random) {
        let which = self.requests[random.below(self.requests.len() as u64) as usize];
        request.copy_from(&self.different[which as usize]);
    }
}

/// All fields in which two requests of a log can differ.
fn key(request: &Request) -> (&str, &str, &str, &str, u64, Option<Duration>) {
    (&request.method, &request.host, &request.path, &request.query, request.bytes, request.service)
}
