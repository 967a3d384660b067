//! A progress bar where somebody looks, and Ctrl-C.

use crate::service::signals::Interrupt;
use plimsoll_content::Watch;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The bar.
pub(crate) struct Bar<'a> {
    name: &'static str,
    interrupt: &'a Interrupt,
    started: Instant,
    drawn: Mutex<Option<Instant>>,
}

/// Work that takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

impl<'a> Bar<'a> {
    pub(crate) fn new(name: &'static str, interrupt: &'a Interrupt) -> Self {
        Bar { name, interrupt, started: Instant::now(), drawn: Mutex::new(None) }
    }
}

impl Watch for Bar<'_> {
    fn progress(&self, done: usize, of: usize) {
        let mut stderr = std::io::stderr();
        let Ok(mut drawn) = self.drawn.try_lock() else { return };
        let last = drawn.unwrap_or(self.started + PATIENCE - REDRAW);
        if !stderr.is_terminal() || Instant::now().saturating_duration_since(last) < REDRAW {
            return;
        }
        *drawn = Some(Instant::now());
        let text = format!("{} [{:30}] {done} of {of} files", self.name, "#".repeat(done * 30 / of.max(1)));
        // It is decoration: a terminal that is gone does not matter.
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }

    fn stopped(&self) -> bool {
        self.interrupt.is_told()
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        if self.drawn.lock().is_ok_and(|drawn| drawn.is_some()) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
