//! A value that one thread replaces and the others follow: how a reload reaches the lanes.
//!
//! A reader looks at the generation word, and takes the lock, to clone an [`Arc`], only when that word has changed. So a
//! request costs one load of a word that is not written between reloads, and changes no reference count. An old value is
//! freed when its last reader has taken a newer one.
//!
//! *Order.* The word changes under the lock, so a thread that saw the change finds the new value. A thread that sees what
//! another thread did at a generation also sees that generation: a lane that takes a request of a new class out of a queue,
//! and then looks at the word, knows the class. `scheduling/model_check.rs` checks this file under loom.
//!
//! A lock-free pointer swap would need hazard pointers, or a reference count that all threads write, for an event as rare as
//! a reload.

use crate::sync::lock::Lock;
use alloc::sync::Arc;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// The present value and its generation.
pub(crate) struct Published<T> {
    generation: AtomicU32,
    current: Lock<(u32, Arc<T>)>,
}

impl<T> Published<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Published { generation: AtomicU32::new(0), current: Lock::new((0, value)) }
    }

    /// Replaces the value.
    pub(crate) fn publish(&self, value: Arc<T>) {
        let mut current = self.current.lock();
        *current = (current.0.wrapping_add(1), value);
        self.generation.store(current.0, Ordering::Release);
    }
}

/// One thread's reference to the value, as it was when the thread last looked.
pub(crate) struct Reader<T> {
    published: Arc<Published<T>>,
    generation: u32,
    value: Arc<T>,
}

impl<T> Reader<T> {
    pub(crate) fn new(published: Arc<Published<T>>) -> Self {
        let (generation, value) = published.current.lock().clone();
        Reader { published, generation, value }
    }

    /// The number of the generation, counted from 0.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether nothing was published since this value.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.published.generation.load(Ordering::Acquire) == self.generation
    }

    /// A reader of the present value.
    #[cold]
    pub(crate) fn renewed(&self) -> Self {
        Reader::new(self.published.clone())
    }
}

impl<T> core::ops::Deref for Reader<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
