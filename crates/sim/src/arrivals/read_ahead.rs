//! A source that is read ahead, on a thread of its own.
//!
//! Parsing a log, or drawing from one, takes a large part of the time that a request costs in the simulation, and mostly waits
//! for memory. So a thread of its own does it, [`BATCHES`] batches ahead; the requests and their order are the same. A batch
//! keeps all text in one string: a processor fetches what another processor wrote quickly only if it lies in order and is read
//! in one go.

use super::{LogNotes, Source, TimeOrigin};
use crate::request::{Request, set};
use plimsoll_core::time::{Duration, Instant};
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Requests in a batch.
const BATCH: usize = 1024;
/// Batches that may wait in each direction.
const BATCHES: usize = 2;

/// The requests of another source.
pub(super) struct ReadAhead {
    full: Receiver<Batch>,
    /// Returns used batches to the thread.
    empty: Sender<Batch>,
    batch: Batch,
    /// The next row, and where its text begins.
    next: usize,
    text: usize,
}

#[derive(Default)]
struct Batch {
    rows: Vec<BatchRow>,
    /// Methods, hosts, paths and queries.
    text: String,
    /// In the last batch, what follows the rows: the end, or the error that stopped the reading.
    end: Option<io::Result<()>>,
    /// The notes at the end of the batch.
    notes: Vec<LogNotes>,
    progress: Option<f64>,
    origin: Option<TimeOrigin>,
}

/// A request without its text. A request from a log has no headers.
#[derive(Clone, Copy)]
struct BatchRow {
    due: Instant,
    /// Lengths of method, host, path and query.
    lengths: [u32; 4],
    client: IpAddr,
    bytes: u64,
    service: Option<Duration>,
    work: Option<f64>,
}

impl ReadAhead {
    /// Begins to read for a run until `end`: the first request after it is the last of a batch, whose notes are then those
    /// of all before.
    ///
    /// # Errors
    /// The thread cannot be started.
    #[expect(clippy::disallowed_methods, reason = "it reads, and what comes of it is in order")]
    pub(super) fn of(source: Box<dyn Source>, end: Instant) -> io::Result<Self> {
        let ((full_sender, full), (empty, empty_receiver)) = (sync_channel(BATCHES), channel());
        let thread = thread::Builder::new().name("arrivals".to_owned());
        thread.spawn(move || read((source, end), &full_sender, &empty_receiver))?;
        Ok(ReadAhead { full, empty, batch: Batch::default(), next: 0, text: 0 })
    }
}

/// Reads until the source ends or the receiver is gone.
fn read(
    (mut source, mut end): (Box<dyn Source>, Instant),
    full: &SyncSender<Batch>,
    empty: &Receiver<Batch>,
) {
    let mut request = Request::default();
    let mut ended = false;
    while !ended {
        let mut batch = empty.try_recv().unwrap_or_default();
        batch.fill(&mut *source, &mut request, &mut end);
        ended = batch.end.is_some();
        if full.send(batch).is_err() {
            return;
        }
    }
}

impl Batch {
    fn fill(&mut self, source: &mut dyn Source, request: &mut Request, end: &mut Instant) {
        self.rows.clear();
        self.text.clear();
        while self.rows.len() < BATCH && self.end.is_none() {
            match source.next(request) {
                Ok(Some(due)) => {
                    self.push(due, request);
                    if due > *end {
                        *end = Instant::FAR;
                        break;
                    }
                }
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        (self.notes, self.progress, self.origin) = (source.notes(), source.progress(), source.origin());
    }

    fn push(&mut self, due: Instant, request: &Request) {
        let Request { method, host, path, query, client, bytes, service, work, .. } = request;
        let parts = [method, host, path, query];
        parts.iter().for_each(|part| self.text.push_str(part));
        let lengths = parts.map(|part| part.len() as u32);
        let (client, bytes, service, work) = (*client, *bytes, *service, *work);
        self.rows.push(BatchRow { due, lengths, client, bytes, service, work });
    }
}

impl ReadAhead {
    /// Copies a batch and gives it back. Read in one go, data that another processor wrote arrives at the speed of memory
    /// instead of cache line by cache line at each request.
    fn take(&mut self, mut full: Batch) {
        let Batch { rows, text, end, notes, progress, origin } = &mut self.batch;
        rows.clone_from(&full.rows);
        text.clone_from(&full.text);
        (*end, *notes, *progress) = (full.end.take(), std::mem::take(&mut full.notes), full.progress);
        *origin = full.origin;
        (self.next, self.text) = (0, 0);
        // The send fails if the reader has read everything and ended, which is no error.
        let _ = self.empty.send(full);
    }
}

impl Source for ReadAhead {
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>> {
        while self.next == self.batch.rows.len() {
            if let Some(end) = &mut self.batch.end {
                return std::mem::replace(end, Ok(())).map(|()| None);
            }
            let Ok(batch) = self.full.recv() else { return Err(io::Error::other("its reader died")) };
            self.take(batch);
        }
        let row = &self.batch.rows[self.next];
        let [method, host, path, query] = row.lengths.map(|length| length as usize);
        let text = &self.batch.text[self.text..];
        set(&mut request.method, &text[..method]);
        set(&mut request.host, &text[method..method + host]);
        // The path mostly differs from the last one, so comparing does not pay.
        request.path.clear();
        let before = method + host;
        request.path.push_str(&text[before..before + path]);
        set(&mut request.query, &text[before + path..before + path + query]);
        request.headers.clear();
        (request.client, request.bytes) = (row.client, row.bytes);
        (request.service, request.work) = (row.service, row.work);
        let due = row.due;
        self.next += 1;
        self.text += before + path + query;
        Ok(Some(due))
    }

    fn progress(&self) -> Option<f64> {
        self.batch.progress
    }

    fn origin(&self) -> Option<TimeOrigin> {
        self.batch.origin
    }

    fn notes(&self) -> Vec<LogNotes> {
        self.batch.notes.clone()
    }
}
