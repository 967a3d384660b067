//! How many requests may stream at a plant at once.
//!
//! A request streams while its body still comes, or while its response is a stream of events: it holds a place for as long
//! as its client likes, and not for as long as the plant works. Streams therefore hold a part of the places only, and one
//! more is refused. A request has its right to stream from its arrival, also while it waits.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The rights to stream that were given at one plant.
#[derive(Default)]
pub(crate) struct Streams(AtomicU32);

impl Streams {
    /// Gives a right to stream, if there is one at a plant with so many places.
    pub(crate) fn enter(&self, places: u32, share: f64) -> bool {
        let most = ((f64::from(places) * share) as u32).max(1);
        let fits = |streams: u32| (streams < most).then_some(streams + 1);
        self.0.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Takes a right to stream back.
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
