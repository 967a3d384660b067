//! The PI law of UC 4.4 with its constants as printed, for comparison.
//!
//! Velocity form, gain-scheduled by p: `m += K_p (e_k - e_{k-1}) + K_p K_i T e_k`, with `e = U* - U` and U the work of the
//! started and rejected requests, at the cost of each level, clipped at 1 as the measured utilization of any server is; of two
//! resources (UC eq. 9), the larger load. Between rejection and level 1 the process gain is eq. 3, `p = (U* - c R) / f`
//! ("utilization in (3) can be substituted by its set point value"); between higher levels that expression makes a limit cycle,
//! so there p is the segment's own `R (C_{I+1} - C_I)`.
//!
//! The law is not the default for three reasons: sampled, it has 0.46 of the specified gain margin (`tuning.rs`); a measured U
//! saturates, so a large overload takes the integrator many periods; and the law does not see the backlog.

use super::{Law, LawTarget, Observation};
use crate::control::tuning::as_printed;

/// State of the law.
#[derive(Clone, Debug)]
pub(crate) struct PaperPi {
    last_error: f64,
    gain_margin: f64,
}

/// The least process gain. Where rejections take all of U*, and at R -> 0, the process gain vanishes, and the controller's
/// gains, which divide by it, would grow without bound.
const SMALLEST_GAIN: f64 = 0.05;
/// The least f. At f -> 0 the process gain grows without bound and the controller's gains vanish, so that m would stick at 0.
const SMALLEST_FRACTION: f64 = 0.001;

impl PaperPi {
    /// The law with design parameter `gain_margin`.
    pub(crate) fn new(gain_margin: f64) -> Self {
        PaperPi { last_error: 0.0, gain_margin }
    }

    fn process_gain(seen: &Observation<'_>) -> f64 {
        let p = if seen.level <= 1.0 {
            (seen.set_point - seen.demand.offered(0.0, 0.0)) / seen.level.max(SMALLEST_FRACTION)
        } else {
            seen.demand.gain(seen.level)
        };
        p.max(SMALLEST_GAIN)
    }
}

impl Law for PaperPi {
    fn target(&mut self, seen: &Observation<'_>) -> LawTarget {
        let gains = as_printed(Self::process_gain(seen), self.gain_margin);
        let error = seen.set_point - if seen.overridden { 1.0 } else { seen.served.min(1.0) };
        let step = gains.proportional * (error - self.last_error) + gains.integral * error;
        self.last_error = error;
        // In velocity form the clamped output is the whole state, so nothing winds up.
        let m = (seen.level + step).clamp(0.0, f64::from(seen.demand.top));
        LawTarget::Level(m)
    }

    fn idle(&mut self, _periods: u32, set_point: f64) {
        // The error of a period in which no request was served.
        self.last_error = set_point;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Demand;

    /// The utilization by period after a step of the load to `load` times the capacity, with admission only and a set point of
    /// 0.58.
    fn step_response(gain_margin: f64, load: f64) -> alloc::vec::Vec<f64> {
        let demand = Demand::arriving(&[0.0, load]);
        let mut law = PaperPi::new(gain_margin);
        let mut m = 1.0;
        let mut utilization = alloc::vec::Vec::new();
        for _ in 0..40 {
            let served = demand.offered(m, 0.0);
            utilization.push(served.min(1.0));
            let seen = Observation {
                capacity: None,
                set_point: 0.58,
                rejects_beyond: 0.58,
                measured: served.min(1.0),
                served,
                overridden: false,
                steady: true,
                level: m,
                demand: &demand,
                load_error: 0.0,
                arrivals_error: 0.0,
                wait_periods: 10.0,
                tolerated_backlog: 0.0,
                possible_workers: 1.0,
                service_periods: 0.01,
                healthy_backlog: 0.0,
                at_once: f64::INFINITY,
                in_server: 0.0,
                unconfirmed: false,
                costs_begin: false,
                waits_unseen: false,
                full_at: None,
                best_effort_waits: false,
                ordinary_backlog: 0.0,
                at_lowest: false,
                at_least: false,
            };
            let LawTarget::Level(next) = law.target(&seen) else { panic!("the law sets m") };
            m = next;
        }
        utilization
    }

    #[test]
    fn damped_to_the_set_point_as_in_fig_4_faster_for_the_smaller_margin() {
        let settled = |u: &[f64]| u.iter().rposition(|u| (u - 0.58).abs() > 0.02).map_or(0, |k| k + 1);
        let (four, ten) = (step_response(4.0, 1.7), step_response(10.0, 1.7));
        assert_eq!(four[0], 1.0, "open loop at first");
        let (four, ten) = (settled(&four), settled(&ten));
        assert!((2..=8).contains(&four) && ten > four && ten <= 20, "settled after {four} and {ten} periods");
    }

    #[test]
    fn an_overload_of_any_size_settles_at_the_set_point() {
        for (load, periods) in [(15.0, 10), (40.0, 12), (400.0, 15)] {
            let utilization = step_response(4.0, load);
            let late = &utilization[periods..];
            assert!(late.iter().all(|u| (u - 0.58).abs() < 0.02), "{late:?} at {load} times the capacity");
        }
    }
}
