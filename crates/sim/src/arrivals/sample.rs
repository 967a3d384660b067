//! What requests ask for, drawn from an access log: each of its requests is as likely as another.
//!
//! The log is read once. Of one with more than [`MOST`] requests a random sample of that size is kept, each request with
//! the same probability (algorithm R: Vitter, "Random Sampling with a Reservoir", 1985), so that memory is constant.
//! Equal requests are kept once, and all text in one string: there are few different ones, and so they stay in the
//! processor's caches, without which a draw takes several times as long.

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
    /// For each request, which of `different` it is.
    requests: Vec<u32>,
    different: Vec<Kept>,
    /// Methods, hosts and paths.
    text: String,
    notes: LogNotes,
}

/// A request that is different from the others.
struct Kept {
    /// Where its method begins in the text, then its host, its path, and the next one.
    bounds: [u32; 4],
    bytes: u64,
    service: Option<Duration>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
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
        asked.sort_unstable();
        let (requests, different, text) = (Vec::new(), Vec::new(), String::new());
        let mut sample = Sample { requests, different, text, notes: log.notes };
        for (index, one) in asked.iter().enumerate() {
            if index == 0 || asked[index - 1] != *one {
                sample.keep(one);
            }
            sample.requests.push(sample.different.len() as u32 - 1);
        }
        Ok(sample)
    }

    fn keep(&mut self, asked: &Asked) {
        let mut bounds = [self.text.len() as u32; 4];
        for (end, part) in bounds[1..].iter_mut().zip([&asked.method, &asked.host, &asked.path]) {
            self.text.push_str(part);
            *end = self.text.len() as u32;
        }
        self.different.push(Kept { bounds, bytes: asked.bytes, service: asked.service });
    }

    /// Fills in one of them.
    pub(super) fn draw(&self, request: &mut Request, random: &mut Random) {
        let which = self.requests[random.below(self.requests.len() as u64) as usize];
        let asked = &self.different[which as usize];
        let [method, host, path, end] = asked.bounds.map(|bound| bound as usize);
        set(&mut request.method, &self.text[method..host]);
        set(&mut request.host, &self.text[host..path]);
        // Mostly another than the last: not worth comparing.
        request.path.clear();
        request.path.push_str(&self.text[path..end]);
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
