//! What a front keeps of each request in progress, by the slot of its token.

use plimsoll_core::request::Token;

/// One value for each slot. The lower 32 bits of a token are its slot: a small number that is used again after a departure.
pub(super) struct Slots<T>(Vec<T>);

impl<T: Default> Slots<T> {
    pub(super) fn new() -> Self {
        Slots(Vec::new())
    }

    /// The value of a token's slot.
    pub(super) fn at(&mut self, token: Token) -> &mut T {
        let slot = token.0 as u32 as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, T::default);
        }
        &mut self.0[slot]
    }

    /// Takes the value out of a token's slot.
    pub(super) fn take(&mut self, token: Token) -> T {
        std::mem::take(self.at(token))
    }
}
