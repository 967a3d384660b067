//! One request's way through the plant, and the one alarm that ends them all.
//!
//! A request enters the plant when it is fully read, waits for a message, and is answered. The message is sent by
//! [`Service::report_ends`] at the job's end. If the client leaves, hyper drops the future; the job runs on, and
//! the later of the two (the dropped future or the ended job) takes the request out of the `held` ledger, once.

use super::ledger::{BusyLedger, BusyReading};
use super::plant::{EndedJob, Plant, PlantShape};
use super::site::Site;
use super::{ClassCount, OriginSettings, Served};
use crate::alarm::Alarm;
use crate::body::{Whole, next_length};
use crate::{Histogram, Random};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A worker held by a connection (prefork); shared with its jobs, because a job outlives a client that left.
pub(super) type Seat = Arc<OwnedSemaphorePermit>;

/// A connection that waits for a job, and is sent the job's exact end.
struct Waiting {
    done: oneshot::Sender<u64>,
    _seat: Option<Seat>,
}

/// Why a connection is closed without an answer.
#[derive(Debug)]
pub(super) struct Refused(&'static str);

impl std::fmt::Display for Refused {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Refused {}

/// Everything counted, as plain data.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    classes: Vec<ClassCount>,
    refused: u64,
    abandoned: u64,
    not_found: u64,
    lateness: Histogram,
}

impl Counters {
    pub(super) fn into_served(self) -> Served {
        let Counters { classes, refused, abandoned, not_found, lateness } = self;
        Served { classes, refused, abandoned, not_found, connections: 0, lateness }
    }
}

struct State {
    plant: Plant<Waiting>,
    held: BusyLedger,
    counters: Counters,
    /// When the alarm is set to ring; `u64::MAX`: it is not.
    armed_ns: u64,
    /// Reused between calls.
    ended: Vec<EndedJob<Waiting>>,
}

/// The plant behind HTTP. One lock; all but the handle's readings come from one thread.
pub(super) struct Service {
    site: Site,
    refusal_ns: u64,
    started: Instant,
    alarm: Alarm,
    state: Mutex<State>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Service").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Service {
    /// A service of the current runtime.
    pub(super) fn new(settings: &OriginSettings) -> io::Result<Arc<Self>> {
        let workers = settings.workers.max(1);
        let site = Site::new(&settings.classes, settings.cost);
        let count = |name: &str| ClassCount { name: name.into(), answers: 0, bytes: 0 };
        let counters = Counters {
            classes: site.pages().iter().map(|page| count(&page.class.name)).collect(),
            ..Counters::default()
        };
        let shape =
            PlantShape { workers, queue: settings.queue, exponential: settings.exponential.map(Random::new) };
        let state = State {
            plant: Plant::new(shape),
            held: BusyLedger::new(workers),
            counters,
            armed_ns: u64::MAX,
            ended: Vec::new(),
        };
        let refusal_ns = u64::try_from(settings.refusal.as_nanos()).unwrap_or(u64::MAX);
        let (started, alarm) = (Instant::now(), Alarm::new()?);
        Ok(Arc::new(Self { site, refusal_ns, started, alarm, state: Mutex::new(state) }))
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn busy(&self) -> BusyReading {
        self.at_now(|state, now_ns| state.plant.busy(now_ns))
    }

    pub(super) fn held(&self) -> BusyReading {
        self.at_now(|state, now_ns| state.held.read(now_ns))
    }

    pub(super) fn counters(&self) -> Counters {
        self.lock().counters.clone()
    }

    pub(super) fn count_refused(&self) {
        self.lock().counters.refused += 1;
    }

    pub(super) fn set_speed(&self, speed: f64) {
        self.at_now(|state, now_ns| state.plant.set_speed(now_ns, speed));
    }

    pub(super) fn set_stalled(&self, stalled: bool) {
        self.at_now(|state, now_ns| state.plant.set_stalled(now_ns, stalled));
    }

    /// Waits for ends and reports them, for as long as the runtime lives.
    pub(super) async fn report_ends(self: Arc<Self>) {
        while self.alarm.rung().await.is_ok() {
            self.lock().armed_ns = u64::MAX;
            self.at_now(|_, _| ());
        }
    }

    /// Serves one request to its end.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        seat: Option<Seat>,
    ) -> Result<Response<Whole>, Refused> {
        let (head, mut body) = request.into_parts();
        while let Some(piece) = next_length(&mut body).await {
            piece.map_err(|_| Refused("the request ended early"))?;
        }
        let Some(index) = self.site.find(head.uri.path()) else {
            self.lock().counters.not_found += 1;
            let mut response = Response::new(Whole::default());
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        };
        let mut inside = self.enter(index, seat)?;
        inside.ended().await?;
        let mut response = Response::new(Whole::new(self.site.page(index).body.clone()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        Ok(response)
    }

    fn enter(self: &Arc<Self>, index: usize, seat: Option<Seat>) -> Result<Inside, Refused> {
        let (done, waiting) = oneshot::channel();
        let service_ns = self.site.page(index).service_ns;
        let admitted = self.at_now(|state, now_ns| {
            let admitted = state.plant.arrive(now_ns, service_ns, Waiting { done, _seat: seat });
            match &admitted {
                Ok(()) => state.held.enter(now_ns),
                Err(_) => {
                    state.counters.refused += 1;
                    state.plant.waste(now_ns, self.refusal_ns);
                }
            }
            admitted
        });
        admitted.map_err(|_| Refused("the queue is full"))?;
        Ok(Inside { service: Arc::clone(self), index, waiting: Some(waiting) })
    }

    /// Brings the plant to now, reports jobs that have ended, does `then`, and sets the alarm for what comes next.
    fn at_now<T>(&self, then: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut guard = self.lock();
        let state = &mut *guard;
        // Read under the lock: else two threads could bring their instants in the wrong order.
        let now_ns = self.now_ns();
        state.plant.advance(now_ns, &mut state.ended);
        for EndedJob { at_ns, payload } in state.ended.drain(..) {
            if payload.done.send(at_ns).is_err() {
                state.held.leave(now_ns);
                state.counters.abandoned += 1;
            }
        }
        let result = then(state, now_ns);
        let next_ns = state.plant.next_end().unwrap_or(u64::MAX);
        if next_ns != state.armed_ns {
            state.armed_ns = next_ns;
            if next_ns != u64::MAX {
                self.alarm.set(Duration::from_nanos(next_ns.saturating_sub(now_ns)));
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counters stay usable after a panic elsewhere; what broke shows itself by its own message.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request inside the plant.
struct Inside {
    service: Arc<Service>,
    index: usize,
    /// None once the request is out of the ledger.
    waiting: Option<oneshot::Receiver<u64>>,
}

impl Inside {
    /// Waits for the job's end and takes the request out.
    async fn ended(&mut self) -> Result<(), Refused> {
        let Some(waiting) = self.waiting.as_mut() else { return Ok(()) };
        let end_ns = waiting.await.map_err(|_| Refused("the origin is stopping"))?;
        self.waiting = None;
        let now_ns = self.service.now_ns();
        let bytes = self.service.site.page(self.index).body.len() as u64;
        let mut state = self.service.lock();
        state.held.leave(now_ns);
        state.counters.lateness.record_ns(now_ns.saturating_sub(end_ns));
        let class = &mut state.counters.classes[self.index];
        class.answers += 1;
        class.bytes += bytes;
        Ok(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some(mut waiting) = self.waiting.take() else { return };
        waiting.close();
        // The end was sent but the future not woken: the job is gone from the plant, so this is the last place to
        // account for it.
        if waiting.try_recv().is_ok() {
            let now_ns = self.service.now_ns();
            let mut state = self.service.lock();
            state.held.leave(now_ns);
            state.counters.abandoned += 1;
        }
    }
}
