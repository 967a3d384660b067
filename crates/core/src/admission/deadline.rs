//! Admission by deadline: a request that would be late is refused when it arrives (AC 3.1).
//!
//! A request is admitted if the probability that it is done within its relative deadline is at least p, the promised share.
//!
//! ```text
//! expected wait + own mean + sqrt(z^2 variance of the wait + own margin^2) + skew  <=  deadline
//! ```
//!
//! with z the quantile p of the normal distribution. So the margin of the wait is its quantile p as far as its mean, variance
//! and third central moment determine it: the wait is a sum over many requests, which is nearly normal, and `skew` is the first
//! term of Cornish and Fisher's expansion, by which the quantile of a skewed sum is larger:
//!
//! ```text
//! skew = (z^2 - 1) / 6 * third central moment of the wait / variance of wait and service together
//! ```
//!
//! The margins of wait and service, which are independent, are combined as those of normal times are.
//!
//! The work of the request is reserved first, so that of two requests on two threads at least one sees the other. The wait
//! follows from the work ahead of it (`unfinished_work.rs`, `expected_wait.rs`). Its own time is a quantile of what was learned
//! of its type (`control/deadline/service_allowance.rs`): the x with F(x) = p F(D), where p is the promised part and F(D) the
//! chance that it is done within its deadline if it need not wait. A request is refused because of F(D) alone only if F(D) is
//! small, since refusing a request that might have been in time is no better than being late with it. A request of such a type
//! is admitted now and then, to learn whether F(D) is still small (`control/deadline/learned_type.rs`). Another rule may take
//! the place of this comparison (`rule.rs`).
//!
//! Within a priority the earlier deadline goes first, so that a request passes some that were admitted before it with a longer
//! deadline. If one of those would be late behind it, it is refused too: the test is made for each deadline that its work is
//! before (the processor demand criterion).
//!
//! A request that would be late at its level is tried at the lighter levels that its plant has, and refused only if it would be
//! late at all of them.
//!
//! Beside lower ranks, whose requests in service are not preempted, a greater chance of being late may be accepted
//! (`control/deadline/accepted_lateness.rs`): less of a margin is asked for then, and less room is kept for the costliest type.
//!
//! A request that was admitted and waits until it can no longer be in time is dropped in `engine/lane/expire.rs`.

use crate::admission::estimates::{Alone, Estimates, OwnTime};
use crate::admission::expected_wait::Wait;
use crate::admission::headroom::most_us;
use crate::admission::lateness::AcceptedLateness;
use crate::admission::slot_key::SlotKey;
use crate::admission::unfinished_work::{UnfinishedWork, Workers};
use crate::request::work::{CostFeatures, DeadlineTerms, Work};
use crate::time::{Duration, Instant};
use libm::sqrt;

/// The relative error of a wait that comes from errors of the estimates.
const WAIT_ERROR: f64 = 0.055;
/// While less than this part of the workers is used, few requests wait, and one that is probably late may take an idle worker.
const PROBES_BELOW: f64 = 0.7;
/// The same for a request that is in time more often than late. On a server with less to spare it would take the place of
/// others that are in time.
const EVEN_BELOW: f64 = 0.9;
/// The part of a deadline that a request may wait where short waits are preferred.
const SHORT_WAIT: f64 = 0.2;

/// A request that comes to a plant, as admission by deadline sees it.
pub(crate) struct Candidate {
    /// When it came to this plant.
    pub(crate) arrived: Instant,
    pub(crate) key: SlotKey,
    pub(crate) features: CostFeatures,
    /// The level at which it would be served, and the plant's lowest at which it may be served, not refused.
    pub(crate) level: u8,
    pub(crate) lowest: u8,
    /// The request is not controlled: its work is reserved, and it is never refused.
    pub(crate) exempt: bool,
}

/// Why a request is refused: it would be late.
pub(crate) struct WouldBeLate {
    /// The time until such a request might be in time; `None` if it takes too long even alone.
    pub(crate) retry_after: Option<Duration>,
}

/// Reserves the work of a request as far as its site's costs are known, and decides nothing.
pub(crate) fn reserve(unfinished: &UnfinishedWork, estimates: &Estimates, candidate: &Candidate) -> Work {
    let Candidate { arrived, key, features, level, .. } = *candidate;
    let (cost, stretch) = (estimates.cost(features, level), estimates.stretch(features, level));
    unfinished.reserve(arrived, key, (features, cost, stretch))
}

/// Reserves the work of an arriving request and decides at which level it is admitted, if at any: the highest at which it will
/// be done in time. The work stays reserved either way: the caller gives it back for a request that it turns away.
pub(crate) fn admit(
    at_plant: (&UnfinishedWork, Workers),
    (estimates, terms): (&Estimates, &DeadlineTerms),
    candidate: &Candidate,
) -> (Work, Result<u8, WouldBeLate>) {
    let mut level = candidate.level;
    loop {
        let tried = Candidate { level, ..*candidate };
        let own = estimates.own_time(tried.features, level, terms);
        let work = reserve(at_plant.0, estimates, &tried);
        match admit_at_level(at_plant, (estimates, terms), (&work, own), &tried) {
            Ok(()) => return (work, Ok(level)),
            Err(late) if level <= candidate.lowest => {
                count_refused(at_plant.0, (&work, own), &late);
                return (work, Err(late));
            }
            Err(_) => at_plant.0.take_back(&work),
        }
        level -= 1;
    }
}

/// Whether a request whose work is reserved is admitted at its level: because it will be done in time, or because it is
/// admitted on trial, to learn how long such requests take.
fn admit_at_level(
    (unfinished, workers): (&UnfinishedWork, Workers),
    (estimates, terms): (&Estimates, &DeadlineTerms),
    (work, own): (&Work, OwnTime),
    candidate: &Candidate,
) -> Result<(), WouldBeLate> {
    let Candidate { features, level, lowest, exempt, .. } = *candidate;
    let retry_after = match will_be_in_time((unfinished, workers), (estimates, terms), (work, level), own) {
        Err(retry_after) if !exempt => retry_after,
        _ => return Ok(()),
    };
    if level <= lowest && unfinished.is_invited(work, retry_after.is_some()) {
        return Ok(());
    }
    if retry_after.is_none() {
        // While a lighter level is left to try, the request may still enter an idle server at that level.
        let to_spare =
            level <= lowest && workers.idle && unfinished.used_below(PROBES_BELOW, &workers) >= 1.0;
        if estimates.is_invited(features, level, to_spare) {
            return Ok(());
        }
        estimates.refuse_too_long(features, level);
    }
    Err(WouldBeLate { retry_after })
}

/// Counts the work of a request that is refused at all levels: by it the loops keep room, and admit some on trial.
fn count_refused(unfinished: &UnfinishedWork, (work, own): (&Work, OwnTime), late: &WouldBeLate) {
    let mean_us = work.cost.mean_us.into();
    if late.retry_after.is_some() {
        unfinished.lateness(work).refuse(mean_us);
    } else if own.alone != Alone::Likely {
        // If the request is likely to be in time alone, the rule had no room for it, and it still counts as requested.
        unfinished.rule.refuse_too_long(work.slot.into(), mean_us);
    }
    unfinished.headroom(work).refuse(mean_us);
}

/// Whether a request whose work is reserved will be done in time; if not, how long until it might be, if ever.
///
/// Each request is judged as if it took as long as the costliest one of its rank, as far as there is headroom
/// (`headroom.rs`).
fn will_be_in_time(
    (unfinished, workers): (&UnfinishedWork, Workers),
    (estimates, terms): (&Estimates, &DeadlineTerms),
    (work, level): (&Work, u8),
    own: OwnTime,
) -> Result<(), Option<Duration>> {
    let Some(deadline) = terms.deadline else { return Ok(()) };
    let deadline_us = deadline.as_nanos() as f64 / 1e3;
    let needs = own.needs(work.cost.mean_us.into());
    match own.alone {
        Alone::Likely => {}
        // Where its work takes the place of no other request of its priority, an even chance is enough.
        Alone::Even if unfinished.would_idle(work, EVEN_BELOW, &workers) => {
            estimates.note_came(work.features, level, terms);
            if workers.idle {
                return Ok(());
            }
        }
        // While the number of workers is searched for, a request that waits in the server for a worker seems to take long.
        Alone::Even | Alone::Late if !workers.known && unfinished.would_idle(work, EVEN_BELOW, &workers) => {
            return Ok(());
        }
        Alone::Even | Alone::Late => return Err(None),
    }
    let costliest = estimates.costliest((work.features, level), needs, terms);
    if let Some(decided) = unfinished.rule.admits(work.slot.into(), work.cost.mean_us.into(), &workers) {
        return decided;
    }
    if workers.idle {
        return Ok(());
    }
    let most_us = most_us(deadline_us, workers.all);
    let promised = AcceptedLateness::promised(terms);
    let accepted = unfinished.lateness(work).accepted(promised);
    // If more lateness is accepted because lower ranks are in the way, the margin and the kept room shrink.
    let eased = accepted.deviations.max(0.0) / promised.deviations.max(f64::MIN_POSITIVE);
    let part = if accepted.chance > promised.chance { eased.min(1.0) } else { 1.0 };
    let kept = unfinished.headroom(work).kept(costliest, most_us);
    let mean = needs.mean.max(part * kept.mean);
    // The margin is capped at the headroom; otherwise a request that varies much would enter only an empty queue.
    let own_deviation = f64::from(work.cost.deviation_us);
    let margin = (part * needs.margin).min((most_us - mean).max(own_deviation)).max(part * kept.margin);
    let wait = unfinished.wait(work, &workers);
    // A request must end by its deadline, and before the requests that it overtakes would be late.
    let due_us = deadline_us.min(wait.slack_of_passed);
    let over = wait.ahead + mean + margin_of_both(&wait, margin, accepted.deviations) - due_us;
    let short = if terms.prefers_delay { wait.expected() - SHORT_WAIT * deadline_us } else { over };
    let most = deadline_us - mean - own_deviation;
    let too_late = wait.outlasts(most).max(wait.held) > accepted.chance;
    let overtaken = if too_late { wait.expected() } else { over };
    let over = over.max(short).max(overtaken);
    if over <= 0.0 { Ok(()) } else { Err(Some(Duration::from_micros((over as u64).saturating_add(1)))) }
}

/// What a request needs beyond its expected wait and its own mean, so that it is in time with the chance for which `z` is the
/// quantile of the normal distribution. `margin` is what its own service needs.
fn margin_of_both(wait: &Wait, margin: f64, z: f64) -> f64 {
    let squared = z * z;
    let variance = wait.variance + WAIT_ERROR * WAIT_ERROR * wait.ahead * wait.ahead;
    let spread = squared * variance + margin * margin;
    sqrt(spread) + (squared - 1.0) / 6.0 * wait.third * squared / spread.max(1.0)
}
