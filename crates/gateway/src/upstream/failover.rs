//! A connection for a request in service; if a server cannot be reached, the connection is to another server of the upstream.
//!
//! The server is chosen first, for each request ([`choose`]), and then one of its connections. If no more connections may be
//! opened, an idle connection to any server in use is taken.
//!
//! A request whose server cannot be reached is tried at the next one: at [`Tried::MOST`] servers, in twice the time-out of a
//! connection, and within the [budget](super::retry_budget) of all requests.

use super::choice::{ServerChoice, Tried, choose};
use super::connect::connect;
use super::pool::{Lease, Ticket};
use super::server::Server;
use super::servers::Upstream;
use super::trouble::{Trouble, own_lack};
use crate::clock::Clock;
use crate::http1::Refusal;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a request gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    Unreachable(Trouble),
    /// The request was not tried at another server, since the budget of retries is used up.
    NotRetried,
    /// This process, or this machine, lacks what a connection needs.
    OwnLack(&'static str),
}

impl ConnectError {
    /// Whether an overloaded server may be the reason.
    pub(crate) fn is_refusal(self) -> bool {
        match self {
            ConnectError::Unreachable(trouble) => trouble != Trouble::Untrusted,
            ConnectError::NotRetried => true,
            ConnectError::OwnLack(_) => false,
        }
    }

    pub(crate) fn refusal(self) -> Refusal {
        let (status, why) = match self {
            ConnectError::Unreachable(Trouble::ConnectTimeout) => {
                (504, "the upstream does not accept connections in time")
            }
            ConnectError::Unreachable(Trouble::Untrusted) => {
                (502, "the upstream speaks no TLS that can be trusted")
            }
            ConnectError::Unreachable(_) => (502, "the upstream does not accept connections"),
            ConnectError::NotRetried => {
                (502, "a server does not accept connections, and too many requests were tried at others")
            }
            ConnectError::OwnLack(why) => (503, why),
        };
        Refusal::with(status, why)
    }
}

/// How [`Upstream::acquire`] finds a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectOptions {
    pub thread: usize,
    pub clock: Clock,
    pub connect_timeout: Duration,
    /// Whether the connection must be new, since a kept one has just failed.
    pub fresh: bool,
}

impl Upstream {
    /// A connection for a request in service. `failed` is called with each server that accepts none.
    pub(crate) async fn acquire(
        &self,
        options: ConnectOptions,
        failed: impl Fn(&Server),
    ) -> Result<Lease, ConnectError> {
        let mut tried = Tried::default();
        let mut last = ConnectError::Unreachable(Trouble::Refused);
        let mut now = options.clock.now();
        let end = now + options.connect_timeout * 2;
        loop {
            // The budget is asked only if there is another server to try.
            if tried.is_full() || now >= end || tried.count() >= self.servers.len() {
                return Err(last);
            }
            if tried.count() > 0 && !self.pool.roster().may_retry(now) {
                return Err(ConnectError::NotRetried);
            }
            let turn = self.pool.next_turn();
            let choice = choose(&self.servers, now, &tried, turn, options.connect_timeout);
            let Some(ServerChoice { number, is_trial }) = choice else { return Err(last) };
            let server = &self.servers[number];
            if !options.fresh
                && !is_trial
                && tried.count() == 0
                && let Some(lease) = self.pool.take_idle((options.thread, now), Some(server))
            {
                return Ok(lease);
            }
            let ticket = match self.ticket(server, options).await {
                Ok(ticket) => ticket,
                Err(lease) => return Ok(lease),
            };
            let patience = options.connect_timeout.min(end.since(now));
            let connecting = connect(server, self.secured.as_deref(), self.http2);
            let connected = tokio::time::timeout(patience, connecting).await;
            let result = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            // The ejection begins now: counted from before a long try, it would already be over.
            now = options.clock.now();
            match result {
                Ok(io) => {
                    if server.is_out() {
                        self.pool.roster().reached(now, server, is_trial);
                    }
                    return Ok(Lease::first(io, ticket, now));
                }
                Err(error) => {
                    // The error is no failure of the upstream: a connection to any other server would need the same.
                    if let Some(why) = own_lack(&error, &server.address) {
                        return Err(ConnectError::OwnLack(why));
                    }
                    let why = Trouble::of(&error);
                    self.pool.roster().unreachable(now, server, why, is_trial);
                    last = ConnectError::Unreachable(why);
                    failed(server);
                    tried.add(number);
                }
            }
        }
    }

    /// A ticket, or an idle connection that turned up while no ticket was free.
    async fn ticket(&self, server: &Arc<Server>, options: ConnectOptions) -> Result<Ticket, Lease> {
        let mut rounds = 0u32;
        loop {
            if let Some(ticket) = self.pool.take_ticket(server) {
                return Ok(ticket);
            }
            match self.pool.take_idle((options.thread, options.clock.now()), None) {
                // Closing this connection frees its ticket.
                Some(lease) if options.fresh || lease.server().is_out() => drop(lease),
                Some(lease) => return Err(lease),
                // A connection has moved from one list to another between two looks, or is about to be closed.
                None if rounds < 8 => tokio::task::yield_now().await,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
            rounds += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ejection::FIRST_EJECTION;
    use super::super::pool::ConnectionBounds;
    use super::*;
    use crate::settings::UpstreamSettings;
    use plimsoll_core::time::Instant;

    #[test]
    fn a_unix_socket_that_is_not_there_is_not_said_to_refuse() {
        for (errno, trouble) in [
            (rustix::io::Errno::NOENT, Trouble::Missing),
            (rustix::io::Errno::ACCESS, Trouble::Forbidden),
            (rustix::io::Errno::CONNREFUSED, Trouble::Refused),
        ] {
            assert_eq!(Trouble::of(&errno.into()), trouble);
        }
    }

    #[test]
    fn an_ejection_begins_when_the_try_failed() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        rustix::net::listen(&listener, 1).expect("a short queue");
        let address = listener.local_addr().expect("its address");
        let mut queued = Vec::new();
        while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            queued.push(stream);
            assert!(queued.len() < 10, "the queue never fills");
        }
        let settings = UpstreamSettings::new(vec![address.into()]);
        let bounds = ConnectionBounds { open: 1, kept: 1 };
        let upstream = Upstream::new(&settings, None, (bounds, 1)).expect("an upstream");
        let clock = Clock::start();
        let connect_timeout = Duration::from_millis(100);
        let begin = clock.now();
        let options = ConnectOptions { thread: 0, clock, connect_timeout, fresh: false };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let result = runtime.block_on(upstream.acquire(options, |_| ())).map(drop);
        assert_eq!(result, Err(ConnectError::Unreachable(Trouble::ConnectTimeout)));
        let server = &upstream.servers[0];
        assert!(server.is_out(), "it is out, and used all the same");
        let least = begin + connect_timeout + FIRST_EJECTION;
        let earlier = Instant::from_nanos(least.as_nanos() - 1);
        assert!(!server.claim_trial(earlier, connect_timeout));
        assert!(server.claim_trial(clock.now() + FIRST_EJECTION, connect_timeout));
    }
}
