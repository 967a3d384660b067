//! What runs: threads, what they share, and how that is replaced while they run.
//!
//! In: sockets and lanes at the start, messages to a thread, new settings at a reload. Out: verdicts delivered to the
//! requests that they are about, and control periods on time.
//!
//! A [`worker`] thread has its connections in [`slots`] and gets messages through its [`mailbox`]. The [`ticker`] thread runs
//! the control loops. [`tables`] are the settings in force, published by [`reload`], and by [`readdress`] where a name has
//! other addresses than before. [`memory`] is given back after a burst.

pub(crate) mod mailbox;
pub(crate) mod memory;
pub(crate) mod names;
mod processors;
mod readdress;
pub(crate) mod reload;
pub(crate) mod slots;
pub(crate) mod tables;
pub(crate) mod ticker;
pub(crate) mod worker;

use plimsoll_core::time::Instant;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The gateway's clock for the engine: nanoseconds since its start, one origin for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        // The clock begins a little after zero, which means "never" to the engine.
        let now = std::time::Instant::now();
        Clock { origin: now.checked_sub(std::time::Duration::from_millis(1)).unwrap_or(now) }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}

/// Takes a lock, also after a panic: what the gateway's locks guard is whole after each of its writes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
