//! How many requests may stream at a plant at once, and how many tunnels there may be.
//!
//! A request streams while its body still comes: it holds a place for as long as its client likes, and not for as long as
//! the plant works. Streams therefore hold a part of the places only, and one more is refused. A request has its right to
//! stream from its arrival, also while it waits. How many places they are a part of is in `actuator/capacity.rs`.
//!
//! A tunnel, which is an upgraded connection or a stream of events, has a bound of its own. It holds no place unless the
//! operator says so; then it counts as a stream.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Rights of one kind that were given at one plant: to stream, or to be a tunnel.
#[derive(Default)]
pub(crate) struct Rights(AtomicU32);

impl Rights {
    /// Gives a right, if fewer than `most` are given.
    pub(crate) fn enter(&self, most: u32) -> bool {
        let fits = |given: u32| (given < most).then_some(given + 1);
        self.0.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Takes a right back.
    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, Relaxed);
    }

    pub(crate) fn given(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// The most streams at a plant with `places`, of which they may hold the part `share`.
pub(crate) fn most_streams(places: u32, share: f64) -> u32 {
    ((f64::from(places) * share) as u32).max(1)
}
