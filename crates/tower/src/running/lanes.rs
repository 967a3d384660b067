//! The engine's lanes, each behind a lock, and the delivery of verdicts to the requests that wait.
//!
//! A task moves between the threads of its executor, and a lane has one user at a time. So each thread has a preferred lane,
//! whose lock it takes for the length of one call. There are as many lanes as processors, so that the lock is hardly ever
//! contended. A request may end on any thread, which accounts for its end (`docs/decisions/0012-lanes-of-the-layer.md`).
//!
//! *Locks.* A thread holds at most one lane's lock, and under it calls the engine and nothing of the user's. Wakers are cloned
//! before it, and run and dropped after it: a waker may drop a task, and the task a request, which takes the lock. Only a
//! reload, which one thread at a time does, takes those of all lanes, after the engine's.

use super::lock;
use super::names::PrefixedNames;
use super::waiting::{Look, Told, WaitingSlots};
use plimsoll_core::Lane;
use plimsoll_core::request::{Outcome, Token, Verdict, Verdicts};
use plimsoll_core::time::Instant;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

/// The most lanes: a token has eight bits for its lane.
pub(crate) const MOST_LANES: usize = 256;

/// A lane, and the requests that wait through it.
pub(crate) struct OwnLane {
    pub(crate) lane: Lane,
    pub(crate) waiting: WaitingSlots,
    pub(crate) names: Arc<PrefixedNames>,
}

/// A lane, aligned so that no two lanes share a cache line.
#[repr(align(128))]
struct Apart(Mutex<OwnLane>);

/// All lanes.
pub(crate) struct Lanes(Box<[Apart]>);

thread_local! {
    /// The number of this thread among those that have called.
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The number of this thread, given at its first call. While the thread's local variables are being dropped, 0 is returned.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.try_with(|number| {
        number.get().unwrap_or_else(|| {
            let given = NEXT.fetch_add(1, Ordering::Relaxed);
            number.set(Some(given));
            given
        })
    });
    number.unwrap_or(0)
}

impl Lanes {
    pub(crate) fn new(lanes: Vec<Lane>, names: &Arc<PrefixedNames>) -> Self {
        let own = |lane| {
            Apart(Mutex::new(OwnLane { lane, waiting: WaitingSlots::default(), names: names.clone() }))
        };
        Lanes(lanes.into_iter().map(own).collect())
    }

    /// The number of the lane that this thread prefers.
    pub(crate) fn own(&self) -> usize {
        thread_number() % self.0.len()
    }

    pub(crate) fn lock(&self, number: usize) -> MutexGuard<'_, OwnLane> {
        lock(&self.0[number].0)
    }

    /// Calls the engine through this thread's lane, and delivers the verdicts that the call produces.
    pub(crate) fn call<T>(
        &self,
        clock: impl Fn() -> Instant,
        call: impl FnOnce(&mut Lane, &mut Verdicts) -> T,
    ) -> T {
        let mut verdicts = Verdicts::new();
        let result = call(&mut self.lock(self.own()).lane, &mut verdicts);
        self.deliver(clock, verdicts);
        result
    }

    /// Hands verdicts to the requests that they are about. If such a request is gone, its place goes to the next request in the
    /// queue, which may produce more verdicts.
    #[inline]
    pub(crate) fn deliver(&self, clock: impl Fn() -> Instant, verdicts: Verdicts) {
        if !verdicts.is_empty() {
            self.deliver_all(clock, verdicts);
        }
    }

    #[cold]
    fn deliver_all(&self, clock: impl Fn() -> Instant, verdicts: Verdicts) {
        let (mut wakers, mut more) = (Vec::new(), Verdicts::new());
        let mut undelivered = VecDeque::from(verdicts);
        while let Some(verdict) = undelivered.pop_front() {
            let mut own = self.lock(verdict.token().lane());
            let OwnLane { lane, waiting, names } = &mut *own;
            match waiting.deliver(verdict, names) {
                Ok(waker) => wakers.extend(waker),
                Err(Verdict::Start(_, permit)) => {
                    lane.depart(clock(), permit, Outcome::Abandoned, &mut more);
                }
                Err(Verdict::Drop(..)) => {}
            }
            undelivered.extend(more.drain(..));
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the verdict on a request that waits, if it has come.
    pub(crate) fn poll_verdict(&self, token: Token, waker: &Waker) -> Option<Told> {
        let waker = waker.clone();
        let Look { told, unneeded } = self.lock(token.lane()).waiting.poll(token, waker);
        drop(unneeded);
        told
    }

    /// Ends the wait of a request, and returns the verdict if it had come.
    pub(crate) fn end_wait(&self, token: Token) -> Option<Verdict> {
        let Look { told, unneeded } = self.lock(token.lane()).waiting.end(token);
        drop(unneeded);
        told.map(|(verdict, _)| verdict)
    }

    /// Gives all lanes these names and does this, while no lane is in use.
    pub(crate) fn set_names<T>(&self, names: &Arc<PrefixedNames>, act: impl FnOnce() -> T) -> T {
        let mut all: Vec<_> = (0..self.0.len()).map(|number| self.lock(number)).collect();
        all.iter_mut().for_each(|own| own.names = names.clone());
        act()
    }
}
