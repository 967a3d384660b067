//! The origin of known capacity: an HTTP/1.1 server whose true capacity and busy time are known.
//!
//! The origin answers as s workers would that need `fixed + per_kilobyte * size` for a request, but uses no processor time for
//! it: completion times come from [`plant`] in exact virtual time, and one alarm reports them. So a claim about the gateway can
//! be judged by the plant's own busy time on the machine that also runs the gateway.
//!
//! There are two busy times, on purpose (see [`OriginHandle::busy`] and [`OriginHandle::held`]).
//!
//! The origin runs on one thread of its own with a single-threaded tokio runtime, inside the caller's process. Its HTTP is
//! hyper's, on purpose, so that it is independent of the gateway's.

pub(crate) mod ledger;
mod listener;
pub(crate) mod plant;
mod service;
mod site;

pub use ledger::BusyReading;
pub use site::{Cost, PathClass};

use crate::Histogram;
use listener::Listener;
use service::Service;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The origin's settings. The default: 8 workers, full pages of 32 KB at 8 ms, light ones of 4 KB at 0.15 of that.
#[derive(Clone, Debug)]
pub struct OriginSettings {
    /// Where to listen; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The number of workers, s; at least 1 is used.
    pub workers: u32,
    /// How many requests may wait beyond the workers; a further one is closed at once, without an answer.
    pub queue: usize,
    /// A worker's time for a request that finds no room: UC 7.5's T_f times s; zero: none.
    pub refusal: Duration,
    /// Service time by size.
    pub cost: Cost,
    /// The path classes that are served; a path in none of them is answered 404 at no cost.
    pub classes: Vec<PathClass>,
    /// With a seed, service times are exponential with the cost as mean; without one, they equal the cost.
    pub exponential: Option<u64>,
    /// A connection that is idle for longer is closed.
    pub keep_alive: Duration,
}

impl Default for OriginSettings {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            workers: 8,
            queue: 511,
            refusal: Duration::ZERO,
            // 8 ms for 32 KB and 1.2 ms for 4 KB, exactly: (8 - 1.2) / 28 ms per KB.
            cost: Cost { fixed: Duration::from_nanos(228_571), per_kilobyte: Duration::from_nanos(242_857) },
            classes: vec![PathClass::new("/", 32 * 1024), PathClass::new("/light/", 4 * 1024)],
            exponential: None,
            keep_alive: Duration::from_secs(60),
        }
    }
}

/// The origin's counters since its start.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Pages that were handed to a socket.
    pub answers: u64,
    /// Requests whose connection was closed because the queue was full.
    pub refused: u64,
    /// Requests that were served although their client had left before the end.
    pub abandoned: u64,
    /// Requests answered 404.
    pub not_found: u64,
    /// How long after its exact end an answer was handed to the socket.
    pub lateness: Histogram,
}

/// The origin itself; see [`Origin::start`].
#[derive(Debug)]
pub struct Origin;

impl Origin {
    /// Starts an origin on a thread of its own.
    ///
    /// # Errors
    /// If the address cannot be bound, or the thread, the runtime or its timer cannot be made.
    pub fn start(settings: OriginSettings) -> io::Result<OriginHandle> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().event_interval(16).build()?;
        let entered = runtime.enter();
        let service = Service::new(&settings)?;
        let listener = Listener::open(&settings, Arc::clone(&service))?;
        drop(entered);
        let ends = runtime.spawn(Arc::clone(&service).report_ends());
        let (task, handle) = (ends.abort_handle(), runtime.handle().clone());
        let thread = std::thread::Builder::new().name("origin".into()).spawn(move || {
            // The block ends when the handle is dropped; then the runtime is dropped with every connection.
            let _ = runtime.block_on(ends);
        })?;
        Ok(OriginHandle { service, listener, runtime: handle, task, thread: Some(thread) })
    }
}

/// A running origin. Dropping it stops it.
#[derive(Debug)]
pub struct OriginHandle {
    service: Arc<Service>,
    listener: Listener,
    runtime: tokio::runtime::Handle,
    /// Ends the origin when it is aborted.
    task: AbortHandle,
    thread: Option<JoinHandle<()>>,
}

impl OriginHandle {
    /// The address that the origin listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The plant's exact busy time: a request is inside from when it was fully read to its exact end.
    ///
    /// The gateway is judged by this time, because it does not include how late this machine reported an end.
    pub fn busy(&self) -> BusyReading {
        self.service.busy()
    }

    /// Busy time including the machine's own delay: a request is inside until its answer is handed to the socket.
    ///
    /// The difference to [`OriginHandle::busy`] is the cost of timers and scheduling; if it is more than a percent, this
    /// machine is too busy for its results to be believed.
    pub fn held(&self) -> BusyReading {
        self.service.held()
    }

    /// What the origin has served since its start.
    pub fn served(&self) -> Served {
        self.service.served()
    }

    /// Sets the work done per unit of time: 0.5 doubles every service time, also of jobs in service; 0 stops all workers where
    /// they are, while connections stay open and requests are accepted.
    pub fn set_speed(&self, speed: f64) {
        self.service.set_speed(speed);
    }

    /// If `down` is true, stops listening and closes every connection, so that connects are refused; jobs in service still run
    /// to their end, unseen. If it is false, listens again on the same port.
    ///
    /// # Errors
    /// If the port has been taken meanwhile.
    pub fn set_down(&mut self, down: bool) -> io::Result<()> {
        let _entered = self.runtime.enter();
        if down {
            self.listener.close();
            Ok(())
        } else {
            self.listener.reopen()
        }
    }
}

impl Drop for OriginHandle {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has printed itself already; a second panic in a drop would abort the process.
            let _ = thread.join();
        }
    }
}
