//! The time that a request's own service needs within its deadline, by the learned distribution of its type.
//!
//! Let F be the distribution, D the deadline and p the promised share. A request that waits for w is in time with the chance
//! F(D - w), and without a wait with F(D). The request needs the time x for which
//!
//! ```text
//! F(x) = p F(D)
//! ```
//!
//! so that its wait takes at most the part 1 - p of its chance. If F(D) is near 1, x is the quantile p. If F(D) is smaller than
//! p, a plain quantile would lie beyond the deadline: every request of a type would be refused because a few of them take long.
//! If p is small and F(D) is larger, the promise is p itself, so x is at least the quantile p, or the quantile [`ALL`] F(D) if
//! that is less.
//!
//! A type is *likely* to be in time if its chance is at least the promised one, or [`LIKELY`] if more than that was promised. A
//! request of another type that is in time more often than late is served where it takes the place of no other request of its
//! priority; it is admitted as long as its chance is even, since no less is lost by refusing it.

use crate::admission::estimates::{Alone, OwnTime};
use crate::model::{ServiceHistogram, ServiceTime};
use libm::log;

/// The least chance of a request that is admitted when its work delays others: as for a normal time whose mean and one
/// deviation reach to the deadline.
const LIKELY: f64 = 0.84;
/// The least chance of a request that takes the place of no other request.
const LEAST_CHANCE: f64 = 0.5;
/// After its wait, a request must have the promised chance to be in time. If the promise is more than this part of its chance
/// without a wait, this part is required instead: otherwise no wait would be allowed at all.
const ALL: f64 = 0.95;

/// The time that requests of a type need within a deadline that the part `in_time` of them keeps, in the unit of the estimate.
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
