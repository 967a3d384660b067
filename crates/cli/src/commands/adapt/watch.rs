//! A progress bar, and Ctrl-C.

use crate::output::progress::ProgressLine;
use crate::service::signals::Interrupt;
use plimsoll_content::Watch;
use std::time::Duration;

/// If the work takes less than this, no bar is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// The watcher of `adapt` or `impact`.
pub(crate) struct SiteWatcher<'a> {
    name: &'static str,
    interrupt: &'a Interrupt,
    line: ProgressLine,
}

impl<'a> SiteWatcher<'a> {
    pub(crate) fn new(name: &'static str, interrupt: &'a Interrupt) -> Self {
        SiteWatcher { name, interrupt, line: ProgressLine::new(PATIENCE) }
    }
}

impl Watch for SiteWatcher<'_> {
    fn progress(&self, done: usize, of: usize) {
        let part = done as f64 / of.max(1) as f64;
        self.line.show(Some(part), || format!("{}: {done} of {of} files", self.name));
    }

    fn stopped(&self) -> bool {
        self.interrupt.is_requested()
    }
}
