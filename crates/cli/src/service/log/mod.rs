//! The log of a long-running command: lines on stderr that never fail, wait or end anything.
//!
//! Events of `tracing` become lines, and each line goes through a bounded queue to a thread of its own. If the reader of
//! stderr does not keep up, the queue fills and further lines are dropped; a line that cannot be written, to a full disk
//! or a closed pipe, is dropped too. [`dropped`] counts both. A line is the time (UTC) and the event's message; under systemd
//! the message alone, since the journal adds the time.

use super::signals::Signals;
use plimsoll_gateway::access_log::LossyWriter;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::thread;
use tracing::subscriber::set_global_default;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::Subscriber as Lines;
use tracing_subscriber::layer::SubscriberExt as _;

/// How many lines may wait to be written.
const LINES: usize = 4096;

static LOG: OnceLock<LossyWriter> = OnceLock::new();

/// Starts the log, for the whole process. The signals are blocked already, so that the log's thread does not take them.
pub(crate) fn start(_blocked: Signals) {
    let writer = LossyWriter::new(io::stderr(), LINES);
    let queue = writer.queue();
    let lines = Lines::builder().with_level(false).with_target(false);
    let lines = lines.with_ansi(false).with_writer(move || queue.clone());
    // systemd.exec(5): set where stderr is connected to the journal.
    let is_started = LOG.set(writer).is_ok()
        && match std::env::var_os("JOURNAL_STREAM") {
            Some(_) => set_global_default(lines.without_time().finish().with(own_lines())).is_ok(),
            None => set_global_default(lines.finish().with(own_lines())).is_ok(),
        };
    if is_started {
        std::panic::set_hook(Box::new(tell_panic));
    }
}

/// Lines about what the gateway does. What a library says of single frames is left out: clients could fill the log with it.
fn own_lines() -> Targets {
    Targets::new().with_default(LevelFilter::INFO).with_target("h2", LevelFilter::OFF)
}

pub(crate) fn dropped() -> u64 {
    LOG.get().map_or(0, LossyWriter::dropped)
}

/// A line beside what a command prints: through the log if the command has one, else to stderr itself.
pub(crate) fn tell(line: impl fmt::Display) {
    match LOG.get() {
        Some(_) => tracing::error!("{line}"),
        // A reader that has left is no failure.
        None => drop(writeln!(io::stderr(), "{line}")),
    }
}

/// Ends the log when it is dropped: at the end of the program, or when a panic leaves it.
pub(crate) struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        finish();
    }
}

/// Ends the log: waits a moment for the lines that are not written yet. Says how many were lost.
pub(crate) fn finish() {
    let Some(log) = LOG.get() else { return };
    match log.dropped() {
        0 => {}
        dropped => {
            tracing::warn!("{dropped} lines of this log were lost: they could not be written, or not in time")
        }
    }
    log.finish();
}

/// A panic is a line too: the standard library would wait for a reader that has stopped reading.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let trace = Backtrace::capture();
    let trace =
        if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
    tracing::error!("thread '{}' {panic}{trace}", thread::current().name().unwrap_or("without a name"));
}
