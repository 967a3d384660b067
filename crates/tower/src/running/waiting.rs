//! The requests of a lane that wait for their verdict.
//!
//! A verdict finds its request by token: lane, slot, and the slot's generation. The generation changes when the slot is given
//! back, so that a late verdict matches no slot.

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

/// A verdict, and the level names in force when it came, since a reload may give the levels' numbers to other names.
pub(crate) type Told = (Verdict, Arc<PrefixedNames>);

/// The result of a look at a slot, and a waker that must be dropped after the lock is released, since it may drop a task.
pub(crate) struct Look {
    pub(crate) told: Option<Told>,
    pub(crate) unneeded: Option<Waker>,
}

impl WaitingSlots {
    /// The token of the next request that will wait. [`begin`](Self::begin) takes it.
    pub(crate) fn next_token(&mut self, lane: usize) -> Token {
        let index = *self.free.last().unwrap_or(&(self.slots.len() as u32));
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        Token::of_place(lane, index, generation)
    }

    /// Makes a request wait under the next token.
    pub(crate) fn begin(&mut self) {
        match self.free.pop() {
            Some(index) => self.slots[index as usize].state = SlotState::Waiting(None),
            None => self.slots.push(Slot { generation: 0, state: SlotState::Waiting(None) }),
        }
    }

    /// Hands a verdict to the request that waits for it and returns the waker of its task; if the request waits no longer,
    /// returns the verdict.
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

    /// If the verdict has come, takes it and gives the slot back; otherwise keeps `waker`.
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
