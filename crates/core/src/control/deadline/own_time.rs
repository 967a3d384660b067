//! What a request's own service needs within its deadline, by the distribution that was learned of its type.
//!
//! With F the distribution, D the deadline and p the promised share, a request that waits until w is in time with the
//! chance F(D - w), and at once with F(D). It needs the time x for which
//!
//! ```text
//! F(x) = p F(D)
//! ```
//!
//! so that its wait takes at most the part 1 - p of the chance that it has. Where F(D) is near 1 this is the quantile p.
//! Where it is not, a plain quantile would lie beyond the deadline: every request of a type would be refused because a
//! few of them take long.

use crate::admission::estimates::{Alone, OwnTime};
use crate::model::{ServiceHistogram, ServiceTime};
use crate::request::work::IN_TIME;

/// The least chance of a request that is admitted when its work delays others: as for a normal time whose mean and one
/// deviation reach to the deadline.
const LIKELY: f64 = 0.84;
/// The least chance of a request that finds an idle worker.
const EVEN: f64 = 0.5;
/// No request needs more than its mean and so many deviations: for a type that varies little this may be less than the
/// width of a bin of its histogram.
const MOST_DEVIATIONS: f64 = 4.0;

/// What requests of a type need within a deadline, in the unit of the estimate.
pub(super) fn own_time(known: &ServiceTime, times: &ServiceHistogram, deadline: f64) -> OwnTime {
    let mean = known.mean();
    let chance = if deadline.is_finite() { times.within(deadline, known) } else { 1.0 };
    let alone = match chance {
        chance if chance < EVEN => Alone::Late,
        chance if chance < LIKELY => Alone::Even,
        _ => Alone::Likely,
    };
    let needs = times.quantile(IN_TIME * chance, known, deadline);
    let most = mean + MOST_DEVIATIONS * known.deviation();
    OwnTime { needs_us: needs.min(most).clamp(0.0, f64::from(u32::MAX)) as u32, alone }
}
