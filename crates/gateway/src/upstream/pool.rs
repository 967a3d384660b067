//! Connections to an upstream, over all threads.
//!
//! **Bound.** Busy and idle connections together never exceed `max_connections`: each holds a [`Ticket`], tickets are
//! counted in one word, and a connection is closed before its ticket is given back. The engine's gate lets at most as
//! many requests into service. A request in service therefore finds an idle connection or a free ticket, since the idle
//! list gets a connection back *before* the request that used it releases its place.
//!
//! **Order.** A thread's own idle connection comes first, the latest used; then another thread's; then a new one. An idle
//! connection that became readable was closed by its server, or speaks out of turn, and is thrown away.
//!
//! **Several servers.** The server is chosen first, for each request ([`choose`]), and then one of its connections. Where no
//! more connections may be open, an idle one of any server will do.
//!
//! Why not a pool per thread: with 8 prefork workers and 24 clients, such pools gave 16 clients no connection at all.

use super::connect::{Secured, connect};
use super::health::{AddressHealth, choose};
use super::load_report::LoadReports;
use crate::http1::Refusal;
use crate::runtime::Clock;
use crate::runtime::lock;
use crate::settings::Address;
use crate::transport::socket::Socket;
use plimsoll_core::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A server, or several alike, and all connections to them.
#[derive(Debug)]
pub(crate) struct Upstream {
    addresses: Vec<Address>,
    /// Those of the network, which redirects may name.
    network: Vec<SocketAddr>,
    /// TLS, if it is spoken.
    pub secured: Option<Secured>,
    /// Whether HTTP/2 is spoken.
    http2: bool,
    /// The host that it is sent where the client named none.
    pub name: String,
    health: Vec<AddressHealth>,
    /// The [`ConnectionBounds`], which a reload may change.
    most_open: AtomicUsize,
    most_kept: AtomicUsize,
    /// Whether it is out of use: no connection is kept then.
    retired: AtomicBool,
    open: AtomicUsize,
    idle: Vec<Mutex<Vec<Idle>>>,
    turn: AtomicUsize,
    pub reports: LoadReports,
}

impl Upstream {
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.network
    }
}

/// A right to have a connection open; given back on drop, or before.
#[derive(Debug)]
pub(crate) struct Ticket {
    upstream: Arc<Upstream>,
    address: usize,
    is_given_back: bool,
}

impl Ticket {
    fn give_back(&mut self) {
        if !std::mem::replace(&mut self.is_given_back, true) {
            self.upstream.open.fetch_sub(1, Release);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A request under way at one of several servers; it ends on drop.
#[derive(Debug)]
struct Busy {
    upstream: Arc<Upstream>,
    address: usize,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.upstream.health[self.address].busy.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug)]
struct Idle {
    since: Instant,
    // The socket stands before the ticket: fields drop in order, and the connection must be closed first.
    io: Socket,
    ticket: Ticket,
}

#[derive(Debug)]
pub(crate) struct Lease {
    pub io: Socket,
    ticket: Ticket,
    /// `None` where the upstream is one server.
    _busy: Option<Busy>,
    /// Whether it served a request before: its server may have closed it meanwhile.
    pub reused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    Refused,
    TimedOut,
    /// The server speaks no TLS, or its certificate is not trusted.
    Untrusted,
    /// This process, or this machine, has no file descriptor left.
    OutOfDescriptors,
}

impl ConnectError {
    pub(super) fn refusal(self) -> Refusal {
        let (status, why) = match self {
            ConnectError::Refused => (502, "the upstream does not accept connections"),
            ConnectError::TimedOut => (504, "the upstream does not accept connections in time"),
            ConnectError::Untrusted => (502, "the upstream speaks no TLS that can be trusted"),
            ConnectError::OutOfDescriptors => {
                (503, "the gateway has no file descriptor left for a connection")
            }
        };
        Refusal::with(status, why)
    }
}

/// Which connection [`Upstream::acquire`] returns, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectOptions {
    pub thread: usize,
    pub clock: Clock,
    pub connect_timeout: Duration,
    /// Only a new connection will do, since a kept one has just failed.
    pub fresh: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionBounds {
    /// The most connections, busy and idle. Without control there is no bound.
    pub open: usize,
    /// With more open connections than this, one that has served is closed and not kept: idle connections would hold the
    /// workers of a prefork server, and requests on new connections would starve.
    pub kept: usize,
}

impl Upstream {
    pub(crate) fn new(addresses: Vec<Address>, bounds: ConnectionBounds, threads: usize) -> Self {
        Upstream {
            health: addresses.iter().map(|_| AddressHealth::default()).collect(),
            name: match addresses.first() {
                Some(Address::Tcp(address)) => address.to_string(),
                // As curl calls what is behind a Unix socket.
                _ => "localhost".to_owned(),
            },
            network: addresses
                .iter()
                .filter_map(|address| match address {
                    Address::Tcp(address) => Some(*address),
                    Address::Unix(_) => None,
                })
                .collect(),
            secured: None,
            http2: false,
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

    /// The same with TLS and with HTTP/2, if they are spoken.
    pub(crate) fn speaking(self, secured: Option<Secured>, http2: bool) -> Self {
        Upstream { secured, http2, ..self }
    }

    /// From now on in use, within these bounds.
    pub(crate) fn serve_within(&self, bounds: ConnectionBounds) {
        self.most_open.store(bounds.open, Relaxed);
        self.most_kept.store(bounds.kept, Relaxed);
        self.retired.store(false, Relaxed);
    }

    /// From now on out of use: idle connections are closed now, others when their request is over.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
        for thread in 0..self.idle.len() {
            self.idle_of(thread).clear();
        }
    }

    fn idle_of(&self, thread: usize) -> MutexGuard<'_, Vec<Idle>> {
        lock(&self.idle[thread])
    }

    /// Whether the last request failed at each of its addresses.
    pub(crate) fn is_down(&self) -> bool {
        self.health.iter().all(AddressHealth::fails)
    }

    /// Whether it is one server.
    pub(crate) fn is_lone(&self) -> bool {
        self.addresses.len() == 1
    }

    fn lease(self: &Arc<Self>, io: Socket, ticket: Ticket, reused: bool) -> Lease {
        let busy = (!self.is_lone()).then(|| {
            self.health[ticket.address].busy.fetch_add(1, Relaxed);
            Busy { upstream: self.clone(), address: ticket.address }
        });
        Lease { io, ticket, _busy: busy, reused }
    }

    /// An idle connection that is alive, to this address or to any: the thread's own latest, else another's.
    pub(crate) fn take_idle(self: &Arc<Self>, thread: usize, address: Option<usize>) -> Option<Lease> {
        let threads = self.idle.len();
        let is_wanted = |idle: &Idle| address.is_none_or(|address| idle.ticket.address == address);
        let latest = |idle: &mut Vec<Idle>| idle.iter().rposition(is_wanted).map(|index| idle.remove(index));
        for owner in (0..threads).map(|offset| (thread + offset) % threads) {
            while let Some(Idle { mut io, ticket, .. }) = { latest(&mut self.idle_of(owner)) } {
                if !io.is_quiet() {
                    continue;
                }
                // A connection of another thread is registered anew, with this thread's selector.
                let moved = if owner == thread { Ok(io) } else { io.take_over() };
                if let Ok(io) = moved {
                    return Some(self.lease(io, ticket, true));
                }
            }
        }
        None
    }

    /// Keeps a connection that can serve another request, on the list of `thread`.
    pub(super) fn put_idle(&self, thread: usize, now: Instant, lease: Lease) {
        if lease.ticket.is_given_back || self.open.load(Acquire) > self.most_kept.load(Relaxed) {
            return;
        }
        let mut idle = self.idle_of(thread);
        // `retired` is read under the lock, which `retire` takes after it has set the flag: no connection is left behind.
        if self.retired.load(Relaxed) {
            return;
        }
        idle.push(Idle { since: now, io: lease.io, ticket: lease.ticket });
    }

    /// Closes the connections of a thread that were idle for longer than `longest`, or that their server closed.
    pub(crate) fn close_stale(&self, thread: usize, now: Instant, longest: Duration) {
        self.idle_of(thread).retain_mut(|idle| now.since(idle.since) < longest && idle.io.is_quiet());
    }

    /// A connection for a request in service.
    pub(crate) async fn acquire(self: &Arc<Self>, options: ConnectOptions) -> Result<Lease, ConnectError> {
        let mut tried = 0;
        let mut last = ConnectError::Refused;
        let mut now = options.clock.now();
        loop {
            let turn = self.turn.fetch_add(1, Relaxed);
            let Some(address) = choose(&self.health, now, tried, turn) else { return Err(last) };
            if !options.fresh
                && tried == 0
                && let Some(lease) = self.take_idle(options.thread, Some(address))
            {
                return Ok(lease);
            }
            let ticket = match self.ticket(address, options).await {
                Ok(ticket) => ticket,
                Err(lease) => return Ok(lease),
            };
            let connecting = connect(&self.addresses[address], address, self.secured.as_ref(), self.http2);
            let connected = tokio::time::timeout(options.connect_timeout, connecting).await;
            let result = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            match result {
                Ok(io) => {
                    self.health[address].succeeded();
                    return Ok(self.lease(io, ticket, false));
                }
                // This is no failure of the upstream, and another address would need a descriptor too.
                Err(error) if is_out_of_descriptors(&error) => return Err(ConnectError::OutOfDescriptors),
                Err(error) => {
                    // The pause begins now: counted from before a long try, it would be over already.
                    now = options.clock.now();
                    self.health[address].failed(now);
                    last = match error.kind() {
                        io::ErrorKind::TimedOut => ConnectError::TimedOut,
                        io::ErrorKind::InvalidData => ConnectError::Untrusted,
                        _ => ConnectError::Refused,
                    };
                    tried |= 1 << (address % 64);
                }
            }
        }
    }

    /// A ticket, or an idle connection that turned up while no ticket was free.
    async fn ticket(self: &Arc<Self>, address: usize, options: ConnectOptions) -> Result<Ticket, Lease> {
        let mut rounds = 0u32;
        loop {
            let most = self.most_open.load(Relaxed);
            let taken = self.open.fetch_update(AcqRel, Acquire, |open| (open < most).then_some(open + 1));
            if taken.is_ok() {
                return Ok(Ticket { upstream: self.clone(), address, is_given_back: false });
            }
            match self.take_idle(options.thread, None) {
                Some(lease) if options.fresh => drop(lease),
                Some(lease) => return Err(lease),
                // A connection moved from one list to another between two looks, or is about to be closed.
                None if rounds < 8 => tokio::task::yield_now().await,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
            rounds += 1;
        }
    }
}

impl Lease {
    /// Counts a failure of the server: a wrong response, or none in time.
    pub(crate) fn blame(&self, now: Instant) {
        self.ticket.upstream.health[self.ticket.address].failed(now);
    }

    pub(crate) fn praise(&self) {
        self.ticket.upstream.health[self.ticket.address].succeeded();
    }

    /// Stops counting the connection, because its request has given its place back. It serves no other request afterwards.
    pub(super) fn stop_counting(&mut self) {
        self.ticket.give_back();
    }

    /// The connection, switched to another protocol, and what keeps it counted where it holds a place.
    pub(crate) fn into_tunnel(self, holds_place: bool) -> (Socket, Option<Ticket>) {
        (self.io, holds_place.then_some(self.ticket))
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
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
        let upstream =
            Arc::new(Upstream::new(vec![address.into()], ConnectionBounds { open: 1, kept: 1 }, 1));
        let clock = Clock::start();
        let connect_timeout = Duration::from_millis(100);
        let begin = clock.now();
        let options = ConnectOptions { thread: 0, clock, connect_timeout, fresh: false };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let result = runtime.block_on(upstream.acquire(options)).map(drop);
        assert_eq!(result, Err(ConnectError::TimedOut));
        let least = connect_timeout.as_nanos() as u64 + FIRST_PAUSE_NS;
        assert!(upstream.health[0].paused(begin) >= least);
    }
}
