//! Watching a run: a progress bar, Ctrl-C, the trace.

use super::inputs::Contender;
use super::trace::Trace;
use crate::output::progress::ProgressLine;
use crate::service::signals::Interrupt;
use plimsoll_sim::{Event, Progress, Watch};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(crate) struct RunWatcher<'a> {
    name: String,
    /// The number of this run, and of all runs.
    part: (usize, usize),
    /// By class: whether its requests must bring their own service times.
    needs_times: Vec<bool>,
    interrupt: &'a Interrupt,
    trace: Option<&'a mut Trace>,
    started: Instant,
    line: ProgressLine,
    /// The first request that came without the service time that it had to bring.
    pub(crate) untimed: Option<String>,
}

/// A run that takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

impl<'a> RunWatcher<'a> {
    pub(crate) fn new(
        contender: &Contender,
        part: (usize, usize),
        interrupt: &'a Interrupt,
        mut trace: Option<&'a mut Trace>,
    ) -> Self {
        if let Some(trace) = &mut trace {
            trace.begin(&contender.name);
        }
        let (name, needs_times) = (contender.name.clone(), contender.needs_times.clone());
        let (started, line) = (Instant::now(), ProgressLine::new(PATIENCE));
        RunWatcher { name, part, needs_times, interrupt, trace, started, line, untimed: None }
    }

    fn draw(&self, progress: &Progress) {
        self.line.show(progress.done, || {
            let rate = progress.requests as f64 / self.started.elapsed().as_secs_f64() / 1e6;
            let (number, of) = (self.part.0 + 1, self.part.1);
            let which = if of > 1 { format!("{number}/{of} ") } else { String::new() };
            let millions = progress.requests as f64 / 1e6;
            format!("{which}{} {millions:.1} M requests, {rate:.1} M/s", self.name)
        });
    }
}

impl Watch for RunWatcher<'_> {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.draw(progress);
        if self.untimed.is_some() || self.interrupt.is_requested() {
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
        if let Some(trace) = &mut self.trace {
            trace.note(now, event);
        }
    }
}
