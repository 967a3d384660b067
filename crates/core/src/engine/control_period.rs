//! What the timers run: a sample, the loops that run on departures, a control period, and the periods of budgets.

use super::Engine;
use super::published_state::{ClassWords, PublishedPlant, PublishedState};
use super::timers::{Timer, Timers};
use crate::actuator::level_of_client::turn_at;
use crate::control::Loop;
use crate::control::cost::class::ClassCosts;
use crate::control::deadline::budgets::BudgetInput;
use crate::control::delay::ClassQuota;
use crate::control::departures::DepartureInput;
use crate::control::ratio::{ClassTurn, RatioLoop};
use crate::control::server_queue::PromisedTimes;
use crate::control::utilization::{
    HeldContracts, PlantInput, RejectedClasses, SeenQueue, UsualCosts, UtilizationLoop,
};
use crate::control::workers::{RefusalInput, SearchInput};
use crate::promises::Mode;
use crate::scheduling::queue::RejectedWaits;
use crate::telemetry::Readings;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::measurement::{ClassMeasurement, Measurement};
use crate::telemetry::snapshot::in_service;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::Ordering::Relaxed;

/// If the mean usual cost of a period's requests leaves this range, the unit of usual costs is chosen anew.
const MEAN_USUAL: core::ops::Range<f64> = 0.01 * ClassWords::USUAL..100.0 * ClassWords::USUAL;

/// The time that a sample covers.
struct SampledSpan {
    /// The length of the whole sample.
    seconds: f64,
    /// The number of samples at its beginning that were put off because no request came.
    idle_samples: u64,
    /// The length of one of those samples.
    sample_seconds: f64,
    /// The length of its last part, the only one in which requests can have come.
    last_seconds: f64,
}

impl SampledSpan {
    fn new(sampled_ns: u64, timers: &mut Timers) -> Self {
        let sample_ns = timers.sample_every.as_nanos() as u64;
        let (seconds, sample_seconds) = (sampled_ns as f64 / 1e9, sample_ns as f64 / 1e9);
        // If samples were put off, requests came in the last sample only.
        if core::mem::take(&mut timers.is_put_off) && sampled_ns.is_multiple_of(sample_ns) {
            let idle_samples = sampled_ns / sample_ns - 1;
            SampledSpan { seconds, idle_samples, sample_seconds, last_seconds: sample_seconds }
        } else {
            SampledSpan { seconds, idle_samples: 0, sample_seconds, last_seconds: seconds }
        }
    }
}

impl Engine {
    /// Ends a sample, which is a part of a period: updates the rates, and runs the worker searches and the learning of
    /// deadlines.
    pub(super) fn sample(&mut self, now: Instant, queue_waiting: Option<u32>) {
        let sampled_ns = now.nanos_since(self.timers.last_sample);
        self.timers.sampled(now);
        if sampled_ns == 0 {
            return;
        }
        let span = SampledSpan::new(sampled_ns, &mut self.timers);
        self.sensors.unseen.set_length(queue_waiting);
        self.sensors.sample((span.idle_samples, span.sample_seconds), span.last_seconds);
        self.learn_from_refusals(now);
        if !self.loops.samples_only_rates {
            self.search_workers(now);
            let plants = self.lane.published.plants.iter().enumerate();
            let mut keeping = plants
                .filter(|(_, plant)| plant.has_deadlines())
                .map(|(number, plant)| (number, &plant.unfinished, plant.capacity.workers()));
            self.loops.deadlines.step(now, (span.seconds, &mut keeping));
        }
    }

    /// Steps the searches for the number of workers.
    fn search_workers(&mut self, now: Instant) {
        for plant in 0..self.loops.searches.len() {
            let Some(search) = &mut self.loops.searches[plant] else { continue };
            self.lane.touch(now, plant);
            let PublishedPlant { gate, capacity, unfinished, .. } = &self.lane.published.plants[plant];
            let waits = gate.lacks_room(capacity.shared());
            let input = SearchInput {
                lanes: &self.sensors.counters,
                plant,
                waits,
                refused_us: unfinished.refused_us(),
                in_service: gate.in_service(),
                held_back: waits || !self.loops.utilization[plant].is_at_top(),
                service_time: self.loops.utilization[plant].service_time(),
                silent: self.loops.utilization[plant].silent_seconds(),
                limits: self.registry.promises.control.mode != Mode::Off,
                available: capacity.available(),
                ceiling: self.loops.refusals[plant].output().ceiling,
            };
            let ([was, _], found) = (capacity.whole(), search.step(now, input));
            capacity.set(found.workers, found.limit, found.is_known);
            if found.is_lower {
                capacity.lower(now);
            }
            if found.is_other {
                self.loops.deadlines.lower_confidence(plant);
                let (costs, sensors) = (&mut self.loops.costs, &mut self.sensors);
                self.loops.utilization[plant].forget_costs(|class, level| {
                    costs[class].forget(level);
                    sensors.classes.pass_over(class, level, &sensors.counters);
                });
            }
            if found.workers != was {
                self.take_promised_costs(Some(plant), found.is_other);
            }
        }
    }

    /// Steps the loops that learn the number of requests in service beyond which a plant refuses others. The worker search
    /// takes that number as its bound. If the number of workers is promised, it and the limit are lowered to that number.
    fn learn_from_refusals(&mut self, now: Instant) {
        if self.registry.promises.control.mode != Mode::Control {
            return;
        }
        for plant in 0..self.loops.refusals.len() {
            let PublishedPlant { gate, capacity, .. } = &self.lane.published.plants[plant];
            let waits = gate.lacks_room(capacity.shared());
            let is_whole = capacity.available() >= 1.0;
            let input = RefusalInput { lanes: &self.sensors.counters, plant, waits, is_whole };
            let found = self.loops.refusals[plant].step(now, input);
            let (refused, workers_before) = (capacity.refuses(), capacity.workers());
            capacity.set_refuses(found.refuses, found.tried_from);
            let promised = &self.registry.promises.plants[plant];
            if (refused || found.refuses) && promised.find_workers.is_none() {
                let (workers, limit) = (promised.workers, promised.max_connections);
                let most = found.ceiling.unwrap_or(u32::MAX);
                capacity.set(workers.min(most), limit.min(most), true);
                let workers = capacity.workers();
                if workers != workers_before {
                    // The costs stay valid while one more worker is tried.
                    let is_other = workers.abs_diff(workers_before) * 4 > workers_before;
                    self.take_promised_costs(Some(plant), is_other);
                }
            }
        }
    }

    /// Steps the loops of promised delays and ratios.
    pub(super) fn step_departures(&mut self, now: Instant) {
        let (state, costs): (&PublishedState, _) = (&self.lane.published, &self.loops.costs);
        let input = DepartureInput {
            lanes: &self.sensors.counters,
            monitors: &self.sensors.classes,
            workers: &|plant: usize| state.plants[plant].capacity.quota_total(),
            service_seconds: &|class: usize| costs[class].full_seconds(),
            set_point: &|plant: usize| self.registry.promises.plants[plant].set_point,
            contended: &|plant: usize, class: usize| state.plants[plant].gate.is_waited_at_beside(class),
        };
        publish_quotas(state, &self.sensors.counters, self.loops.delays.step(now, input));
        publish_turns(state, self.loops.ratios.step(now, input));
        self.set_departures_due();
        // The loops are due by the rates, which a first sample does not show: step again after a sample at the latest.
        let due = self.timers.due(Timer::Departures).min(now + self.timers.sample_every);
        self.timers.set(Timer::Departures, due);
    }

    /// Sets the timer to the time at which the first of the two loops is due. Both are stepped then.
    pub(super) fn set_departures_due(&mut self) {
        let due = self.loops.delays.due().instant().min(self.loops.ratios.due().instant());
        self.timers.set(Timer::Departures, due);
    }

    /// Publishes the offset of the client hashes, which changes with time if a turn was promised, and is 0 otherwise.
    pub(super) fn turn_clients(&mut self, unix_time: Duration) {
        let turn = self.registry.promises.control.rekey.map_or(0, |rekey| turn_at(unix_time, rekey));
        self.published().turn.store(turn, Relaxed);
    }

    /// Ends the periods of admission by budget that are over.
    pub(super) fn turn_budgets(&mut self, now: Instant, unix_time: Duration) {
        let plants = self.lane.published.plants.iter().enumerate();
        let mut unfinished = plants
            .filter(|(_, plant)| plant.has_deadlines())
            .map(|(number, plant)| (number, &plant.unfinished));
        self.loops.budgets.step(now, BudgetInput { unix_time, unfinished: &mut unfinished });
        self.timers.set(Timer::Budget, self.loops.budgets.due().instant());
    }

    /// Ends a control period: measures it, learns from it, and runs the utilization loop of each plant.
    pub(super) fn end_period(&mut self, now: Instant, readings: &Readings) {
        let elapsed = now.since(self.timers.last_period);
        if elapsed.is_zero() {
            return;
        }
        (self.timers.last_period, self.timers.seconds) = (now, elapsed.as_secs_f64());
        let processors = self.loops.processors.since_last(now, readings.host_cpu);
        if self.is_idle() {
            (0..self.loops.utilization.len()).for_each(|plant| self.lane.touch(now, plant));
            self.add_idle_periods(1);
            let classes = self.sensors.classes.measurements();
            return self.loops.rejection.learn(classes, readings.gateway_cpu);
        }
        let idle_periods = core::mem::take(&mut self.idle.periods);
        let something_came = self.sensors.observe_classes();
        if idle_periods > 0 {
            self.loops.utilization.iter_mut().for_each(|own| own.end_idle(idle_periods));
        }
        if self.timers.stood_still(elapsed) {
            self.loops.rejection.pass_over(readings.gateway_cpu);
            return self.pass_over(now);
        }
        let classes = self.sensors.classes.measurements();
        self.loops.costs.iter_mut().zip(classes).for_each(|(costs, measured)| costs.learn(measured));
        for ((costs, measured), class) in
            self.loops.costs.iter().zip(classes).zip(&self.lane.published.classes)
        {
            if let Some(contract) =
                class.contract.as_ref().filter(|own| measured.active && own.counts_bytes())
            {
                class.words.set_sizes(&costs.by_level[1..=usize::from(class.top_level)]);
                contract.adapt();
            }
        }
        self.loops.rejection.learn(classes, readings.gateway_cpu);
        for index in 0..self.loops.order.len() {
            let plant = self.loops.order[index];
            let queue = SeenQueue {
                is_never_empty: readings.queue_stands >= self.timers.period,
                is_reported: readings.queue_waiting.is_some(),
            };
            self.step_plant(now, plant, (processors, queue));
        }
        if something_came || self.sensors.heavy.is_behind {
            self.find_heavy();
        }
        self.idle.may_be_idle =
            !self.sensors.heavy.is_behind && self.loops.utilization.iter().all(UtilizationLoop::is_at_top);
    }

    /// Discards a period in which the gateway stood still: its counts show the gateway's absence, so the loops learn nothing.
    fn pass_over(&mut self, now: Instant) {
        for plant in 0..self.loops.utilization.len() {
            self.lane.touch(now, plant);
            self.sensors.plants[plant].observe(&self.sensors.counters, plant);
        }
    }

    /// Runs one control period of a plant: measures it, steps its loop, and publishes its service levels.
    fn step_plant(
        &mut self,
        now: Instant,
        plant: usize,
        (processors, unseen_queue): (Option<f64>, SeenQueue),
    ) {
        self.lane.touch(now, plant);
        let state: &PublishedState = &self.lane.published;
        let own @ PublishedPlant { gate, queue, capacity, .. } = &state.plants[plant];
        gate.waiting_by_class(&mut self.sensors.waiting);
        self.sensors.unseen.add_waiting(self.sensors.classes.measurements(), &mut self.sensors.waiting);
        let (counted, reported) = self.sensors.observe_plant(plant, self.timers.seconds, capacity.workers());
        self.bound_server_queue(plant);
        let (loops, waiting) = (&mut self.loops, &self.sensors.waiting);
        let measured = Measurement {
            seconds: self.timers.seconds,
            nominal_seconds: self.timers.period.as_secs_f64(),
            classes: self.sensors.classes.measurements(),
            levels_by_plant: &loops.applied,
            counted,
            reported,
            in_service: gate.in_service(),
            waiting,
            workers: capacity.workers(),
            serving: capacity.serving(),
            service_seconds: self.sensors.plants[plant].service_seconds(),
        };
        loops.utilization[plant].learn_steps(&measured, &mut loops.costs);
        let input = PlantInput {
            measured,
            costs: &loops.costs,
            rejection_cost: loops.rejection.per_rejection_seconds().unwrap_or(0.0),
            processors,
            unseen_queue,
            max_wait: queue.longest_wait(),
            capacity_known: loops.searches[plant].as_ref().is_none_or(|search| search.found()),
            possible_workers: loops.searches[plant].as_ref().map_or(1.0, |search| search.possible()),
            set_point_reduction: loops.delays.set_point_reduction(plant),
            reported_load: own.place_loads.reported.read(now),
            sheds: loops.delays.sheds(plant) || own.has_deadlines(),
            best_effort_waits: queue.max_wait.is_none() && best_effort_waits(state, waiting),
        };
        let output = loops.utilization[plant].step(now, input);
        for cost in &output.doubted {
            loops.costs[cost.class].by_level[cost.level].doubt();
        }
        for set in output.levels {
            let cascade = &mut loops.applied[set.class];
            if cascade.set(plant, set.m, set.passes) {
                state.classes[set.class].words.set_levels(cascade);
            }
        }
        if capacity.is_searched {
            let measured = self.sensors.classes.measurements();
            publish_usual_costs(state, &output.usual_costs, &loops.costs, measured);
        }
        for (class, held) in output.contracts.iter().flat_map(HeldContracts::classes) {
            state.classes[class].contract.iter().for_each(|contract| contract.hold(held));
        }
        own.returns.set(output.returns);
        if let Some(rejected) = &output.rejected {
            publish_rejected((state, plant), output.longest_wait, rejected, &loops.ratios);
        }
        if self.registry.promises.plants[plant].decides_itself {
            own.place_loads.own.set(loops.utilization[plant].place_load());
        }
    }

    /// If the number of workers is promised and classes were promised times, bounds how many requests wait inside the server. A
    /// server that decides itself keeps all its places, since it may be far away.
    pub(super) fn bound_server_queue(&self, plant: usize) {
        let promised = &self.registry.promises.plants[plant];
        if promised.find_workers.is_none() && !promised.decides_itself {
            let PublishedPlant { capacity, shortest_deadline, .. } = &self.published().plants[plant];
            let times = PromisedTimes {
                shortest_delay: self.loops.delays.shortest(plant),
                shortest_deadline: *shortest_deadline,
                has_ratio: self.loops.ratios.is_at(plant),
            };
            let service_seconds = self.sensors.plants[plant].service_seconds();
            capacity.set_most_for_times(times.most_in_service(capacity.workers(), service_seconds));
        }
    }

    /// Searches for heavy clients, and publishes which they are. The lane of `tick` is left out: the only arrivals that it
    /// counts are those of clients that are turned away where no lane is asked, and none of these is known as heavy.
    fn find_heavy(&mut self) {
        let Some((_, lanes)) = self.sensors.counters.split_last() else { return };
        let classes = &self.lane.published.classes;
        self.sensors.heavy.observe(lanes, |class, known| {
            classes[class].words.set_heavy(known.heavy(), known.note_shift());
        });
    }
}

/// Whether most waiting requests are of classes without a promise of their own.
fn best_effort_waits(state: &PublishedState, waiting: &[u32]) -> bool {
    let own = state.classes.iter().zip(waiting).filter(|(class, _)| class.has_own_promise());
    2 * own.map(|(_, waiting)| *waiting).sum::<u32>() <= waiting.iter().sum()
}

/// Publishes what requests usually cost, for the worker search. Their unit is chosen so that the period's requests cost as much
/// in total as by the former costs, since the search compares the work before and after a change.
fn publish_usual_costs(
    state: &PublishedState,
    usual: &UsualCosts<'_>,
    learned: &[ClassCosts],
    measured: &[ClassMeasurement],
) {
    let (mut before, mut now, mut requests) = (0.0, 0.0, 0.0);
    usual.each(learned, |class, level, cost| {
        let served = measured[class].served[level].requests;
        before += served * f64::from(state.classes[class].words.usual(level as u8));
        now += served * cost;
        requests += served;
    });
    if now > 0.0 {
        let mean = before / requests;
        let scale = if MEAN_USUAL.contains(&mean) { before } else { ClassWords::USUAL * requests } / now;
        usual.each(learned, |class, level, cost| {
            state.classes[class].words.set_usual(level, cost * scale);
        });
    }
}

/// Publishes which classes of a plant are rejected for the load, and how long their requests wait at most.
fn publish_rejected(
    (state, plant): (&PublishedState, usize),
    longest_unpromised: Option<Duration>,
    rejected: &RejectedClasses<'_>,
    ratios: &RatioLoop,
) {
    let longest = state.plants[plant].queue.max_wait.or(longest_unpromised);
    let classes: Vec<usize> = rejected.numbers().collect();
    for (class, delta) in ratios.relative_deltas(plant) {
        // A time that is too long for a `Duration` is no bound.
        let in_turn = |wait: Duration| Duration::try_from_secs_f64(wait.as_secs_f64() * delta).ok();
        let bound = longest.filter(|_| classes.contains(&class)).and_then(in_turn);
        state.classes[class].quota.iter().for_each(|quota| quota.set_bound(bound));
    }
    let waits = RejectedWaits { longest, keep_order: rejected.keep_order() };
    state.plants[plant].gate.set_rejected(waits, &classes);
}

/// Publishes the quotas that the delay loop has set.
fn publish_quotas(state: &PublishedState, lanes: &[Arc<LaneCounters>], quotas: &[ClassQuota]) {
    for own in quotas {
        let Some(quota) = &state.classes[own.class].quota else { continue };
        if quota.leaves_out() {
            quota.see(in_service(lanes, own.class));
        }
        quota.set_workers(state.plants[own.plant].capacity.quota_places(own.workers));
        if let Some(waits) = own.waits {
            quota.gaps.set_longest(waits.longest_gap);
            quota.set_urgent(waits.urgent);
            quota.set_bound(waits.bound);
            quota.set_clip(waits.longest_service);
        }
    }
}

/// Publishes the weights that the ratio loop has set. No request is held while the engine only observes.
pub(super) fn publish_turns(state: &PublishedState, turns: &[ClassTurn]) {
    for ClassTurn { class, turn, service, longest_service } in turns {
        let Some(quota) = &state.classes[*class].quota else { continue };
        quota.set_weight(turn.weight, turn.start, *service);
        quota.set_clip(*longest_service);
        quota.set_hold(match state.mode {
            Mode::Control => Duration::from_secs_f64(turn.hold),
            Mode::Observe | Mode::Off => Duration::ZERO,
        });
    }
}
