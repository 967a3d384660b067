//! A lane: one thread's side of the engine, through which its requests arrive, start, release and depart.
//!
//! A lane moves no set point: it reads service levels, enters and leaves gates, and adds to counters. The fast path (the
//! gate has room and nothing waits) takes no lock and allocates nothing. A lane is `Send` and not `Sync`, so the type
//! ensures that its counters have a single writer.
//!
//! What was promised is read from the generation of the published state that the lane holds. The lane looks for a newer
//! one before it classifies, at each arrival, whenever it starts a waiting request, and when a permit has another
//! generation. Numbers are for life, so targets and permits stay valid over reloads.

mod arrive;
mod dispatch;
mod place;
mod release;
mod start;

use crate::engine::state::{PublishedPlant, PublishedState};
use crate::random::Random;
use crate::request::work::Work;
use crate::request::{Permit, RequestView, Target};
use crate::sync::published::Reader;
use crate::telemetry::counters::LaneCounters;
use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;

/// One thread's side of the engine. Made by [`Engine::new`](crate::Engine::new).
pub struct Lane {
    pub(crate) shared: Reader<PublishedState>,
    /// The lane's index among all lanes.
    pub(crate) number: usize,
    pub(crate) counters: Arc<LaneCounters>,
    pub(crate) random: Random,
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

impl Lane {
    /// Where a request belongs; `None` if no site has its host ([`Reason::NoSite`](crate::request::Reason::NoSite)). Pure.
    pub fn classify(&self, request: &impl RequestView) -> Option<Target> {
        if self.shared.is_current() {
            self.shared.rules.classify(request)
        } else {
            // The lane itself moves to the new generation at the arrival that follows.
            self.shared.renewed().rules.classify(request)
        }
    }

    /// Moves to a newer generation, if a reload published one.
    #[inline]
    pub(crate) fn follow(&mut self) {
        if !self.shared.is_current() {
            self.adopt(self.shared.renewed());
        }
    }

    /// Moves to a newer generation if the permit may be of one.
    #[inline]
    fn follow_permit(&mut self, permit: &Permit) {
        if permit.generation != self.shared.generation() {
            self.follow();
        }
    }

    #[cold]
    fn adopt(&mut self, shared: Reader<PublishedState>) {
        self.counters = shared.lanes[self.number].clone();
        self.shared = shared;
    }
}

/// Gives back what was reserved for a request that will not start.
fn forget(plant: &PublishedPlant, work: Option<Work>) {
    if let Some(work) = work {
        plant.unfinished.forget(&work);
    }
}
