//! Connections to an upstream, over all threads.
//!
//! **Bound.** Busy and idle connections together never exceed `max_connections`: each holds a [`Ticket`], tickets are
//! counted in one word, and a connection is closed before its ticket is given back. The engine's gate lets at most as
//! many requests into service. A request in service therefore finds an idle connection or a free ticket, since the idle
//! list gets a connection back *before* the request that used it releases its place.
//!
//! **Order.** A thread's own idle connection comes first, the latest used; then another thread's; then a new one. An idle
//! connection that became readable was closed by its server, or speaks out of turn, and is thrown away. Some servers send a
//! body with a response that has none (to `HEAD`, 204, 304), which the next request would take for its response: behind such
//! a response the system is asked once more, at the last moment. What comes later than that nobody can tell from a response.
//!
//! **Servers come and go**, and the pool stays: the bound holds for the servers before and after a change together.
//!
//! Why not a pool per thread: with 8 prefork workers and 24 clients, such pools gave 16 clients no connection at all.

use super::ejection::Roster;
use super::load_report::LoadReports;
use super::server::Server;
use crate::sync::lock;
use crate::transport::socket::Socket;
use plimsoll_core::time::Instant;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// All connections to an upstream's servers, and the state of these servers.
#[derive(Debug)]
pub(crate) struct Pool {
    roster: Mutex<Roster>,
    /// The [`ConnectionBounds`], which a reload may change.
    most_open: AtomicUsize,
    most_kept: AtomicUsize,
    /// Whether the upstream is out of use, so that no connection is kept.
    retired: AtomicBool,
    open: AtomicUsize,
    idle: Vec<Mutex<Vec<Idle>>>,
    turn: AtomicUsize,
    pub reports: LoadReports,
}

/// The right to have a connection open, given back on drop or before. It also notes whether a request is under way on the
/// connection.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(super) pool: Arc<Pool>,
    pub(super) server: Arc<Server>,
    is_given_back: bool,
    is_busy: bool,
    /// The connection's number among the [`NewConnections`](super::new_connections::NewConnections), until an answer comes on
    /// it.
    new: Option<u64>,
}

impl Ticket {
    fn give_back(&mut self) {
        if !std::mem::replace(&mut self.is_given_back, true) {
            self.pool.open.fetch_sub(1, Release);
        }
    }

    fn begin_request(&mut self) {
        if !std::mem::replace(&mut self.is_busy, true) {
            self.server.begin_request();
        }
    }

    fn end_request(&mut self) {
        if std::mem::replace(&mut self.is_busy, false) {
            self.server.end_request();
        }
        if let Some(number) = self.new.take() {
            self.server.new_connections.end(number);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end_request();
        self.give_back();
    }
}

#[derive(Debug)]
struct Idle {
    since: Instant,
    // The socket is declared before the ticket: fields are dropped in order, and the connection must be closed first.
    io: Socket,
    ticket: Ticket,
    is_doubtful: bool,
}

/// A connection that a request uses.
#[derive(Debug)]
pub(crate) struct Lease {
    pub io: Socket,
    ticket: Ticket,
    /// How often the server had been ejected when the request began there.
    ejections: u32,
    /// When the request began; `None` once the first bytes of its answer have come.
    began: Option<Instant>,
    /// Whether the connection has served a request before, so that its server may have closed it meanwhile.
    pub reused: bool,
    /// Whether its last response had no body, whatever the head stated, so that the server may wrongly send a body.
    pub is_doubtful: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionBounds {
    /// The most connections, busy and idle together. Without control there is no bound.
    pub open: usize,
    /// If more connections than this are open, a connection that has served is closed and not kept: idle connections would hold
    /// the workers of a prefork server, and requests on new connections would starve.
    pub kept: usize,
}

impl Pool {
    pub(super) fn new(bounds: ConnectionBounds, threads: usize) -> Self {
        Pool {
            roster: Mutex::default(),
            most_open: AtomicUsize::new(bounds.open),
            most_kept: AtomicUsize::new(bounds.kept),
            retired: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            idle: (0..threads).map(|_| Mutex::default()).collect(),
            turn: AtomicUsize::new(0),
            reports: LoadReports::default(),
        }
    }

    /// Puts the pool into use, within these bounds.
    pub(crate) fn serve_within(&self, bounds: ConnectionBounds) {
        self.most_open.store(bounds.open, Relaxed);
        self.most_kept.store(bounds.kept, Relaxed);
        self.retired.store(false, Relaxed);
    }

    /// Takes the pool out of use: idle connections are closed now, others when their requests are over.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Relaxed);
        self.close_unwanted();
    }

    /// Closes the idle connections to servers that have left, or all if the pool is out of use.
    pub(super) fn close_unwanted(&self) {
        for thread in 0..self.idle.len() {
            self.idle_of(thread).retain(|idle| self.wants(&idle.ticket));
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    fn wants(&self, ticket: &Ticket) -> bool {
        !self.is_retired() && !ticket.server.is_gone()
    }

    fn idle_of(&self, thread: usize) -> MutexGuard<'_, Vec<Idle>> {
        lock(&self.idle[thread])
    }

    pub(crate) fn roster(&self) -> MutexGuard<'_, Roster> {
        lock(&self.roster)
    }

    /// The number of the next choice.
    pub(super) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Relaxed)
    }

    /// A ticket, if one is free.
    pub(super) fn take_ticket(self: &Arc<Self>, server: &Arc<Server>) -> Option<Ticket> {
        let most = self.most_open.load(Relaxed);
        let taken = self.open.fetch_update(AcqRel, Acquire, |open| (open < most).then_some(open + 1));
        let ticket = || Ticket {
            pool: self.clone(),
            server: server.clone(),
            is_given_back: false,
            is_busy: false,
            new: None,
        };
        taken.is_ok().then(ticket)
    }

    /// A live idle connection, to this server or to any: the thread's own latest one, or another thread's.
    pub(crate) fn take_idle(
        &self,
        (thread, now): (usize, Instant),
        server: Option<&Arc<Server>>,
    ) -> Option<Lease> {
        let threads = self.idle.len();
        let is_wanted = |idle: &Idle| server.is_none_or(|server| Arc::ptr_eq(server, &idle.ticket.server));
        let latest = |idle: &mut Vec<Idle>| idle.iter().rposition(is_wanted).map(|index| idle.remove(index));
        for owner in (0..threads).map(|offset| (thread + offset) % threads) {
            while let Some(Idle { mut io, ticket, is_doubtful, .. }) = { latest(&mut self.idle_of(owner)) } {
                if !io.is_quiet() || (is_doubtful && io.has_come()) {
                    continue;
                }
                // A connection of another thread is registered with this thread's selector.
                let moved = if owner == thread { Ok(io) } else { io.take_over() };
                if let Ok(io) = moved {
                    return Some(Lease::begin(io, ticket, (now, true)));
                }
            }
        }
        None
    }

    /// Keeps a connection that can serve another request, on the list of `thread`, unless a new connection needs its worker.
    pub(crate) fn put_idle(&self, thread: usize, now: Instant, mut lease: Lease) {
        if lease.ticket.is_given_back || self.open.load(Acquire) > self.most_kept.load(Relaxed) {
            return;
        }
        lease.ticket.end_request();
        if lease.server().new_connections.asks_for_worker(now) {
            return;
        }
        let mut idle = self.idle_of(thread);
        // `wants` is read under the lock that `close_unwanted` takes after its answer has changed, so that no connection is
        // left behind.
        if self.wants(&lease.ticket) {
            let Lease { io, ticket, is_doubtful, .. } = lease;
            idle.push(Idle { since: now, io, ticket, is_doubtful });
        }
    }

    /// Closes a thread's connections that were idle for longer than `longest`, that their servers closed, or whose workers new
    /// connections need.
    pub(crate) fn close_stale(&self, thread: usize, now: Instant, longest: Duration) {
        self.idle_of(thread).retain_mut(|idle| {
            now.since(idle.since) < longest
                && idle.io.is_quiet()
                && !idle.ticket.server.new_connections.asks_for_worker(now)
        });
    }
}

impl Lease {
    /// Leases a new connection to its first request.
    pub(super) fn first(io: Socket, mut ticket: Ticket, now: Instant) -> Self {
        ticket.new = Some(ticket.server.new_connections.begin(now));
        Lease::begin(io, ticket, (now, false))
    }

    fn begin(io: Socket, mut ticket: Ticket, (now, reused): (Instant, bool)) -> Self {
        ticket.begin_request();
        let ejections = ticket.server.ejections();
        Lease { io, ticket, ejections, began: Some(now), reused, is_doubtful: false }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.ticket.server
    }

    /// Notes that bytes of an answer came.
    pub(crate) fn heard(&mut self, now: Instant) {
        if let Some(began) = self.began.take() {
            self.ticket.server.new_connections.answered(self.ticket.new.take(), now.since(began));
        }
    }

    /// Notes that the server has answered.
    pub(crate) fn answered(&self, now: Instant, status: u16) {
        let Ticket { pool, server, .. } = &self.ticket;
        if status >= 500 {
            self.erred(now);
        } else if server.count_served(self.ejections) {
            pool.roster().answered(now, server);
        }
    }

    /// Notes that the server has answered with an error, wrongly, or not in time.
    pub(crate) fn erred(&self, now: Instant) {
        let Ticket { pool, server, .. } = &self.ticket;
        let in_row = server.count_error(self.ejections);
        if in_row >= super::ejection::FEWEST_ERRORS {
            pool.roster().erred(now, server, in_row);
        }
    }

    /// Stops counting the connection, because its request has given its place back. It serves no other request afterwards.
    pub(crate) fn stop_counting(&mut self) {
        self.ticket.give_back();
    }

    /// The connection after its switch to another protocol, and the ticket that keeps it counted if it holds a place.
    pub(crate) fn into_tunnel(self, holds_place: bool) -> (Socket, Option<Ticket>) {
        (self.io, holds_place.then_some(self.ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::UpstreamSettings;
    use crate::transport::plain::DetachedSocket;
    use crate::upstream::servers::Upstream;
    use std::future::poll_fn;
    use std::io::Write;
    use std::net::SocketAddr;
    use std::os::unix::net::UnixStream;
    use tokio::io::AsyncReadExt;

    /// The selector has not looked between the late bytes and the next request.
    #[test]
    fn a_body_that_comes_late_behind_a_response_without_one_ends_its_connection() {
        let bounds = ConnectionBounds { open: 1, kept: 1 };
        let settings = UpstreamSettings::new(vec![SocketAddr::from(([127, 0, 0, 1], 1)).into()]);
        let upstream = Upstream::new(&settings, None, (bounds, 1)).expect("an upstream");
        let (pool, now) = (&upstream.pool, Instant::from_nanos(1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        for (late, is_kept) in [(&b""[..], true), (b"body", false)] {
            runtime.block_on(async {
                let (own, mut server) = UnixStream::pair().unwrap();
                own.set_nonblocking(true).unwrap();
                let io = Socket::Plain(DetachedSocket::Unix(own).attach().unwrap());
                let ticket = pool.take_ticket(&upstream.servers[0]).expect("a free one");
                let mut lease = Lease::first(io, ticket, now);
                server.write_all(b"head").unwrap();
                poll_fn(|context| lease.io.poll_read_ready(context)).await.unwrap();
                assert_eq!(lease.io.read(&mut [0; 100]).await.unwrap(), 4);
                lease.is_doubtful = true;
                pool.put_idle(0, now, lease);
                server.write_all(late).unwrap();
                assert_eq!(pool.take_idle((0, now), None).is_some(), is_kept);
                assert_eq!(pool.open.load(Relaxed), 0, "it was closed");
            });
        }
    }

    /// A look at a connection uses up a part of the task's budget; once that is spent, every connection seems quiet to the
    /// task.
    #[test]
    fn no_connection_that_its_server_has_closed_is_taken_however_many_there_are() {
        let bounds = ConnectionBounds { open: 300, kept: 300 };
        let settings = UpstreamSettings::new(vec![SocketAddr::from(([127, 0, 0, 1], 1)).into()]);
        let upstream = Upstream::new(&settings, None, (bounds, 1)).expect("an upstream");
        let (pool, now) = (&upstream.pool, Instant::from_nanos(1));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            for _ in 0..300 {
                let (own, server) = UnixStream::pair().unwrap();
                own.set_nonblocking(true).unwrap();
                drop(server);
                let io = Socket::Plain(DetachedSocket::Unix(own).attach().unwrap());
                poll_fn(|context| io.poll_read_ready(context)).await.unwrap();
                let ticket = pool.take_ticket(&upstream.servers[0]).expect("a free one");
                pool.put_idle(0, now, Lease::first(io, ticket, now));
            }
            assert!(pool.take_idle((0, now), None).is_none());
            assert_eq!(pool.open.load(Relaxed), 0, "all were closed");
        });
    }
}
