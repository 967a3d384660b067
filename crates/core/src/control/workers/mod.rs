//! The loop that searches for the number of workers of a plant, where none is promised.
//!
//! *Observes*: time and work by how many requests were in service, in each sample (`evidence.rs`). *Law*: `law.rs`. *Gives
//! out*: the plant's number of workers, and the limit of requests in service.
//!
//! `crowded_starts.rs` gives the law the number to try first, and `simultaneous_starts.rs` what requests that start together
//! say against few workers. `guard.rs` bounds how long service may take for the limit to rise.
//!
//! Beside it, and where the number is promised too, stands the loop that learns from refusals beyond how many in service the
//! plant refuses (`refusals.rs`). The search never goes above that number.

mod crowded_starts;
mod evidence;
mod guard;
mod law;
mod refusals;
mod simultaneous_starts;

use crate::control::{Due, Loop};
use crate::promises::WorkerBounds;
use crate::telemetry::counters::{Counter, LOADS, LaneCounters, LoadCounters};
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use evidence::Counted;
pub(crate) use guard::{Guard, GuardedService};
pub use law::KnownWorkers;
use law::WorkersLaw;
pub(crate) use refusals::{FoundRefusals, RefusalInput, RefusalLoop};

/// The most workers that may be there, as a multiple of the number that was found: one more than seven. A wider doubt would
/// let an overload wait for long.
const MOST_POSSIBLE: f64 = 8.0 / 7.0;

/// What holds its place for longer than this after the limit was lowered is no connection that waits for an answer.
const LONGEST_SETTLING: Duration = Duration::from_secs(10);

/// What of the rate of departures is kept at each step: it is that of some five steps.
const RECENT: f64 = 0.8;

/// The loop of one plant.
pub(crate) struct WorkerSearch {
    law: WorkersLaw,
    /// Beyond which service is not healthy; the limit is not raised then.
    guard: Guard,
    /// The number of workers that the costs of requests were measured with.
    measured_with: u32,
    /// The share of the plant that was there when its number was found.
    found_with: f64,
    /// When the limit was last lowered, and how many requests are in service that were started before.
    lowered: Instant,
    overtaken: f64,
    /// Departures of late, and in how many seconds.
    recent: (f64, f64),
    /// As counted up to the last step.
    before: Sums,
}

/// Sums over all lanes, by bin of the number in service.
#[derive(Clone)]
struct Sums {
    time_ns: Vec<u64>,
    work: Vec<u64>,
    service_ns: Vec<u64>,
    work_started: Vec<u64>,
    squares: u64,
    overtaken: u64,
    refused_us: u64,
}

/// What is promised of a plant whose workers are searched for.
pub(crate) struct SearchPromise {
    pub(crate) bounds: WorkerBounds,
    pub(crate) guard: Guard,
    /// Whether the server reports its number of workers.
    pub(crate) reports: bool,
}

/// What a step observes.
pub(crate) struct SearchInput<'a> {
    pub(crate) lanes: &'a [Arc<LaneCounters>],
    pub(crate) plant: usize,
    /// Whether requests wait.
    pub(crate) waits: bool,
    /// The work that was ever refused because it would have been late (us).
    pub(crate) refused_us: u64,
    /// How many requests are in service.
    pub(crate) in_service: u32,
    /// Whether requests wait, are served at a lighter level or are rejected, because of the load.
    pub(crate) held_back: bool,
    /// Mean service time of the last period, and for how long a busy plant has released nothing (s).
    pub(crate) service_time: Duration,
    pub(crate) silent: f64,
    /// Whether the gateway limits the number in service. Otherwise a slow server looks like one with few workers, and
    /// nothing is learned.
    pub(crate) limits: bool,
    /// The share of the plant that is there.
    pub(crate) available: f64,
    /// Beyond how many in service the plant refuses, where it does.
    pub(crate) ceiling: Option<u32>,
}

/// What a step gives out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundWorkers {
    pub(crate) workers: u32,
    /// The most requests in service at once.
    pub(crate) limit: u32,
    /// Whether throughput was seen to level off, or the server reports its workers.
    pub(crate) is_known: bool,
    /// Whether the limit is lower than before.
    pub(crate) is_lower: bool,
    /// Whether the number is another, by more than a quarter, than the costs of requests were measured with. These are shares
    /// of the workers, so they are to be measured anew.
    pub(crate) is_other: bool,
}

impl Loop for WorkerSearch {
    type Inputs<'a> = SearchInput<'a>;
    type Outputs<'a> = FoundWorkers;
    type Promises<'a> = SearchPromise;

    fn due(&self) -> Due {
        Due::Sample
    }

    fn step(&mut self, now: Instant, input: SearchInput<'_>) -> FoundWorkers {
        let was = self.law.limit();
        if input.limits {
            let counted = self.count(&input);
            self.law.set_ceiling(input.ceiling);
            if self.goes_on(input.available) && self.has_settled(now) {
                self.law.observe(&counted);
            }
        }
        let is_lower = self.law.limit() < was;
        if is_lower {
            (self.lowered, self.overtaken) = (now, f64::from(input.in_service));
        }
        let (workers, limit, is_known) = self.capacity();
        let limit = input.ceiling.map_or(limit, |most| limit.min(most.max(1)));
        let is_other = workers.abs_diff(self.measured_with) * 4 > self.measured_with;
        if is_other {
            self.measured_with = workers;
        }
        FoundWorkers { workers, limit, is_known, is_lower, is_other }
    }

    /// Within the same bounds the search goes on from what was found, else it begins anew at the present limit. A number that
    /// the server reported stays, as long as it is promised to report one.
    fn reload(&mut self, SearchPromise { bounds, guard, reports }: Self::Promises<'_>) {
        let reported = (reports && self.law.is_reported()).then(|| self.law.workers());
        if self.law.bounds() == bounds {
            self.law.resume_search();
            self.guard = guard;
        } else {
            let before = self.before.clone();
            *self = WorkerSearch { before, ..WorkerSearch::new(bounds, self.law.limit(), guard) };
        }
        if let Some(workers) = reported {
            self.report(workers);
        }
    }
}

impl WorkerSearch {
    /// Whether the search goes on in this step. While some servers of a plant whose number is known are out, throughput levels
    /// off earlier, which says nothing of the whole. A number that was found while some were out is searched for anew, from
    /// their share, once all are there.
    fn goes_on(&mut self, available: f64) -> bool {
        if self.found_with == available {
            return true;
        }
        if !self.law.found() {
            self.found_with = available;
            return true;
        }
        if available < 1.0 {
            return false;
        }
        let start = (f64::from(self.law.limit()) / self.found_with + 0.5) as u32;
        (self.law, self.found_with) = (WorkersLaw::new(self.law.bounds(), start), available);
        true
    }

    /// Whether what was started under a higher limit is gone, but for an eighth of the limit, or stays for long. It holds
    /// places of the new limit. Connections that a full listen queue does not answer do so for seconds. Meanwhile the server
    /// idles, so that it would seem to do less because of the lower limit, and each trial of a higher one would raise it.
    fn has_settled(&self, now: Instant) -> bool {
        8.0 * self.overtaken <= f64::from(self.law.limit()) || now.since(self.lowered) >= LONGEST_SETTLING
    }

    pub(crate) fn new(bounds: WorkerBounds, start: u32, guard: Guard) -> Self {
        let law = WorkersLaw::new(bounds, start);
        WorkerSearch {
            measured_with: law.workers(),
            found_with: 1.0,
            law,
            guard,
            lowered: Instant::ZERO,
            overtaken: 0.0,
            recent: (0.0, 0.0),
            before: Sums::of(&[], 0, 0),
        }
    }

    /// Counts from now on: what the lanes have counted before is no news.
    pub(crate) fn begin(&mut self, lanes: &[Arc<LaneCounters>], plant: usize, refused_us: u64) {
        self.before = Sums::of(lanes, plant, refused_us);
    }

    /// What was found, to be kept.
    pub(crate) fn known(&self) -> KnownWorkers {
        KnownWorkers { found_with: self.found_with, ..self.law.known() }
    }

    /// Goes on from what was found before; false if that cannot be, or lies outside the bounds.
    pub(crate) fn restore(&mut self, known: &KnownWorkers) -> bool {
        let share = known.found_with;
        let restored = share > 0.0 && share <= 1.0 && self.law.restore(known);
        self.found_with = if restored { share } else { self.found_with };
        self.measured_with = self.capacity().0;
        restored
    }

    /// The number of workers, the most requests in service at once, and whether the number is known. What was found while some
    /// servers were out is of their share.
    pub(crate) fn capacity(&self) -> (u32, u32, bool) {
        let is_known = self.law.found();
        let whole = |n: u32| if is_known { (f64::from(n) / self.found_with + 0.5) as u32 } else { n };
        (whole(self.law.workers()), whole(self.law.limit()), is_known)
    }

    /// Takes the number of workers that the server reports.
    pub(crate) fn report(&mut self, workers: u32) {
        self.law.report(workers);
        self.found_with = 1.0;
    }

    /// How many workers there may be by the evidence, as a multiple of their number.
    pub(crate) fn possible(&self) -> f64 {
        (f64::from(self.law.possible()) / f64::from(self.law.workers().max(1))).clamp(1.0, MOST_POSSIBLE)
    }

    /// Whether the limit would be higher if the server did not refuse.
    pub(crate) fn is_lowered(&self) -> bool {
        self.law.is_lowered()
    }

    /// Whether throughput was seen to level off.
    pub(crate) fn found(&self) -> bool {
        self.law.found()
    }

    /// Whether the server reports its number of workers.
    pub(crate) fn is_reported(&self) -> bool {
        self.law.is_reported()
    }

    /// What was counted in all lanes since the last step.
    fn count(&mut self, input: &SearchInput<'_>) -> Counted {
        let none = [0.0; LOADS];
        let slack_of_plant = self.guard.slack_of_plant(input.service_time);
        let slack = self.guard.slack(input.lanes, input.silent).min(slack_of_plant);
        let refused_before = core::mem::replace(&mut self.before.refused_us, input.refused_us);
        // Where deadlines are promised, a request that would be late is refused instead.
        let waits = input.waits || input.refused_us != refused_before;
        let held_back = input.held_back || waits;
        let mut counted = Counted {
            seconds: none,
            work: none,
            service: none,
            work_started: none,
            squares: 0.0,
            waits,
            held_back,
            slack,
            slack_of_plant,
            rate: 0.0,
        };
        let since = |before: &mut u64, of: &dyn Fn(&LoadCounters) -> u64| {
            let loads = input.lanes.iter().map(|lane| of(&lane.plants[input.plant].by_load));
            let sum = loads.fold(0, u64::wrapping_add);
            sum.wrapping_sub(core::mem::replace(before, sum)) as f64
        };
        let before = &mut self.before;
        for bin in 0..LOADS {
            counted.seconds[bin] = since(&mut before.time_ns[bin], &|c| c.time_ns[bin].get()) * 1e-9;
            counted.work[bin] = since(&mut before.work[bin], &|c| c.work[bin].get());
            counted.service[bin] = since(&mut before.service_ns[bin], &|c| c.service_ns[bin].get()) * 1e-9;
            counted.work_started[bin] = since(&mut before.work_started[bin], &|c| c.work_started[bin].get());
        }
        counted.squares = since(&mut before.squares, &|c| c.squares.get());
        self.overtaken = (self.overtaken - since(&mut before.overtaken, &|c| c.overtaken.get())).max(0.0);
        let (departures, seconds) = &mut self.recent;
        *departures = RECENT * *departures + counted.departures();
        *seconds = RECENT * *seconds + counted.seconds.iter().sum::<f64>();
        counted.rate = *departures / seconds.max(1e-9);
        counted
    }
}

impl Sums {
    /// What was counted of a plant up to now.
    fn of(lanes: &[Arc<LaneCounters>], plant: usize, refused_us: u64) -> Self {
        let sum = |of: &dyn Fn(&LoadCounters) -> u64| {
            lanes.iter().map(|lane| of(&lane.plants[plant].by_load)).fold(0, u64::wrapping_add)
        };
        let by_load = |of: fn(&LoadCounters) -> &[Counter; LOADS]| {
            (0..LOADS).map(|bin| sum(&|counters| of(counters)[bin].get())).collect()
        };
        Sums {
            time_ns: by_load(|counters| &counters.time_ns),
            work: by_load(|counters| &counters.work),
            service_ns: by_load(|counters| &counters.service_ns),
            work_started: by_load(|counters| &counters.work_started),
            squares: sum(&|counters| counters.squares.get()),
            overtaken: sum(&|counters| counters.overtaken.get()),
            refused_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::load_bin;

    #[test]
    fn a_step_counts_what_is_new_in_all_lanes_and_only_where_the_limit_holds() {
        let lanes = [0; 2].map(|_| Arc::new(LaneCounters::default().grown(1, 1)));
        for lane in &lanes {
            lane.plants[0].by_load.depart([2, 3], 40_000_000, 20);
            lane.plants[0].by_load.time_ns[load_bin(3)].add(500_000_000);
        }
        let bounds = WorkerBounds { least: 1, most: 64 };
        let mut one = WorkerSearch::new(bounds, 16, Guard::new(Duration::from_millis(100)));
        let input = |limits| SearchInput {
            lanes: &lanes,
            plant: 0,
            waits: true,
            refused_us: 0,
            in_service: 0,
            held_back: true,
            service_time: Duration::from_millis(200),
            silent: 0.0,
            limits,
            available: 1.0,
            ceiling: None,
        };
        let start =
            FoundWorkers { workers: 16, limit: 16, is_known: false, is_lower: false, is_other: false };
        assert_eq!(one.step(Instant::ZERO, input(false)), start);
        let counted = one.count(&input(true));
        assert_eq!((counted.work[load_bin(3)], counted.seconds[load_bin(3)]), (40.0, 1.0));
        assert_eq!(counted.squares, 800.0);
        assert!(counted.waits && counted.slack < 0.0);
        assert_eq!(one.count(&input(true)).work[load_bin(3)], 0.0, "each is counted once");
        assert!(!one.is_reported());
        one.report(5);
        assert!(one.is_reported());
        assert_eq!(
            one.step(Instant::ZERO, input(true)),
            FoundWorkers { workers: 5, limit: 5, is_known: true, is_lower: false, is_other: true }
        );
        let reloaded = |bounds, reports| SearchPromise { bounds, guard: Guard::new(Duration::MAX), reports };
        one.reload(reloaded(bounds, true));
        one.reload(reloaded(WorkerBounds { most: 32, ..bounds }, true));
        assert!(one.is_reported(), "the last number that it reported stays in force");
        assert_eq!(one.capacity(), (5, 5, true));
        one.reload(reloaded(WorkerBounds { least: 8, ..bounds }, false));
        assert!(!one.is_reported());
        assert_eq!(
            one.step(Instant::ZERO, input(true)),
            FoundWorkers { workers: 8, limit: 8, is_known: false, is_lower: false, is_other: false }
        );
    }

    #[test]
    fn a_search_that_begins_anew_counts_nothing_from_before() {
        let lanes = [Arc::new(LaneCounters::default().grown(1, 1))];
        let depart = || {
            lanes[0].plants[0].by_load.depart([2, 3], 40_000_000, 20);
            lanes[0].plants[0].by_load.time_ns[load_bin(3)].add(500_000_000);
        };
        let bounds = WorkerBounds { least: 1, most: 64 };
        let guard = || Guard::new(Duration::MAX);
        let input = SearchInput {
            lanes: &lanes,
            plant: 0,
            waits: false,
            refused_us: 7,
            in_service: 0,
            held_back: false,
            service_time: Duration::ZERO,
            silent: 0.0,
            limits: true,
            available: 1.0,
            ceiling: None,
        };
        let is_empty = |counted: &Counted| {
            let sums = [&counted.seconds, &counted.work, &counted.service, &counted.work_started];
            sums.iter().all(|sums| **sums == [0.0; LOADS]) && counted.squares == 0.0 && !counted.waits
        };
        depart();
        let mut one = WorkerSearch::new(bounds, 16, guard());
        assert_eq!(one.count(&input).work[load_bin(3)], 20.0);
        one.reload(SearchPromise {
            bounds: WorkerBounds { most: 32, ..bounds },
            guard: guard(),
            reports: false,
        });
        assert!(is_empty(&one.count(&input)), "other bounds");
        depart();
        let mut next = WorkerSearch::new(bounds, 16, guard());
        next.begin(&lanes, 0, 7);
        assert!(is_empty(&next.count(&input)), "the workers were promised until now");
        depart();
        assert_eq!(next.count(&input).work[load_bin(3)], 20.0);
    }

    #[test]
    fn a_number_that_was_found_while_half_of_the_servers_were_out_is_doubled_for_all_of_them() {
        let bounds = WorkerBounds { least: 1, most: 64 };
        let mut one = WorkerSearch::new(bounds, 8, Guard::new(Duration::MAX));
        let known = KnownWorkers {
            workers: 8,
            limit: 9,
            possible: 9,
            found: true,
            highest: 9,
            evidence: alloc::vec![0.0; LOADS],
            found_with: 0.5,
        };
        assert!(!one.restore(&KnownWorkers { found_with: 0.0, ..known.clone() }));
        assert!(one.restore(&known));
        let input = |ceiling| SearchInput {
            lanes: &[],
            plant: 0,
            waits: true,
            refused_us: 0,
            in_service: 0,
            held_back: true,
            service_time: Duration::ZERO,
            silent: 0.0,
            limits: false,
            available: 0.5,
            ceiling,
        };
        let mut found = |ceiling| {
            let found = one.step(Instant::ZERO, input(ceiling));
            (found.workers, found.limit)
        };
        assert_eq!(found(None), (16, 18));
        assert_eq!(found(Some(12)), (16, 12), "it refuses beyond twelve");
        let mut again = WorkerSearch::new(bounds, 8, Guard::new(Duration::MAX));
        assert!(again.restore(&one.known()));
        assert_eq!(again.capacity(), (16, 18, true), "after a restart too");
    }
}
