//! Jobs in the order in which they end.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is in service, or on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) kind: Kind,
    /// As offered. A charge has none.
    pub(super) id: u64,
    /// What the link is to carry.
    pub(super) bytes: u64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is answered.
    Request,
    /// It fails when its time is over.
    Failing,
    /// Nobody waits for it.
    Charge,
}

/// Jobs, smallest key first; of equal keys, first entered first. That makes the order a function of the run alone.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Entry>,
    entered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    entered: u64,
    job: Job,
}

impl Schedule {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The smallest key.
    pub(super) fn first(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.key)
    }

    pub(super) fn push(&mut self, key: u64, job: Job) {
        self.entered += 1;
        self.heap.push(Entry { key, entered: self.entered, job });
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        self.heap.pop().map(|entry| entry.job)
    }

    /// Changes all keys by a function that never falls.
    pub(super) fn change_keys(&mut self, change: impl Fn(u64) -> u64) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        for entry in &mut entries {
            entry.key = change(entry.key);
        }
        self.heap = entries.into();
    }
}

impl Entry {
    /// Both in one number: a comparison without a branch, which the processor could only guess.
    fn order(&self) -> u128 {
        u128::from(self.key) << 64 | u128::from(self.entered)
    }
}

// The standard heap has its largest on top.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
    // What the heap asks.
    fn le(&self, other: &Self) -> bool {
        other.order() <= self.order()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Entry {}
