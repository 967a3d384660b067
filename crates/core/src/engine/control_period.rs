//! What the timers run: a sample, the loops of response times, a control period, and the periods of budgets.

use super::Engine;
use super::published_state::{PublishedPlant, PublishedState};
use super::timers::Timer;
use crate::control::response::Now;
use crate::control::utilization::{PlantInput, UtilizationLoop};
use crate::promises::Mode;
use crate::telemetry::measurement::Measurement;
use crate::time::{Duration, Instant};

impl Engine {
    /// Ends a sample, which is a part of a period: updates the rates, and runs the worker searches and the learning of
    /// deadlines.
    pub(super) fn sample(&mut self, now: Instant) {
        let sampled_ns = now.nanos_since(self.timers.last_sample);
        self.timers.sampled(now);
        if sampled_ns == 0 {
            return;
        }
        let part_ns = self.timers.sample_every.as_nanos() as u64;
        // After idle samples that were put off, requests came in the last one only.
        let whole = core::mem::take(&mut self.timers.is_put_off) && sampled_ns.is_multiple_of(part_ns);
        let empty = if whole { sampled_ns / part_ns - 1 } else { 0 };
        let (seconds, part_seconds) = (sampled_ns as f64 / 1e9, part_ns as f64 / 1e9);
        let last_seconds = if whole { part_seconds } else { seconds };
        let Some((_, lanes)) = self.sensors.counters.split_last() else { return };
        self.sensors.classes.sample(lanes, empty, part_seconds, last_seconds);
        if !self.loops.samples_only_rates {
            self.search(now);
            self.loops.deadlines.learn(seconds);
            for (number, plant) in self.lane.published.plants.iter().enumerate() {
                if plant.has_deadlines {
                    let workers = plant.capacity.workers();
                    self.loops.deadlines.follow(number, &plant.unfinished, seconds, workers);
                }
            }
        }
    }

    /// Searches for the number of workers, where none is promised.
    fn search(&mut self, now: Instant) {
        for plant in 0..self.loops.searches.len() {
            if self.loops.searches[plant].is_none() {
                continue;
            }
            self.lane.touch(now, plant);
            let PublishedPlant { gate, capacity, .. } = &self.lane.published.plants[plant];
            let Some(search) = &mut self.loops.searches[plant] else { continue };
            let slow = self.loops.utilization[plant].service_time() > self.loops.guards[plant];
            // Without control nothing limits the number in service, so a slow server would look like one with few workers.
            if self.registry.promises.control.mode != Mode::Off {
                search.observe(&self.sensors.counters, plant, gate.is_waited_at(), slow);
            }
            let (was, workers) = (capacity.workers(), search.finder.workers());
            capacity.set(workers, search.finder.limit());
            // Costs were measured for another number of workers.
            if workers.abs_diff(was) * 4 > was {
                let (costs, sensors) = (&mut self.loops.costs, &mut self.sensors);
                self.loops.utilization[plant].forget_costs(|class, level| {
                    costs[class].forget(level);
                    sensors.classes.pass_over(class, level, &sensors.counters);
                });
            }
        }
    }

    /// Runs the loops of promised delays and ratios.
    pub(super) fn respond(&mut self, now: Instant) {
        let state: &PublishedState = &self.lane.published;
        let seen = Now {
            at: now,
            lanes: &self.sensors.counters,
            monitors: &self.sensors.classes,
            workers: &|plant: usize| state.plants[plant].capacity.workers(),
            line: &|plant: usize| self.registry.promises.plants[plant].set_point,
        };
        // The loops run again at the next sample at the latest, since a class's rate is not known at its first one.
        let due = self.loops.responses.run(&seen).min(now + self.timers.sample_every);
        self.timers.set(Timer::Response, due);
    }

    /// Ends the periods of admission by budget that are over. `day` is the time since midnight.
    pub(super) fn turn_budgets(&mut self, now: Instant, day: Duration) {
        let keeping = self.lane.published.plants.iter().enumerate().filter(|(_, plant)| plant.has_deadlines);
        let unfinished = keeping.map(|(number, plant)| (number, &plant.unfinished));
        let due = self.loops.deadlines.turn(now, day, unfinished);
        self.timers.set(Timer::Budget, due);
    }

    /// Ends a control period: measures it, learns from it, and runs the utilization loop of each plant.
    pub(super) fn end_period(&mut self, now: Instant, gateway_cpu: Option<Duration>) {
        let elapsed = now.since(self.timers.last_period);
        if elapsed.is_zero() {
            return;
        }
        (self.timers.last_period, self.timers.seconds) = (now, elapsed.as_secs_f64());
        if self.is_idle() {
            self.add_idle_periods(1);
            return self.loops.rejection.learn(self.sensors.classes.measurements(), gateway_cpu);
        }
        let idle_periods = core::mem::take(&mut self.idle.periods);
        let lanes =
            &self.sensors.counters[..self.sensors.counters.len() - usize::from(!self.sensors.has_counted)];
        let something_came = self.sensors.classes.observe(lanes);
        let classes = self.sensors.classes.measurements();
        self.loops.costs.iter_mut().zip(classes).for_each(|(costs, measured)| costs.learn(measured));
        self.loops.rejection.learn(classes, gateway_cpu);
        for plant in 0..self.loops.utilization.len() {
            if idle_periods > 0 {
                self.loops.utilization[plant].end_rest(idle_periods);
            }
            self.step_plant(now, plant);
        }
        if something_came || self.sensors.heavy.is_behind {
            self.find_heavy();
        }
        self.idle.no_class_is_degraded =
            !self.sensors.heavy.is_behind && self.loops.utilization.iter().all(UtilizationLoop::is_at_top);
    }

    /// One control period of a plant: what was counted, the loop's step, and its levels published.
    fn step_plant(&mut self, now: Instant, plant: usize) {
        self.lane.touch(now, plant);
        let state: &PublishedState = &self.lane.published;
        let PublishedPlant { gate, queue, capacity, has_deadlines, .. } = &state.plants[plant];
        gate.waiting_by_class(&mut self.sensors.waiting);
        let (counted, reported) = self.sensors.plants[plant].observe(&self.sensors.counters, plant);
        let measured = Measurement {
            seconds: self.timers.seconds,
            nominal_seconds: self.timers.period.as_secs_f64(),
            classes: self.sensors.classes.measurements(),
            counted,
            reported,
            in_service: gate.in_service(),
            waiting: &self.sensors.waiting,
            workers: capacity.workers(),
        };
        let loops = &mut self.loops;
        let input = PlantInput {
            measured,
            rejection_cost: loops.rejection.per_rejection_seconds().unwrap_or(0.0),
            max_wait: queue.max_wait,
            capacity_known: loops.searches[plant].as_ref().is_none_or(|search| search.finder.found()),
            set_point_reduction: loops.responses.pressure(plant),
            sheds: loops.responses.sheds(plant) || *has_deadlines,
        };
        for (class, m) in loops.utilization[plant].step(&input, &mut loops.costs) {
            if loops.applied[*class] != *m {
                state.classes[*class].words.service_level.set(*m);
                loops.applied[*class] = *m;
            }
        }
    }

    /// Searches for heavy clients, and publishes which they are.
    fn find_heavy(&mut self) {
        let Some((_, lanes)) = self.sensors.counters.split_last() else { return };
        let classes = &self.lane.published.classes;
        self.sensors.heavy.observe(lanes, |class, known| {
            classes[class].words.set_heavy(known.heavy(), known.note_shift());
        });
    }
}
