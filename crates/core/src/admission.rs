//! What decides at the arrival of a request with a deadline, where an expert asks for something else than its unfinished
//! work (`[control] admission`). One file per law; a law is one line in each of these calls.
//!
//! Whatever decides, the work is counted in `backlog.rs` too: who waits still goes by rank and deadline, and what is
//! expected is still shown and told to clients.

use crate::backlog::Workers;
use crate::promises::Admission;
use crate::queue::Rank;
use crate::synthetic::Synthetic;
use crate::time::{Duration, Instant};

/// A plant's.
#[derive(Clone, Default)]
pub(crate) enum Law {
    /// `backlog.rs` itself.
    #[default]
    Work,
    Synthetic(Synthetic),
}

impl Law {
    /// The law that is asked for, with what it knows if it is the same as before; for these slots, by number.
    pub(crate) fn follow(&mut self, admission: Admission, slots: impl Iterator<Item = Rank>) {
        match (admission, &mut *self) {
            (Admission::Work, _) => *self = Law::Work,
            (Admission::Synthetic, Law::Synthetic(known)) => known.grow(slots),
            (Admission::Synthetic, _) => {
                let mut fresh = Synthetic::default();
                fresh.grow(slots);
                *self = Law::Synthetic(fresh);
            }
        }
    }

    /// Reserves; returns under which tag.
    pub(crate) fn reserve(&self, slot: usize, now: Instant, work_us: u64) -> u16 {
        match self {
            Law::Work => 0,
            Law::Synthetic(law) => law.reserve(slot, now, work_us),
        }
    }

    /// One that is reserved is not started.
    pub(crate) fn forget(&self, slot: usize, tag: u16, work_us: u64) {
        match self {
            Law::Work => {}
            Law::Synthetic(law) => law.forget(slot, tag, work_us),
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
            Law::Work => None,
            Law::Synthetic(law) => Some(law.admits(slot, work_us, workers)),
        }
    }
}
