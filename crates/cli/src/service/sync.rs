//! The lock that threads share things behind.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a panic: what is behind it is whole after each write.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
