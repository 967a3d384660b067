//! The lock that threads share things behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a panic: what the gateway's locks guard is whole after each of its writes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
