//! The set-point reduction: what a class asks of the utilization loop where all workers do not keep its delay.
//!
//! If a class gets fewer workers than it asks for, or all of them, and is still late, the set point of its plant is lowered
//! until the class is in time. The reduction is an integral of the relative error, slower than the window and slower than the
//! levels that follow the set point. It leaves room for the work of the class, and for all requests of classes that do not rank
//! below it, or those would be degraded and rejected for its sake. While some workers are left to ask for, no other class is in
//! the way, and the reduction fades.

/// What an error of 1 adds over a window, or over the time in which the levels follow if that is longer.
const GAIN: f64 = 1.0;
const FOLLOWED_SECONDS: f64 = 5.0;
/// What fades over that time while no other class is in the way. With a part `MUCH_IDLE` of the workers left, as much fades
/// as an error of 1 adds.
const FADE: f64 = 0.02;
const MUCH_IDLE: f64 = 0.4;
/// The set point leaves room for this multiple of the work of the class and of the classes that do not rank below it.
const SPARE: f64 = 1.05;

/// The state of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetPointReduction {
    /// The part by which the set point is reduced.
    pub(super) value: f64,
    /// The share of the workers that the set point leaves room for, smoothed as slowly as the reduction.
    taken: f64,
}

/// What the reduction observes when the window of a class is renewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassState {
    /// Departures since the last time.
    pub(super) fresh: f64,
    /// N: departures of the window.
    pub(super) window: f64,
    /// Departures per second.
    pub(super) rate: f64,
    /// The relative error of the delay, positive where it is missed.
    pub(super) error: f64,
    /// The part of the workers that is left to ask for; `None` if the class has all that there are.
    pub(super) idle: Option<f64>,
    /// Whether a lower class that yields would help.
    pub(super) others_can_yield: bool,
    /// The share of the workers that the work of this class takes, and that all requests of those not below it would take.
    pub(super) taken: f64,
    /// U*, as promised.
    pub(super) set_point: f64,
}

impl SetPointReduction {
    pub(super) fn step(&mut self, seen: &ClassState) {
        let followed = seen.fresh / (FOLLOWED_SECONDS * seen.rate);
        let windows = (seen.fresh / seen.window).min(followed);
        self.taken += if self.taken > 0.0 { windows * (seen.taken - self.taken) } else { seen.taken };
        let error = seen.error.clamp(-1.0, 1.0);
        let in_the_way = seen.idle.is_none() && seen.others_can_yield;
        let added = GAIN * if in_the_way { error } else { error.min(0.0) };
        let faded = match seen.idle {
            Some(idle) if idle > MUCH_IDLE => GAIN,
            _ if in_the_way => 0.0,
            _ => FADE,
        };
        let most = (1.0 - SPARE * self.taken / seen.set_point).max(0.0);
        self.value = (self.value + windows * added - followed * faded).clamp(0.0, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reduction after `seconds` at 200/s, for a class that needs half of the workers, has the part `idle` left to ask
    /// for, and misses its delay by `error`.
    fn after(one: &mut SetPointReduction, idle: Option<f64>, error: f64, seconds: u32, others: bool) -> f64 {
        let seen = ClassState {
            fresh: 10.0,
            window: 1000.0,
            rate: 200.0,
            error,
            idle,
            others_can_yield: others,
            taken: 0.56 / SPARE,
            set_point: 0.8,
        };
        (0..20 * seconds).for_each(|_| one.step(&seen));
        one.value
    }

    #[test]
    fn a_class_that_is_late_with_all_workers_lowers_the_set_point_until_it_is_in_time() {
        let mut one = SetPointReduction::default();
        let slowly = after(&mut one, None, 0.1, 5, true);
        assert!((0.05..0.15).contains(&slowly), "a tenth late for a window: {slowly}");
        assert_eq!(after(&mut one, None, 0.0, 60, true), slowly, "in time");
        let most = after(&mut one, None, 2.0, 60, true);
        assert!((most - 0.3).abs() < 1e-12, "its own work has room: {most}");
        let faded = after(&mut one, Some(0.2), 0.1, 5, true);
        assert!((0.25..0.3).contains(&faded), "what is left to ask for is chance: {faded}");
        assert_eq!(after(&mut one, Some(0.5), 2.0, 5, true), 0.0, "no other class is in the way");
        assert_eq!(after(&mut one, None, 2.0, 60, false), 0.0, "no class that yields would help");
    }
}
