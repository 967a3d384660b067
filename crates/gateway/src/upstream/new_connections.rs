//! New connections to a server on which no request has ended yet.
//!
//! A prefork server gives each connection a worker for as long as it is open; further ones wait in its listen queue. Where the
//! gateway does not know how many workers there are, idle connections may hold them all. Requests that come use these again
//! and again, while those on new connections starve. So one that has waited for long has another closed that is idle, or
//! becomes so, and that one's worker accepts the next. It asks again each time that it has waited twice as long, since a worker
//! may have accepted another. Where the server was only slow, this costs a connection that is made again.

use crate::runtime::lock;
use plimsoll_core::time::{Duration, Instant};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A connection without an answer for longer than this may be one that no worker has accepted.
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct NewConnections {
    /// When the first of them asks, in nanoseconds, or earlier. Threads read it without the lock.
    asks_at: AtomicU64,
    list: Mutex<List>,
}

/// They stand in the order of their numbers.
#[derive(Debug, Default)]
struct List {
    next: u64,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    since: Instant,
    asks_at: Instant,
}

impl NewConnections {
    pub(super) fn new() -> Self {
        NewConnections { asks_at: AtomicU64::new(u64::MAX), list: Mutex::default() }
    }

    /// Counts a connection, and returns its number.
    pub(super) fn begin(&self, now: Instant) -> u64 {
        let mut list = lock(&self.list);
        let (number, asks_at) = (list.next, now + PATIENCE);
        list.next += 1;
        list.waiting.push(Waiting { number, since: now, asks_at });
        self.asks_at.fetch_min(asks_at.as_nanos(), Relaxed);
        number
    }

    /// A request on it has ended, or it was closed.
    pub(super) fn end(&self, number: u64) {
        let mut list = lock(&self.list);
        if let Ok(index) = list.waiting.binary_search_by_key(&number, |waiting| waiting.number) {
            list.waiting.remove(index);
        }
    }

    /// Whether an idle connection is to be closed for one of these.
    pub(super) fn asks_for_worker(&self, now: Instant) -> bool {
        if now.as_nanos() < self.asks_at.load(Relaxed) {
            return false;
        }
        let mut list = lock(&self.list);
        let first = list.waiting.iter_mut().min_by_key(|waiting| waiting.asks_at);
        let first = first.filter(|waiting| waiting.asks_at <= now);
        let asks = first.map(|waiting| waiting.asks_at = now + now.since(waiting.since)).is_some();
        let next = list.waiting.iter().map(|waiting| waiting.asks_at.as_nanos()).min();
        self.asks_at.store(next.unwrap_or(u64::MAX), Relaxed);
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_asks_once_it_has_waited_and_again_at_twice_that_time() {
        let connections = NewConnections::new();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let ask = |times: &[u64]| -> Vec<u64> {
            times.iter().copied().filter(|ms| connections.asks_for_worker(at(*ms))).collect()
        };
        let [first, second, third] = [0, 10, 20].map(|ms| connections.begin(at(ms)));
        assert!(ask(&[249]).is_empty());
        connections.end(second);
        assert_eq!(ask(&[250, 251, 269, 270, 499, 500, 501, 520, 521]), [250, 270, 500, 520]);
        connections.end(first);
        connections.end(third);
        assert!(ask(&[5_000]).is_empty());
        assert_eq!(connections.asks_at.load(Relaxed), u64::MAX);
    }
}
