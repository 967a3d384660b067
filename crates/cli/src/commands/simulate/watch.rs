//! Watching a run: a progress bar where somebody looks, Ctrl-C, the trace.

use super::inputs::Contender;
use super::trace::Trace;
use crate::service::signals::Interrupt;
use plimsoll_sim::{Event, Progress, Watch};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The watcher of one run.
pub(crate) struct Watcher<'a> {
    name: String,
    /// Which of how many.
    part: (usize, usize),
    /// By class.
    needs_times: Vec<bool>,
    interrupt: &'a Interrupt,
    trace: Option<&'a mut Trace>,
    started: Instant,
    drawn: Option<Instant>,
    /// The first request that came without the service time that it had to bring.
    pub(crate) untimed: Option<String>,
}

/// A run that takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

impl<'a> Watcher<'a> {
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
        let started = Instant::now();
        Watcher { name, part, needs_times, interrupt, trace, started, drawn: None, untimed: None }
    }

    fn draw(&mut self, progress: &Progress) {
        let mut stderr = std::io::stderr();
        let last = self.drawn.unwrap_or(self.started + PATIENCE - REDRAW);
        if !stderr.is_terminal() || last.elapsed() < REDRAW {
            return;
        }
        self.drawn = Some(Instant::now());
        let rate = progress.requests as f64 / self.started.elapsed().as_secs_f64() / 1e6;
        let (number, of) = (self.part.0 + 1, self.part.1);
        let which = if of > 1 { format!("{number}/{of} ") } else { String::new() };
        let bar = progress.done.map_or(String::new(), |done| {
            format!("[{:30}] {:3.0} % ", "#".repeat((done * 30.0) as usize), done * 100.0)
        });
        let text = format!(
            "{which}{} {bar}{:.1} M requests, {rate:.1} M/s",
            self.name,
            progress.requests as f64 / 1e6
        );
        // It is decoration: a terminal that is gone does not matter.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}

impl Watch for Watcher<'_> {
    fn progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.draw(progress);
        if self.untimed.is_some() || self.interrupt.is_told() {
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

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
