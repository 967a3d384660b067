//! Every decision, as JSON lines.

use crate::output::failure::Failure;
use plimsoll_core::time::Instant;
use plimsoll_gateway::admin::json::Json;
use plimsoll_sim::Event;
use plimsoll_sim::front::{Decision, Order, Start};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file, and the first error in writing it.
pub(crate) struct Trace {
    path: PathBuf,
    file: BufWriter<File>,
    run: String,
    result: io::Result<()>,
}

impl Trace {
    /// A new file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Trace, Failure> {
        let file = super::create(path)?;
        Ok(Trace { path: path.to_owned(), file: BufWriter::new(file), run: String::new(), result: Ok(()) })
    }

    /// What follows is of this contender.
    pub(crate) fn begin(&mut self, run: &str) {
        run.clone_into(&mut self.run);
    }

    /// One line.
    pub(crate) fn note(&mut self, now: Instant, event: &Event<'_>) {
        if self.result.is_err() {
            return;
        }
        let text = |text: &str| Json::Text(text.to_owned());
        let mut fields = vec![("run", text(&self.run)), ("seconds", Json::Number(now.as_secs_f64()))];
        let started = |start: Start, fields: &mut Vec<_>| {
            fields.push(("event", text("start")));
            fields.push(("level", Json::Count(start.level.into())));
            fields.push(("reason", text(start.reason.as_str())));
        };
        match event {
            Event::Arrived { token, request, class, decision } => {
                fields.push(("request", Json::Count(token.0)));
                match decision {
                    Decision::Start(start) => started(*start, &mut fields),
                    Decision::Wait => fields.push(("event", text("wait"))),
                    Decision::Reject(reason) => {
                        fields.push(("event", text("reject")));
                        fields.push(("reason", text(reason.as_str())));
                    }
                }
                fields.push(("class", Json::Count((*class).into())));
                fields.push(("client", text(&request.client.to_string())));
                fields.push(("method", text(&request.method)));
                fields.push(("host", text(&request.host)));
                fields.push(("path", text(&request.path)));
            }
            Event::Ordered(Order::Start(token, start)) => {
                fields.push(("request", Json::Count(token.0)));
                started(*start, &mut fields);
            }
            Event::Ordered(Order::Drop(token, reason)) => {
                fields.push(("request", Json::Count(token.0)));
                fields.push(("event", text("reject")));
                fields.push(("reason", text(reason.as_str())));
            }
            Event::Ended { token, outcome } => {
                fields.push(("request", Json::Count(token.0)));
                fields.push(("event", text(outcome.as_str())));
            }
        }
        self.result = writeln!(self.file, "{}", Json::object(fields));
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
