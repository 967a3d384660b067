//! Every decision of a simulation, as JSON lines.

use crate::output::failure::Failure;
use crate::output::json;
use plimsoll_core::time::Instant;
use plimsoll_sim::Event;
use plimsoll_sim::front::{Decision, Order, Start};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The file of a trace, and the first error in writing it.
pub(crate) struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
    run: String,
    result: io::Result<()>,
}

impl Trace {
    /// Makes a new file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Trace, Failure> {
        let file = super::create(path)?;
        Ok(Trace { path: path.to_owned(), file: BufWriter::new(file), run: String::new(), result: Ok(()) })
    }

    /// Lines from here on belong to this contender.
    pub(crate) fn begin(&mut self, run: &str) {
        run.clone_into(&mut self.run);
    }

    /// Writes one line.
    pub(crate) fn note(&mut self, now: Instant, event: &Event<'_>) {
        if self.result.is_err() {
            return;
        }
        let mut line = Line { run: &self.run, seconds: now.as_secs_f64(), ..Line::default() };
        match event {
            Event::Arrived { token, request, class, decision } => {
                line.request = token.0;
                match decision {
                    Decision::Start(start) => line.start(*start),
                    Decision::Wait => line.event = "wait",
                    Decision::Reject(reason) => (line.event, line.reason) = ("reject", Some(reason.as_str())),
                }
                line.class = Some(*class);
                line.client = Some(request.client);
                line.method = Some(&request.method);
                line.host = Some(&request.host);
                line.path = Some(&request.path);
            }
            Event::Ordered(Order::Start(token, start)) => {
                line.request = token.0;
                line.start(*start);
            }
            Event::Ordered(Order::Drop(token, reason)) => {
                line.request = token.0;
                (line.event, line.reason) = ("reject", Some(reason.as_str()));
            }
            Event::Ended { token, outcome } => (line.request, line.event) = (token.0, outcome.as_str()),
        }
        self.result = writeln!(self.file, "{}", json::line(&line));
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// Something could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let result = self.result.and_then(|()| self.file.flush());
        result.map_err(|error| super::not_written(&self.path, &error))
    }
}

/// A decision about a request, or its end.
#[derive(Default, Serialize)]
struct Line<'a> {
    run: &'a str,
    seconds: f64,
    request: u64,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl Line<'_> {
    fn start(&mut self, start: Start) {
        (self.event, self.level, self.reason) = ("start", Some(start.level), Some(start.reason.as_str()));
    }
}
