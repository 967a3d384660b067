//! Writes to a stream from a thread of its own, without ever waiting for the stream.
//!
//! Lines go through a queue that is bounded in lines and in bytes. If the stream does not keep up, the queue fills and further
//! lines are dropped; a line that cannot be written, to a full disk or a closed pipe, is dropped too. [`LossyWriter::dropped`]
//! counts both.

use crate::sync::lock;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};

/// How long the end of a log waits for the lines that are still in its queue.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that wait in a queue, however long its pieces are: clients decide how long the lines of an access log are.
const MOST_BYTES: usize = 32 << 20;

/// Writes pieces of text to a stream without ever waiting for it. Pieces that cannot be written are dropped and counted.
#[derive(Debug)]
pub struct LossyWriter {
    queue: LossyQueue,
    /// Pieces that the stream did not take.
    failed: Arc<AtomicU64>,
    thread: Mutex<Option<WorkerGuard>>,
}

/// The queue between the callers and the stream.
#[derive(Clone, Debug)]
pub struct LossyQueue {
    /// The bound of this queue in pieces is never reached, because each piece takes at least its part of the bound in bytes.
    pieces: NonBlocking,
    least_room: usize,
    /// The bytes of the queue's room that unwritten pieces take.
    taken: Arc<AtomicUsize>,
    /// Pieces that found the queue full.
    refused: Arc<AtomicU64>,
}

impl Write for LossyQueue {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = piece.len().max(self.least_room);
        if self.taken.fetch_add(room, Relaxed) + room > MOST_BYTES {
            self.taken.fetch_sub(room, Relaxed);
            self.refused.fetch_add(1, Relaxed);
            return Ok(piece.len());
        }
        self.pieces.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LossyWriter {
    /// A writer whose queue has room for `lines` pieces, if they are not too long.
    pub fn new(stream: impl Write + Send + 'static, lines: usize) -> Self {
        LossyWriter::counting(stream, lines, Arc::default())
    }

    /// A writer like `new`'s; pieces that the stream does not take are added to `failed`, which several writers may share.
    pub(super) fn counting(
        stream: impl Write + Send + 'static,
        lines: usize,
        failed: Arc<AtomicU64>,
    ) -> Self {
        let builder =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(lines).thread_name("log");
        let (least_room, taken) = (MOST_BYTES / lines, Arc::<AtomicUsize>::default());
        let counting = Counting { stream, failed: failed.clone(), least_room, taken: taken.clone() };
        let (pieces, thread) = builder.finish(counting);
        let queue = LossyQueue { pieces, least_room, taken, refused: Arc::default() };
        LossyWriter { queue, failed, thread: Mutex::new(Some(thread)) }
    }

    /// Hands a piece, which may have several lines, to the thread that writes.
    pub fn write(&self, piece: &[u8]) {
        // The queue never fails: if it is full, it drops the piece.
        let _ = self.queue.clone().write_all(piece);
    }

    /// The queue, for a subscriber of `tracing`.
    pub fn queue(&self) -> LossyQueue {
        self.queue.clone()
    }

    /// How many pieces were lost, because the stream failed or the queue was full.
    pub fn dropped(&self) -> u64 {
        self.refused() + self.failed.load(Relaxed)
    }

    /// How many pieces found the queue full, or closed.
    pub(super) fn refused(&self) -> u64 {
        self.queue.refused.load(Relaxed) + self.queue.pieces.error_counter().dropped_lines() as u64
    }

    /// Waits until all pieces are written, at most two seconds.
    pub fn finish(&self) {
        if let Some(finished) = self.end() {
            let _ = finished.recv_timeout(PATIENCE);
        }
    }

    /// Ends the writer without waiting: the thread still writes the pieces in the queue.
    pub(super) fn let_go(&self) {
        drop(self.end());
    }

    /// Lets the writing thread end once it has written all pieces; the channel closes then. `None` if the writer was ended
    /// before.
    fn end(&self) -> Option<mpsc::Receiver<()>> {
        let thread = lock(&self.thread).take()?;
        // The guard writes to stdout if the queue stays full, which could block or fail: a thread of its own drops it.
        let (done, finished) = mpsc::channel::<()>();
        let end = move || {
            drop(thread);
            drop(done);
        };
        thread::Builder::new().spawn(end).is_ok().then_some(finished)
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
    /// The queue's least room for a piece.
    least_room: usize,
    taken: Arc<AtomicUsize>,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.stream.write_all(piece).is_err() {
            self.failed.fetch_add(1, Relaxed);
        }
        self.taken.fetch_sub(piece.len().max(self.least_room), Relaxed);
        Ok(piece.len())
    }

    /// Called whenever the queue is empty.
    fn flush(&mut self) -> io::Result<()> {
        // If the flush fails, the buffer keeps its bytes, and the next write that cannot store its bytes fails.
        let _ = self.stream.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// A stream that takes a piece only once the other end of its channel is gone.
    struct Blocked(mpsc::Receiver<()>, Arc<AtomicU64>);

    impl Write for Blocked {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.fetch_add(1, Relaxed);
            Ok(piece.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_lines_are_dropped_before_they_hold_much_memory_and_counted() {
        let (release, blocked) = mpsc::channel();
        let log = LossyWriter::new(Blocked(blocked, Arc::default()), 65_536);
        let line = vec![b'a'; 64 << 10];
        let lines = MOST_BYTES / line.len();
        (0..lines + 5).for_each(|_| log.write(&line));
        assert_eq!(log.dropped(), 5);
        drop(release);
        let deadline = Instant::now() + 10 * PATIENCE;
        while log.queue.taken.load(Relaxed) > 0 {
            assert!(Instant::now() < deadline, "they are written");
            thread::yield_now();
        }
        (0..lines).for_each(|_| log.write(&line));
        assert_eq!(log.dropped(), 5, "there is room again");
    }

    #[test]
    fn short_lines_are_bounded_by_their_number() {
        let (release, blocked) = mpsc::channel();
        let log = LossyWriter::new(Blocked(blocked, Arc::default()), 16);
        (0..20).for_each(|_| log.write(b"a\n"));
        assert_eq!(log.dropped(), 4);
        drop(release);
    }

    #[test]
    fn nobody_waits_for_the_lines_of_a_log_that_was_let_go_and_they_are_written() {
        let (release, blocked) = mpsc::channel();
        let written = Arc::<AtomicU64>::default();
        let log = LossyWriter::new(Blocked(blocked, written.clone()), 16);
        log.write(b"first\n");
        log.write(b"second\n");
        let begin = Instant::now();
        log.let_go();
        drop(log);
        assert!(begin.elapsed() < PATIENCE / 4, "{:?}", begin.elapsed());
        drop(release);
        let deadline = Instant::now() + 10 * PATIENCE;
        while written.load(Relaxed) < 2 {
            assert!(Instant::now() < deadline, "{} of 2 lines", written.load(Relaxed));
            thread::yield_now();
        }
    }
}
