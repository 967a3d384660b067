//! How many workers a plant has and how many requests it is given at once: promised, or found by the worker search.

use core::sync::atomic::{AtomicU32, Ordering};

/// The two words of one plant. The worker search writes them, requests read them.
#[repr(C)]
pub(crate) struct Capacity {
    workers: AtomicU32,
    limit: AtomicU32,
    /// Whether the number of workers is searched for. Then time and departures are counted by how many were in service.
    pub(crate) found: bool,
}

impl Capacity {
    pub(crate) fn new(workers: u32, limit: u32, found: bool) -> Self {
        Capacity { workers: AtomicU32::new(workers), limit: AtomicU32::new(limit), found }
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, workers: u32, limit: u32) {
        self.workers.store(workers, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }
}
