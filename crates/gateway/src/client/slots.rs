//! A connection's slot in the table of its thread: its deadline, and the verdict that its waiting request gets.
//!
//! **Deadlines** are numbers that connections write, and that the thread compares with the time ten times a second. Setting one
//! costs a store; a timer would cost more than the rest of a read.
//!
//! **Verdicts** find their request by token: thread, slot, and a generation. The generation changes whenever the slot stops
//! waiting, so that a late verdict matches no slot.

use plimsoll_core::request::{COUNTED_EVERY, Token, Verdict};
use plimsoll_core::time::{Duration, Instant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

#[derive(Debug, Default)]
pub(crate) struct Slot {
    index: u32,
    generation: Cell<u32>,
    waiting: Cell<bool>,
    verdict: RefCell<Option<Verdict>>,
    /// The deadline in nanoseconds; 0 if there is none.
    deadline: Cell<u64>,
    expired: Cell<bool>,
    /// Since when the connection has waited for a request, in nanoseconds; 0 while it serves one.
    idle_since: Cell<u64>,
    waker: RefCell<Option<Waker>>,
    /// When a request of the connection was last counted, in nanoseconds, and the request's class.
    counted: Cell<(u64, u16)>,
}

impl Slot {
    /// Whether a request of this class comes from a connection that was counted for the class within the last second. If it
    /// does not, the connection is counted now.
    pub(crate) fn repeats(&self, now: Instant, class: u16) -> bool {
        let (at, own) = self.counted.get();
        let repeats = own == class
            && at > 0
            && now.nanos_since(Instant::from_nanos(at)) < COUNTED_EVERY.as_nanos() as u64;
        if !repeats {
            self.counted.set((now.as_nanos().max(1), class));
        }
        repeats
    }

    pub(crate) fn set_waker(&self, waker: &Waker) {
        *self.waker.borrow_mut() = Some(waker.clone());
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    pub(crate) fn arm(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline.map_or(0, Instant::as_nanos));
        self.expired.set(false);
    }

    /// From `now` on the connection waits for a request of which no byte has come.
    pub(crate) fn idle_from(&self, now: Instant) {
        self.idle_since.set(now.as_nanos().max(1));
    }

    /// Since when it has waited so; `None` while it serves a request, and after it was signalled to end.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        Some(self.idle_since.get()).filter(|&since| since != 0).map(Instant::from_nanos)
    }

    /// Notes that a request begins.
    pub(crate) fn busy(&self) {
        self.idle_since.set(0);
    }

    pub(crate) fn expired(&self) -> bool {
        self.expired.get()
    }

    pub(crate) fn expire(&self) {
        self.deadline.set(0);
        self.expired.set(true);
        self.wake();
    }

    pub(crate) fn token(&self, lane: usize) -> Token {
        Token::of_place(lane, self.index, self.generation.get())
    }

    pub(crate) fn begin_wait(&self) {
        self.waiting.set(true);
    }

    /// Ends the wait and returns the verdict, if it has come.
    pub(crate) fn end_wait(&self) -> Option<Verdict> {
        self.waiting.set(false);
        self.generation.set(self.generation.get().wrapping_add(1));
        self.verdict.borrow_mut().take()
    }

    pub(crate) fn has_verdict(&self) -> bool {
        self.verdict.borrow().is_some()
    }
}

/// When the ended streams of one connection were counted. A new stream takes over the count of the last that ended, so that
/// a connection counts once for each request that it has under way at a time.
#[derive(Debug, Default)]
pub(crate) struct EndedStreams(RefCell<Vec<(u64, u16)>>);

impl EndedStreams {
    pub(crate) fn begin(&self, slot: &Slot) {
        slot.counted.set(self.0.borrow_mut().pop().unwrap_or_default());
    }

    pub(crate) fn end(&self, slot: &Slot) {
        self.0.borrow_mut().push(slot.counted.get());
    }
}

#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Option<Rc<Slot>>>,
    free: Vec<u32>,
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

    /// Hands a verdict to the request that waits for it, or back if that request waits no longer.
    pub(crate) fn deliver(&self, verdict: Verdict) -> Result<(), Verdict> {
        let token = verdict.token();
        match self.slots.get(token.place()) {
            Some(Some(slot)) if slot.waiting.get() && slot.generation.get() == token.generation() => {
                *slot.verdict.borrow_mut() = Some(verdict);
                slot.wake();
                Ok(())
            }
            _ => Err(verdict),
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

    /// Ends the connection that has been idle the longest, if for `least` at least, and returns its slot.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_repeats_with_as_many_streams_as_it_has_had_at_once() {
        let ended = EndedStreams::default();
        let repeats = |millis: u64, class: u16, slot: &Slot| {
            slot.repeats(Instant::from_nanos(millis * 1_000_000), class)
        };
        let stream = |millis, class| {
            let slot = Slot::default();
            ended.begin(&slot);
            (repeats(millis, class, &slot), slot)
        };
        let (first, second) = (stream(5, 1), stream(5, 1));
        assert_eq!([first.0, second.0], [false, false], "two at once are two");
        [first.1, second.1].iter().for_each(|slot| ended.end(slot));
        let (third, fourth, fifth) = (stream(900, 1), stream(900, 1), stream(900, 1));
        assert_eq!([third.0, fourth.0, fifth.0], [true, true, false], "and a third is one more");
        ended.end(&third.1);
        assert!(!stream(900, 2).0, "another class");
        ended.end(&fourth.1);
        assert!(!stream(1100, 1).0, "a second later");
    }
}
