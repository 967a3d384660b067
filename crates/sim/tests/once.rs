//! What several tests look at is run once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What was found for each key. A test that comes while another one makes it waits for that.
pub(crate) struct Once<K, V>(Mutex<BTreeMap<K, Arc<OnceLock<V>>>>);

impl<K: Ord, V: Clone> Once<K, V> {
    pub(crate) const fn new() -> Self {
        Once(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let own = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        own.get_or_init(make).clone()
    }
}
