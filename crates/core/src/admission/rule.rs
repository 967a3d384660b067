//! The law that decides on a request with a deadline (`[control] admission`): by unfinished work, or, for comparison,
//! by another rule. One file for each law; a law is one line in each of these calls.
//!
//! Unfinished work is counted under every law: waiting requests still go by rank and deadline, and the expected wait is
//! still shown, and told to rejected clients.

use crate::admission::aces::budget::Budget;
use crate::admission::synthetic::Synthetic;
use crate::admission::unfinished_work::Workers;
use crate::promises::{Admission, Control};
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};

/// The admission law of a plant.
#[derive(Clone, Default)]
pub(crate) enum AdmissionRule {
    /// Unfinished work decides.
    #[default]
    Work,
    Synthetic(Synthetic),
    Budget(Budget),
}

impl AdmissionRule {
    /// Changes to the law that the promises choose. A law that stays keeps its state. `slots` are the ranks by slot
    /// number; the shortest deadline that the plant has to keep is the period of a budget.
    pub(crate) fn follow(
        &mut self,
        control: &Control,
        slots: impl Iterator<Item = Rank> + Clone,
        shortest: Duration,
    ) {
        let before = core::mem::take(self);
        *self = match (control.admission, before) {
            (Admission::Work, _) => AdmissionRule::Work,
            (Admission::Synthetic, AdmissionRule::Synthetic(known)) => {
                AdmissionRule::Synthetic(known.grown(slots))
            }
            (Admission::Synthetic, _) => AdmissionRule::Synthetic(Synthetic::default().grown(slots)),
            (Admission::Budget, before) => {
                let mut budget =
                    if let AdmissionRule::Budget(known) = before { known } else { Budget::default() };
                budget.follow(slots, &control.shares, shortest);
                AdmissionRule::Budget(budget)
            }
        };
    }

    /// Reserves work; returns the tag under which the law knows it.
    pub(crate) fn reserve(&self, slot: usize, now: Instant, work_us: u64) -> u16 {
        match self {
            AdmissionRule::Work => 0,
            AdmissionRule::Synthetic(law) => law.reserve(slot, now, work_us),
            AdmissionRule::Budget(law) => law.reserve(slot, work_us),
        }
    }

    /// Gives back the work of a request that will not start.
    pub(crate) fn unreserve(&self, slot: usize, tag: u16, work_us: u64) {
        match self {
            AdmissionRule::Work => {}
            AdmissionRule::Synthetic(law) => law.unreserve(slot, tag, work_us),
            AdmissionRule::Budget(law) => law.correct(slot, tag, (work_us, 0)),
        }
    }

    /// Corrects the reserved work of a request that is done, by (expected, taken) time in us.
    pub(crate) fn finish(&self, slot: usize, tag: u16, took: (u64, u64)) {
        if let AdmissionRule::Budget(law) = self {
            law.correct(slot, tag, took);
        }
    }

    /// Whether a request with reserved work may come in, and if not, when it might, if ever; `None` where unfinished
    /// work decides.
    pub(crate) fn admits(
        &self,
        slot: usize,
        work_us: u64,
        workers: &Workers,
    ) -> Option<Result<(), Option<Duration>>> {
        match self {
            AdmissionRule::Work => None,
            AdmissionRule::Synthetic(law) => Some(law.admits(slot, work_us, workers)),
            AdmissionRule::Budget(law) => Some(law.admits(slot, work_us, workers)),
        }
    }
}
