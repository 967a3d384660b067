//! Locking of data that threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, even after a panic: the data behind these locks is consistent after each write.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
