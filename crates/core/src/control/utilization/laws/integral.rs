//! An integral law: `m += K e` with `e = U* - U`, and nothing else.

use super::{Law, LawTarget, LawTerms, Observation};

/// What an error of 1 adds to m in a period.
const GAIN: f64 = 0.5;

/// The law; m is its state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntegralLaw;

impl Law for IntegralLaw {
    fn target(&mut self, seen: &Observation<'_>) -> (LawTarget, LawTerms) {
        let m = seen.level + GAIN * (seen.set_point - seen.measured);
        (LawTarget::Level(m.clamp(0.0, f64::from(seen.demand.top))), LawTerms::default())
    }

    fn idle(&mut self, _periods: u32, _set_point: f64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Demand;

    #[test]
    fn m_falls_while_utilization_is_above_the_set_point() {
        let demand = Demand::arriving(&[0.0, 1.7]);
        let seen = Observation {
            set_point: 0.58,
            measured: 1.0,
            served: 1.0,
            overridden: false,
            steady: true,
            level: 1.0,
            demand: &demand,
            wait_periods: 10.0,
            service_periods: 0.01,
            unconfirmed: false,
            ordinary_backlog: 0.0,
        };
        let (LawTarget::Level(m), _) = IntegralLaw.target(&seen) else { panic!("the law sets m") };
        assert!((m - 0.79).abs() < 1e-12, "{m}");
    }
}
