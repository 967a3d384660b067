//! Whether a plant carries the arriving load at its lowest level, so that no request needs to be rejected.
//!
//! The rules here stand beside the formula of the default law, which would hold U* by rejection whatever the load is.
//!
//! - Chance alone rejects no request of a load that the plant carries: while the arriving load at the lowest level, followed
//!   slowly, is below the capacity, the queue takes up the excess of a single period. Beyond that, rejections hold U*. The
//!   followed load begins as a mean of few periods at a start, after idle times, when costs begin anew and when the load steps
//!   above the capacity. Such a mean shows an overload only if it is beyond the capacity by more than its own error. An excess
//!   that the standard error of the costs may explain is chance too: if work varies much, a few requests a second determine the
//!   load only to a quarter. Once an excess beyond the chance of arrivals has filled the queue, the load is not carried until a
//!   period has no such excess. The queue takes up half a period of work, or one service time if that is longer. If no class
//!   was promised a time and eight requests take longer still, it takes up eight requests: as many wait now and then without an
//!   overload, however long they take.
//! - If there are few connections, no request is rejected (`few_connections.rs`).
//! - The backlog that a pause of the plant has left may wait: while the plant carries the arriving load at the lowest level and
//!   the backlog takes at most half of the time that a request may wait, no request is rejected. If times were promised, and as
//!   long as they are kept, only as many requests may wait as chance leaves, which takes long before few workers and little
//!   time before many.

use super::Observation;
use super::few_connections::WorkAtOnce;
use libm::sqrt;

/// The backlog that the queue takes up before a request is rejected, in periods of work.
const TOLERATED_BACKLOG: f64 = 0.5;
/// Up to this backlog, in periods of work, nothing shows that the plant has fewer workers than it may have.
const LITTLE_WAITS: f64 = 1.0;
/// An excess within this number of standard errors of the costs counts as chance. The first number is for the load followed
/// slowly, whose error is less than half of a period's; the second is for a period's load.
const CHANCE: [f64; 2] = [1.0, 3.0];
/// The part of the costs' standard error that does not count, which a few hundred requests leave: otherwise an overload would
/// last until more requests have lowered the error.
const KNOWN_WELL: f64 = 0.05;
/// The most that counts as chance, as a part of the load.
const MOST_CHANCE: f64 = 1.0;
/// A period's excess beyond this number of standard errors of its arrivals is not chance.
const NO_CHANCE: f64 = 3.0;
/// A step to more than this multiple of the capacity is not chance.
const FAR_ABOVE: f64 = 1.25;
/// The weight of a new period in the slowly followed load, once the load has been followed for long.
const FOLLOWS: f64 = 0.1;
/// A mean of few periods is above the capacity by more than chance once the excess is beyond this number of its standard
/// errors.
const CHANCE_OF_FEW: f64 = 2.0;
/// A part of a plant that is smaller than this has the arrivals' error of this part.
const LEAST_PART: f64 = 1e-3;

/// The load that a plant carries without rejecting a request, in units of its capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarryTest {
    /// The load that the plant's workers carry.
    pub(crate) capacity: f64,
    /// The factors by which chance may lift the load above the capacity: the load followed slowly, and a period's load.
    chance: [f64; 2],
    /// The relative standard error of a period's load, by the number of its arrivals.
    arrivals_error: f64,
    /// The backlog that the queue takes up, and the backlog that it may hold after a pause, in periods of work.
    queue: f64,
    tolerated_backlog: f64,
    /// Whether there are few connections for the capacity.
    are_few: bool,
    /// Whether a rate or a cost stepped in this period. An unconfirmed rise counts once it is no longer unconfirmed.
    pub(crate) stepped: bool,
    /// Whether costs are learned anew, so that the load followed by the old costs says nothing of the present load.
    pub(crate) begins: bool,
}

impl CarryTest {
    /// `None` if the load line is held whatever load arrives.
    fn of(seen: &Observation<'_>, bias: f64, load: &CarriedLoad) -> Option<Self> {
        let workers = if seen.demand.backlog(1.0) <= LITTLE_WAITS { seen.possible_workers } else { 1.0 };
        let error = (seen.load_error - KNOWN_WELL).max(0.0);
        // A negative bias shows that the plant carries less than the model predicts. Workers that may exist count while little
        // work waits.
        let capacity = workers * seen.capacity? + bias.min(0.0);
        Some(CarryTest {
            capacity,
            chance: CHANCE.map(|errors| 1.0 + (errors * error).min(MOST_CHANCE)),
            arrivals_error: seen.arrivals_error,
            queue: TOLERATED_BACKLOG.max(seen.service_periods).max(seen.healthy_backlog) - seen.in_server,
            tolerated_backlog: seen.tolerated_backlog - seen.in_server,
            are_few: load.at_once.is_little(seen, capacity),
            stepped: load.stepped,
            begins: seen.costs_begin,
        })
    }

    /// Whether this part of the plant carries the load `arriving`, with a queue that takes up the excess of single periods.
    pub(crate) fn carries(
        &self,
        part: f64,
        sustained: &mut SustainedLoad,
        arriving: f64,
        backlog: f64,
    ) -> bool {
        let capacity = part * self.capacity;
        let [lasts, comes] = self.chance;
        let left_by_a_pause =
            arriving <= capacity.min(part) * comes && backlog <= part * self.tolerated_backlog;
        let is_taken_up = arriving <= capacity + part * self.queue - backlog;
        let error = self.arrivals_error / sqrt(part.max(LEAST_PART));
        let is_chance = arriving <= capacity * comes * (1.0 + NO_CHANCE * error);
        sustained.has_filled_the_queue = !is_chance && (sustained.has_filled_the_queue || !is_taken_up);
        let most = capacity * (lasts + sustained.errors() * error);
        let is_too_much = sustained.has_filled_the_queue || sustained.load > most;
        self.are_few || (!is_too_much && (is_taken_up || left_by_a_pause))
    }
}

#[cfg(test)]
impl CarryTest {
    /// The test for the whole capacity, with a queue that takes up this backlog.
    pub(crate) const fn all(queue: f64) -> Self {
        CarryTest {
            capacity: 1.0,
            chance: [1.0; 2],
            arrivals_error: 0.1,
            queue,
            tolerated_backlog: 0.0,
            are_few: false,
            stepped: false,
            begins: false,
        }
    }
}

/// The arriving load at the lowest level, followed slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SustainedLoad {
    load: f64,
    /// The number of periods of which `load` is the mean.
    periods: u32,
    /// Whether an excess of the load has filled the queue, and every period since had an excess.
    has_filled_the_queue: bool,
    /// The load of the last period, if it stepped above the capacity then.
    stepped_to: Option<f64>,
}

impl SustainedLoad {
    /// Follows the load slowly, with two exceptions. If the load steps far above the capacity, the new load counts at once. If
    /// the load steps above the capacity and is above it in the next period too, the mean of the periods since the step counts.
    /// The first cost that is learned is no step.
    pub(crate) fn follow(&mut self, arriving: f64, capacity: f64, stepped: bool) {
        let (is_above, is_later_step) = (arriving > capacity, stepped && self.periods > 0);
        let steps = is_later_step && arriving > FAR_ABOVE * capacity;
        let is_step = is_later_step && is_above;
        let before = core::mem::replace(&mut self.stepped_to, is_step.then_some(arriving));
        self.has_filled_the_queue &= is_above;
        self.periods = if steps { u32::MAX } else { self.periods.saturating_add(1) };
        if let Some(before) = before.filter(|_| is_above && !steps) {
            (self.periods, self.load) = (2, before);
        }
        let follows = FOLLOWS.max(1.0 / f64::from(self.periods));
        self.load += (arriving - self.load) * if steps { 1.0 } else { follows };
    }

    /// How many standard errors of one period's load count as chance in a mean of few periods.
    fn errors(&self) -> f64 {
        CHANCE_OF_FEW * sqrt((1.0 / f64::from(self.periods.max(1)) - FOLLOWS).max(0.0))
    }
}

/// The arriving load of a plant.
#[derive(Clone, Debug, Default)]
pub(super) struct CarriedLoad {
    pub(super) sustained: SustainedLoad,
    stepped: bool,
    was_unconfirmed: bool,
    at_once: WorkAtOnce,
}

impl CarriedLoad {
    pub(super) fn follow(&mut self, seen: &Observation<'_>) {
        let was_unconfirmed = core::mem::replace(&mut self.was_unconfirmed, seen.unconfirmed);
        self.at_once.follow(seen);
        self.stepped = !seen.unconfirmed && (!seen.steady || was_unconfirmed);
        if seen.costs_begin {
            self.sustained = SustainedLoad::default();
        } else if !seen.unconfirmed {
            let capacity = seen.capacity.unwrap_or(seen.set_point);
            self.sustained.follow(seen.demand.offered(1.0, 0.0), capacity, self.stepped);
        }
    }

    pub(super) fn what_is_carried(&self, seen: &Observation<'_>, bias: f64) -> Option<CarryTest> {
        CarryTest::of(seen, bias, self)
    }

    /// Whether the plant carries the load.
    pub(super) fn is_carried(&mut self, seen: &Observation<'_>, carries: &CarryTest) -> bool {
        carries.carries(1.0, &mut self.sustained, seen.demand.offered(1.0, 0.0), seen.demand.backlog(1.0))
    }

    /// Forgets the followed load, because no request arrives.
    pub(super) fn idle(&mut self) {
        self.sustained = SustainedLoad::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean load of few periods has a standard error of its own: it moves faster than a mean of many periods, and counts as
    /// less certain.
    #[test]
    fn a_mean_of_few_periods_shows_an_overload_beyond_its_own_error() {
        let carries = CarryTest::all(10.0);
        let after = |periods: usize, arriving: f64, stepped: bool| {
            let mut sustained = SustainedLoad::default();
            (0..periods).for_each(|_| sustained.follow(arriving, 1.0, stepped));
            carries.carries(1.0, &mut sustained, arriving, 0.0)
        };
        assert!(after(1, 1.15, false), "one period may be chance");
        assert!(!after(4, 1.15, false), "four periods are not");
        assert!(!after(1, 1.3, false), "a larger excess is not");
        assert!(after(40, 0.99, false) && !after(40, 1.01, false));
        // The first cost steps from nothing. A later step counts at once, and keeps its effect for long.
        let mut first = SustainedLoad::default();
        [1.4, 0.9, 0.9, 0.9].iter().for_each(|load| first.follow(*load, 1.0, true));
        assert!(carries.carries(1.0, &mut first, 0.9, 0.0));
        let mut later = SustainedLoad::default();
        [0.5, 1.4, 0.9, 0.9, 0.9].iter().for_each(|load| later.follow(*load, 1.0, true));
        assert!(!carries.carries(1.0, &mut later, 0.9, 0.0));
    }

    #[test]
    fn a_step_to_somewhat_more_than_the_capacity_is_shown_by_the_periods_since() {
        let after = |arrivals_error: f64, periods: usize| {
            let mut sustained = SustainedLoad::default();
            (0..40).for_each(|_| sustained.follow(0.3, 1.0, false));
            (0..periods).for_each(|period| sustained.follow(1.1, 1.0, period == 0));
            CarryTest { arrivals_error, ..CarryTest::all(10.0) }.carries(1.0, &mut sustained, 1.1, 0.0)
        };
        assert!(after(0.02, 1) && !after(0.02, 2), "one period may be a batch, and the next decides");
        assert!(after(0.1, 2) && !after(0.1, 5), "two periods of few arrivals may be chance");
    }

    #[test]
    fn an_excess_that_has_filled_the_queue_is_too_much_until_it_is_gone() {
        let mut sustained = SustainedLoad::default();
        let many = CarryTest { arrivals_error: 0.01, ..CarryTest::all(0.5) };
        assert!(many.carries(1.0, &mut sustained, 1.05, 0.3), "the queue takes it up");
        assert!(!many.carries(1.0, &mut sustained, 1.05, 0.5), "the queue is full");
        assert!(
            !many.carries(1.0, &mut sustained, 1.05, 0.0),
            "the queue is empty again, and the excess lasts"
        );
        assert!(many.carries(1.0, &mut sustained, 1.02, 0.0), "the excess is chance");
        assert!(many.carries(1.0, &mut sustained, 1.05, 0.0), "so another excess begins");
        // If arrivals are few, the same excess is chance.
        let few = CarryTest { arrivals_error: 0.1, ..many };
        assert!(!few.carries(1.0, &mut sustained, 1.05, 0.5), "the queue is full");
        assert!(few.carries(1.0, &mut sustained, 1.05, 0.0), "the queue takes up the next excess");
    }
}
