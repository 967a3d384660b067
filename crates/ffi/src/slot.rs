//! A lane of the mapping, and whose it is.
//!
//! A lane belongs to the process whose word it has, which alone writes its counters. It notes how many requests it holds at
//! each plant, between two steps of its version, which is odd meanwhile. So what a gate counts and what living processes hold
//! can be compared at a moment when none of them is changing either (`controller`), and the difference is what dead ones have
//! left. A lane never says that it holds more than it does: a request is noted after it has entered the gate, and let go before
//! it leaves. So one that is stopped in the middle of a change holds at most one more.
//!
//! A lane whose process died is taken by the controller, or by the next process that finds no free one. Its counters are
//! settled: what the dead process held has failed. They go on counting for the next owner and never fall.

use crate::layout::{Changing, Held, Slot};
use crate::owner;
use plimsoll_core::processes::SharedLane;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;

#[derive(Clone, Copy)]
pub(crate) struct LaneSlot {
    slot: &'static Slot,
    held: &'static [Held],
    pub(crate) counters: SharedLane,
}

impl LaneSlot {
    pub(crate) fn new(slot: &'static Slot, held: &'static [Held], counters: SharedLane) -> Self {
        LaneSlot { slot, held, counters }
    }

    /// The process that owns it; 0 for none.
    pub(crate) fn owner(&self) -> u64 {
        self.slot.owner.load(Acquire)
    }

    /// Takes a free lane.
    pub(crate) fn claim(&self, own: u64) -> bool {
        self.slot.owner.compare_exchange(0, own, AcqRel, Relaxed).is_ok()
    }

    /// Takes the lane of a dead process, and settles what that one has left.
    pub(crate) fn claim_from_dead(&self, own: u64, changing: &Changing) -> bool {
        let owner = self.owner();
        if owner == 0 || owner == own || owner::lives(owner) {
            return false;
        }
        if self.slot.owner.compare_exchange(owner, own, AcqRel, Relaxed).is_err() {
            return false;
        }
        changing.deaths.fetch_add(1, Relaxed);
        changing.returned.fetch_add(self.settle(), Relaxed);
        true
    }

    /// Gives the lane back; what its owner still held has failed.
    pub(crate) fn free(&self) {
        self.settle();
        self.slot.owner.store(0, Release);
    }

    /// Ends what the lane holds; returns how many requests that were. If the process that does it dies within, the next one
    /// goes on.
    fn settle(&self) -> u64 {
        for held in self.held {
            held.requests.store(0, Relaxed);
            held.exempt.store(0, Relaxed);
        }
        // An odd version would be that of a change which nobody ends.
        self.slot.version.fetch_add(self.slot.version.load(Relaxed) & 1, Release);
        let (arrived, ended) = self.counters.totals();
        self.counters.settle();
        arrived.wrapping_sub(ended)
    }

    /// Runs a change of a gate, and of what is held.
    #[inline]
    pub(crate) fn change<T>(&self, change: impl FnOnce(&Self) -> T) -> T {
        let version = self.slot.version.load(Relaxed);
        self.slot.version.store(version.wrapping_add(1), Relaxed);
        // A process that sees the change also sees that one is under way.
        fence(Release);
        let _end = ChangeEnd(self.slot, version.wrapping_add(2));
        change(self)
    }

    #[inline]
    pub(crate) fn hold(&self, plant: usize, is_exempt: bool) {
        let held = &self.held[plant];
        held.requests.store(held.requests.load(Relaxed).wrapping_add(1), Relaxed);
        if is_exempt {
            held.exempt.store(held.exempt.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }

    #[inline]
    pub(crate) fn let_go(&self, plant: usize, is_exempt: bool) {
        let held = &self.held[plant];
        held.requests.store(held.requests.load(Relaxed).wrapping_sub(1), Relaxed);
        if is_exempt {
            held.exempt.store(held.exempt.load(Relaxed).wrapping_sub(1), Relaxed);
        }
    }

    /// How often the lane has changed, twice; odd while it does.
    pub(crate) fn version(&self) -> u64 {
        self.slot.version.load(Acquire)
    }

    /// What it holds at a plant: requests, and the exempt ones of them.
    pub(crate) fn held(&self, plant: usize) -> (u32, u32) {
        let held = &self.held[plant];
        (held.requests.load(Relaxed), held.exempt.load(Relaxed))
    }
}

/// Ends a change, also where it panics.
struct ChangeEnd(&'static Slot, u64);

impl Drop for ChangeEnd {
    fn drop(&mut self) {
        self.0.version.store(self.1, Release);
    }
}
