//! An amount of work that belongs to a period of time, in one word: the upper 16 bits number the period (its *tag*),
//! the lower 48 hold microseconds.
//!
//! A thread that adds an amount learns the tag, and takes the amount back under that tag. When a period is over, the word
//! has another tag, and all that was added under the old one is gone: to take it back changes nothing. So nothing leaks,
//! however late a request ends, and no thread sees half of a change. A tag comes again after 65,536 periods. A request that
//! lasts so long may take back what it did not add, though never below zero.
//!
//! `model_check.rs` checks this file under loom.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

const AMOUNT_BITS: u32 = 48;
const AMOUNT: u64 = (1 << AMOUNT_BITS) - 1;

/// The word.
#[derive(Default)]
pub(crate) struct Tagged(AtomicU64);

fn word(tag: u16, amount_us: u64) -> u64 {
    u64::from(tag) << AMOUNT_BITS | amount_us.min(AMOUNT)
}

fn parts(word: u64) -> (u16, u64) {
    ((word >> AMOUNT_BITS) as u16, word & AMOUNT)
}

impl Tagged {
    /// The tag and the amount.
    pub(crate) fn get(&self) -> (u16, u64) {
        parts(self.0.load(Ordering::Relaxed))
    }

    /// Adds under this tag. If the word has another tag, its amount is discarded.
    pub(crate) fn add(&self, tag: u16, us: u64) {
        self.change(|known, amount| Some(word(tag, us + if known == tag { amount } else { 0 })));
    }

    /// Takes back what was added under this tag, if that period still lasts.
    pub(crate) fn subtract(&self, tag: u16, us: u64) {
        self.change(|known, amount| (known == tag).then(|| word(tag, amount.saturating_sub(us))));
    }

    /// Adds to the present period; returns its tag.
    pub(crate) fn join(&self, us: u64) -> u16 {
        let mut joined = 0;
        self.change(|tag, amount| {
            joined = tag;
            Some(word(tag, amount + us))
        });
        joined
    }

    /// Replaces `was` by `is` in what was added under this tag, if that period still lasts.
    pub(crate) fn correct(&self, tag: u16, (was, is): (u64, u64)) {
        self.change(|known, amount| (known == tag).then(|| word(tag, (amount + is).saturating_sub(was))));
    }

    /// Ends the present period, and begins the next one with nothing.
    pub(crate) fn begin(&self, tag: u16) {
        self.0.swap(word(tag, 0), Ordering::Relaxed);
    }

    fn change(&self, mut to: impl FnMut(u16, u64) -> Option<u64>) {
        let change = |word: u64| {
            let (tag, amount) = parts(word);
            to(tag, amount)
        };
        // The closure declines where nothing is to be changed.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_is_gone_and_cannot_be_taken_back() {
        let amount = Tagged::default();
        amount.add(7, 300);
        amount.add(7, 200);
        amount.subtract(7, 300);
        assert_eq!(amount.get(), (7, 200));
        amount.add(8, 50);
        amount.subtract(7, 200);
        assert_eq!(amount.get(), (8, 50));
        amount.subtract(8, 60);
        assert_eq!(amount.get(), (8, 0));
    }

    #[test]
    fn joined_work_is_corrected_while_its_period_lasts() {
        let amount = Tagged::default();
        amount.begin(3);
        assert_eq!([amount.join(100), amount.join(50)], [3, 3]);
        amount.correct(3, (100, 30));
        assert_eq!(amount.get(), (3, 80));
        amount.begin(4);
        amount.correct(3, (50, 500));
        assert_eq!((amount.join(1), amount.get()), (4, (4, 1)));
    }

    #[test]
    fn too_much_stays_below_the_tag() {
        let amount = Tagged::default();
        amount.add(u16::MAX, AMOUNT);
        amount.add(u16::MAX, AMOUNT);
        assert_eq!(amount.get(), (u16::MAX, AMOUNT));
    }
}
