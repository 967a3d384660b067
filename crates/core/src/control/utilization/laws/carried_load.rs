//! Whether a plant carries the arriving load at its lowest level, so that no request needs to be rejected.
//!
//! These rules stand beside the formula of the default law, which would hold U* by rejection whatever the load is.
//!
//! - A load that the plant carries is not rejected for chance: while the arriving load at the lowest level is below the
//!   capacity, followed slowly, the queue takes up what one period brings above it. Beyond that U* is held by rejection.
//!   An excess that the standard error of the costs may make is chance too: where work varies much, a few requests a second
//!   tell the load to a quarter.
//! - What a pause of the plant has left waits, where no class was promised a time: while the plant carries what arrives at
//!   the lowest level, and the backlog takes at most half of the time that a request may wait, no request is rejected.

use super::Observation;

/// The backlog that the queue takes up before a request is rejected, in periods of work.
const TOLERATED_BACKLOG: f64 = 0.5;
/// The backlog, in periods of work, up to which nothing says that the plant has fewer workers than it may have.
const LITTLE_WAITS: f64 = 1.0;
/// An excess of so many standard errors of the costs is chance: of the load followed slowly, which has less than half of a
/// period's error, and of a period's load.
const CHANCE: [f64; 2] = [1.0, 3.0];
/// A standard error of a twentieth, as a few hundred requests leave, is none: an overload would wait for it.
const KNOWN_WELL: f64 = 0.05;
/// The most that counts as chance, as a part of the load.
const MOST_CHANCE: f64 = 1.0;
/// A step to so many times the capacity is no chance.
const FAR_ABOVE: f64 = 1.25;
/// What one period adds to the slowly followed load.
const FOLLOWS: f64 = 0.1;

/// The arriving load at the lowest level, followed slowly.
#[derive(Clone, Debug, Default)]
pub(super) struct CarriedLoad {
    pub(super) sustained: f64,
    was_unconfirmed: bool,
}

impl CarriedLoad {
    /// Follows the load: slowly, and at once when it steps far above the capacity and stays there.
    pub(super) fn follow(&mut self, seen: &Observation<'_>) {
        let was_unconfirmed = core::mem::replace(&mut self.was_unconfirmed, seen.unconfirmed);
        if seen.unconfirmed {
            return;
        }
        let arriving = seen.demand.offered(1.0, 0.0);
        let steps = (!seen.steady || was_unconfirmed)
            && arriving > FAR_ABOVE * seen.capacity.unwrap_or(seen.set_point);
        self.sustained += (arriving - self.sustained) * if steps { 1.0 } else { FOLLOWS };
    }

    /// Whether the plant carries the load, and its queue takes up what is above the mean. A bias below zero says that the
    /// plant carries less than the model has it. Workers that may be there count as long as little waits.
    pub(super) fn is_carried(&self, seen: &Observation<'_>, bias: f64) -> bool {
        let Some(capacity) = seen.capacity else { return false };
        let (arriving, backlog) = (seen.demand.offered(1.0, 0.0), seen.demand.backlog(1.0));
        let workers = if backlog <= LITTLE_WAITS { seen.possible_workers } else { 1.0 };
        let capacity = workers * capacity + bias.min(0.0);
        let queue = TOLERATED_BACKLOG.max(seen.service_periods) - backlog;
        let error = (seen.load_error - KNOWN_WELL).max(0.0);
        let [lasts, comes] = CHANCE.map(|errors| 1.0 + (errors * error).min(MOST_CHANCE));
        let left_by_a_pause = arriving <= capacity.min(1.0) * comes && backlog <= seen.tolerated_backlog;
        self.sustained <= capacity * lasts && (arriving <= capacity + queue || left_by_a_pause)
    }

    /// No request comes.
    pub(super) fn idle(&mut self) {
        self.sustained = 0.0;
    }
}
