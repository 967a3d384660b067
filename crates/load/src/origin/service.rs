//! One request's way through the plant, and the single alarm that reports all ends.
//!
//! A request enters the plant when it is fully read, waits for a message, and is answered. [`Service::report_ends`] sends the
//! message at the job's end. If the client leaves, hyper drops the future; the job runs on, and whichever comes later, the
//! dropped future or the job's end, takes the request out of the `held` ledger, once.

use super::ledger::{BusyLedger, BusyReading};
use super::plant::{EndedJob, Plant, PlantShape};
use super::site::{Page, Site};
use super::{OriginSettings, Served};
use crate::Random;
use crate::alarm::Alarm;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Sends the exact end of a job to the connection that waits for it.
type Done = oneshot::Sender<u64>;

struct State {
    plant: Plant<Done>,
    held: BusyLedger,
    served: Served,
    /// When the alarm is set to ring; `u64::MAX` if it is not set.
    armed_ns: u64,
    /// A buffer that is used again between calls.
    ended: Vec<EndedJob<Done>>,
}

/// The plant behind HTTP. It has one lock; only the handle's readings come from another thread.
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
        let shape =
            PlantShape { workers, queue: settings.queue, exponential: settings.exponential.map(Random::new) };
        let state = State {
            plant: Plant::new(shape),
            held: BusyLedger::new(workers),
            served: Served::default(),
            armed_ns: u64::MAX,
            ended: Vec::new(),
        };
        Ok(Arc::new(Self {
            site: Site::new(&settings.classes, settings.cost),
            refusal_ns: u64::try_from(settings.refusal.as_nanos()).unwrap_or(u64::MAX),
            started: Instant::now(),
            alarm: Alarm::new()?,
            state: Mutex::new(state),
        }))
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn busy(&self) -> BusyReading {
        self.at_now(|state, now_ns| state.plant.busy(now_ns))
    }

    pub(super) fn held(&self) -> BusyReading {
        self.at_now(|state, now_ns| state.held.read(now_ns))
    }

    pub(super) fn served(&self) -> Served {
        self.lock().served.clone()
    }

    pub(super) fn set_speed(&self, speed: f64) {
        self.at_now(|state, now_ns| state.plant.set_speed(now_ns, speed));
    }

    /// Waits for jobs to end and reports them, for as long as the runtime lives.
    pub(super) async fn report_ends(self: Arc<Self>) {
        while self.alarm.rung().await.is_ok() {
            self.lock().armed_ns = u64::MAX;
            self.at_now(|_, _| ());
        }
    }

    /// Serves one request to its end. An error closes the connection without an answer.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, &'static str> {
        let (head, mut body) = request.into_parts();
        while let Some(piece) = body.frame().await {
            piece.map_err(|_| "the request ended early")?;
        }
        let Some(page) = self.site.find(head.uri.path()) else {
            self.lock().served.not_found += 1;
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        };
        self.enter(page)?.ended().await?;
        let mut response = Response::new(Full::new(page.body.clone()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        Ok(response)
    }

    fn enter(&self, page: &Page) -> Result<Inside<'_>, &'static str> {
        let (done, waiting) = oneshot::channel();
        self.at_now(|state, now_ns| {
            if state.plant.arrive(now_ns, page.service_ns, done).is_err() {
                state.served.refused += 1;
                state.plant.waste(now_ns, self.refusal_ns);
                return Err("the queue is full");
            }
            state.held.enter(now_ns);
            Ok(Inside { service: self, waiting: Some(waiting) })
        })
    }

    /// Advances the plant to now, reports ended jobs, runs `then`, and sets the alarm for the next end.
    fn at_now<T>(&self, then: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut guard = self.lock();
        let state = &mut *guard;
        // The clock is read under the lock, because otherwise two threads could bring their instants in the wrong order.
        let now_ns = self.now_ns();
        state.plant.advance(now_ns, &mut state.ended);
        for EndedJob { at_ns, payload } in state.ended.drain(..) {
            if payload.send(at_ns).is_err() {
                state.held.leave(now_ns);
                state.served.abandoned += 1;
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
        // The counters stay usable after a panic elsewhere, which has printed itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request inside the plant.
struct Inside<'a> {
    service: &'a Service,
    /// `None` once the request is out of the ledger.
    waiting: Option<oneshot::Receiver<u64>>,
}

impl Inside<'_> {
    /// Waits for the job's end, and takes the request out of the ledger.
    async fn ended(mut self) -> Result<(), &'static str> {
        let Some(waiting) = self.waiting.as_mut() else { return Ok(()) };
        let end_ns = waiting.await.map_err(|_| "the origin is stopping")?;
        self.waiting = None;
        let now_ns = self.service.now_ns();
        let mut state = self.service.lock();
        state.held.leave(now_ns);
        state.served.lateness.record_ns(now_ns.saturating_sub(end_ns));
        state.served.answers += 1;
        Ok(())
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let Some(mut waiting) = self.waiting.take() else { return };
        waiting.close();
        // The end was sent but the future was not woken: the job is no longer in the plant, so this is the last place to
        // account for it.
        if waiting.try_recv().is_ok() {
            let now_ns = self.service.now_ns();
            let mut state = self.service.lock();
            state.held.leave(now_ns);
            state.served.abandoned += 1;
        }
    }
}
