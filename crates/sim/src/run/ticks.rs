//! Ticks of the loops and ends of periods: what happens by the clock, also while no request comes.

use super::Simulation;
use super::due::Due;
use super::outcome::busy;
use crate::fault::{gone, reports_what_is_there};
use plimsoll_core::time::{Duration, Instant};

impl Simulation<'_> {
    /// Runs a tick, and all further ticks before the next other event, because without requests there may be nothing but ticks.
    pub(super) fn tick(&mut self, due: &Due, end: Instant) {
        // The last instant up to which there are certainly only ticks.
        let before = Instant::from_nanos(due.before_tick().as_nanos() - 1);
        let last = before.min(due.after_tick()).min(end);
        // If clients retry, one may come at any time after an answer.
        let arrival = if self.may_return { last } else { due.arrival.0.min(end) };
        loop {
            self.read();
            let origin = self.streams.iter().find_map(|coming| coming.source.origin());
            self.readings.unix_time = origin.map(|origin| origin.unix_time(self.now));
            self.tick_due = self.front.tick(self.now, &self.readings, &mut self.orders);
            if let Some(probe) = self.front.probe(self.now) {
                self.ask(probe);
                return self.obey();
            }
            if !self.orders.is_empty() {
                return self.obey();
            }
            // Readings must be taken at each tick.
            if !self.senses {
                self.tick_due = self.front.put_off(self.tick_due, arrival);
            }
            if self.tick_due > last {
                return;
            }
            self.now = self.tick_due;
        }
    }

    /// Takes the readings: the utilization of plants that report it, once a period; the part that is present of plants that
    /// lose servers; the gateway's CPU time, if rejections cost any.
    fn read(&mut self) {
        if !self.senses {
            return;
        }
        self.readings.utilization.clear();
        let (promises, workload) = (self.setup.promises, self.setup.workload);
        for (number, plant) in workload.plants.iter().enumerate().filter(|(_, plant)| plant.reports) {
            let (last, busy_then) = self.reported[number];
            let elapsed = self.now.since(last);
            if elapsed >= promises.control.period {
                let busy = self.servers[number].busy(self.now).servers;
                let servers = f64::from(plant.discipline.servers());
                let utilization = (busy - busy_then).as_secs_f64() / servers / elapsed.as_secs_f64();
                self.readings.utilization.push((number, utilization));
                self.reported[number] = (self.now, busy);
            }
        }
        self.readings.available.clear();
        let at = self.now.since(Instant::ZERO);
        for (number, plant) in
            workload.plants.iter().enumerate().filter(|(_, plant)| reports_what_is_there(&plant.faults))
        {
            let part =
                gone(&plant.faults, at).filter(|(_, reported)| *reported).map_or(0.0, |(part, _)| part);
            self.readings.available.push((number, 1.0 - part));
        }
        // A served request takes at least as much of the gateway as a rejection does. For the plant this is part of the service
        // time.
        self.readings.gateway_cpu = (self.rejection_seconds > 0.0)
            .then(|| Duration::from_secs_f64(self.rejection_seconds * self.requests as f64));
        self.readings.host_cpu = self.readings.gateway_cpu.map(|gateway| self.host_cpu(gateway));
    }

    /// The busy time of the processors that the gateway and plants share, divided by their number.
    fn host_cpu(&mut self, gateway: Duration) -> Duration {
        let plants = self.setup.workload.plants.iter().zip(&self.setup.promises.plants).enumerate();
        let mut worked = Duration::ZERO;
        for (number, (plant, _)) in plants.filter(|(_, (_, promised))| promised.same_host) {
            let busy = self.servers[number].busy(self.now).servers / plant.discipline.servers();
            // If a worker uses its processor all the time, the plant itself is charged for rejections.
            worked += if plant.processor < 1.0 { busy.mul_f64(plant.processor) + gateway } else { busy };
        }
        worked
    }

    /// Ends a period, and all further periods before the next other event. If no request will come any more, the run may be
    /// over after each of them.
    pub(super) fn end_periods(&mut self, due: &Due, end: Instant) {
        let before = due.before_tick().min(self.tick_due);
        let arrival = due.arrival.0.min(end);
        loop {
            self.end_period();
            let next = self.recorder.due();
            if next >= before || next > arrival || arrival == Instant::FAR {
                return;
            }
            self.now = next;
        }
    }

    fn end_period(&mut self) {
        let front = &*self.front;
        if self.recorder.period(|class| front.service_level(class)) {
            let busy = busy(&mut self.servers, self.now);
            self.recorder.close(self.now, &busy, self.front.recorded());
        }
    }
}
