//! How many workers a plant has and how many requests it is given at once: promised, or found by the worker search.

use core::sync::atomic::{AtomicU32, Ordering};

/// The three words of one plant. The worker search writes them, requests read them.
#[repr(C)]
pub(crate) struct Capacity {
    workers: AtomicU32,
    limit: AtomicU32,
    /// The places of which exempt requests and streams hold their shares.
    shared: AtomicU32,
    /// Whether the number of workers is searched for. Then time and departures are counted by how many were in service.
    pub(crate) found: bool,
}

impl Capacity {
    /// Where the number of workers is searched for, none is known at the beginning.
    pub(crate) fn new(workers: u32, limit: u32, found: bool) -> Self {
        let shared = AtomicU32::new(shared_places(limit, !found));
        Capacity { workers: AtomicU32::new(workers), limit: AtomicU32::new(limit), shared, found }
    }

    pub(crate) fn workers(&self) -> u32 {
        self.workers.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The places of which exempt requests and streams hold their shares.
    pub(crate) fn shared(&self) -> u32 {
        self.shared.load(Ordering::Relaxed)
    }

    /// `is_known`: whether throughput was seen to level off, or the server reports its workers.
    pub(crate) fn set(&self, workers: u32, limit: u32, is_known: bool) {
        self.workers.store(workers, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
        self.shared.store(shared_places(limit, is_known), Ordering::Relaxed);
    }
}

/// The places that are divided between requests that hold theirs for as long as their clients like, or come before all others,
/// and the rest. While the number of workers is not known the limit is a guess, or twice a number that was seen to work side
/// by side: then half of it is divided, for a share of the guess could be all workers that there are.
fn shared_places(limit: u32, is_known: bool) -> u32 {
    if is_known { limit } else { limit / 2 }
}
