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
//! few of them take long. Where p is small and F(D) is larger, p itself is promised, so x is no less than the quantile p
//! as far as that leaves the wait [`ALL`] of the chance.
//!
//! A type is *likely* to be in time if its chance is at least what was promised, or [`LIKELY`] where more was promised than
//! that. One that is not, and is in time more often than late, is served where it takes the place of no other of its
//! priority; it is admitted as long as its chance is even, since no less is lost by refusing it.

use crate::admission::estimates::{Alone, OwnTime};
use crate::model::{ServiceHistogram, ServiceTime};
use libm::log;

/// The least chance of a request that is admitted when its work delays others: as for a normal time whose mean and one
/// deviation reach to the deadline.
const LIKELY: f64 = 0.84;
/// The least chance of a request that takes no other's place.
const LEAST_CHANCE: f64 = 0.5;
/// A request must keep its chance to be in time after its wait. Where more than this part of its chance without a wait was
/// promised, this part is asked for: otherwise no wait would be allowed at all.
const ALL: f64 = 0.95;

/// What requests of a type need within a deadline that this part of them keeps, in the unit of the estimate.
pub(super) fn own_time(
    known: &ServiceTime,
    times: &ServiceHistogram,
    (deadline, in_time): (f64, f64),
) -> OwnTime {
    let chance = if deadline.is_finite() { times.within(deadline, known) } else { 1.0 };
    let alone = match chance {
        chance if chance < LEAST_CHANCE => Alone::Late,
        chance if chance < LIKELY.min(in_time) => Alone::Even,
        _ => Alone::Likely,
    };
    let part = match alone {
        Alone::Even => LEAST_CHANCE,
        _ => (in_time * chance).max(in_time.min(ALL * chance)),
    };
    let needs = times.quantile(part, known, deadline);
    // A type that varies little may need less than the width of a bin of its histogram. So no request needs more deviations
    // above its mean than an exponential time has above zero at this quantile.
    let most = known.mean() - log(1.0 - in_time) * known.deviation();
    OwnTime { needs_us: needs.min(most).clamp(0.0, f64::from(u32::MAX)) as u32, alone }
}
