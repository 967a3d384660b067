//! The common parts of every load: a thread with a runtime, a tally that may be read meanwhile, and an end.

use super::connection::{Connection, Failure, Requests};
use super::record::{Answer, ErrorKind, Outcome, Record};
use super::tally::{LevelChanges, Tally};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Called with every record, on the load's thread: it must be quick.
pub type Sink = Box<dyn FnMut(&Record) + Send>;

/// The shared state of a load: its handle and its tasks use it, and it collects the records.
pub(crate) struct Run {
    pub(crate) requests: Requests,
    pub(crate) started: Instant,
    pub(crate) in_flight: AtomicUsize,
    /// Notified when `in_flight` falls to zero, and at a stop.
    pub(crate) changed: Notify,
    stopping: AtomicBool,
    /// Requests that may still be made.
    left: AtomicU64,
    books: Mutex<Books>,
}

struct Books {
    tally: Tally,
    sink: Option<Sink>,
}

impl Run {
    /// A run of at most `most` requests.
    pub(crate) fn new(requests: Requests, tally: Tally, sink: Option<Sink>, most: u64) -> Arc<Self> {
        Arc::new(Self {
            requests,
            started: Instant::now(),
            in_flight: AtomicUsize::new(0),
            changed: Notify::new(),
            stopping: AtomicBool::new(false),
            left: AtomicU64::new(most),
            books: Mutex::new(Books { tally, sink }),
        })
    }

    pub(crate) fn since_start(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Begins one of the requests that may still be made; false if the load ends, because all were made or it was stopped.
    pub(crate) fn begin(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let begins =
            !self.is_stopping() && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        self.in_flight.fetch_add(usize::from(begins), Ordering::Relaxed);
        begins
    }

    /// Makes the request of `client` that was due at `arrival`, and records it. The request uses an idle connection from
    /// `take`, or else a new one; `keep` gets the connection back after an answer.
    pub(crate) async fn request(
        &self,
        (client, arrival): (u32, Duration),
        take: impl FnMut() -> Option<Connection>,
        keep: impl FnOnce(Connection),
    ) -> Outcome {
        let lateness = self.since_start().saturating_sub(arrival);
        let exchange = tokio::time::timeout(self.requests.target.timeout, self.exchange(client, take));
        let outcome = match exchange.await.unwrap_or(Err(ErrorKind::Timeout)) {
            Ok((answer, connection)) => {
                keep(connection);
                Outcome::Answer(answer)
            }
            Err(kind) => Outcome::Error(kind),
        };
        let latency = self.since_start().saturating_sub(arrival);
        self.record(&Record { client, arrival, lateness, latency, outcome });
        if self.in_flight.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.changed.notify_one();
        }
        outcome
    }

    fn record(&self, record: &Record) {
        let mut books = self.books();
        books.tally.add(record);
        if let Some(sink) = &mut books.sink {
            sink(record);
        }
    }

    async fn exchange(
        &self,
        client: u32,
        mut take: impl FnMut() -> Option<Connection>,
    ) -> Result<(Answer, Connection), ErrorKind> {
        loop {
            let idle = take().filter(|connection| !connection.is_closed());
            let fresh = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                // The future is boxed, because connecting is rare and its state is large, and every arrival's task would have
                // to hold it.
                None => Box::pin(self.requests.connect(client)).await?,
            };
            match connection.exchange(&self.requests).await {
                Ok(answer) => return Ok((answer, connection)),
                // A server may close an idle connection at any time, so another one is tried. Each round uses up one idle
                // connection.
                Err(Failure::Unsent) if !fresh => {}
                Err(Failure::Unsent) => return Err(ErrorKind::Closed),
                Err(Failure::Error(kind)) => return Err(kind),
            }
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // A sink that panicked has ended its load; the counts up to then are still correct.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running load. If the handle is dropped, the load ends at once, without waiting for requests in progress.
pub struct LoadHandle {
    run: Arc<Run>,
    task: AbortHandle,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for LoadHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LoadHandle").field("started", &self.run.started).finish_non_exhaustive()
    }
}

impl LoadHandle {
    /// Runs `load` on a thread named `name`, to its end or until the handle is dropped. Tasks left behind are dropped.
    pub(crate) fn start(
        name: &str,
        run: Arc<Run>,
        load: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().event_interval(16).build()?;
        let load = runtime.spawn(load);
        let task = load.abort_handle();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            // A panic in the load has printed itself already.
            let _ = runtime.block_on(load);
        })?;
        Ok(Self { run, task, thread: Some(thread) })
    }

    /// The instant that records count from.
    pub fn started(&self) -> Instant {
        self.run.started
    }

    /// The tally so far.
    pub fn tally(&self) -> Tally {
        self.run.books().tally.clone()
    }

    /// Reads the tally so far without copying it; the load waits meanwhile.
    pub fn with_tally<T>(&self, look: impl FnOnce(&Tally) -> T) -> T {
        look(&self.run.books().tally)
    }

    /// Ends a period of the level memory; see [`Tally::mark_period`].
    pub fn mark_period(&self) -> LevelChanges {
        self.run.books().tally.mark_period()
    }

    /// The number of requests in progress.
    pub fn in_flight(&self) -> usize {
        self.run.in_flight.load(Ordering::Relaxed)
    }

    /// Whether the load has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops new requests. Requests in progress are waited for (see [`LoadHandle::join`]).
    pub fn stop(&self) {
        self.run.stopping.store(true, Ordering::Relaxed);
        self.run.changed.notify_one();
    }

    /// Waits for the end of the load and of its requests in progress, and returns the whole tally.
    pub fn join(mut self) -> Tally {
        self.wait();
        self.tally()
    }

    fn wait(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has printed itself already; a second panic in a drop would abort the process.
            let _ = thread.join();
        }
    }
}

impl Drop for LoadHandle {
    fn drop(&mut self) {
        self.task.abort();
        self.wait();
    }
}
