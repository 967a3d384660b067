//! One server of an upstream: its address, what requests read of its health, and what was counted there.
//!
//! [`Roster`](super::ejection::Roster) alone moves a server out of use and back. Requests read the words here, and count here
//! what they met; no lock is taken for that.

use super::new_connections::NewConnections;
use crate::settings::Address;
use plimsoll_core::time::{Duration, Instant};
use rustls::pki_types::ServerName;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

/// The end of a time out of use that only a successful check ends.
const UNTIL_CHECKED: u64 = u64::MAX;

/// The least part of its turns that a server gets that has just come into use, so that it always gets some.
const LEAST_WEIGHT: f64 = 0.1;

#[derive(Debug)]
pub(crate) struct Server {
    pub address: Address,
    /// The name that its certificate must have, where TLS is spoken.
    pub name: Option<ServerName<'static>>,
    /// When a request may try it again, in nanoseconds; 0 while it is in use.
    out_until: AtomicU64,
    /// When it came into use and for how long it grows from there to its whole share; both 0 once it has that.
    starting: [AtomicU64; 2],
    /// How often it was taken out of use. What a request met that began before the last time says nothing new.
    ejections: AtomicU32,
    errors_in_row: AtomicU32,
    busy: AtomicU32,
    pub counts: ServerCounts,
    pub(super) new_connections: NewConnections,
    is_gone: AtomicBool,
}

/// How requests ended there, since it is a server of the upstream.
#[derive(Debug, Default)]
pub(crate) struct ServerCounts {
    /// Answers below 500.
    pub served: AtomicU64,
    /// Answers of 500 and more, and requests that got none, or a wrong one.
    pub errors: AtomicU64,
    /// Connections that could not be made.
    pub unreachable: AtomicU64,
}

impl ServerCounts {
    /// Requests that ended there, and the errors among them.
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

    /// The host that it is sent where nobody names one: as curl calls what is behind a Unix socket, `localhost`.
    pub(super) fn host(&self) -> String {
        match &self.address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Whether it is out of use: requests go there only to try it, or where all servers are out.
    pub(super) fn is_out(&self) -> bool {
        self.out_until.load(Relaxed) != 0
    }

    /// Takes the right to try it with one request, if its time out of use is over. Others may try it after `patience`,
    /// unless it is in use again by then.
    pub(super) fn claim_trial(&self, now: Instant, patience: Duration) -> bool {
        let until = self.out_until.load(Acquire);
        let next = (now + patience).as_nanos().max(1);
        until != 0
            && until <= now.as_nanos()
            && self.out_until.compare_exchange(until, next, AcqRel, Acquire).is_ok()
    }

    /// The part of its turns that it gets, in (0, 1]: it grows evenly while it starts.
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

    /// Requests under way there.
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

    /// Counts an answer below 500. True if that may bring the server back into use; `began`: how often it had been ejected when
    /// the request began.
    pub(super) fn count_served(&self, began: u32) -> bool {
        self.counts.served.fetch_add(1, Relaxed);
        if self.errors_in_row.load(Relaxed) != 0 {
            self.errors_in_row.store(0, Relaxed);
        }
        self.is_out() && began == self.ejections()
    }

    /// Counts an error, and returns how many there are in a row.
    pub(super) fn count_error(&self, began: u32) -> u32 {
        self.counts.errors.fetch_add(1, Relaxed);
        if began == self.ejections() { self.errors_in_row.fetch_add(1, Relaxed) + 1 } else { 0 }
    }

    /// Takes it out of use for a time.
    pub(super) fn eject(&self, until: Instant) {
        self.ejections.fetch_add(1, Relaxed);
        self.errors_in_row.store(0, Relaxed);
        self.out_until.store(until.as_nanos().max(1), Release);
    }

    /// Takes it out of use until its checks succeed.
    pub(super) fn eject_until_checked(&self) {
        self.eject(Instant::from_nanos(UNTIL_CHECKED));
    }

    /// Brings it into use, with a share that grows over `span`.
    pub(super) fn start(&self, now: Instant, span: Duration) {
        self.errors_in_row.store(0, Relaxed);
        self.starting[0].store(now.as_nanos(), Relaxed);
        self.starting[1].store(span.as_nanos() as u64, Relaxed);
        self.out_until.store(0, Release);
    }

    /// From now on no server of the upstream: its connections are closed when their requests are over.
    pub(super) fn leave(&self) {
        self.is_gone.store(true, Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Relaxed)
    }
}
