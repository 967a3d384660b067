//! The timer table: which loop is due when.

use crate::model::Tracker;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;

/// Expired requests are looked for no more often than this.
pub(crate) const SHORTEST_LOOK: Duration = Duration::from_millis(1);

/// What runs when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A part of a control period, at whose end rates are sampled; the worker searches and the learning of deadlines run with
    /// it.
    Sample,
    /// The loops that run on departures: promised delays and ratios.
    Departures,
    /// The control period: the utilization loops.
    Period,
    /// The periods of admission by budget.
    Budget,
}

/// When each timer is due, and the times that the engine keeps.
#[derive(Debug)]
pub(crate) struct Timers {
    due: [Instant; 4],
    /// Set by the first tick, with which the first period begins.
    pub(crate) running: bool,
    /// T.
    pub(crate) period: Duration,
    pub(crate) sample_every: Duration,
    /// The end of the last period, and its length (s).
    pub(crate) last_period: Instant,
    pub(crate) seconds: f64,
    /// The end of the last sample.
    pub(crate) last_sample: Instant,
    /// By plant: the time between two looks at its waiting requests; and the shortest of these times.
    pub(crate) look_every: Vec<Duration>,
    pub(crate) shortest_look: Duration,
    /// Whether [`Engine::put_off`](crate::Engine::put_off) let the shell call after more than one sample.
    pub(crate) is_put_off: bool,
    /// Whether the last period was passed over.
    is_passed_over: bool,
}

impl Timers {
    pub(crate) fn new(period: Duration) -> Self {
        Timers {
            due: [Instant::FAR; 4],
            running: false,
            period,
            sample_every: Duration::ZERO,
            last_period: Instant::ZERO,
            seconds: period.as_secs_f64(),
            last_sample: Instant::ZERO,
            look_every: Vec::new(),
            shortest_look: Duration::MAX,
            is_put_off: false,
            is_passed_over: false,
        }
    }

    /// Starts the clock: the first period begins now.
    pub(crate) fn start(&mut self, now: Instant) {
        self.running = true;
        self.last_period = now;
        self.sampled(now);
        self.set(Timer::Period, now + self.period);
    }

    pub(crate) fn due(&self, timer: Timer) -> Instant {
        self.due[timer as usize]
    }

    pub(crate) fn is_due(&self, timer: Timer, now: Instant) -> bool {
        now >= self.due(timer)
    }

    pub(crate) fn set(&mut self, timer: Timer, due: Instant) {
        self.due[timer as usize] = due;
    }

    /// The next instant at which a timer is due.
    pub(crate) fn next(&self) -> Instant {
        self.due.into_iter().fold(Instant::FAR, Instant::min)
    }

    /// Whether a sample is due: its whole time has passed, or half of it at the end of a period. A shorter sample would be
    /// all noise.
    pub(crate) fn ends_sample(&self, now: Instant) -> bool {
        let (part_ns, sampled_ns) = (self.sample_every.as_nanos() as u64, now.nanos_since(self.last_sample));
        sampled_ns >= part_ns || (self.is_due(Timer::Period, now) && sampled_ns >= part_ns / 2)
    }

    /// A sample ended now.
    pub(crate) fn sampled(&mut self, now: Instant) {
        self.last_sample = now;
        self.set(Timer::Sample, now + self.sample_every);
    }

    /// A period ended now. Periods stay on their grid, except that after a late tick the next one lasts at least half a
    /// period.
    pub(crate) fn ended_period(&mut self, now: Instant) {
        self.set(Timer::Period, (self.due(Timer::Period) + self.period).max(now + self.period / 2));
    }

    /// Whether the gateway stood still in a period of this length: it is longer than 1.5 T, and the period before it was not
    /// passed over. So if all ticks of a machine are late, every second period counts, and its plants stay controlled.
    pub(crate) fn stood_still(&mut self, elapsed: Duration) -> bool {
        self.is_passed_over = !self.is_passed_over && elapsed > self.period + self.period / 2;
        self.is_passed_over
    }

    /// Takes over the times of new promises.
    pub(crate) fn reload(&mut self, period: Duration) {
        self.set(Timer::Period, self.due(Timer::Period).min(self.last_period + period));
        (self.period, self.sample_every) = (period, period / Tracker::SAMPLES_PER_PERIOD);
        self.set(Timer::Sample, self.last_sample + self.sample_every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_timer_is_next_and_a_late_tick_leaves_at_least_half_a_period() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut timers = Timers::new(Duration::from_secs(1));
        timers.reload(Duration::from_secs(1));
        timers.start(at(100));
        assert_eq!((timers.next(), timers.due(Timer::Period)), (at(350), at(1100)));
        assert!(!timers.ends_sample(at(349)) && timers.ends_sample(at(350)));
        timers.sampled(at(1000));
        assert!(!timers.ends_sample(at(1100)) && timers.ends_sample(at(1125)));
        timers.ended_period(at(1125));
        assert_eq!(timers.due(Timer::Period), at(2100), "the grid is kept");
        timers.ended_period(at(2900));
        assert_eq!(timers.due(Timer::Period), at(3400), "but no period is a sliver");
        timers.reload(Duration::from_millis(400));
        assert_eq!(timers.due(Timer::Sample), at(1100));
    }
}
