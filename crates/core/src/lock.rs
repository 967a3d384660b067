//! The core's one mutex, and the only file that names std.
//!
//! It guards a plant's queue: a few moves of memory, never a wait, so a blocking mutex is right, also on an
//! asynchronous thread. A poisoned lock is taken all the same: the queue is valid between any two of its statements.

extern crate std;

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};

pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
