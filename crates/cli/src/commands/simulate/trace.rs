//! Every decision of a simulation, as JSON lines.

use crate::output::facts::{Facts, hidden};
use crate::output::failure::Failure;
use crate::output::json;
use plimsoll_core::time::Instant;
use plimsoll_sim::Event;
use plimsoll_sim::front::{Decision, Order};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file of a trace, and the first error in writing it.
pub(crate) struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
    run: String,
    result: io::Result<()>,
}

impl Trace {
    pub(crate) fn create(path: &Path) -> Result<Trace, Failure> {
        let file = super::create(path)?;
        Ok(Trace { path: path.to_owned(), file: BufWriter::new(file), run: String::new(), result: Ok(()) })
    }

    /// Lines from here on belong to this contender.
    pub(crate) fn begin(&mut self, run: &str) {
        run.clone_into(&mut self.run);
    }

    /// Writes one line: a decision about a request, or its end.
    pub(crate) fn note(&mut self, now: Instant, event: &Event<'_>) {
        if self.result.is_err() {
            return;
        }
        let (token, what, level, reason) = match event {
            Event::Arrived { token, decision: Decision::Start(start), .. }
            | Event::Ordered(Order::Start(token, start)) => {
                (token, "start", Some(start.level), Some(start.reason))
            }
            Event::Arrived { token, decision: Decision::Wait, .. } => (token, "wait", None, None),
            Event::Arrived { token, decision: Decision::Reject(reason), .. }
            | Event::Ordered(Order::Drop(token, reason)) => (token, "reject", None, Some(*reason)),
            Event::Ended { token, outcome } => (token, outcome.as_str(), None, None),
        };
        let mut line = vec![
            hidden("run", self.run.as_str()),
            hidden("seconds", now.as_secs_f64()),
            hidden("request", token.0),
            hidden("event", what),
        ];
        line.extend(level.map(|level| hidden("level", u32::from(level))));
        line.extend(reason.map(|reason| hidden("reason", reason.as_str())));
        if let Event::Arrived { request, class, .. } = event {
            line.extend([
                hidden("class", u32::from(*class)),
                hidden("client", request.client.to_string()),
                hidden("method", &*request.method),
                hidden("host", &*request.host),
                hidden("path", &*request.path),
            ]);
        }
        self.result = writeln!(self.file, "{}", json::line(&Facts(line)));
    }

    /// Writes what is left, and fails if anything could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let result = self.result.and_then(|()| self.file.flush());
        result.map_err(|error| Failure::not_written(&self.path, &error))
    }
}
