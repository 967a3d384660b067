//! A lane of the mapping, and its owner.
//!
//! A lane belongs to the process whose word it has, and only this process writes its counters. The lane notes how many requests
//! the process holds at each plant, between two steps of its version, which is odd meanwhile. So `controller` can compare what
//! a gate counts with what living processes hold at a moment when none of them is changing either; the difference is what dead
//! processes have left. A lane never says that it holds more than it does: a request is noted after it has entered the gate,
//! and removed before it leaves. So a process that is stopped in the middle of a change holds at most one request more than its
//! lane says.
//!
//! The lane of a process that died is taken by the controller, or by the next process that finds no free lane. Its counters are
//! settled: the requests that the dead process held count as failed. The counters go on for the next owner and never fall.

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

    /// The process that owns the lane; 0 if it is free.
    pub(crate) fn owner(&self) -> u64 {
        self.slot.owner.load(Acquire)
    }

    /// Takes a free lane.
    pub(crate) fn claim(&self, own: u64) -> bool {
        self.slot.owner.compare_exchange(0, own, AcqRel, Relaxed).is_ok()
    }

    /// Takes the lane of a dead process, and settles the requests that the process has left.
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

    /// Gives the lane back; requests that its owner still held count as failed.
    pub(crate) fn free(&self) {
        self.settle();
        self.slot.owner.store(0, Release);
    }

    /// Ends the requests that the lane holds; returns how many there were. If the process that does this dies before the end,
    /// the next owner completes it.
    fn settle(&self) -> u64 {
        for held in self.held {
            held.requests.store(0, Relaxed);
            held.exempt.store(0, Relaxed);
        }
        // An odd version would stand for a change that nobody ends.
        self.slot.version.fetch_add(self.slot.version.load(Relaxed) & 1, Release);
        let (arrived, ended) = self.counters.totals();
        self.counters.settle();
        arrived.wrapping_sub(ended)
    }

    /// Runs a change of a gate and of the requests held.
    #[inline]
    pub(crate) fn change<T>(&self, change: impl FnOnce(&Self) -> T) -> T {
        let version = self.slot.version.load(Relaxed);
        self.slot.version.store(version.wrapping_add(1), Relaxed);
        // A process that sees any part of the change also sees that the version is odd.
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

    /// Twice the number of changes so far; odd during a change.
    pub(crate) fn version(&self) -> u64 {
        self.slot.version.load(Acquire)
    }

    /// The requests that the lane holds at a plant, and how many of them are exempt.
    pub(crate) fn held(&self, plant: usize) -> (u32, u32) {
        let held = &self.held[plant];
        (held.requests.load(Relaxed), held.exempt.load(Relaxed))
    }
}

/// Ends a change, even if the change panics.
struct ChangeEnd(&'static Slot, u64);

impl Drop for ChangeEnd {
    fn drop(&mut self) {
        self.0.version.store(self.1, Release);
    }
}
