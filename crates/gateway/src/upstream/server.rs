//! One server of an upstream: its address, its health as requests read it, and its counts.
//!
//! [`Roster`](super::ejection::Roster) alone moves a server out of use and back. Requests read and write the atomic words here,
//! without a lock.

use super::new_connections::NewConnections;
use crate::settings::Address;
use plimsoll_core::time::{Duration, Instant};
use rustls::pki_types::ServerName;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// Stands for the end of a time out of use that only a successful check ends.
const UNTIL_CHECKED: u64 = u64::MAX;

/// The least part of its turns that a starting server gets, so that it always gets some.
const LEAST_WEIGHT: f64 = 0.1;

#[derive(Debug)]
pub(crate) struct Server {
    pub address: Address,
    /// The name that its certificate must have, if it speaks TLS.
    pub name: Option<ServerName<'static>>,
    /// When a request may try the server again, in nanoseconds; 0 while the server is in use.
    out_until: AtomicU64,
    /// When the server came into use, and for how long its share grows from then on; the latter is 0 once the share is whole.
    starting: [AtomicU64; 2],
    /// How often it was taken out of use. What a request met that began before the last time says nothing new.
    ejections: AtomicU32,
    errors_in_row: AtomicU32,
    busy: AtomicU32,
    pub counts: ServerCounts,
    pub(super) new_connections: NewConnections,
    is_gone: AtomicBool,
}

/// How requests ended at the server, since it joined the upstream.
#[derive(Debug, Default)]
pub(crate) struct ServerCounts {
    /// Answers below 500.
    pub served: AtomicU64,
    /// Answers of 500 and more, wrong answers, and requests without an answer.
    pub errors: AtomicU64,
    /// Connections that could not be made.
    pub unreachable: AtomicU64,
}

impl ServerCounts {
    /// The number of requests that ended at the server, and the number of errors among them.
    pub(super) fn requests(&self) -> [u64; 2] {
        let errors = self.errors.load(Relaxed);
        [self.served.load(Relaxed) + errors, errors]
    }
}

impl Server {
    pub(super) fn new(address: Address, name: Option<ServerName<'static>>) -> Self {
        Server {
            address,
            name,
            out_until: AtomicU64::new(0),
            starting: Default::default(),
            ejections: AtomicU32::new(0),
            errors_in_row: AtomicU32::new(0),
            busy: AtomicU32::new(0),
            counts: ServerCounts::default(),
            new_connections: NewConnections::new(),
            is_gone: AtomicBool::new(false),
        }
    }

    /// The host that is named if nobody else names one: the address, or for a Unix socket `localhost`, as curl does.
    pub(super) fn host(&self) -> String {
        match &self.address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Whether the server is out of use: requests go there only to try it, or if all servers are out.
    pub(super) fn is_out(&self) -> bool {
        self.out_until.load(Relaxed) != 0
    }

    /// Takes the right to try the server with one request, if its time out of use is over. Other requests may try it after
    /// `patience`, unless the server is in use again by then.
    pub(super) fn claim_trial(&self, now: Instant, patience: Duration) -> bool {
        let until = self.out_until.load(Acquire);
        let next = (now + patience).as_nanos().max(1);
        until != 0
            && until <= now.as_nanos()
            && self.out_until.compare_exchange(until, next, AcqRel, Acquire).is_ok()
    }

    /// The part of its turns that the server gets, in (0, 1]: it grows linearly while the server starts.
    pub(super) fn weight(&self, now: Instant) -> f64 {
        let [since, span] = self.starting.each_ref().map(|word| word.load(Relaxed));
        if span == 0 {
            return 1.0;
        }
        let past = now.as_nanos().saturating_sub(since);
        if past >= span {
            self.starting[1].store(0, Relaxed);
            return 1.0;
        }
        (past as f64 / span as f64).max(LEAST_WEIGHT)
    }

    /// The number of requests under way at the server.
    pub(super) fn busy(&self) -> u32 {
        self.busy.load(Relaxed)
    }

    pub(super) fn begin_request(&self) {
        self.busy.fetch_add(1, Relaxed);
    }

    pub(super) fn end_request(&self) {
        self.busy.fetch_sub(1, Relaxed);
    }

    pub(super) fn ejections(&self) -> u32 {
        self.ejections.load(Relaxed)
    }

    /// Counts an answer below 500. True if that may bring the server back into use; `began`: how often the server had been
    /// ejected when the request began.
    pub(super) fn count_served(&self, began: u32) -> bool {
        self.counts.served.fetch_add(1, Relaxed);
        if self.errors_in_row.load(Relaxed) != 0 {
            self.errors_in_row.store(0, Relaxed);
        }
        self.is_out() && began == self.ejections()
    }

    /// Counts an error, and returns how many errors came in a row.
    pub(super) fn count_error(&self, began: u32) -> u32 {
        self.counts.errors.fetch_add(1, Relaxed);
        if began == self.ejections() { self.errors_in_row.fetch_add(1, Relaxed) + 1 } else { 0 }
    }

    /// Takes the server out of use for a time.
    pub(super) fn eject(&self, until: Instant) {
        self.ejections.fetch_add(1, Relaxed);
        self.errors_in_row.store(0, Relaxed);
        self.out_until.store(until.as_nanos().max(1), Release);
    }

    /// Takes the server out of use until its checks succeed.
    pub(super) fn eject_until_checked(&self) {
        self.eject(Instant::from_nanos(UNTIL_CHECKED));
    }

    /// Brings the server into use, with a share that grows over `span`.
    pub(super) fn start(&self, now: Instant, span: Duration) {
        self.errors_in_row.store(0, Relaxed);
        self.starting[0].store(now.as_nanos(), Relaxed);
        self.starting[1].store(span.as_nanos() as u64, Relaxed);
        self.out_until.store(0, Release);
    }

    /// Marks the server as no longer the upstream's: its connections are closed when their requests are over.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }
}
