//! A connection's place in its thread's table: its deadline, and the verdict it waits for.
//!
//! **Deadlines** are a number that the connection writes and that the thread looks at ten times a second over all
//! connections. Arming one costs a store; a timer per read would cost more than the read's bookkeeping.
//!
//! **Verdicts** find their request by token: thread, slot, and a generation that changes whenever the slot stops
//! waiting, so that a verdict that comes too late is known for one.

use plimsoll_core::request::Reason;
use plimsoll_core::request::{Permit, Token};
use plimsoll_core::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

/// What a waiting request was told.
#[derive(Debug)]
pub(crate) enum Decision {
    Start(Permit),
    Drop { reason: Reason, retry_after: Duration },
}

/// One connection's place.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    index: u32,
    generation: Cell<u32>,
    waiting: Cell<bool>,
    decision: RefCell<Option<Decision>>,
    /// Nanoseconds; 0 is none.
    deadline: Cell<u64>,
    expired: Cell<bool>,
    /// Since when it waits for a request, in nanoseconds; 0 while it serves one.
    idle_since: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

impl Slot {
    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.borrow_mut() = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Arms the deadline, or takes it away with `None`.
    pub(crate) fn arm(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline.map_or(0, Instant::as_nanos));
        self.expired.set(false);
    }

    /// From now on the connection waits for a request, of which no byte has come.
    pub(crate) fn idle_from(&self, now: Instant) {
        self.idle_since.set(now.as_nanos().max(1));
    }

    /// A request begins.
    pub(crate) fn busy(&self) {
        self.idle_since.set(0);
    }

    /// Whether a deadline is set.
    pub(crate) fn is_armed(&self) -> bool {
        self.deadline.get() != 0 || self.expired.get()
    }

    /// Whether the deadline passed. It stays so until the next [`arm`](Self::arm).
    pub(crate) fn expired(&self) -> bool {
        self.expired.get()
    }

    /// The deadline passes now.
    fn expire(&self) {
        self.deadline.set(0);
        self.expired.set(true);
        self.wake();
    }

    /// The token for the next wait.
    pub(crate) fn token(&self, lane: usize) -> Token {
        Token((lane as u64) << 56 | u64::from(self.index) << 32 | u64::from(self.generation.get()))
    }

    pub(crate) fn begin_wait(&self) {
        self.waiting.set(true);
    }

    /// Ends the wait; a decision that nobody took is handed back.
    pub(crate) fn end_wait(&self) -> Option<Decision> {
        self.waiting.set(false);
        self.generation.set(self.generation.get().wrapping_add(1));
        self.decision.borrow_mut().take()
    }

    pub(crate) fn has_decision(&self) -> bool {
        self.decision.borrow().is_some()
    }
}

/// The lane that a token belongs to.
pub(crate) fn lane_of(token: Token) -> usize {
    (token.0 >> 56) as usize
}

/// A thread's connections.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Option<Rc<Slot>>>,
    free: Vec<u32>,
    /// Generations go on where a slot's last user left off.
    generations: Vec<u32>,
}

impl Slots {
    pub(crate) fn add(&mut self) -> Rc<Slot> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.generations.push(0);
            (self.slots.len() - 1) as u32
        });
        let generation = Cell::new(self.generations[index as usize]);
        let slot = Rc::new(Slot { index, generation, ..Slot::default() });
        self.slots[index as usize] = Some(slot.clone());
        slot
    }

    pub(crate) fn remove(&mut self, slot: &Slot) {
        self.generations[slot.index as usize] = slot.generation.get().wrapping_add(1);
        self.slots[slot.index as usize] = None;
        self.free.push(slot.index);
    }

    /// Hands a decision to the request that waits for it, or back if there is none such.
    pub(crate) fn decide(&self, token: Token, decision: Decision) -> Result<(), Decision> {
        let index = (token.0 >> 32 & 0xff_ffff) as usize;
        match self.slots.get(index) {
            Some(Some(slot)) if slot.waiting.get() && slot.generation.get() == token.0 as u32 => {
                *slot.decision.borrow_mut() = Some(decision);
                slot.wake();
                Ok(())
            }
            _ => Err(decision),
        }
    }

    /// Wakes the connections whose deadline has passed.
    pub(crate) fn expire(&self, now: Instant) {
        for slot in self.slots.iter().flatten() {
            let deadline = slot.deadline.get();
            if deadline != 0 && now.as_nanos() >= deadline {
                slot.expire();
            }
        }
    }

    /// Ends the connection that has been idle the longest, if any has been for `least`, and says which it was.
    pub(crate) fn expire_idle(&self, now: Instant, least: Duration) -> Option<Rc<Slot>> {
        let idle = self.slots.iter().flatten().filter(|slot| slot.idle_since.get() != 0);
        let slot = idle.min_by_key(|slot| slot.idle_since.get())?;
        if now.since(Instant::from_nanos(slot.idle_since.get())) < least {
            return None;
        }
        slot.busy();
        slot.expire();
        Some(slot.clone())
    }

    pub(crate) fn wake_all(&self) {
        self.slots.iter().flatten().for_each(|slot| slot.wake());
    }
}
