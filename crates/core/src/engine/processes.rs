//! One controller for the processes of a server: an engine that ticks in a process of its own, and a lane in each process that
//! serves requests (UC 6.3, 6.4).
//!
//! The processes share words of fixed layout, which hold no pointer, so that they may lie in memory that all of them map. A
//! word is valid whatever bits it has, and zero at the beginning. There are three kinds:
//!
//! - what one process counts and the controller sums: the counters of a lane ([`SharedLane`]);
//! - what every process changes, by one atomic instruction: gates, what a gateway before them has reported last, and token
//!   buckets ([`SharedPlant`], [`SharedSite`]);
//! - what the controller alone writes: service levels and what goes with them ([`SharedClass`]). Each process keeps a copy,
//!   which it renews when the controller has published new ones ([`Lane::follow_words`]), so that its requests read its own
//!   memory.
//!
//! Requests do not wait here, since a process that has a request is its worker: the server's listen queue is where they wait.
//! So a gate has room for all that the server takes, and promises that need a queue are refused ([`SharedShape::of`]).

use super::{Engine, Lane};
use crate::actuator::retry_after::AtomicReturnTimes;
use crate::admission::contract_token_bucket::ContractWords;
use crate::engine::lane::account_busy_time;
use crate::engine::published_state::{ClassWords, PublishedState};
use crate::promises::Promises;
use crate::promises::registry::Registry;
use crate::scheduling::gate::{GateWords, MOST_IN_SERVICE};
use crate::telemetry::counters::LaneCounters;
pub use crate::telemetry::counters::{ClassCounters, PlantCounters};
pub use crate::telemetry::place_load::PlaceLoad;
use crate::telemetry::place_load::ReportedPlaceLoad;
use crate::time::Instant;
use alloc::{format, string::String, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering};

/// The words of a class that the controller writes.
#[derive(Default)]
#[repr(C, align(128))]
pub struct SharedClass(ClassWords);

/// The words of a plant.
#[derive(Default)]
#[repr(C, align(128))]
pub struct SharedPlant {
    pub(super) gate: GateWords,
    returns: AtomicReturnTimes,
    pub(super) reported_load: ReportedPlaceLoad,
}

/// The words of a site.
#[derive(Default)]
#[repr(C, align(128))]
pub struct SharedSite {
    pub(super) contract: ContractWords,
}

/// The words that all processes share.
#[derive(Clone, Copy)]
pub struct SharedWords {
    /// The words of each class, by its number.
    pub classes: &'static [SharedClass],
    /// The words of each plant, by its number.
    pub plants: &'static [SharedPlant],
    /// In the order of the promises.
    pub sites: &'static [SharedSite],
    /// The offset that is added to the hash of each client.
    pub turn: &'static AtomicU64,
}

/// The counters of one lane, which one process at a time writes.
#[derive(Clone, Copy)]
pub struct SharedLane {
    /// The counters of each class, by its number.
    pub classes: &'static [ClassCounters],
    /// The counters of each plant, by its number.
    pub plants: &'static [PlantCounters],
}

/// How many words of each kind promises need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedShape {
    /// The number of classes, `default` and `exempt` of each site among them.
    pub classes: usize,
    /// The number of plants.
    pub plants: usize,
    /// The number of sites.
    pub sites: usize,
}

impl SharedShape {
    /// The shape of these promises.
    ///
    /// # Errors
    /// What in the promises cannot be, or cannot be kept inside a server, one sentence each.
    pub fn of(promises: &Promises) -> Result<Self, Vec<String>> {
        promises.validate()?;
        let wrong = needing_a_queue(promises);
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let registry = Registry::default().next(promises)?;
        Ok(SharedShape {
            classes: registry.class_count(),
            plants: promises.plants.len(),
            sites: promises.sites.len(),
        })
    }
}

/// The promises that only a queue in front of the server can keep.
fn needing_a_queue(promises: &Promises) -> Vec<String> {
    let searched = promises.plants.iter().filter(|plant| plant.find_workers.is_some()).map(|plant| {
        let name = &plant.name;
        format!(
            "{name}: a server cannot search its own workers; say how many it has: `workers` under [upstream.{name}.capacity]"
        )
    });
    let promised = promises.sites.iter().filter_map(|site| {
        let classes = || site.classes.iter();
        let what = if site.default_delay.is_some() || classes().any(|class| class.delay.is_some()) {
            "delay"
        } else if site.default_ratio.is_some() || classes().any(|class| class.ratio.is_some()) {
            "ratio"
        } else if (0..=classes().count()).any(|class| site.deadline_of(class).is_some()) {
            "deadline"
        } else {
            return None;
        };
        let name = &site.name;
        Some(format!(
            "{name}: a {what} needs a queue, and inside a server requests do not wait; leave it out, or put the gateway in front \
             with this file and `decides_itself = true` under the upstream"
        ))
    });
    searched.chain(promised).collect()
}

/// The promises as they are kept inside a server: each request that the server takes is in service.
fn without_queue(promises: &Promises) -> Promises {
    let mut promises = promises.clone();
    for plant in &mut promises.plants {
        // Where a gateway stands before the server, requests wait there.
        (plant.max_connections, plant.waits_unseen) = (MOST_IN_SERVICE, !plant.decides_itself);
    }
    promises
}

impl LaneCounters {
    fn mapped(lane: SharedLane) -> Self {
        LaneCounters {
            classes: lane.classes.iter().map(Into::into).collect(),
            plants: lane.plants.iter().map(Into::into).collect(),
        }
    }
}

impl Engine {
    /// The controller over the lanes of all processes. It measures what they count from now on.
    ///
    /// # Errors
    /// As of [`SharedShape::of`].
    pub fn of_processes(
        promises: &Promises,
        seed: u64,
        words: SharedWords,
        lanes: &[SharedLane],
    ) -> Result<Engine, Vec<String>> {
        SharedShape::of(promises)?;
        let counters = lanes.iter().copied().map(LaneCounters::mapped).collect();
        let (mut engine, _) = Engine::over(&without_queue(promises), counters, Some(words), seed)?;
        engine.sensors.begin();
        Ok(engine)
    }

    /// Publishes what the last [`tick`](Engine::tick) has set, for the processes to follow.
    pub fn publish_words(&self, words: SharedWords) {
        let PublishedState { classes, plants, turn, .. } = self.published();
        words.classes.iter().zip(classes).for_each(|(shared, own)| shared.0.follow(&own.words));
        words.plants.iter().zip(plants).for_each(|(shared, own)| shared.returns.follow(&own.returns));
        words.turn.store(turn.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Ends the service of `requests` that a process held at a plant when it died, of which `exempt` were exempt. The
    /// caller has made sure that no living process holds them.
    pub fn give_back(&mut self, now: Instant, plant: usize, requests: u32, exempt: u32) {
        let (own, counters) = (&self.lane.published.plants[plant], &self.lane.counters.plants[plant]);
        for _ in 0..requests.min(own.gate.in_service()) {
            account_busy_time(own, counters, own.gate.leave(now));
        }
        (0..exempt).for_each(|_| own.gate.leave_exempt());
    }
}

impl SharedPlant {
    /// How many requests are in service, and how many of these are exempt.
    pub fn in_service(&self) -> (u32, u32) {
        self.gate.in_service()
    }
}

impl Lane {
    /// The lane of a process of a server. `seed` serves its random choices alone; other processes have others.
    ///
    /// # Errors
    /// As of [`SharedShape::of`].
    pub fn in_process(
        promises: &Promises,
        seed: u64,
        words: SharedWords,
        lane: SharedLane,
    ) -> Result<Lane, Vec<String>> {
        SharedShape::of(promises)?;
        let counters = alloc::vec![LaneCounters::mapped(lane)];
        let (_, mut lanes) = Engine::over(&without_queue(promises), counters, Some(words), seed)?;
        let lane = lanes.remove(0);
        lane.follow_words(words);
        Ok(lane)
    }

    /// Renews the copy of what the controller publishes.
    pub fn follow_words(&self, words: SharedWords) {
        let PublishedState { classes, plants, turn, .. } = &*self.published;
        classes.iter().zip(words.classes).for_each(|(own, shared)| own.words.follow(&shared.0));
        plants.iter().zip(words.plants).for_each(|(own, shared)| own.returns.follow(&shared.returns));
        turn.store(words.turn.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The figures of a class over all lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassSums {
    /// m of the class, as published for requests to read.
    pub service_level: f64,
    /// Requests that arrived.
    pub arrived: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Requests that ended, without those that were rejected.
    pub ended: u64,
    /// Body bytes that were delivered.
    pub bytes: u64,
}

impl SharedClass {
    /// The figures of the class, counted by these lanes.
    pub fn sums<'a>(&self, lanes: impl Iterator<Item = &'a ClassCounters>) -> ClassSums {
        let sums =
            ClassSums { service_level: self.0.service_level.get().as_number(), ..ClassSums::default() };
        lanes.fold(sums, |sums, lane| {
            let (arrived, ended) = lane.totals();
            let unserved = lane.unserved.get();
            ClassSums {
                arrived: sums.arrived + arrived,
                rejected: sums.rejected + unserved,
                ended: sums.ended + ended.wrapping_sub(unserved),
                bytes: sums.bytes + lane.bytes.get(),
                ..sums
            }
        })
    }
}

impl SharedLane {
    /// Accounts for the request that its process did not finish to count, and for those that it held, once the process is dead:
    /// each of them has failed. The next process goes on with the counters. To call it twice changes nothing.
    pub fn settle(&self) {
        self.classes.iter().for_each(ClassCounters::settle);
    }

    /// The requests of all classes that have arrived, and those that have ended, however they did.
    pub fn totals(&self) -> (u64, u64) {
        self.classes.iter().map(ClassCounters::totals).fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{Delay, Plant, Site};
    use crate::request::{Arrival, Outcome, Reason, Service, Target, Token, Verdicts};
    use crate::telemetry::Readings;
    use crate::time::Duration;
    use alloc::boxed::Box;

    fn leaked<T: Default>(count: usize) -> &'static [T] {
        Box::leak((0..count).map(|_| T::default()).collect())
    }

    fn shared(promises: &Promises) -> (SharedWords, Vec<SharedLane>) {
        let shape = SharedShape::of(promises).expect("promises that a server keeps");
        let (classes, plants, sites) = (leaked(shape.classes), leaked(shape.plants), leaked(shape.sites));
        let words = SharedWords { classes, plants, sites, turn: &leaked(1)[0] };
        let lane = || SharedLane { classes: leaked(shape.classes), plants: leaked(shape.plants) };
        (words, Vec::from([lane(), lane()]))
    }

    fn target(client: u64) -> Target {
        Target { client, ..Target::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_000_000 * ms)
    }

    #[test]
    fn processes_follow_the_controller_and_what_a_dead_one_held_is_given_back() {
        let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
        let (words, counters) = shared(&promises);
        let mut engine = Engine::of_processes(&promises, 1, words, &counters).expect("an engine");
        let mut verdicts = Verdicts::new();
        engine.tick(at(0), &Readings::default(), &mut verdicts);
        engine.publish_words(words);
        let mut lanes: Vec<Lane> =
            counters.iter().map(|own| Lane::in_process(&promises, 1, words, *own).expect("a lane")).collect();
        // More are in service than there are workers, since nothing waits.
        for n in 0..40 {
            let arrival = lanes[n % 2].arrive(at(n as u64), target(n as u64), Token(0), &mut verdicts);
            let Arrival::Serve(mut permit) = arrival else { panic!("{arrival:?}") };
            // The second process dies with what it holds.
            if n % 2 == 0 {
                lanes[0].release(at(n as u64 + 1), &mut permit, Service::default(), &mut verdicts);
                lanes[0].depart(at(n as u64 + 1), permit, Outcome::Completed, &mut verdicts);
            }
        }
        assert_eq!(words.plants[0].in_service(), (20, 0));
        let dead = counters[1];
        assert_eq!(dead.totals(), (20, 0));
        dead.settle();
        engine.give_back(at(50), 0, 20, 0);
        assert_eq!((words.plants[0].in_service(), dead.totals()), ((0, 0), (20, 20)));
        // Each takes a second of a plant that works on two at once.
        let mut under_way = Vec::new();
        for ms in (100..=5000).step_by(25) {
            let arrival = lanes[0].arrive(at(ms), target(ms), Token(0), &mut verdicts);
            let Arrival::Serve(permit) = arrival else { panic!("{arrival:?}") };
            under_way.push(permit);
            if ms >= 1100 {
                let (mut permit, served) = (under_way.remove(0), 1000);
                let service = Service { response_bytes: served, representative: true, cost: None };
                lanes[0].release(at(ms), &mut permit, service, &mut verdicts);
                lanes[0].depart(at(ms), permit, Outcome::Completed, &mut verdicts);
            }
            engine.tick(at(ms), &Readings::default(), &mut verdicts);
        }
        let is_rejected = |lane: &mut Lane| {
            let arrival = lane.arrive(at(5001), target(1 << 55), Token(0), &mut Verdicts::new());
            matches!(arrival, Arrival::Reject(rejection) if rejection.reason == Reason::Overload)
        };
        assert!(!is_rejected(&mut lanes[0]), "levels stand still until they are published");
        engine.publish_words(words);
        assert!(!is_rejected(&mut lanes[0]), "and until the process follows");
        lanes[0].follow_words(words);
        assert!(
            is_rejected(&mut lanes[0]),
            "forty requests of a second each, every second, are too many: m = {}",
            engine.service_level(0)
        );
        let sums = words.classes[0].sums(counters.iter().map(|lane| &lane.classes[0]));
        assert_eq!((sums.arrived, sums.rejected, sums.ended), (240, 1, 197));
    }

    /// A process died between two words of a request's start.
    #[test]
    fn a_start_that_was_half_counted_at_a_death_is_no_rejection() {
        let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
        let (words, counters) = shared(&promises);
        let dead = &counters[0].classes[0];
        dead.arrivals.add(1);
        dead.served[1].add(1);
        counters[0].settle();
        let sums = words.classes[0].sums([dead].into_iter());
        assert_eq!((sums.arrived, sums.rejected, sums.ended), (1, 0, 1));
    }

    /// m after six seconds in which two processes were busy for `busy` fiftieths of their time by their own counts.
    fn level_where_queue(stands: bool, busy: u64) -> f64 {
        let mut site = Site::new("site", &["light", "full"]);
        site.levels[0].cost_ratio = Some(0.25);
        let promises = Promises::of(Plant::new("server", 2), site);
        let (words, counters) = shared(&promises);
        let mut engine = Engine::of_processes(&promises, 1, words, &counters).expect("an engine");
        let (mut verdicts, mut queue_stands) = (Verdicts::new(), Duration::ZERO);
        engine.tick(at(0), &Readings::default(), &mut verdicts);
        engine.publish_words(words);
        let mut lane = Lane::in_process(&promises, 1, words, counters[0]).expect("a lane");
        for ms in (0..=6000).step_by(25) {
            let arrival = lane.arrive(at(ms), target(ms), Token(0), &mut verdicts);
            if let Arrival::Serve(mut permit) = arrival {
                let service = Service { response_bytes: 1000, representative: true, cost: None };
                lane.release(at(ms + busy), &mut permit, service, &mut verdicts);
                lane.depart(at(ms + busy), permit, Outcome::Completed, &mut verdicts);
            }
            queue_stands = if stands { queue_stands + Duration::from_millis(25) } else { Duration::ZERO };
            let readings = Readings { queue_stands, ..Readings::default() };
            engine.tick(at(ms + busy), &readings, &mut verdicts);
        }
        engine.service_level(0)
    }

    #[test]
    fn a_listen_queue_that_is_never_empty_lowers_the_load_whatever_processes_count() {
        assert_eq!(level_where_queue(false, 20), 2.0);
        let lowered = level_where_queue(true, 20);
        assert!(lowered < 1.7, "{lowered}");
        // The queue does not wait for processes that are busy for a tenth of their time.
        assert_eq!(level_where_queue(true, 5), 2.0);
    }

    /// m after six seconds in which a gateway reported this with each request, and the processes were busy for half of their
    /// time; and by what part the status says that the line is lowered.
    fn level_where_reported(load: Option<&str>) -> (f64, Option<f64>) {
        let mut site = Site::new("site", &["light", "full"]);
        site.levels[0].cost_ratio = Some(0.25);
        let plant = Plant { decides_itself: true, ..Plant::new("server", 1) };
        let promises = Promises::of(plant, site);
        let (words, counters) = shared(&promises);
        let mut engine = Engine::of_processes(&promises, 1, words, &counters).expect("an engine");
        let mut verdicts = Verdicts::new();
        engine.tick(at(0), &Readings::default(), &mut verdicts);
        engine.publish_words(words);
        let mut lane = Lane::in_process(&promises, 1, words, counters[0]).expect("a lane");
        for ms in (0..=6000).step_by(20) {
            if let Some(load) = load {
                let load = PlaceLoad::of_header(load).expect("a value as gateways write it");
                lane.hear_place_load(at(ms), target(ms), load);
            }
            if let Arrival::Serve(mut permit) = lane.arrive(at(ms), target(ms), Token(0), &mut verdicts) {
                let service = Service { response_bytes: 1000, representative: true, cost: None };
                lane.release(at(ms + 10), &mut permit, service, &mut verdicts);
                lane.depart(at(ms + 10), permit, Outcome::Completed, &mut verdicts);
            }
            engine.tick(at(ms + 10), &Readings::default(), &mut verdicts);
        }
        let places = engine.status().plants[0].places;
        assert_eq!(places.map(|reported| alloc::format!("{:.3}", reported.taken)).as_deref(), load);
        let lowered = places.map(|reported| reported.heard.expect("this is the server").set_point_reduction);
        (engine.service_level(0), lowered)
    }

    #[test]
    fn a_gateway_that_has_its_places_taken_lowers_levels_and_rejects_nobody() {
        let reported = [None, Some("0.550"), Some("1.000"), Some("1.500")].map(level_where_reported);
        let levels = reported.map(|(level, _)| level);
        assert_eq!(levels[..2], [2.0, 2.0], "its places are not the bottleneck");
        assert_eq!(reported[0].1, None, "nothing was reported");
        let lowered = reported[2].1.expect("it was reported");
        assert!((0.4..0.65).contains(&lowered), "half of the places' time is counted: {lowered}");
        assert!((1.5..1.9).contains(&levels[2]), "the line is 0.425 of the workers: {levels:?}");
        assert!((1.0..1.5).contains(&levels[3]), "{levels:?}");
        assert_eq!(
            level_where_reported(Some("2.000")),
            (2.0, Some(0.0)),
            "so little is counted that it must be something else"
        );
    }

    #[test]
    fn a_new_controller_takes_what_was_counted_before_for_no_news() {
        let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
        let (words, counters) = shared(&promises);
        let first = Engine::of_processes(&promises, 1, words, &counters).expect("an engine");
        first.publish_words(words);
        let mut lane = Lane::in_process(&promises, 1, words, counters[0]).expect("a lane");
        let mut verdicts = Verdicts::new();
        for n in 0..1000 {
            let Arrival::Serve(permit) = lane.arrive(at(n), target(n), Token(0), &mut verdicts) else {
                panic!()
            };
            lane.depart(at(n), permit, Outcome::Completed, &mut verdicts);
        }
        let mut second = Engine::of_processes(&promises, 1, words, &counters).expect("an engine");
        for ms in (1000..=2000).step_by(250) {
            second.tick(at(ms), &Readings::default(), &mut verdicts);
        }
        let status = second.status();
        assert_eq!((status.classes[0].request_rate, status.classes[0].counts.arrivals), (0.0, 1000));
        assert_eq!(status.plants[0].utilization, 0.0);
    }

    #[test]
    fn what_needs_a_queue_is_refused_with_what_to_write_instead() {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let site = Site { default_delay: Some(delay), ..Site::new("site", &["full"]) };
        let wrong = SharedShape::of(&Promises::of(Plant::new("server", 2), site)).expect_err("a delay");
        assert!(wrong.len() == 1 && wrong[0].contains("put the gateway in front"), "{wrong:?}");
    }
}
