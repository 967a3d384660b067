//! A lane: one thread's side of the engine, through which its requests arrive, start, release and depart.
//!
//! *In*: a request, from its arrival to its departure. *Out*: its level or its refusal, and verdicts on requests that waited.
//!
//! - `arrive`: the steps of an arriving request; admits or refuses it
//! - `give_level`: gives it its level: the highest inside a contract, else that of its client
//! - `place`: puts an admitted request into service or into the queue, or turns it away because the queue is full
//! - `dispatch`: starts waiting requests when there is room
//! - `expire`: answers requests that waited too long
//! - `start`: accounts the start of a request
//! - `release`: the end of service, and the departure
//! - `leave`: requests whose client left while they waited or were in service
//! - `place_load`: the load of a gateway's places at a server that decides itself, as the gateway reports it to that server
//! - `streams`: the rights to stream and to be an upgraded connection
//!
//! A lane reads service levels, enters and leaves gates, and adds to counters; it moves no service level and no quota.
//! The fast path (the gate has room and nothing waits) takes no lock and allocates nothing. A lane is `Send` and not
//! `Sync`, so the compiler ensures that its counters have a single writer.
//!
//! What was promised is read from the generation of the published state that the lane holds. The lane looks for a newer
//! generation before it classifies, at each arrival, whenever it starts a waiting request, and when a permit has another
//! generation. The numbers of plants, sites and classes never change, so targets and permits stay valid over reloads.

mod arrive;
mod dispatch;
mod expire;
mod give_level;
mod leave;
mod place;
mod place_load;
mod release;
mod start;
mod streams;

pub(super) use start::account_busy_time;

use crate::engine::published_state::{PublishedPlant, PublishedState};
use crate::random::Random;
use crate::request::work::Work;
use crate::request::{Permit, RequestView, Target};
use crate::sync::published::Reader;
use crate::telemetry::counters::LaneCounters;
use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;

/// One thread's side of the engine. Made by [`Engine::new`](crate::Engine::new).
///
/// A permit belongs to no lane: any lane of the same engine may release it and depart it. A call may bring verdicts on requests
/// of other lanes, which the caller delivers by their tokens. The caller clears the buffer, to which calls only add.
pub struct Lane {
    pub(crate) published: Reader<PublishedState>,
    /// The lane's index among all lanes.
    pub(crate) number: usize,
    pub(crate) counters: Arc<LaneCounters>,
    pub(crate) random: Random,
    pub(crate) not_sync: PhantomData<Cell<()>>,
}

impl Lane {
    /// Where a request belongs; `None` if no site has its host ([`Reason::NoSite`](crate::request::Reason::NoSite)). Pure.
    pub fn classify(&self, request: &impl RequestView) -> Option<Target> {
        if self.published.is_current() {
            self.published.rules.classify(request)
        } else {
            // The lane itself moves to the new generation at the arrival that follows.
            self.published.renewed().rules.classify(request)
        }
    }

    /// Moves to a newer generation, if a reload published one.
    #[inline]
    pub(crate) fn follow(&mut self) {
        if !self.published.is_current() {
            self.adopt(self.published.renewed());
        }
    }

    /// Moves to a newer generation if the permit is not of this one.
    #[inline]
    fn follow_permit(&mut self, permit: &Permit) {
        if permit.generation != self.published.generation() {
            self.follow();
        }
    }

    #[cold]
    fn adopt(&mut self, published: Reader<PublishedState>) {
        self.counters = published.lanes[self.number].clone();
        self.published = published;
    }
}

/// Gives back the work that was reserved for a request that will not start.
fn unreserve(plant: &PublishedPlant, work: Option<Work>) {
    if let Some(work) = work {
        plant.unfinished.unreserve(&work);
    }
}
