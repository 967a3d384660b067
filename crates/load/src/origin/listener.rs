//! Accepting connections, and the switches that break them.
//!
//! By default a connection costs the plant nothing. In prefork mode it takes a seat (a worker) when it comes to the
//! head of the line and keeps it until it is closed, idle or not; the line is the listen queue and has its length.

use super::OriginSettings;
use super::service::{Seat, Service};
use crate::congestion::plain_congestion_control;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// What the accepting task and the connections share.
struct Shared {
    service: Arc<Service>,
    /// One permit for each worker; none unless prefork.
    seats: Option<Arc<Semaphore>>,
    queue: usize,
    keep_alive: Duration,
    waiting: AtomicUsize,
    accepted: AtomicU64,
    open: Mutex<HashMap<u64, AbortHandle>>,
}

/// The listening socket and its connections.
pub(super) struct Listener {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<AbortHandle>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Listener {
    /// Listens, on the current runtime.
    pub(super) fn open(settings: &OriginSettings, service: Arc<Service>) -> io::Result<Self> {
        let workers = settings.workers.max(1) as usize;
        let shared = Arc::new(Shared {
            service,
            seats: settings.worker_per_connection.then(|| Arc::new(Semaphore::new(workers))),
            queue: settings.queue,
            keep_alive: settings.keep_alive,
            waiting: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            open: Mutex::new(HashMap::new()),
        });
        let mut listener = Self { address: settings.bind, shared, accepting: None };
        listener.reopen()?;
        Ok(listener)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    pub(super) fn drop_connections(&self) {
        for (_, connection) in self.shared.open().drain() {
            connection.abort();
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
        self.drop_connections();
    }

    /// Listens again on the address it had; does nothing while it listens.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if self.accepting.is_some() {
            return Ok(());
        }
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of before may linger in TIME_WAIT on the same port.
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        plain_congestion_control(&socket);
        // Longer than any line of the plant's: the finite queue is the plant's, not the kernel's.
        let listener = socket.listen(4096)?;
        self.address = listener.local_addr()?;
        let accepting = tokio::spawn(Arc::clone(&self.shared).accept(listener));
        self.accepting = Some(accepting.abort_handle());
        Ok(())
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of files, mostly: let connections end before trying again.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let number = self.accepted.fetch_add(1, Ordering::Relaxed);
            if self.line_is_full() {
                self.service.count_refused();
                continue;
            }
            // Made here and not in the task: a task that is aborted before its first turn must leave the line too.
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let in_line = InLine(Arc::clone(&self));
            let connection = tokio::spawn(Arc::clone(&self).connection(number, stream, in_line));
            self.open().insert(number, connection.abort_handle());
        }
    }

    /// Prefork: no worker is free and the listen queue has its length.
    fn line_is_full(&self) -> bool {
        self.seats.as_ref().is_some_and(|seats| {
            let waiting = self.waiting.load(Ordering::Relaxed);
            waiting >= seats.available_permits() + self.queue
        })
    }

    async fn connection(self: Arc<Self>, number: u64, stream: TcpStream, in_line: InLine) {
        let seat = match &self.seats {
            None => None,
            Some(seats) => Arc::clone(seats).acquire_owned().await.ok().map(Arc::new),
        };
        drop(in_line);
        self.serve(stream, seat).await;
        self.open().remove(&number);
    }

    /// Serves a connection until either side closes it or it has been idle for the keep-alive time.
    async fn serve(&self, stream: TcpStream, seat: Option<Seat>) {
        // An answer in two writes must not wait for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let in_request = AtomicUsize::new(0);
        let last_ns = AtomicU64::new(self.service.now_ns());
        let service = service_fn(|request| {
            in_request.fetch_add(1, Ordering::Relaxed);
            let answer = Arc::clone(&self.service).answer(request, seat.clone());
            let (in_request, last_ns) = (&in_request, &last_ns);
            async move {
                let _in_request = Counted(in_request);
                let answer = answer.await;
                last_ns.store(self.service.now_ns(), Ordering::Relaxed);
                answer
            }
        });
        let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        let mut idle = pin!(tokio::time::sleep(self.keep_alive));
        std::future::poll_fn(|context| {
            loop {
                if connection.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                if idle.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                let last = Duration::from_nanos(last_ns.load(Ordering::Relaxed));
                let quiet = Duration::from_nanos(self.service.now_ns()).saturating_sub(last);
                let served = in_request.load(Ordering::Relaxed) > 0;
                let left = if served { self.keep_alive } else { self.keep_alive.saturating_sub(quiet) };
                if left.is_zero() {
                    connection.as_mut().graceful_shutdown();
                }
                let left = left.max(Duration::from_millis(1));
                idle.as_mut().reset(tokio::time::Instant::now() + left);
            }
        })
        .await;
    }
}

/// A connection that waits for a worker.
struct InLine(Arc<Shared>);

impl Drop for InLine {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request being served; by `Drop`, because hyper drops the future when the client leaves.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
