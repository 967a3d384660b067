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

use crate::admission::lateness::AcceptedLateness;
use crate::model::normal_quantile;
use libm::{exp, log};

/// The sums of one rank, which are forgotten within [`MEMORY`].
#[derive(Clone, Default)]
pub(super) struct LatenessLaw {
    refused: f64,
    late: f64,
    admitted: f64,
    /// The work that ever was late, at the last step (us).
    last_late: u64,
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
    /// One look after `seconds`, in which this much work was refused and started, at a plant of which the rank and higher ones
    /// leave the part `unused`. Returns what is accepted, if that is more than the least.
    pub(super) fn step(
        &mut self,
        (refused_us, started_us, late_us): (f64, f64, u64),
        unused: f64,
        seconds: f64,
    ) -> Option<AcceptedLateness> {
        let late = late_us.wrapping_sub(core::mem::replace(&mut self.last_late, late_us)) as f64;
        let kept = exp(-seconds / MEMORY);
        for (sum, came) in
            [(&mut self.refused, refused_us), (&mut self.late, late), (&mut self.admitted, started_us)]
        {
            *sum = kept * *sum + came;
        }
        let most = log((unused.min(EVEN) / FEWEST).max(1.0));
        let direction = if self.refused > self.late + LEAST * self.admitted { 1.0 } else { -1.0 };
        self.raised = (self.raised + direction * seconds / PACE).clamp(0.0, most);
        let chance = FEWEST * exp(self.raised);
        (self.raised > 0.0).then(|| AcceptedLateness { chance, deviations: normal_quantile(1.0 - chance) })
    }
}
