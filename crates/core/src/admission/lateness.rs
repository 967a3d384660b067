//! How much work of one rank is late, and which chance of being late admission accepts beyond the promised one.

use crate::request::work::DeadlineTerms;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The lateness of a rank, in words that threads share.
#[derive(Default)]
pub(crate) struct Lateness {
    /// All work (us) whose requests were late, or were dropped since they would have been.
    late_us: AtomicU64,
    /// All work whose requests were refused since they would have waited for too long.
    refused_us: AtomicU64,
    /// [`AcceptedLateness`] in one word; 0 while no more is accepted than what was promised.
    accepted: AtomicU64,
    /// Which requests are admitted one at a time whatever their estimate ([`Invited`]).
    invited: AtomicU8,
}

/// The chance of being late with which a request is admitted all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AcceptedLateness {
    pub(crate) chance: f64,
    /// The quantile of the standard normal distribution for the chance to be in time.
    pub(crate) deviations: f64,
}

impl AcceptedLateness {
    /// What was promised.
    pub(crate) fn promised(terms: &DeadlineTerms) -> Self {
        AcceptedLateness { chance: 1.0 - terms.in_time, deviations: terms.deviations }
    }
}

/// Which requests are admitted one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invited {
    None,
    /// Requests that would wait for too long.
    Waiting,
    /// Those, and requests that would take too long even alone.
    Any,
}

impl Lateness {
    /// Counts work that was late.
    pub(crate) fn add(&self, work_us: u64) {
        self.late_us.fetch_add(work_us, Ordering::Relaxed);
    }

    /// Counts work that is refused.
    pub(crate) fn refuse(&self, work_us: u64) {
        self.refused_us.fetch_add(work_us, Ordering::Relaxed);
    }

    /// All work that ever was refused for its wait (us).
    pub(crate) fn refused_us(&self) -> u64 {
        self.refused_us.load(Ordering::Relaxed)
    }

    /// All work that ever was late (us).
    pub(crate) fn late_us(&self) -> u64 {
        self.late_us.load(Ordering::Relaxed)
    }

    /// The accepted chance if it is greater than that of `promised`, else `promised`.
    #[inline]
    pub(crate) fn accepted(&self, promised: AcceptedLateness) -> AcceptedLateness {
        let word = self.accepted.load(Ordering::Relaxed);
        if word == 0 {
            return promised;
        }
        let half = |bits: u64| f64::from(f32::from_bits(bits as u32));
        let accepted = AcceptedLateness { chance: half(word >> 32), deviations: half(word) };
        if accepted.chance > promised.chance { accepted } else { promised }
    }

    /// Whether one request at a time is admitted whatever its estimate: `waits` if it would wait for too long.
    pub(crate) fn invites(&self, waits: bool) -> bool {
        let invited = self.invited.load(Ordering::Relaxed);
        invited == Invited::Any as u8 || (waits && invited == Invited::Waiting as u8)
    }

    /// Lets one request at a time be admitted whatever its estimate, or none.
    pub(crate) fn invite(&self, invited: Invited) {
        self.invited.store(invited as u8, Ordering::Relaxed);
    }

    /// Sets what is accepted.
    pub(crate) fn accept(&self, accepted: Option<AcceptedLateness>) {
        let bits = |value: f64| u64::from((value as f32).to_bits());
        let word = accepted.map_or(0, |own| bits(own.chance) << 32 | bits(own.deviations));
        self.accepted.store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_counts_where_it_is_more_than_what_was_promised() {
        let lateness = Lateness::default();
        let promised = AcceptedLateness { chance: 0.01, deviations: 2.326 };
        assert_eq!(lateness.accepted(promised), promised);
        let even = AcceptedLateness { chance: 0.5, deviations: 0.0 };
        lateness.accept(Some(even));
        assert_eq!(lateness.accepted(promised), even);
        lateness.accept(Some(AcceptedLateness { chance: 0.001, deviations: 3.09 }));
        assert_eq!(lateness.accepted(promised), promised);
    }
}
