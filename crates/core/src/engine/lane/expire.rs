//! The end of requests that waited too long: they are taken out of the queue and answered, which a gateway does with 503.
//!
//! A request waits at most as long as its plant's queue allows, or its class where that is shorter ([`Reason::WaitTimeout`]). A
//! request with a deadline waits until it can no longer meet it ([`Reason::Late`]). Exempt requests wait as long as they must.
//! `Engine::serve_waiting` looks for expired requests, and a dispatch drops a request whose turn comes too late.

use super::{Lane, unreserve};
use crate::admission::slot_key::SlotKey;
use crate::engine::published_state::{PublishedPlant, PublishedState};
use crate::request::{Reason, Rejection, Verdict, Verdicts};
use crate::scheduling::queue::Waiting;
use crate::telemetry::counters::LaneCounters;
use crate::time::Instant;

impl Lane {
    /// Answers requests that have waited too long; returns when the next one will have waited too long. For `tick`.
    pub(crate) fn expire(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) -> Instant {
        let PublishedPlant { gate, queue, .. } = &self.published.plants[plant];
        gate.expire(now, queue.longest_wait(), |waiting| {
            let reason = if waiting.latest_start <= now { Reason::Late } else { Reason::WaitTimeout };
            verdicts.push(drop_waiting(&self.published, &self.counters, &waiting, plant, reason));
        })
    }
}

/// Accounts a request that left the queue without a start; returns its answer.
pub(super) fn drop_waiting(
    published: &PublishedState,
    counters: &LaneCounters,
    waiting: &Waiting,
    plant: usize,
    reason: Reason,
) -> Verdict {
    let number = plant;
    let plant = &published.plants[plant];
    if let Some(work) = waiting.work.as_ref().filter(|_| reason == Reason::Late) {
        plant.unfinished.was_late(work);
    }
    unreserve(plant, waiting.work);
    if waiting.streams {
        plant.streams.leave();
    }
    let counters = &counters.classes[usize::from(waiting.class)];
    counters.end_unserved(reason);
    counters.timing.dropped.add(1);
    let key = SlotKey::new(waiting.rank, waiting.site, None);
    let wait = (reason == Reason::Late).then(|| plant.unfinished.wait_of(key, plant.workers(None)));
    let plant_and_class = (number, waiting.class);
    let retry_after = published.retry_after(plant_and_class, (waiting.arrived, waiting.client), wait);
    Verdict::Drop(waiting.token, Rejection { reason, retry_after })
}
