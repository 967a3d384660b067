//! The chance of being late that admission accepts of a rank's requests.
//!
//! A request is admitted if its chance to be late is at most what was promised. That refuses many where the wait is due to
//! lower ranks, whose requests in service are not preempted: the share that is late of those admitted stays far below the
//! promised one, and each of those refused had a good chance. So while more of a rank's work is refused than is late, a
//! greater chance is accepted, and a smaller one again once that is not so:
//!
//! ```text
//! d ln(chance) / dt = +1 / PACE  if refused > late + LEAST * admitted,  else -1 / PACE
//! ```
//!
//! all three over the last ten seconds or so. To be late is no worse than to be refused up to an even chance. A request that
//! is late takes the place of others of its rank and higher ones, so that the chance is at most the part of the plant that
//! these leave: a rank that wants more than the whole plant gains nothing from later answers.

use crate::admission::lateness::{AcceptedLateness, Lateness};
use crate::model::normal_quantile;
use libm::{exp, log};

/// The sums of one rank, which are forgotten within [`MEMORY`].
#[derive(Clone, Default)]
pub(super) struct LatenessLaw {
    refused: f64,
    late: f64,
    admitted: f64,
    /// What ever was refused and late, at the last step (us).
    last: [u64; 2],
    /// The chance is this many times e above [`FEWEST`].
    raised: f64,
}

/// The time within which sums are forgotten (s).
const MEMORY: f64 = 10.0;
/// The time in which the chance changes by a factor of e (s).
const PACE: f64 = 1.0;
/// The least chance, below which no promise goes.
const FEWEST: f64 = 0.001;
/// A refusal that is as likely to be late as not is no loss.
const EVEN: f64 = 0.5;
/// A part of the admitted work that may be refused at any rate.
const LEAST: f64 = 0.002;

impl LatenessLaw {
    /// One look after `seconds`, in which this much work was started, at a plant of which lower ranks use the part `unused` that
    /// this rank and higher ones leave. Returns what is accepted, if that is more than the least.
    pub(super) fn step(
        &mut self,
        lateness: &Lateness,
        (admitted_us, unused): (f64, f64),
        seconds: f64,
    ) -> Option<AcceptedLateness> {
        let now = [lateness.refused_us(), lateness.late_us()];
        let last = core::mem::replace(&mut self.last, now);
        let [refused, late] = [0, 1].map(|place| now[place].wrapping_sub(last[place]) as f64);
        let kept = exp(-seconds / MEMORY);
        let sums = [&mut self.refused, &mut self.late, &mut self.admitted];
        for (sum, came) in sums.into_iter().zip([refused, late, admitted_us]) {
            *sum = kept * *sum + came;
        }
        let most = log((unused.min(EVEN) / FEWEST).max(1.0));
        let direction = if self.refused > self.late + LEAST * self.admitted { 1.0 } else { -1.0 };
        self.raised = (self.raised + direction * seconds / PACE).clamp(0.0, most);
        let chance = FEWEST * exp(self.raised);
        (self.raised > 0.0).then(|| AcceptedLateness { chance, deviations: normal_quantile(1.0 - chance) })
    }
}
