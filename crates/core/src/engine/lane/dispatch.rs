//! The start of waiting requests, when there is room for them in service.

use super::Lane;
use super::arrive::{LevelQuery, level_of_request, permit};
use super::expire::drop_waiting;
use super::start::{Start, account_busy_time, places, start};
use crate::engine::published_state::PublishedState;
use crate::request::{Reason, Verdict, Verdicts};
use crate::scheduling::queue::Waiting;
use crate::scheduling::rank::Standing;
use crate::sync::published::Reader;
use crate::telemetry::counters::LaneCounters;
use crate::time::Instant;

impl Lane {
    /// Starts waiting requests while there is room. Each is given its level now, not at its arrival, so that the whole
    /// queue is served at the present m. A request stays at the plant at which it waits, and so has one of the levels
    /// that this plant serves.
    pub(crate) fn dispatch(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) {
        let Lane { published, counters, random, number, .. } = self;
        let published: &Reader<PublishedState> = published;
        let mut renewed: Option<Reader<PublishedState>> = None;
        let places = places(published, plant);
        published.plants[plant].gate.dispatch(now, places, |waiting, change| {
            // A waiting request may be of a class that is newer than this lane's generation.
            let known = renewed.as_ref().unwrap_or(published);
            if !known.is_current() {
                let newer = known.renewed();
                renewed = Some(newer);
            }
            let published: &PublishedState = renewed.as_ref().unwrap_or(published);
            let counters: &LaneCounters =
                if renewed.is_some() { &published.lanes[*number] } else { counters };
            let Some(change) = change else {
                verdicts.push(drop_waiting(published, counters, &waiting, plant, Reason::Late));
                return;
            };
            let Waiting { class, client, standing, rank, .. } = waiting;
            let query = LevelQuery { class, client, standing };
            let class = &published.classes[usize::from(class)];
            let decided = class.level_at(plant, level_of_request(published, query, random));
            let mut permit = permit(published, waiting.arrived, query, decided);
            permit.plant = plant as u16;
            (permit.work, permit.streams) = (waiting.work, waiting.streams);
            if let (Standing::Exempt, Some(work)) = (standing, &mut permit.work) {
                let unfinished = &published.plants[plant].unfinished;
                *work = unfinished.reserve(now, rank, work.features, work.cost);
            }
            start(published, counters, &mut permit, Start { now, decided, change });
            verdicts.push(Verdict::Start(waiting.token, permit));
        });
        if let Some(renewed) = renewed {
            self.adopt(renewed);
        }
    }

    /// Accounts a plant's busy time up to `now`. For `tick`.
    pub(crate) fn touch(&mut self, now: Instant, plant: usize) {
        account_busy_time(
            &self.published,
            &self.counters,
            plant,
            self.published.plants[plant].gate.touch(now),
        );
    }
}
