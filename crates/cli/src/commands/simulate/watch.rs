//! Watches a run: a progress bar, Ctrl-C, and the trace, which has every decision as JSON lines.

use super::facts::seconds;
use super::inputs::Contender;
use crate::output::facts::{Facts, hidden};
use crate::output::failure::Failure;
use crate::output::json;
use crate::output::new_file::NewFile;
use crate::output::progress::ProgressLine;
use crate::service::background::ProgressLines;
use crate::service::signals::Interrupt;
use plimsoll_sim::front::{Decision, Order};
use plimsoll_sim::{Event, Progress, Watch};
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Where a run shows its progress, and what can end it early.
pub(crate) struct Outputs<'a> {
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) trace: Option<&'a mut Trace>,
    /// Lines of progress for the program that started this one; `None` in the foreground.
    pub(crate) lines: Option<&'a mut ProgressLines>,
}

pub(crate) struct RunWatcher<'a> {
    name: String,
    /// The number of this run, and the number of all runs.
    part: (usize, usize),
    needs_times: Vec<bool>,
    outputs: Outputs<'a>,
    started: Instant,
    bar: ProgressLine,
    /// The first request that came without a service time although it needed one.
    pub(crate) untimed: Option<String>,
}

/// If a run takes less than this, no bar is shown.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

impl<'a> RunWatcher<'a> {
    pub(crate) fn new(contender: &Contender, part: (usize, usize), mut outputs: Outputs<'a>) -> Self {
        if let Some(trace) = &mut outputs.trace {
            trace.begin(&contender.name);
        }
        let (name, needs_times) = (contender.name.clone(), contender.needs_times.clone());
        let (started, bar) = (Instant::now(), ProgressLine::new(PATIENCE));
        RunWatcher { name, part, needs_times, outputs, started, bar, untimed: None }
    }

    /// Shows the progress; false if the user, or the program that reads it, wants no more.
    fn show(&mut self, progress: &Progress) -> bool {
        let (name, part, started) = (&self.name, self.part, self.started);
        let text = || {
            let rate = progress.requests as f64 / started.elapsed().as_secs_f64() / 1e6;
            let (number, of) = (part.0 + 1, part.1);
            let which = if of > 1 { format!("{number}/{of} ") } else { String::new() };
            let millions = progress.requests as f64 / 1e6;
            format!("{which}{name} {millions:.1} M requests, {rate:.1} M/s")
        };
        match &mut self.outputs.lines {
            Some(lines) => lines.say(progress.done, text).is_ok(),
            None => {
                self.bar.show(progress.done, text);
                true
            }
        }
    }
}

impl Watch for RunWatcher<'_> {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        if !self.show(progress) || self.untimed.is_some() || self.outputs.interrupt.is_requested() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn event(&mut self, now: plimsoll_core::time::Instant, event: &Event<'_>) {
        if let Event::Arrived { request, class, .. } = event
            && request.service.is_none()
            && self.needs_times.get(usize::from(*class)) == Some(&true)
            && self.untimed.is_none()
        {
            self.untimed = Some(format!("{} {}", request.method, request.path));
        }
        if let Some(trace) = &mut self.outputs.trace {
            trace.note(now, event);
        }
    }
}

pub(crate) struct Trace {
    file: BufWriter<NewFile>,
    run: String,
    result: io::Result<()>,
}

impl Trace {
    pub(crate) fn new(file: NewFile) -> Trace {
        Trace { file: BufWriter::new(file), run: String::new(), result: Ok(()) }
    }

    /// Lines from here on belong to this contender.
    fn begin(&mut self, run: &str) {
        run.clone_into(&mut self.run);
    }

    /// Writes one line: a decision about a request, or its end.
    fn note(&mut self, now: plimsoll_core::time::Instant, event: &Event<'_>) {
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
            hidden("seconds", seconds(now)),
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

    /// Writes the rest of the trace, and fails if any of it could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let result = self.result.and_then(|()| self.file.flush());
        result.map_err(|error| Failure::not_written(self.file.get_ref().path(), &error))?;
        self.file.into_parts().0.finish()
    }
}
