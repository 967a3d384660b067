//! A progress bar on stderr: only on a terminal, and only for work that takes a while.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

const STEPS: u64 = 1000;
const REDRAWS: u8 = 5;

/// A bar that appears after a while, and is cleared when it is dropped.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    from: Instant,
}

impl ProgressLine {
    /// A bar that does not appear if the work takes less than `patience`.
    pub(crate) fn new(patience: Duration) -> ProgressLine {
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS);
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        ProgressLine { bar, from: Instant::now() + patience }
    }

    /// Shows the part of the work that is done, if it is known, and `text`.
    pub(crate) fn show(&self, done: Option<f64>, text: impl FnOnce() -> String) {
        if self.bar.is_hidden() || Instant::now() < self.from {
            return;
        }
        let template = if done.is_some() { "[{bar:30}] {percent:>3} % {wide_msg}" } else { "{wide_msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("## "));
        }
        self.bar.set_message(text());
        self.bar.set_position((done.unwrap_or_default() * STEPS as f64) as u64);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
