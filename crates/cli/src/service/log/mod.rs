//! The log of a long-running command: lines on stderr whose writing never fails, waits or ends the command.
//!
//! Events of `tracing` become lines (`line.rs`), and each line goes through a bounded queue to a thread of its own. If the
//! reader of stderr does not keep up, the queue fills and further lines are dropped; a line that cannot be written, to a full
//! disk or a closed pipe, is dropped too. [`dropped`] counts both.
//!
//! Levels: an error needs a person now, a warning is for a person to look at, an information says what has changed, and the
//! others help to find a fault. An event's message is a whole sentence without its subject, which is a field: `site` and
//! `class`, `upstream`, or `plant` (an upstream or a folder). Other fields repeat the sentence's figures for programs.

mod line;
mod news;

use super::signals::Signals;
use crate::service::sync::lock;
use line::{LineForm, is_journal};
pub(crate) use news::{CountedRequests, News, Subject};
use plimsoll_config::{LeastLevel, LineFormat, Log};
use plimsoll_gateway::access_log::LossyWriter;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread;
use tracing::subscriber::set_global_default;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Registry, fmt as lines, reload};

/// How many lines may wait to be written.
const LINES: usize = 4096;

static LOG: OnceLock<RunningLog> = OnceLock::new();
/// Whether lines are written as JSON objects.
static IS_JSON: AtomicBool = AtomicBool::new(false);

struct RunningLog {
    writer: LossyWriter,
    wanted: reload::Handle<Targets, Registry>,
    settings: Mutex<Log>,
}

/// Starts the log for the whole process. Signals must be blocked already, so that the log's thread does not take them.
pub(crate) fn start(_blocked: Signals) {
    let writer = LossyWriter::new(io::stderr(), LINES);
    let queue = writer.queue();
    let form = LineForm { is_journal: is_journal(), is_json: &IS_JSON };
    let (filter, wanted) = reload::Layer::new(own_lines(LevelFilter::INFO));
    let layer = lines::layer().event_format(form).with_writer(move || queue.clone());
    let subscriber = Registry::default().with(filter).with(layer);
    let settings = Mutex::new(Log::default());
    if LOG.set(RunningLog { writer, wanted, settings }).is_ok() && set_global_default(subscriber).is_ok() {
        std::panic::set_hook(Box::new(tell_panic));
    }
}

/// Applies a configuration's log settings from now on. Returns whether they differ from before.
pub(crate) fn follow(settings: Log) -> bool {
    let least = match settings.level {
        LeastLevel::Error => LevelFilter::ERROR,
        LeastLevel::Warn => LevelFilter::WARN,
        LeastLevel::Info => LevelFilter::INFO,
        LeastLevel::Debug => LevelFilter::DEBUG,
    };
    IS_JSON.store(settings.format == LineFormat::Json, Relaxed);
    let Some(log) = LOG.get() else { return false };
    // This fails only if there is no subscriber any more, and then there are no lines.
    let _ = log.wanted.reload(own_lines(least));
    let before = std::mem::replace(&mut *lock(&log.settings), settings);
    before != settings
}

/// Selects the lines about what the gateway does. What a library logs about single frames is left out, because clients could
/// fill the log with it.
fn own_lines(least: LevelFilter) -> Targets {
    let of_others = least.min(LevelFilter::INFO);
    Targets::new().with_default(of_others).with_target("h2", LevelFilter::OFF).with_target("plimsoll", least)
}

pub(crate) fn dropped() -> u64 {
    LOG.get().map_or(0, |log| log.writer.dropped())
}

/// Prints a line that is not a command's result: through the log if the command has one, else to stderr.
pub(crate) fn tell(line: impl fmt::Display) {
    match LOG.get() {
        Some(_) => tracing::info!("{line}"),
        None => print(line),
    }
}

/// Prints a line about a failure in the same way.
pub(crate) fn tell_failure(line: impl fmt::Display) {
    match LOG.get() {
        Some(_) => tracing::error!("{}", below_level(&line.to_string())),
        None => print(line),
    }
}

/// The text of a failure without `error:`, which the line's level says already. Diagnostics keep their form, below the line
/// that says how many there are in which file.
fn below_level(text: &str) -> String {
    match text.rsplit_once('\n') {
        Some((diagnostics, count)) if text.starts_with("error[") => {
            format!("{count}:\n{}", diagnostics.trim_end())
        }
        _ => {
            let lines = text.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

fn print(line: impl fmt::Display) {
    // A reader that has left is no failure.
    drop(writeln!(io::stderr(), "{line}"));
}

/// Ends the log when it is dropped: at the end of the program, or during a panic.
pub(crate) struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        finish();
    }
}

/// Ends the log: waits a moment for unwritten lines, and reports how many were lost.
pub(crate) fn finish() {
    let Some(log) = LOG.get() else { return };
    match log.writer.dropped() {
        0 => {}
        dropped => {
            tracing::warn!(
                dropped,
                "{dropped} lines of this log were lost: they could not be written, or not in time"
            )
        }
    }
    log.writer.finish();
}

/// Logs a panic as a line, because the standard library would wait for a reader that has stopped reading.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let trace = Backtrace::capture();
    let trace =
        if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
    tracing::error!("thread '{}' {panic}{trace}", thread::current().name().unwrap_or("without a name"));
}
