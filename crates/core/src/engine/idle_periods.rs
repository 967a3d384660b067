//! Idle periods: no request arrives, none waits or is in service, and no class is degraded. The loops would do nothing in such
//! periods, so the engine counts them, and passes the number to the loops when a request arrives again.
//!
//! A simulator need not tick for idle periods at all: see [`Engine::put_off`].

use super::Engine;
use super::timers::Timer;
use crate::control::utilization::UtilizationLoop;
use crate::engine::published_state::PublishedPlant;
use crate::time::{Duration, Instant};

/// The idle periods.
#[derive(Default)]
pub(crate) struct IdlePeriods {
    /// Whether a period without requests is idle: no class is degraded, and the search for heavy clients has nothing to do.
    pub(crate) may_be_idle: bool,
    /// The idle periods that the loops have not yet taken into account.
    pub(crate) periods: u32,
}

impl Engine {
    /// Returns when a simulator may tick next if no request arrives before `until` and there are no readings. `next` is the
    /// instant that [`tick`](Engine::tick) returned. The result is the end of the sample in which a request may arrive, or
    /// the end of a period that is not idle. The empty samples before that instant are taken at the next tick, so the
    /// results are the same, bit for bit. Only the plan in a status that is asked for meanwhile may differ in its last bit.
    pub fn put_off(&mut self, next: Instant, until: Instant) -> Instant {
        let part_ns = self.timers.sample_every.as_nanos() as u64;
        let other_loops = self.timers.due(Timer::Departures).min(self.timers.due(Timer::Budget));
        let only_samples = other_loops == Instant::FAR && self.loops.samples_only_rates;
        if until <= next || part_ns == 0 || !only_samples || self.reloaded || self.has_waiting() {
            return next;
        }
        if self.timers.due(Timer::Period) <= until && self.is_idle() {
            let period = self.timers.period;
            let period_ns = period.as_nanos() as u64;
            let more = until.nanos_since(self.timers.due(Timer::Period)) / period_ns;
            self.timers.last_period = self.timers.due(Timer::Period) + Duration::from_nanos(more * period_ns);
            self.timers.set(Timer::Period, self.timers.last_period + period);
            // Nothing was in service since the gates' last change, so no busy time is lost.
            let plants = &self.published().plants;
            plants.iter().for_each(|plant| plant.gate.start_clock(self.timers.last_period));
            self.add_idle_periods(u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1));
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

    /// Whether the period is idle: since its beginning no request arrived or departed and none is there, and no class is
    /// degraded.
    pub(super) fn is_idle(&self) -> bool {
        let is_empty = |plant: &PublishedPlant| plant.gate.in_service() == 0 && !plant.gate.is_waited_at();
        self.idle.may_be_idle
            && self.published().plants.iter().all(is_empty)
            && self.sensors.plants.iter().all(|monitor| monitor.reported.is_empty())
            && self.sensors.is_current()
    }

    /// Counts idle periods.
    pub(super) fn add_idle_periods(&mut self, periods: u32) {
        if self.idle.periods == 0 {
            self.sensors.classes.idle();
            self.loops.costs.iter_mut().for_each(|costs| costs.frozen = true);
            self.loops.utilization.iter_mut().for_each(UtilizationLoop::begin_idle);
            self.published().plants.iter().for_each(|plant| plant.place_loads.own.set(0.0));
        }
        self.idle.periods = self.idle.periods.saturating_add(periods);
    }
}
