//! Jobs in the order in which they end.
//!
//! The heap moves one word of 128 bits for each job: its key (64 bits), a count that tells equal keys apart (36 bits; after 69
//! billion jobs the count begins anew, and once a later job of the same key may come first), and the job's index (28 bits). The
//! jobs themselves do not move. A heap of whole jobs, ordered field by field, took a fifth longer at 256 jobs: it moves more,
//! and its branches are hard to predict.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is in service, or on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) kind: JobKind,
    /// The number given when the job was offered. A charge has none.
    pub(super) id: u64,
    /// The bytes that the link is to carry.
    pub(super) bytes: u64,
}

/// What a job is, which decides how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    /// The request is answered.
    Request,
    /// The request fails when its time is over.
    Failing,
    /// No client waits for the job.
    Charge,
}

/// Jobs, the smallest key first; of equal keys the one that entered first, so that the order is a function of the run alone.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Reverse<u128>>,
    entered: u64,
    jobs: Vec<Job>,
    free: Vec<u32>,
}

/// Bits of a job's index.
const PLACE: u32 = 28;

impl Schedule {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The smallest key.
    pub(super) fn first(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| key_of(*entry))
    }

    pub(super) fn push(&mut self, key: u64, job: Job) {
        let place = if let Some(place) = self.free.pop() {
            self.jobs[place as usize] = job;
            place
        } else {
            self.jobs.push(job);
            (self.jobs.len() - 1) as u32
        };
        debug_assert!(place >> PLACE == 0, "memory ends before places do");
        self.entered += 1;
        self.heap.push(Reverse(entry(key, self.entered << PLACE | u64::from(place))));
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        let Reverse(entry) = self.heap.pop()?;
        let place = entry as u32 & ((1 << PLACE) - 1);
        self.free.push(place);
        Some(self.jobs[place as usize])
    }

    /// Changes all keys by a non-decreasing function.
    pub(super) fn change_keys(&mut self, change: impl Fn(u64) -> u64) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        for Reverse(changed) in &mut entries {
            *changed = entry(change(key_of(*changed)), *changed as u64);
        }
        self.heap = entries.into();
    }
}

fn entry(key: u64, rest: u64) -> u128 {
    u128::from(key) << 64 | u128::from(rest)
}

fn key_of(entry: u128) -> u64 {
    (entry >> 64) as u64
}
