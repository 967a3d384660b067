//! The start of waiting requests, when there is room for them in service.

use super::expire::drop_waiting;
use super::give_level::{LevelQuery, level_of_request, permit};
use super::start::{Start, account_busy_time, places, start};
use super::{Lane, unreserve};
use crate::admission::deadline::{self, Candidate};
use crate::admission::slot_key::SlotKey;
use crate::admission::stream_limits::most_streams;
use crate::engine::published_state::{PublishedClass, PublishedPlant, PublishedState};
use crate::promises::Mode;
use crate::request::{Permit, Reason, Verdict, Verdicts};
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
            let level = level_of_request((published, class), query, random);
            let decided = class.level_at(plant, level.min(waiting.most_level));
            if published.mode == Mode::Control && class.passes_down(plant, decided) {
                // The request starts elsewhere, so it gives back the place that this gate gave it.
                let own = &published.plants[plant];
                account_busy_time(own, &counters.plants[plant], change);
                own.gate.leave(now);
                let to = usize::from(class.plant_of_level[usize::from(decided)]);
                return passed_down.push(PassedDown { waiting, level: decided, plant: to });
            }
            let mut permit = permit_of_waiting(published, plant, &waiting, decided);
            if let (Standing::Exempt, Some(work)) = (standing, &mut permit.work) {
                let unfinished = &published.plants[plant].unfinished;
                let key = SlotKey::new(rank, waiting.site, None);
                *work = unfinished.reserve(now, key, (work.features, work.cost, work.stretch));
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

    /// Takes a request that waited at `plant` to the plant of its level, where it starts, waits behind the requests there, or
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
        unreserve(from, waiting.work.take());
        if to.has_deadlines() {
            reserve_below((now, to), &published.classes[usize::from(waiting.class)], &mut waiting, level);
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
                let mut permit = permit_of_waiting(published, number, &waiting, level);
                start(published, &self.counters, &mut permit, Start { now, decided: level, change });
                verdicts.push(Verdict::Start(waiting.token, permit));
            }
            Entry::Waits { displaced, .. } => {
                if let Some(displaced) = displaced {
                    self.drop_displaced(&displaced, number, verdicts);
                }
                // A departure after the gate was read may have left room.
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

/// The permit of a request that waited and starts at this plant, at this level.
fn permit_of_waiting(published: &PublishedState, plant: usize, waiting: &Waiting, level: u8) -> Permit {
    let Waiting { class: number, client, standing, .. } = *waiting;
    let class = &published.classes[usize::from(number)];
    let query = LevelQuery { class: number, client, standing };
    let mut permit = permit((published, class), waiting.arrived, query, level);
    permit.plant = plant as u16;
    (permit.work, permit.streams) = (waiting.work, waiting.streams);
    permit
}

/// Reserves the work of a request that was passed down to a plant with deadlines: its cost at its level there. If the plant at
/// which it waited keeps no deadlines, that plant had reserved nothing.
fn reserve_below(
    (now, plant): (Instant, &PublishedPlant),
    class: &PublishedClass,
    waiting: &mut Waiting,
    level: u8,
) {
    let Some(estimates) = &class.estimates else { return };
    let exempt = waiting.standing == Standing::Exempt;
    let quota_of = class.quota_of(waiting.class).filter(|_| !exempt);
    let (key, features) = (SlotKey::new(waiting.rank, waiting.site, quota_of), waiting.features);
    let candidate = Candidate { arrived: now, key, features, level, lowest: level, exempt };
    let work = deadline::reserve(&plant.unfinished, estimates, &candidate);
    waiting.latest_start = work.latest_start(waiting.arrived, &class.terms);
    waiting.work = Some(work);
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use crate::promises::{Plant, Promises, Site};
    use crate::request::work::Cost;
    use crate::request::{Arrival, Outcome, Service, Target, Token, Verdicts};
    use crate::scheduling::rank::Standing;
    use crate::time::{Duration, Instant};

    /// What a page takes at the levels light and full (us).
    const COSTS: [u32; 2] = [20_000, 100_000];

    /// The waiting work (us) of each plant after a page that waited at the upper plant was passed down to the lower one, where
    /// another page waits, and after its client left.
    fn waiting_work(own: Option<Duration>) -> [[u64; 2]; 2] {
        let mut shop = Site { deadline: own, ..Site::new("shop", &["light", "full"]) };
        shop.levels[0].plant = Some(1);
        let blog = Site { plant: 1, deadline: Some(Duration::from_secs(60)), ..Site::new("blog", &["full"]) };
        let promises = Promises {
            plants: alloc::vec![Plant::new("app", 1), Plant::new("static", 1)],
            sites: alloc::vec![shop, blog],
            ..Promises::default()
        };
        let (engine, mut lanes) = Engine::new(&promises, 1, 42).expect("valid promises");
        let (lane, mut verdicts) = (&mut lanes[0], Verdicts::new());
        let of_site = |site: usize| {
            let own = |number: usize| engine.registry.classes().find(|own| own.site_number == number);
            let class = own(site).expect("its default class").class as u16;
            Target { class, site: site as u16, client: 7, ..Target::default() }
        };
        let (page, post) = (of_site(0), of_site(1));
        let classes = &engine.published().classes;
        let shop = &classes[usize::from(page.class)];
        for (number, row) in shop.estimates.iter().flat_map(|known| known.rows()).enumerate() {
            row.set(Cost { mean_us: COSTS[number % COSTS.len()], deviation_us: 0 });
        }
        let band = shop.rank(Standing::Ordinary).band;
        let waiting_work =
            || [0, 1].map(|plant| engine.published().plants[plant].unfinished.waiting_us(band));
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut arrive = |target, number| lane.arrive(at(number), target, Token(number), &mut verdicts);
        let (Arrival::Serve(mut first), Arrival::Serve(_post), Arrival::Wait(second)) =
            (arrive(page, 1), arrive(post, 2), arrive(page, 3))
        else {
            panic!("one worker each")
        };
        // All clients have the light level now.
        shop.words.service_level.set(1.0);
        lane.release(at(50), &mut first, Service::default(), &mut verdicts);
        assert!(verdicts.is_empty(), "it waits at the lower plant: {verdicts:?}");
        let passed_down = waiting_work();
        lane.depart(at(60), second, Outcome::Abandoned, &mut verdicts);
        [passed_down, waiting_work()]
    }

    /// The lower plant keeps a deadline, of another site at least. It reserves what the page takes at its level there, whether
    /// or not the upper plant keeps deadlines.
    #[test]
    fn a_request_that_is_passed_down_brings_the_work_of_its_level_there() {
        for own in [None, Some(Duration::from_secs(60))] {
            assert_eq!(waiting_work(own), [[0, u64::from(COSTS[0])], [0, 0]], "deadline {own:?}");
        }
    }
}
