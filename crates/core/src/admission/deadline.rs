//! Admission by deadline: a request that would be late is refused when it arrives (AC 3.1).
//!
//! ```text
//! expected wait + own service time + safety margin  <=  relative deadline
//! ```
//!
//! The work of the request is reserved first, so that of two requests on two threads at least one sees the other. The
//! wait follows from the work ahead of it (`unfinished_work.rs`, `expected_wait.rs`), the service time from the estimates of its
//! type (`estimates.rs`). The margin covers [`MARGIN`] standard deviations of their sum. A request that is longer than
//! its deadline even alone is refused whatever the load, except that one of its type is let in now and then, to learn
//! whether that is still so. Another rule may take the place of this comparison (`rule.rs`).
//!
//! A request that was admitted and waits until it can no longer be in time is dropped in `engine/lane/expire.rs`.

use crate::admission::estimates::{Estimates, Headroom};
use crate::admission::unfinished_work::{UnfinishedWork, Workers};
use crate::request::work::{CostFeatures, DeadlineTerms, Work};
use crate::scheduling::rank::Rank;
use crate::time::{Duration, Instant};
use libm::sqrt;

/// The safety margin before a deadline, in standard deviations. For skewed sums, such as those of gamma variables, the
/// tail beyond the margin is as small as a normal one's if `(MARGIN^2 - 1) / 6` times the third central moment over the
/// variance is added (Cornish and Fisher).
pub(super) const MARGIN: f64 = 4.0;
/// The relative error of a wait that comes from errors of the estimates.
const WAIT_ERROR: f64 = 0.05;
/// The part of a deadline that a request may wait where short waits are preferred.
const SHORT_WAIT: f64 = 0.2;
/// The largest probability that the work of higher ranks makes a request late.
const RISK: f64 = 0.003;

/// An arriving request, as admission by deadline sees it.
pub(crate) struct Candidate {
    pub(crate) arrived: Instant,
    pub(crate) rank: Rank,
    pub(crate) features: CostFeatures,
    /// The level at which it would be served.
    pub(crate) level: u8,
    /// The request is not controlled: its work is reserved, and it is never refused.
    pub(crate) exempt: bool,
}

/// Why a request is refused: it would be late.
pub(crate) struct WouldBeLate {
    /// The time until such a request might be in time; `None` if it takes too long even alone.
    pub(crate) retry_after: Option<Duration>,
}

/// Reserves the work of an arriving request and decides whether it is admitted. The work stays reserved either way: the
/// caller gives it back for a request that it turns away.
pub(crate) fn admit(
    (unfinished, workers): (&UnfinishedWork, Workers),
    (estimates, terms): (&Estimates, &DeadlineTerms),
    candidate: &Candidate,
) -> (Work, Result<(), WouldBeLate>) {
    let Candidate { arrived, rank, features, level, exempt } = *candidate;
    let cost = estimates.cost(features, level);
    if features.announced_us > 0 || features.blocks > 0 {
        estimates.saw(cost, terms);
    }
    let work = unfinished.reserve(arrived, rank, features, cost);
    let headroom = estimates.headroom(terms, workers.all);
    let retry_after = match will_be_in_time(unfinished, &work, headroom, workers, terms) {
        Err(retry_after) if !exempt => retry_after,
        _ => return (work, Ok(())),
    };
    let too_long_alone = retry_after.is_none();
    if too_long_alone && estimates.is_invited(features, level) {
        return (work, Ok(()));
    }
    estimates.refuse(features, level, too_long_alone);
    (work, Err(WouldBeLate { retry_after }))
}

/// Whether a request whose work is reserved will be done in time; if not, how long until it might be, if ever.
///
/// Each request is judged as if it took as long as the costliest one, as far as there is headroom. Otherwise cheap
/// requests would fill the queue, and a costly one would never find the time that it needs.
fn will_be_in_time(
    unfinished: &UnfinishedWork,
    work: &Work,
    headroom: Headroom,
    workers: Workers,
    terms: &DeadlineTerms,
) -> Result<(), Option<Duration>> {
    let Some(deadline) = terms.deadline else { return Ok(()) };
    let deadline_us = deadline.as_nanos() as f64 / 1e3;
    let own = work.cost;
    // Even alone the request must be likely to be in time.
    if f64::from(own.mean_us) + f64::from(own.deviation_us) > deadline_us {
        return Err(None);
    }
    if let Some(decided) = unfinished.rule.admits(work.slot.into(), own.mean_us.into(), &workers) {
        return decided;
    }
    if workers.idle {
        return Ok(());
    }
    let mean = f64::from(own.mean_us.max(headroom.costliest.mean_us));
    let own_deviation = f64::from(own.deviation_us);
    // The margin is capped at the reserved headroom; otherwise a request that varies much would enter only an empty queue.
    let capped = (MARGIN * own_deviation).min((headroom.most_us - mean).max(own_deviation));
    let deviation = capped.max(MARGIN * f64::from(headroom.costliest.deviation_us));
    let wait = unfinished.wait(work, &workers);
    let variance = wait.variance + WAIT_ERROR * WAIT_ERROR * wait.ahead * wait.ahead;
    let skew = (MARGIN * MARGIN - 1.0) / 6.0 * wait.third / variance.max(1.0);
    let margin = sqrt(MARGIN * MARGIN * variance + deviation * deviation) + skew;
    let over = wait.ahead + mean + margin - deadline_us;
    let short = if terms.prefers_delay { wait.expected() - SHORT_WAIT * deadline_us } else { over };
    let most = deadline_us - mean - own_deviation;
    let overtaken = if wait.outlasts(most) > RISK { wait.expected() } else { over };
    let over = over.max(short).max(overtaken);
    if over <= 0.0 { Ok(()) } else { Err(Some(Duration::from_micros(over as u64 + 1))) }
}
