//! The log of a long-running command: lines on stderr that never fail, wait or end anything.
//!
//! Events of `tracing` become lines, and each line goes through a bounded queue to a thread of its own. If the reader of
//! stderr does not keep up, the queue fills and further lines are dropped; a line that cannot be written, to a full disk
//! or a closed pipe, is dropped too. [`dropped`] counts both. A line is the time (UTC) and the event's message; under systemd
//! the message alone, since the journal adds the time.

use super::signals::Signals;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::Subscriber as Lines;

const LINES: usize = 4096;
/// How long the end of the command waits for the lines that are still in the queue.
const PATIENCE: Duration = Duration::from_secs(2);

static LOG: OnceLock<LossyWriter> = OnceLock::new();

/// Starts the log, for the whole process. The signals are blocked already, so that the log's thread does not take them.
pub(crate) fn start(_blocked: Signals) {
    let writer = LossyWriter::new(io::stderr());
    let lines = Lines::builder().with_level(false).with_target(false);
    let lines = lines.with_ansi(false).with_writer(writer.queue.clone());
    // systemd.exec(5): set where stderr is connected to the journal.
    let is_started = LOG.set(writer).is_ok()
        && match std::env::var_os("JOURNAL_STREAM") {
            Some(_) => tracing::subscriber::set_global_default(lines.without_time().finish()).is_ok(),
            None => tracing::subscriber::set_global_default(lines.finish()).is_ok(),
        };
    if is_started {
        std::panic::set_hook(Box::new(tell_panic));
    }
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

/// Writes pieces of text to a stream without ever waiting for it. What cannot be written is dropped and counted.
pub(crate) struct LossyWriter {
    queue: NonBlocking,
    /// Pieces that found the queue full.
    refused: ErrorCounter,
    /// Pieces that the stream did not take.
    failed: Arc<AtomicU64>,
    thread: Mutex<Option<WorkerGuard>>,
}

impl LossyWriter {
    pub(crate) fn new(stream: impl Write + Send + 'static) -> Self {
        let failed = Arc::<AtomicU64>::default();
        let builder =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log");
        let (queue, thread) = builder.finish(Counting { stream, failed: failed.clone() });
        LossyWriter { refused: queue.error_counter(), queue, failed, thread: Mutex::new(Some(thread)) }
    }

    /// Hands a line to the thread that writes it.
    pub(crate) fn line(&self, line: &str) {
        // The queue never fails: it drops.
        let _ = self.queue.clone().write_all(format!("{line}\n").as_bytes());
    }

    fn dropped(&self) -> u64 {
        self.refused.dropped_lines() as u64 + self.failed.load(Relaxed)
    }

    /// Waits until all is written, at most [`PATIENCE`].
    pub(crate) fn finish(&self) {
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // The guard writes to stdout if the queue stays full, which could block or fail: a thread of its own drops it.
        let (done, finished) = mpsc::channel::<()>();
        let end = move || {
            drop(thread);
            drop(done);
        };
        if thread::Builder::new().spawn(end).is_ok() {
            let _ = finished.recv_timeout(PATIENCE);
        }
    }
}

impl Drop for LossyWriter {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A stream that takes everything, and counts what it could not write.
struct Counting<W> {
    stream: W,
    failed: Arc<AtomicU64>,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.stream.write_all(piece).and_then(|()| self.stream.flush()).is_err() {
            self.failed.fetch_add(1, Relaxed);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A panic is a line too: the standard library would wait for a reader that has stopped reading.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let trace = Backtrace::capture();
    let trace =
        if trace.status() == BacktraceStatus::Captured { format!("\n{trace}") } else { String::new() };
    tracing::error!("thread '{}' {panic}{trace}", thread::current().name().unwrap_or("without a name"));
}
