//! Heads of which a part has come, and what they hold together.
//!
//! A client that sends heads without their end would otherwise hold memory for as long as it may take to send one. All such
//! heads of a thread have a bound in bytes, and the oldest one is given up for the newest: an honest head comes within
//! moments, so that the oldest is the least likely to be honest.

use crate::runtime::slots::Slot;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The unfinished heads of a thread.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedHeads {
    /// By the order in which they began.
    heads: BTreeMap<u64, Unfinished>,
    begun: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Unfinished {
    slot: Rc<Slot>,
    bytes: usize,
}

impl UnfinishedHeads {
    /// How many bytes they hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn remove(&mut self, number: u64) {
        self.bytes -= self.heads.remove(&number).map_or(0, |head| head.bytes);
    }

    /// Ends the wait for the oldest heads until the others hold at most `most` bytes. The newest one stays.
    fn make_room(&mut self, most: usize) {
        while self.bytes > most && self.heads.len() > 1 {
            let Some((_, oldest)) = self.heads.pop_first() else { return };
            self.bytes -= oldest.bytes;
            oldest.slot.expire();
        }
    }
}

/// One of them, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedHead {
    heads: Rc<RefCell<UnfinishedHeads>>,
    number: u64,
}

impl UnfinishedHead {
    /// Begins to count a head that waits for its next bytes in `slot`.
    pub(crate) fn begin(heads: &Rc<RefCell<UnfinishedHeads>>, slot: &Rc<Slot>) -> Self {
        let mut all = heads.borrow_mut();
        all.begun += 1;
        let number = all.begun;
        all.heads.insert(number, Unfinished { slot: slot.clone(), bytes: 0 });
        UnfinishedHead { heads: heads.clone(), number }
    }

    /// Notes that the head holds `bytes` now. All heads together may hold `most`.
    pub(crate) fn hold(&self, bytes: usize, most: usize) {
        let mut all = self.heads.borrow_mut();
        let Some(head) = all.heads.get_mut(&self.number) else { return };
        let before = std::mem::replace(&mut head.bytes, bytes);
        all.bytes = all.bytes - before + bytes;
        all.make_room(most);
    }
}

impl Drop for UnfinishedHead {
    fn drop(&mut self) {
        self.heads.borrow_mut().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::slots::Slots;

    #[test]
    fn the_oldest_is_given_up_for_the_newest() {
        let (mut slots, heads) = (Slots::default(), Rc::default());
        let slots: Vec<Rc<Slot>> = (0..4).map(|_| slots.add()).collect();
        let begun: Vec<UnfinishedHead> =
            slots[..3].iter().map(|slot| UnfinishedHead::begin(&heads, slot)).collect();
        begun.iter().for_each(|head| head.hold(10, 30));
        assert!(!slots.iter().any(|slot| slot.expired()), "thirty bytes fit");
        begun[1].hold(20, 30);
        assert_eq!(slots.iter().map(|slot| slot.expired()).collect::<Vec<_>>(), [true, false, false, false]);
        assert_eq!(heads.borrow().bytes(), 30);
        // A head that was given up counts no more, whatever comes of it.
        begun[0].hold(50, 30);
        assert_eq!(heads.borrow().bytes(), 30);
        let large = UnfinishedHead::begin(&heads, &slots[3]);
        large.hold(40, 30);
        assert_eq!(slots.iter().map(|slot| slot.expired()).collect::<Vec<_>>(), [true, true, true, false]);
        drop(begun);
        assert_eq!(heads.borrow().bytes(), 40, "the newest one stays, however large it is");
        drop(large);
        assert_eq!(heads.borrow().bytes(), 0);
    }
}
