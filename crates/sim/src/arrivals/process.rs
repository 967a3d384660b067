//! Arrival times of a random process.
//!
//! Poisson, deterministic, Pareto, self-similar and SURGE's processes have rate 1 in a time of their own, which [`Cursor`] maps
//! onto the wanted rate: twice the rate is the same process, twice as fast. A modulated process has states that last real time,
//! and its state multiplies the rate.

use super::on_off::OnOff;
use super::rate::{Cursor, Reached};
use super::surge::UserEquivalents;
use crate::distribution::exponential;
use crate::workload::{self, Phase};
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;

/// The arrival times of a process, in order.
pub(super) struct Moments {
    process: IntervalProcess,
    cursor: Cursor,
    /// The position on the rate at the last answer, for users that wait for their answers.
    answers: Cursor,
    random: Random,
}

enum IntervalProcess {
    Poisson,
    Deterministic,
    Pareto { least: f64, exponent: f64 },
    SelfSimilar(OnOff),
    Surge(UserEquivalents),
    Modulated(Modulation),
}

/// A two-state Markov-modulated process.
struct Modulation {
    /// The factors on the rate in the calm and in the burst; 1 on average.
    multipliers: [f64; 2],
    /// The mean length of the calm and of a burst (s).
    stays: [f64; 2],
    /// Whether the present state is the burst.
    burst: bool,
    /// When the present state ends (s).
    until: f64,
}

impl Moments {
    /// The process from the first phase on.
    pub(super) fn new(process: workload::Process, rate: &[Phase], mut random: Random) -> Self {
        let process = match process {
            workload::Process::Poisson => IntervalProcess::Poisson,
            workload::Process::Deterministic => IntervalProcess::Deterministic,
            // Mean 1: least x shape / (shape - 1).
            workload::Process::Pareto { shape } => {
                IntervalProcess::Pareto { least: (shape - 1.0) / shape, exponent: -1.0 / shape }
            }
            workload::Process::SelfSimilar { hurst, sources } => {
                IntervalProcess::SelfSimilar(OnOff::new(hurst, sources, &mut random))
            }
            workload::Process::Surge { users, waits } => {
                IntervalProcess::Surge(UserEquivalents::new(users, waits, &mut random))
            }
            workload::Process::Modulated { ratio, burst, calm } => {
                Modulation::process(ratio, burst, calm, &mut random)
            }
        };
        let cursor = Cursor::new(rate);
        Moments { process, answers: cursor.clone(), cursor, random }
    }

    /// The next arrival (s); `None` if nothing comes any more.
    pub(super) fn next(&mut self) -> Option<f64> {
        let random = &mut self.random;
        let area = match &mut self.process {
            IntervalProcess::Poisson => exponential(random),
            IntervalProcess::Deterministic => 1.0,
            IntervalProcess::Pareto { least, exponent } => *least * (1.0 - random.uniform()).powf(*exponent),
            IntervalProcess::SelfSimilar(sources) => sources.interval(random),
            IntervalProcess::Surge(users) => users.interval(random),
            IntervalProcess::Modulated(modulation) => return modulation.next(&mut self.cursor, random),
        };
        match self.cursor.advance(area, f64::INFINITY) {
            Reached::Arrival(time) => Some(time),
            Reached::Limit(_) | Reached::End => None,
        }
    }

    /// If users wait for their answers: how many more files of its page the user of the last arrival wants.
    pub(super) fn files_left(&self) -> Option<u32> {
        match &self.process {
            IntervalProcess::Surge(users) => users.files_left(),
            _ => None,
        }
    }

    /// For a user that has its answer now and wants `left` more files: when it asks next (s), and how many it wants then. `now`
    /// never goes back.
    pub(super) fn after_answer(&mut self, now: f64, left: u32) -> Option<(f64, u32)> {
        let IntervalProcess::Surge(users) = &self.process else { return None };
        let (area, left) = users.after_answer(left, &mut self.random);
        self.answers.advance(f64::INFINITY, now);
        match self.answers.clone().advance(area, f64::INFINITY) {
            Reached::Arrival(time) => Some((time, left)),
            Reached::Limit(_) | Reached::End => None,
        }
    }
}

impl Modulation {
    /// Draws the initial state from the stationary distribution.
    fn process(ratio: f64, burst: Duration, calm: Duration, random: &mut Random) -> IntervalProcess {
        let stays = [calm.as_secs_f64(), burst.as_secs_f64()];
        let cycle = stays[0] + stays[1];
        let mean = (stays[0] + ratio * stays[1]) / cycle;
        // If no state lasts any time, there is no state to be in. (The condition also catches NaN.)
        if !(cycle > 0.0 && mean > 0.0) {
            return IntervalProcess::Poisson;
        }
        let burst = random.uniform() * cycle < stays[1];
        let until = random.exponential(stays[usize::from(burst)]);
        IntervalProcess::Modulated(Modulation {
            multipliers: [1.0 / mean, ratio / mean],
            stays,
            burst,
            until,
        })
    }

    fn next(&mut self, cursor: &mut Cursor, random: &mut Random) -> Option<f64> {
        // What is left of an interval is counted in units of the multiplied rate, so that it carries over into the other state.
        let mut left = exponential(random);
        loop {
            let multiplier = self.multipliers[usize::from(self.burst)];
            match cursor.advance(left / multiplier, self.until) {
                Reached::Arrival(time) => return Some(time),
                Reached::End => return None,
                Reached::Limit(area) => left = area * multiplier,
            }
            self.burst = !self.burst;
            self.until += random.exponential(self.stays[usize::from(self.burst)]);
        }
    }
}
