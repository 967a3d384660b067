//! Watching a profile: a progress bar, and Ctrl-C.

use crate::output::progress::ProgressLine;
use crate::service::signals::Interrupt;
use plimsoll_load::profile::{Progress, Watch};
use std::ops::ControlFlow;
use std::time::Duration;

/// The watcher of a profile.
pub(crate) struct ProfileWatcher<'a> {
    interrupt: &'a Interrupt,
    line: ProgressLine,
}

impl<'a> ProfileWatcher<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        ProfileWatcher { interrupt, line: ProgressLine::new(Duration::ZERO) }
    }
}

impl Watch for ProfileWatcher<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.interrupt.is_requested() {
            return ControlFlow::Break(());
        }
        let Progress { done, subject, what, requests } = progress;
        self.line.show(Some(*done), || format!("{subject:.20}: {what}, {requests} requests so far"));
        ControlFlow::Continue(())
    }
}
