//! A value that one thread replaces and the others follow: what a reload swaps.
//!
//! Whoever holds the value looks at the generation word, and takes the lock, for the time of one clone of an [`Arc`],
//! only when the word has moved. So the way of a request costs one load of a word that nobody writes, shares no
//! reference count, and frees nothing: the old value goes when its last holder has moved on.
//!
//! Order. The word moves under the lock, so that whoever saw it move finds the new value. What a thread did after it
//! saw a generation is seen, by whoever sees that at all, together with the generation: who takes a request of a new
//! class out of a queue and then looks at the word knows the class. `model_check.rs` checks this file under loom.
//!
//! Why not a lock-free pointer swap: it needs hazard pointers or a reference count that all threads write, for what
//! happens once in a while.

use crate::sync::lock::Lock;
use alloc::sync::Arc;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// Where the present value is found.
pub(crate) struct Exchange<T> {
    generation: AtomicU32,
    current: Lock<(u32, Arc<T>)>,
}

impl<T> Exchange<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Exchange { generation: AtomicU32::new(0), current: Lock::new((0, value)) }
    }

    /// Replaces the value.
    pub(crate) fn publish(&self, value: Arc<T>) {
        let mut current = self.current.lock();
        *current = (current.0.wrapping_add(1), value);
        self.generation.store(current.0, Ordering::Release);
    }
}

/// One thread's hold of the value, as of the last look.
pub(crate) struct Held<T> {
    exchange: Arc<Exchange<T>>,
    generation: u32,
    value: Arc<T>,
}

impl<T> Held<T> {
    pub(crate) fn new(exchange: Arc<Exchange<T>>) -> Self {
        let (generation, value) = exchange.current.lock().clone();
        Held { exchange, generation, value }
    }

    /// Which publication it is, counted from 0.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether nothing was published since the last look.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.exchange.generation.load(Ordering::Acquire) == self.generation
    }

    /// The present one, held anew.
    #[cold]
    pub(crate) fn renewed(&self) -> Self {
        Held::new(self.exchange.clone())
    }
}

impl<T> core::ops::Deref for Held<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
