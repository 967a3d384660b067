//! Watching a profile: a progress bar where somebody looks, Ctrl-C.

use crate::service::signals::Interrupt;
use plimsoll_load::profile::{Progress, Watch};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const REDRAW: Duration = Duration::from_millis(200);

/// The watcher.
pub(crate) struct Watcher<'a> {
    interrupt: &'a Interrupt,
    terminal: bool,
    drawn: Option<Instant>,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        Watcher { interrupt, terminal: std::io::stderr().is_terminal(), drawn: None }
    }
}

fn line(progress: &Progress<'_>) -> String {
    let Progress { done, subject, what, requests } = progress;
    let bar = "#".repeat((done * 24.0) as usize);
    format!("[{bar:24}] {:3.0} % {subject:.20}: {what}, {requests} requests so far", done * 100.0)
}

impl Watch for Watcher<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.interrupt.is_told() {
            return ControlFlow::Break(());
        }
        if self.terminal && self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.drawn = Some(Instant::now());
            let mut stderr = std::io::stderr();
            // It is decoration: a terminal that is gone does not matter.
            let _ = write!(stderr, "\r\x1b[K{}", line(progress)).and_then(|()| stderr.flush());
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_a_terminal() {
        let progress =
            Progress { done: 0.5, subject: "/a/path/that/is/longer", what: "256 clients", requests: 20_000 };
        let text = line(&progress);
        assert_eq!(
            text,
            "[############            ]  50 % /a/path/that/is/long: 256 clients, 20000 requests so far"
        );
    }
}
