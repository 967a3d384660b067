//! The start of waiting requests, when there is room for them in service.

use super::arrive::{LevelQuery, level_of_request, permit};
use super::expire::drop_waiting;
use super::start::{Start, account_busy_time, places, start};
use super::{Lane, unreserve};
use crate::admission::stream_limits::most_streams;
use crate::engine::published_state::PublishedState;
use crate::promises::Mode;
use crate::request::{Reason, Verdict, Verdicts};
use crate::scheduling::gate::Entry;
use crate::scheduling::queue::Waiting;
use crate::scheduling::rank::Standing;
use crate::sync::published::Reader;
use crate::telemetry::counters::LaneCounters;
use crate::time::Instant;
use alloc::vec::Vec;

/// A request that waited, and is to start at another plant.
struct PassedDown {
    waiting: Waiting,
    level: u8,
    plant: usize,
}

impl Lane {
    /// Starts waiting requests while there is room. Each is given its level now, not at its arrival, so that the whole
    /// queue is served at the present m. A request whose level is below those of this plant starts or waits at the plant of
    /// that level; one whose level is above them has the highest level of this plant.
    pub(crate) fn dispatch(&mut self, now: Instant, plant: usize, verdicts: &mut Verdicts) {
        let Lane { published, counters, random, number, .. } = self;
        let published: &Reader<PublishedState> = published;
        let mut renewed: Option<Reader<PublishedState>> = None;
        let places = places(published, plant);
        let mut passed_down: Vec<PassedDown> = Vec::new();
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
            let Waiting { class: number, client, standing, rank, .. } = waiting;
            let class = &published.classes[usize::from(number)];
            let standing = class.standing_at_start(standing);
            let query = LevelQuery { class: number, client, standing };
            let decided = class.level_at(plant, level_of_request((published, class), query, random));
            if published.mode == Mode::Control && class.passes_down(plant, decided) {
                // The place that the gate gave is free again at once.
                let own = &published.plants[plant];
                account_busy_time(own, &counters.plants[plant], change);
                own.gate.leave(now);
                let to = usize::from(class.plant_of_level[usize::from(decided)]);
                return passed_down.push(PassedDown { waiting, level: decided, plant: to });
            }
            let mut permit = permit((published, class), waiting.arrived, query, decided);
            permit.plant = plant as u16;
            (permit.work, permit.streams) = (waiting.work, waiting.streams);
            if let (Standing::Exempt, Some(work)) = (standing, &mut permit.work) {
                let unfinished = &published.plants[plant].unfinished;
                *work = unfinished.reserve(now, (rank, None), (work.features, work.cost, work.stretch));
            }
            start(published, counters, &mut permit, Start { now, decided, change });
            verdicts.push(Verdict::Start(waiting.token, permit));
        });
        if let Some(renewed) = renewed {
            self.adopt(renewed);
        }
        for request in passed_down {
            self.pass_down(now, plant, request, verdicts);
        }
    }

    /// Takes a request that waited at `plant` to the plant of its level, where it starts, waits behind those that are there, or
    /// is turned away because the queue is full.
    #[cold]
    fn pass_down(
        &mut self,
        now: Instant,
        plant: usize,
        PassedDown { mut waiting, level, plant: number }: PassedDown,
        verdicts: &mut Verdicts,
    ) {
        let published: &PublishedState = &self.published;
        let from = &published.plants[plant];
        let to = &published.plants[number];
        let (limit, shared) = places(published, number);
        let features = waiting.work.map(|work| (work.features, work.cost, work.stretch));
        unreserve(from, waiting.work.take());
        if to.has_deadlines() {
            let quota_of = published.classes[usize::from(waiting.class)].quota_of(waiting.class);
            let rank = (waiting.rank, quota_of.filter(|_| waiting.standing != Standing::Exempt));
            waiting.work = features.map(|work| to.unfinished.reserve(now, rank, work));
        }
        let drop =
            |waiting: &Waiting, reason| drop_waiting(published, &self.counters, waiting, number, reason);
        if waiting.streams {
            from.streams.leave();
            waiting.streams = to.streams.enter(most_streams(shared, to.stream_share));
            if !waiting.streams {
                return verdicts.push(drop(&waiting, Reason::TooManyStreams));
            }
        }
        match to.gate.enter_or_wait(now, limit, to.queue.max_waiting, waiting) {
            Entry::Entered(change) => {
                let Waiting { class, client, standing, .. } = waiting;
                let query = LevelQuery { class, client, standing };
                let own = &published.classes[usize::from(class)];
                let mut permit = permit((published, own), waiting.arrived, query, level);
                permit.plant = number as u16;
                (permit.work, permit.streams) = (waiting.work, waiting.streams);
                start(published, &self.counters, &mut permit, Start { now, decided: level, change });
                verdicts.push(Verdict::Start(waiting.token, permit));
            }
            Entry::Waits { displaced, .. } => {
                if let Some(displaced) = displaced {
                    self.drop_displaced(&displaced, number, verdicts);
                }
                // A departure since the look at the gate may have left room.
                self.dispatch(now, number, verdicts);
            }
            Entry::Overflow => verdicts.push(drop(&waiting, Reason::QueueFull)),
        }
    }

    /// Accounts a plant's busy time up to `now`. For `tick`.
    pub(crate) fn touch(&mut self, now: Instant, plant: usize) {
        let own = &self.published.plants[plant];
        account_busy_time(own, &self.counters.plants[plant], own.gate.touch(now));
    }
}
