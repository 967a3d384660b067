//! What decides at the arrival of a request with a deadline, where an expert asks for something else than its unfinished
//! work (`[control] admission`). One file per law; a law is one line in each of these calls.
//!
//! Whatever decides, the work is counted in `backlog.rs` too: who waits still goes by rank and deadline, and what is
//! expected is still shown and told to clients.

use crate::admission::aces::budget::Budget;
use crate::admission::synthetic::Synthetic;
use crate::admission::unfinished_work::Workers;
use crate::promises::{Admission, Control};
use crate::scheduling::queue::Rank;
use crate::time::{Duration, Instant};

/// A plant's.
#[derive(Clone, Default)]
pub(crate) enum AdmissionLaw {
    /// `backlog.rs` itself.
    #[default]
    Work,
    Synthetic(Synthetic),
    Budget(Budget),
}

impl AdmissionLaw {
    /// The law that is asked for, with what it knows if it is the same as before; for these slots, by number. The shortest
    /// deadline that the plant has to keep is the period of a budget.
    pub(crate) fn follow(
        &mut self,
        control: &Control,
        slots: impl Iterator<Item = Rank> + Clone,
        shortest: Duration,
    ) {
        let before = core::mem::take(self);
        *self = match (control.admission, before) {
            (Admission::Work, _) => AdmissionLaw::Work,
            (Admission::Synthetic, AdmissionLaw::Synthetic(known)) => {
                AdmissionLaw::Synthetic(known.grown(slots))
            }
            (Admission::Synthetic, _) => AdmissionLaw::Synthetic(Synthetic::default().grown(slots)),
            (Admission::Budget, before) => {
                let mut budget =
                    if let AdmissionLaw::Budget(known) = before { known } else { Budget::default() };
                budget.follow(slots, &control.shares, shortest);
                AdmissionLaw::Budget(budget)
            }
        };
    }

    /// Reserves; returns under which tag.
    pub(crate) fn reserve(&self, slot: usize, now: Instant, work_us: u64) -> u16 {
        match self {
            AdmissionLaw::Work => 0,
            AdmissionLaw::Synthetic(law) => law.reserve(slot, now, work_us),
            AdmissionLaw::Budget(law) => law.reserve(slot, work_us),
        }
    }

    /// One that is reserved is not started.
    pub(crate) fn forget(&self, slot: usize, tag: u16, work_us: u64) {
        match self {
            AdmissionLaw::Work => {}
            AdmissionLaw::Synthetic(law) => law.forget(slot, tag, work_us),
            AdmissionLaw::Budget(law) => law.correct(slot, tag, (work_us, 0)),
        }
    }

    /// One that is reserved is done, and took so long.
    pub(crate) fn finish(&self, slot: usize, tag: u16, took: (u64, u64)) {
        if let AdmissionLaw::Budget(law) = self {
            law.correct(slot, tag, took);
        }
    }

    /// Whether one that is reserved may come in, and if not, when it might, if ever; nothing where the backlog decides.
    pub(crate) fn admits(
        &self,
        slot: usize,
        work_us: u64,
        workers: &Workers,
    ) -> Option<Result<(), Option<Duration>>> {
        match self {
            AdmissionLaw::Work => None,
            AdmissionLaw::Synthetic(law) => Some(law.admits(slot, work_us, workers)),
            AdmissionLaw::Budget(law) => Some(law.admits(slot, work_us, workers)),
        }
    }
}
