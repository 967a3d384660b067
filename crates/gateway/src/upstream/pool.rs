//! Connections to an upstream, over all threads.
//!
//! **Bound.** Busy and idle connections together never exceed `max_connections`: each holds a [`Ticket`], tickets are
//! counted in one word, and a connection is closed before its ticket is given back. The engine's gate lets at most as
//! many requests into service, so whoever is in service finds a connection: an idle one, or a free ticket. The idle
//! list gets a connection back *before* its request is released, else that would not hold.
//!
//! **Order.** A thread's own idle connection first, the latest used; then another thread's; then a new one. An idle
//! connection that became readable was closed by its server, or speaks out of turn: it is thrown away, which tokio's
//! readiness tells without a system call.
//!
//! Why not a pool per thread: with 8 prefork workers and 24 clients such pools gave 16 clients nothing at all.

use super::health::{Health, choose};
use super::load_report::LoadReports;
use crate::clock::Clock;
use plimsoll_core::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::net::TcpStream;

/// A server, or several alike, and all connections to them.
#[derive(Debug)]
pub(crate) struct Upstream {
    addresses: Vec<SocketAddr>,
    /// What to call it where the client named no host.
    pub name: String,
    health: Vec<Health>,
    /// [`Bounds`], which a reload may change.
    most_open: AtomicUsize,
    most_kept: AtomicUsize,
    /// Out of use: no connection is kept.
    retired: AtomicBool,
    open: AtomicUsize,
    idle: Vec<Mutex<Vec<Idle>>>,
    turn: AtomicUsize,
    pub reports: LoadReports,
}

/// A right to have a connection open; given back on drop.
#[derive(Debug)]
struct Ticket {
    upstream: Arc<Upstream>,
    address: usize,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.upstream.health[self.address].open.fetch_sub(1, Relaxed);
        self.upstream.open.fetch_sub(1, Release);
    }
}

#[derive(Debug)]
struct Idle {
    since: Instant,
    // Before the ticket: fields drop in order, and the connection must be closed first.
    io: TcpStream,
    ticket: Ticket,
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Lease {
    pub io: TcpStream,
    ticket: Ticket,
    /// It served a request before: it may have been closed meanwhile.
    pub reused: bool,
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    Refused,
    TimedOut,
    /// This process, or this machine, has no file descriptor left.
    OutOfDescriptors,
}

/// What is asked of [`Upstream::acquire`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The asking thread.
    pub thread: usize,
    pub clock: Clock,
    pub connect_timeout: Duration,
    /// Only a new connection will do: a reused one has just failed.
    pub fresh: bool,
}

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Busy and idle. Without control there is none.
    pub open: usize,
    /// Beyond as many, one that has served is closed, not kept: idle connections would hold the workers of a prefork
    /// server, and requests on new ones would starve.
    pub kept: usize,
}

impl Upstream {
    pub(crate) fn new(addresses: Vec<SocketAddr>, bounds: Bounds, threads: usize) -> Self {
        Upstream {
            health: addresses.iter().map(|_| Health::default()).collect(),
            name: addresses.first().map(SocketAddr::to_string).unwrap_or_default(),
            addresses,
            most_open: AtomicUsize::new(bounds.open),
            most_kept: AtomicUsize::new(bounds.kept),
            retired: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            idle: (0..threads).map(|_| Mutex::default()).collect(),
            turn: AtomicUsize::new(0),
            reports: LoadReports::default(),
        }
    }

    /// In use from now on, within these bounds.
    pub(crate) fn serve_within(&self, bounds: Bounds) {
        self.most_open.store(bounds.open, Relaxed);
        self.most_kept.store(bounds.kept, Relaxed);
        self.retired.store(false, Relaxed);
    }

    /// Out of use: idle connections are closed now, those in use when their request is over.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
        for thread in 0..self.idle.len() {
            self.idle_of(thread).clear();
        }
    }

    /// Connections open now, busy and idle.
    pub(crate) fn open_connections(&self) -> usize {
        self.open.load(Acquire)
    }

    fn idle_of(&self, thread: usize) -> MutexGuard<'_, Vec<Idle>> {
        self.idle[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle connection that is alive: the thread's own latest, else another's.
    pub(crate) fn take_idle(&self, thread: usize) -> Option<Lease> {
        while let Some(idle) = { self.idle_of(thread).pop() } {
            if is_quiet(&idle.io) {
                return Some(Lease { io: idle.io, ticket: idle.ticket, reused: true });
            }
        }
        let threads = self.idle.len();
        for other in (1..threads).map(|offset| (thread + offset) % threads) {
            while let Some(idle) = { self.idle_of(other).pop() } {
                if is_quiet(&idle.io)
                    && let Ok(io) = idle.io.into_std().and_then(TcpStream::from_std)
                {
                    return Some(Lease { io, ticket: idle.ticket, reused: true });
                }
            }
        }
        None
    }

    /// Puts a connection back that can serve another request.
    pub(crate) fn put_idle(&self, thread: usize, now: Instant, lease: Lease) {
        if self.open_connections() > self.most_kept.load(Relaxed) {
            return;
        }
        let mut idle = self.idle_of(thread);
        // Looked at under the lock, which retiring takes after it has said so: none is left behind.
        if self.retired.load(Relaxed) {
            return;
        }
        idle.push(Idle { since: now, io: lease.io, ticket: lease.ticket });
    }

    /// Closes a thread's connections that were idle for longer than `longest`, or that their server closed.
    pub(crate) fn close_stale(&self, thread: usize, now: Instant, longest: Duration) {
        self.idle_of(thread).retain(|idle| now.since(idle.since) < longest && is_quiet(&idle.io));
    }

    /// A connection for a request in service.
    pub(crate) async fn acquire(self: &Arc<Self>, wanted: Wanted) -> Result<Lease, ConnectError> {
        let mut tried = 0;
        let mut last = ConnectError::Refused;
        let mut now = wanted.clock.now();
        loop {
            if !wanted.fresh
                && tried == 0
                && let Some(lease) = self.take_idle(wanted.thread)
            {
                return Ok(lease);
            }
            let turn = self.turn.fetch_add(1, Relaxed);
            let Some(address) = choose(&self.health, now, tried, turn) else { return Err(last) };
            let ticket = match self.ticket(address, wanted).await {
                Ok(ticket) => ticket,
                Err(lease) => return Ok(lease),
            };
            let connecting = TcpStream::connect(self.addresses[address]);
            let result = match tokio::time::timeout(wanted.connect_timeout, connecting).await {
                Ok(result) => result.and_then(|io| io.set_nodelay(true).map(|()| io)),
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            };
            match result {
                Ok(io) => {
                    self.health[address].succeeded();
                    return Ok(Lease { io, ticket, reused: false });
                }
                // No fault of the upstream, and another address would need a descriptor too.
                Err(error) if is_out_of_descriptors(&error) => return Err(ConnectError::OutOfDescriptors),
                Err(error) => {
                    // The time of the failure: a pause from before a long try would be over already.
                    now = wanted.clock.now();
                    self.health[address].failed(now);
                    let timed_out = error.kind() == io::ErrorKind::TimedOut;
                    last = if timed_out { ConnectError::TimedOut } else { ConnectError::Refused };
                    tried |= 1 << (address % 64);
                }
            }
        }
    }

    /// A ticket, or an idle connection that turned up while there was none.
    async fn ticket(self: &Arc<Self>, address: usize, wanted: Wanted) -> Result<Ticket, Lease> {
        let mut rounds = 0u32;
        loop {
            let most = self.most_open.load(Relaxed);
            let taken = self.open.fetch_update(AcqRel, Acquire, |open| (open < most).then_some(open + 1));
            if taken.is_ok() {
                self.health[address].open.fetch_add(1, Relaxed);
                return Ok(Ticket { upstream: self.clone(), address });
            }
            match self.take_idle(wanted.thread) {
                Some(lease) if wanted.fresh => drop(lease),
                Some(lease) => return Err(lease),
                // Between two looks a connection moved from one list to another, or is about to be closed.
                None if rounds < 8 => tokio::task::yield_now().await,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
            rounds += 1;
        }
    }
}

impl Lease {
    /// Its server answered as it should not, or not in time.
    pub(crate) fn blame(&self, now: Instant) {
        self.ticket.upstream.health[self.ticket.address].failed(now);
    }

    /// Its server answered.
    pub(crate) fn praise(&self) {
        self.ticket.upstream.health[self.ticket.address].succeeded();
    }

    /// Takes the connection out of the count: it was switched to another protocol and holds no worker's turn.
    pub(crate) fn into_tunnel(self) -> TcpStream {
        self.io
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Nothing to read and not closed. Readiness is what the last look at the selector told: no system call.
fn is_quiet(io: &TcpStream) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    io.poll_read_ready(&mut context).is_pending()
}

#[cfg(test)]
mod tests {
    use super::super::health::FIRST_PAUSE_NS;
    use super::*;

    #[test]
    fn a_pause_begins_when_the_try_failed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        rustix::net::listen(&listener, 1).expect("a short queue");
        let address = listener.local_addr().expect("its address");
        let mut queued = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            queued.push(stream);
            assert!(queued.len() < 10, "the queue never fills");
        }
        let upstream = Arc::new(Upstream::new(vec![address], Bounds { open: 1, kept: 1 }, 1));
        let clock = Clock::start();
        let connect_timeout = Duration::from_millis(100);
        let begin = clock.now();
        let wanted = Wanted { thread: 0, clock, connect_timeout, fresh: false };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let result = runtime.block_on(upstream.acquire(wanted)).map(drop);
        assert_eq!(result, Err(ConnectError::TimedOut));
        let least = connect_timeout.as_nanos() as u64 + FIRST_PAUSE_NS;
        assert!(upstream.health[0].paused(begin) >= least);
    }
}
