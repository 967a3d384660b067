//! Requests that waited: their start when there is room, and their end when they waited too long.

use super::arrive::{LevelQuery, level, permit};
use super::start::{Start, account_busy_time, limit, start};
use super::{Lane, forget};
use crate::engine::state::{PublishedPlant, PublishedState};
use crate::request::{Reason, Verdict, Verdicts};
use crate::scheduling::queue::Waiting;
use crate::sync::published::Reader;
use crate::telemetry::counters::LaneCounters;
use crate::time::Instant;

impl Lane {
    /// Starts waiting requests while there is room. Each is given its level at its start, so that the whole queue is
    /// served at the present m; a level of another plant is left to requests that arrive.
    pub(crate) fn dispatch(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) {
        let Lane { shared, counters, random, number, .. } = self;
        let shared: &Reader<PublishedState> = shared;
        let mut renewed: Option<Reader<PublishedState>> = None;
        shared.plants[plant].gate.dispatch(now, limit(shared, plant), |waiting, change| {
            // A waiting request may be of a class that is newer than this lane's generation.
            let held = renewed.as_ref().unwrap_or(shared);
            if !held.is_current() {
                let newer = held.renewed();
                renewed = Some(newer);
            }
            let shared: &PublishedState = renewed.as_ref().unwrap_or(shared);
            let counters: &LaneCounters = if renewed.is_some() { &shared.lanes[*number] } else { counters };
            let Some(change) = change else {
                verdicts.push(dropped(shared, counters, &waiting, plant, Reason::Late));
                return;
            };
            let Waiting { class, client, standing, .. } = waiting;
            let query = LevelQuery { class, client, standing };
            let class = &shared.classes[usize::from(class)];
            let decided = class.level_at(plant, level(shared, query, random));
            let mut permit = permit(shared, waiting.arrived, query, decided);
            permit.plant = plant as u16;
            permit.work = waiting.work;
            start(shared, counters, &mut permit, Start { now, decided, change });
            verdicts.push(Verdict::Start(waiting.token, permit));
        });
        if let Some(renewed) = renewed {
            self.adopt(renewed);
        }
    }

    /// Answers requests that have waited too long; returns when the next one will have. For `tick`.
    pub(crate) fn expire(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) -> Instant {
        let PublishedPlant { gate, queue, .. } = &self.shared.plants[plant];
        gate.expire(now, queue.max_wait, |waiting| {
            let reason = if waiting.latest <= now { Reason::Late } else { Reason::WaitTimeout };
            verdicts.push(dropped(&self.shared, &self.counters, &waiting, plant, reason));
        })
    }

    /// Accounts a plant's busy time up to `now`. For `tick`.
    pub(crate) fn touch(&mut self, now: Instant, plant: usize) {
        account_busy_time(&self.shared, &self.counters, plant, self.shared.plants[plant].gate.touch(now));
    }
}

/// Accounts the end of a request that left the queue without a start, and answers it.
pub(super) fn dropped(
    shared: &PublishedState,
    counters: &LaneCounters,
    waiting: &Waiting,
    plant: usize,
    reason: Reason,
) -> Verdict {
    let plant = &shared.plants[plant];
    forget(plant, waiting.work);
    let counters = &counters.classes[usize::from(waiting.class)];
    counters.reasons[reason as usize].add(1);
    counters.unserved.add(1);
    let retry_after = match reason {
        Reason::Late => plant.unfinished.wait_of(waiting.rank, plant.workers(None)),
        _ => shared.retry_after,
    };
    Verdict::Drop { token: waiting.token, reason, retry_after }
}
