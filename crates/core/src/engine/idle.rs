//! Rest: periods in which nothing comes, nothing is there and nobody is degraded. The loops would do nothing in them, so
//! they are counted, and the loops are told of all of them when something happens again.
//!
//! A shell of virtual time need not come for them at all: see [`Engine::put_off`].

use super::Engine;
use super::timers::Timer;
use crate::control::utilization::UtilizationLoop;
use crate::engine::state::PublishedPlant;
use crate::time::{Duration, Instant};

impl Engine {
    /// For a shell that knows that nobody will arrive before `until`, and has no readings: a simulator. It may come at
    /// the returned instant instead of at `next`, which [`tick`](Engine::tick) returned: at the end of the sample in which
    /// somebody may arrive, or of a period, unless that one is of rest. Samples before it, all of nothing, are taken then.
    /// What comes of it is the same, bit for bit; of a status that is asked for meanwhile only the plan may differ, in its
    /// last bit, since it weighs by rates.
    pub fn put_off(&mut self, next: Instant, until: Instant) -> Instant {
        let part_ns = self.timers.sample_every.as_nanos() as u64;
        let other_loops = self.timers.due(Timer::Response).min(self.timers.due(Timer::Budget));
        let only_samples = other_loops == Instant::FAR && self.loops.samples_only_rates;
        if until <= next || part_ns == 0 || !only_samples || self.reloaded || self.somebody_waits() {
            return next;
        }
        if self.timers.due(Timer::Period) <= until && self.rests() {
            let period = self.timers.period;
            let period_ns = period.as_nanos() as u64;
            let more = until.nanos_since(self.timers.due(Timer::Period)) / period_ns;
            self.timers.last_period = self.timers.due(Timer::Period) + Duration::from_nanos(more * period_ns);
            self.timers.set(Timer::Period, self.timers.last_period + period);
            self.rest(u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1));
        }
        let latest = until.min(self.timers.due(Timer::Period));
        if latest <= next {
            return next;
        }
        self.timers.is_put_off = true;
        let end = |parts: u64| self.timers.last_sample + Duration::from_nanos(parts * part_ns);
        let whole = latest.nanos_since(self.timers.last_sample) / part_ns;
        if end(whole + 1) <= self.timers.due(Timer::Period) { end(whole + 1) } else { next.max(end(whole)) }
    }

    /// Nothing has come or gone since the last period, nothing is there, and nobody is degraded: the loops would do nothing.
    pub(super) fn rests(&self) -> bool {
        let lanes = self.sensors.counting_lanes();
        let is_empty = |plant: &PublishedPlant| plant.gate.in_service() == 0 && !plant.gate.is_waited_at();
        self.idle.may_rest
            && self.shared().plants.iter().all(is_empty)
            && self.sensors.plants.iter().all(|monitor| monitor.reported.is_empty())
            && self.sensors.classes.is_current(lanes)
    }

    /// So many periods of rest went by. The loops are told when it ends.
    pub(super) fn rest(&mut self, periods: u32) {
        if self.idle.periods == 0 {
            self.sensors.classes.idle();
            self.loops.costs.iter_mut().for_each(|costs| costs.frozen = true);
            self.loops.utilization.iter_mut().for_each(UtilizationLoop::begin_rest);
        }
        self.idle.periods = self.idle.periods.saturating_add(periods);
    }
}
