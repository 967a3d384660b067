//! The rule that decides whether a request meets its deadline (`[control] admission`): unfinished work, or another rule
//! for comparison. Each other rule has its file, and one line in each of these functions.
//!
//! Unfinished work is counted under every rule, for the order of waiting requests, the status, and the `Retry-After` of
//! late ones.

use crate::admission::aces::budget::Budget;
use crate::admission::synthetic_utilization::Synthetic;
use crate::admission::unfinished_work::Workers;
use crate::promises::{Admission, Control};
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};

/// The admission rule of a plant.
#[derive(Clone, Default)]
pub(crate) enum AdmissionRule {
    /// Unfinished work decides (`deadline.rs`).
    #[default]
    Work,
    Synthetic(Synthetic),
    Budget(Budget),
}

impl AdmissionRule {
    /// Changes to the rule that the promises choose. A rule that stays keeps its state. `slots` are the ranks by slot
    /// number, `promised` those that classes have now. The shortest deadline that the plant has to keep is the period of a
    /// budget.
    pub(crate) fn follow(
        &mut self,
        control: &Control,
        slots: impl Iterator<Item = Rank> + Clone,
        promised: &[Rank],
        shortest: Duration,
    ) {
        let before = core::mem::take(self);
        *self = match (control.admission, before) {
            (Admission::Work, _) => AdmissionRule::Work,
            (Admission::Synthetic, AdmissionRule::Synthetic(known)) => {
                AdmissionRule::Synthetic(known.following(slots))
            }
            (Admission::Synthetic, _) => AdmissionRule::Synthetic(Synthetic::default().following(slots)),
            (Admission::Budget, before) => {
                let mut budget =
                    if let AdmissionRule::Budget(known) = before { known } else { Budget::default() };
                budget.follow(slots, promised, &control.shares, shortest);
                AdmissionRule::Budget(budget)
            }
        };
    }

    /// The length of its table.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn length(&self) -> usize {
        match self {
            AdmissionRule::Work => 0,
            AdmissionRule::Synthetic(rule) => rule.length(),
            AdmissionRule::Budget(rule) => rule.accounts().len(),
        }
    }

    /// Reserves work; returns the tag under which the rule knows it.
    pub(crate) fn reserve(&self, slot: usize, now: Instant, work_us: u64) -> u16 {
        match self {
            AdmissionRule::Work => 0,
            AdmissionRule::Synthetic(rule) => rule.reserve(slot, now, work_us),
            AdmissionRule::Budget(rule) => rule.reserve(slot, work_us),
        }
    }

    /// Notes that a request whose work is reserved is refused because it takes too long even alone.
    pub(crate) fn refuse_too_long(&self, slot: usize, work_us: u64) {
        if let AdmissionRule::Budget(rule) = self {
            rule.not_requested(slot, work_us);
        }
    }

    /// Gives back the work of a request that will not start.
    pub(crate) fn unreserve(&self, slot: usize, tag: u16, work_us: u64) {
        match self {
            AdmissionRule::Work => {}
            AdmissionRule::Synthetic(rule) => rule.unreserve(slot, tag, work_us),
            AdmissionRule::Budget(rule) => rule.correct(slot, tag, (work_us, 0)),
        }
    }

    /// Corrects the reserved work of a request that is done: (expected, actual) time in us.
    pub(crate) fn finish(&self, slot: usize, tag: u16, took: (u64, u64)) {
        if let AdmissionRule::Budget(rule) = self {
            rule.correct(slot, tag, took);
        }
    }

    /// Whether a request with reserved work is admitted, and if not, after which time it might be, if ever. `None` where
    /// unfinished work decides.
    pub(crate) fn admits(
        &self,
        slot: usize,
        work_us: u64,
        workers: &Workers,
    ) -> Option<Result<(), Option<Duration>>> {
        match self {
            AdmissionRule::Work => None,
            AdmissionRule::Synthetic(rule) => Some(rule.admits(slot, work_us, workers)),
            AdmissionRule::Budget(rule) => Some(rule.admits(slot, work_us, workers)),
        }
    }
}
