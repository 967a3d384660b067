//! What the loops of promised delays (QM) and ratios (PR) share: both run on departures.
//!
//! A loop runs about as often as its fastest class has [`UPDATE`] departures. A class with a delay is updated after that number
//! of its own departures, over the window of its promise; a class with a ratio after any departure, over its last [`WINDOW`].

use crate::control::Due;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::monitor::Monitors;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;

/// N: departures in the window of a class with a ratio.
pub(crate) const WINDOW: u64 = 1000;
/// n: departures between updates.
pub(crate) const UPDATE: u64 = 10;
/// The least time between two steps of a loop.
const CLOSEST: Duration = Duration::from_millis(5);

/// The observations that both loops take.
#[derive(Clone, Copy)]
pub(crate) struct DepartureInput<'a> {
    pub(crate) lanes: &'a [Arc<LaneCounters>],
    pub(crate) monitors: &'a Monitors,
    /// s, by plant: its workers, or its places if more requests may be in service than it has workers. A service time is the
    /// time for which a request has one of these.
    pub(crate) workers: &'a dyn Fn(usize) -> u32,
    /// What a request of a class takes of a worker at full quality (s), as far as it is known.
    pub(crate) service_seconds: &'a dyn Fn(usize) -> f64,
    /// U*, by plant, as promised.
    pub(crate) set_point: &'a dyn Fn(usize) -> f64,
    /// Whether requests of other classes wait, by plant and class.
    pub(crate) contended: &'a dyn Fn(usize, usize) -> bool,
}

/// When a loop is due after a step at `now`: when the fastest of its classes, by their rates, has had [`UPDATE`] departures.
pub(crate) fn next_due(now: Instant, rates: impl Iterator<Item = f64>) -> Due {
    let fastest = rates.fold(0.0, f64::max).max(1.0);
    Due::At(now + Duration::from_secs_f64(UPDATE as f64 / fastest).max(CLOSEST))
}

/// When a loop is due whose promises are new: at once, if it has any classes.
pub(crate) fn first_due(has_classes: bool) -> Due {
    if has_classes { Due::At(Instant::ZERO) } else { Due::Never }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_class_sets_the_pace_within_bounds() {
        let now = Instant::from_nanos(1_000_000_000);
        let after = |rates: &[f64]| next_due(now, rates.iter().copied()).instant().since(now);
        assert_eq!(after(&[20.0, 100.0]), Duration::from_millis(100));
        assert_eq!(after(&[50_000.0]), CLOSEST);
        assert_eq!(
            after(&[0.0]),
            Duration::from_secs(10),
            "a loop whose classes have no traffic is due all the same"
        );
        assert_eq!((first_due(false), first_due(true).instant()), (Due::Never, Instant::ZERO));
    }
}
