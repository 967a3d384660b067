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

/// What a plant carries without rejecting a request, in units of its capacity.
#[derive(Clone, Copy, Debug)]
pub struct Carries {
    /// The load that its workers carry.
    pub(crate) capacity: f64,
    /// What more may be chance, as factors: of the load followed slowly, and of a period's load.
    chance: [f64; 2],
    /// What its queue takes up, and what it may hold after a pause, in periods of work.
    queue: f64,
    tolerated_backlog: f64,
    /// Whether a rate or a cost stepped in this period.
    pub(crate) stepped: bool,
}

impl Carries {
    /// `None` where the load line is held whatever comes.
    pub(super) fn of(seen: &Observation<'_>, bias: f64, stepped: bool) -> Option<Self> {
        let workers = if seen.demand.backlog(1.0) <= LITTLE_WAITS { seen.possible_workers } else { 1.0 };
        let error = (seen.load_error - KNOWN_WELL).max(0.0);
        Some(Carries {
            // A bias below zero says that the plant carries less than the model has it. Workers that may be there count as
            // long as little waits.
            capacity: workers * seen.capacity? + bias.min(0.0),
            chance: CHANCE.map(|errors| 1.0 + (errors * error).min(MOST_CHANCE)),
            queue: TOLERATED_BACKLOG.max(seen.service_periods),
            tolerated_backlog: seen.tolerated_backlog,
            stepped,
        })
    }

    /// Whether this part of the plant carries a load, and its queue takes up what is above the mean.
    pub(crate) fn carries(&self, part: f64, sustained: SustainedLoad, arriving: f64, backlog: f64) -> bool {
        let capacity = part * self.capacity;
        let [lasts, comes] = self.chance;
        let left_by_a_pause =
            arriving <= capacity.min(part) * comes && backlog <= part * self.tolerated_backlog;
        let is_taken_up = arriving <= capacity + part * self.queue - backlog;
        sustained.0 <= capacity * lasts && (is_taken_up || left_by_a_pause)
    }
}

#[cfg(test)]
impl Carries {
    /// The whole capacity, whose queue takes up so much.
    pub(crate) const fn all(queue: f64) -> Self {
        Carries { capacity: 1.0, chance: [1.0; 2], queue, tolerated_backlog: 0.0, stepped: false }
    }
}

/// The arriving load at the lowest level, followed slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SustainedLoad(f64);

impl SustainedLoad {
    /// Follows the load: slowly, and at once when it steps far above the capacity and stays there.
    pub(crate) fn follow(&mut self, arriving: f64, capacity: f64, stepped: bool) {
        let steps = stepped && arriving > FAR_ABOVE * capacity;
        self.0 += (arriving - self.0) * if steps { 1.0 } else { FOLLOWS };
    }
}

/// The arriving load of a plant.
#[derive(Clone, Debug, Default)]
pub(super) struct CarriedLoad {
    pub(super) sustained: SustainedLoad,
    stepped: bool,
    was_unconfirmed: bool,
}

impl CarriedLoad {
    pub(super) fn follow(&mut self, seen: &Observation<'_>) {
        let was_unconfirmed = core::mem::replace(&mut self.was_unconfirmed, seen.unconfirmed);
        self.stepped = !seen.unconfirmed && (!seen.steady || was_unconfirmed);
        if !seen.unconfirmed {
            let capacity = seen.capacity.unwrap_or(seen.set_point);
            self.sustained.follow(seen.demand.offered(1.0, 0.0), capacity, self.stepped);
        }
    }

    pub(super) fn what_is_carried(&self, seen: &Observation<'_>, bias: f64) -> Option<Carries> {
        Carries::of(seen, bias, self.stepped)
    }

    /// Whether the plant carries the load.
    pub(super) fn is_carried(&self, seen: &Observation<'_>, carries: &Carries) -> bool {
        carries.carries(1.0, self.sustained, seen.demand.offered(1.0, 0.0), seen.demand.backlog(1.0))
    }

    /// No request comes.
    pub(super) fn idle(&mut self) {
        self.sustained = SustainedLoad::default();
    }
}
