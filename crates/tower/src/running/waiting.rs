//! The requests of a lane that wait for their verdict.
//!
//! A verdict finds its request by token: lane, slot, and the slot's generation. The generation changes when the slot is
//! given back, so that a verdict that comes too late is known to be late.

use super::names::PrefixedNames;
use plimsoll_core::request::{Token, Verdict};
use std::sync::Arc;
use std::task::Waker;

/// The slots of requests that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingSlots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    state: SlotState,
}

/// What a slot holds.
#[derive(Debug)]
enum SlotState {
    Free,
    /// The request waits. The waker is that of the task that polled it last.
    Waiting(Option<Waker>),
    Answered(Told),
}

/// A verdict, and the names of levels at the time of it: a reload may give their numbers to others.
pub(crate) type Told = (Verdict, Arc<PrefixedNames>);

/// What a look at a slot found, and a waker to drop after the lock: a task may be dropped with it.
pub(crate) struct Look {
    pub(crate) told: Option<Told>,
    pub(crate) unneeded: Option<Waker>,
}

impl WaitingSlots {
    /// The token of the next request that waits. It is taken by [`begin`](Self::begin).
    pub(crate) fn next_token(&mut self, lane: usize) -> Token {
        let index = *self.free.last().unwrap_or(&(self.slots.len() as u32));
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        Token::of_place(lane, index, generation)
    }

    /// A request waits under the next token.
    pub(crate) fn begin(&mut self) {
        match self.free.pop() {
            Some(index) => self.slots[index as usize].state = SlotState::Waiting(None),
            None => self.slots.push(Slot { generation: 0, state: SlotState::Waiting(None) }),
        }
    }

    /// Hands a verdict to the request that waits for it and returns what wakes it, or returns the verdict if that request
    /// waits no longer.
    pub(crate) fn deliver(
        &mut self,
        verdict: Verdict,
        names: &Arc<PrefixedNames>,
    ) -> Result<Option<Waker>, Verdict> {
        match self.slot(verdict.token()) {
            Some(Slot { state, .. }) if matches!(state, SlotState::Waiting(_)) => {
                match std::mem::replace(state, SlotState::Answered((verdict, names.clone()))) {
                    SlotState::Waiting(waker) => Ok(waker),
                    SlotState::Free | SlotState::Answered(_) => Ok(None),
                }
            }
            _ => Err(verdict),
        }
    }

    /// Takes the verdict, if it has come, and gives the slot back then. Else `waker` is kept.
    pub(crate) fn poll(&mut self, token: Token, waker: Waker) -> Look {
        match self.slot(token) {
            Some(Slot { state: SlotState::Waiting(kept), .. }) => {
                Look { told: None, unneeded: kept.replace(waker) }
            }
            _ => Look { told: self.end(token).told, unneeded: Some(waker) },
        }
    }

    /// Gives the slot back, and returns the verdict if it had come.
    pub(crate) fn end(&mut self, token: Token) -> Look {
        let index = token.place() as u32;
        let Some(slot) = self.slot(token) else { return Look { told: None, unneeded: None } };
        slot.generation = slot.generation.wrapping_add(1);
        let state = std::mem::replace(&mut slot.state, SlotState::Free);
        self.free.push(index);
        match state {
            SlotState::Answered(told) => Look { told: Some(told), unneeded: None },
            SlotState::Waiting(waker) => Look { told: None, unneeded: waker },
            SlotState::Free => Look { told: None, unneeded: None },
        }
    }

    fn slot(&mut self, token: Token) -> Option<&mut Slot> {
        self.slots.get_mut(token.place()).filter(|slot| slot.generation == token.generation())
    }
}
