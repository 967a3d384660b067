//! Blindness: requests come while no sense shows any load from them.
//!
//! A load that is not seen seems to fit at full quality, so a blind agent would give full quality back in the midst of an
//! overload, again and again. Every request takes some time of a server: at the least possible cost of each, the requests make
//! a utilization that must show ([`LoadSense::least_utilization`](super::LoadSense::least_utilization)). If a sense shows less
//! than half of that utilization for some periods, it does not see the load. If the rate is so low that the least utilization
//! would hardly show, the agent counts as able to see: nothing is at stake.

use super::Sample;

/// If the least utilization of the requests is at least this, a sense must show it.
const VISIBLE: f64 = 0.01;
/// The periods in succession after which an agent counts as blind, or as able to see again.
const PERIODS: u32 = 5;

/// Whether a sense that shows `utilization` does not see requests whose least utilization is `least`.
pub fn sees_nothing(utilization: f64, least: f64) -> bool {
    least >= VISIBLE && utilization < 0.5 * least
}

#[derive(Default)]
pub(super) struct Blindness {
    /// The seconds of this period, and their products with U and with the least U.
    seconds: f64,
    work: f64,
    least: f64,
    is_blind: bool,
    /// Periods in succession that showed the opposite of `is_blind`.
    otherwise: u32,
}

impl Blindness {
    pub(super) fn take(&mut self, sample: &Sample) {
        if let Some((_, utilization)) = sample.load {
            self.seconds += sample.seconds;
            self.work += utilization * sample.seconds;
            self.least += sample.least * sample.seconds;
        }
    }

    pub(super) fn end_period(&mut self) {
        if self.seconds > 0.0 {
            let now = sees_nothing(self.work / self.seconds, self.least / self.seconds);
            self.otherwise = if now == self.is_blind { 0 } else { self.otherwise + 1 };
            if self.otherwise >= PERIODS {
                (self.is_blind, self.otherwise) = (now, 0);
            }
        }
        (self.seconds, self.work, self.least) = (0.0, 0.0, 0.0);
    }

    pub(super) fn is_blind(&self) -> bool {
        self.is_blind
    }
}
