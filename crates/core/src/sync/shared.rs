//! A reference to words that several threads use: on this process's heap, or in memory that several processes map.
//!
//! What lies on the heap is counted and freed with its last reference. What is mapped stays for the process's life. The
//! reference itself is a plain pointer in both cases, so that a request does not ask where the words lie.

use alloc::sync::Arc;
use core::ops::Deref;
use yoke::Yoke;

/// The reference.
pub(crate) struct Shared<T: 'static>(Yoke<&'static T, Option<Arc<T>>>);

impl<T> Shared<T> {
    /// Puts the words on the heap.
    pub(crate) fn new(words: T) -> Self {
        Shared(Yoke::attach_to_cart(Arc::new(words), |words| words).wrap_cart_in_option())
    }
}

impl<T> From<&'static T> for Shared<T> {
    fn from(words: &'static T) -> Self {
        Shared(Yoke::new_owned(words))
    }
}

impl<T: Default> Default for Shared<T> {
    fn default() -> Self {
        Shared::new(T::default())
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0.get()
    }
}
