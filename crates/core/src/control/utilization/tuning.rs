//! Gains of a PI controller by gain margin.
//!
//! UC 4.4 takes the plant as `p e^{-sT/2}` and the controller's phase as -pi/6. With eq. 7 and 8 the frequency of
//! oscillation is `w = 5 pi / (3 T)`, and
//!
//! `K_i = w tan(pi/6) = 5 pi / (3 sqrt(3) T)`, `K_p = cos(pi/6) / (G_m p) = sqrt(3) / (2 G_m p)`.
//!
//! In a sampled loop, hold and averaging add up to one whole period of delay, `y_{k+1} = p m_k`. The true margin is 0.46 of the
//! specified one: 1.84 at G_m = 4. The tests compute the true margin for any gains; the gains of the default law have a true
//! margin of at least 3.

use libm::sqrt;

/// A PI controller in velocity form: `m += (proportional (e_k - e_{k-1}) + integral e_k)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gains {
    /// K_p [m per utilization].
    pub proportional: f64,
    /// K_p K_i T: what one period's error adds [m per utilization].
    pub integral: f64,
}

/// The gains of UC 4.4 as printed, for process gain `p` (dU/dm) and gain margin `gain_margin`.
pub(crate) fn as_printed(p: f64, gain_margin: f64) -> Gains {
    let proportional = sqrt(3.0) / (2.0 * gain_margin * p);
    let integral_rate_times_period = 5.0 * core::f64::consts::PI / (3.0 * sqrt(3.0));
    Gains { proportional, integral: proportional * integral_rate_times_period }
}

#[cfg(test)]
pub(in crate::control) mod tests {
    use super::*;
    use libm::{cos, fabs, sin};

    /// The true gain margin of these gains around `y_{k+1} = p m_k`: by how much the loop's gain may grow before it
    /// oscillates. The open loop is `p (K_p (z - 1) + K_i z) / (z (z - 1))`; the margin is 1 / |L| where L is negative.
    pub(in crate::control) fn sampled_gain_margin(gains: Gains, p: f64) -> f64 {
        // Bisect the imaginary part of L(e^{jw}) for the last crossing of the negative real axis in (0, pi].
        let open_loop = |w: f64| {
            let (zr, zi) = (cos(w), sin(w));
            let numerator = (
                gains.proportional * (zr - 1.0) + gains.integral * zr,
                (gains.proportional + gains.integral) * zi,
            );
            // z (z - 1) = z^2 - z
            let denominator = (zr * zr - zi * zi - zr, 2.0 * zr * zi - zi);
            let scale = p / (denominator.0 * denominator.0 + denominator.1 * denominator.1);
            (
                scale * (numerator.0 * denominator.0 + numerator.1 * denominator.1),
                scale * (numerator.1 * denominator.0 - numerator.0 * denominator.1),
            )
        };
        // At w = pi both parts are real: L = -p (2 K_p + K_i) / 2.
        let mut largest = fabs(p * (2.0 * gains.proportional + gains.integral) / 2.0);
        let steps = 20_000;
        let mut last = open_loop(core::f64::consts::PI / f64::from(steps));
        for step in 2..steps {
            let here = open_loop(core::f64::consts::PI * f64::from(step) / f64::from(steps));
            if last.1 * here.1 < 0.0 && here.0 < 0.0 {
                largest = largest.max(-here.0);
            }
            last = here;
        }
        1.0 / largest
    }

    #[test]
    fn the_papers_constants_satisfy_its_equations() {
        // Eq. 6: p K_p |1 + K_i/jw| = 1/G at w = 5 pi / (3 T), with T = 1.
        let (p, margin) = (0.7, 4.0);
        let gains = as_printed(p, margin);
        let ki_over_w = gains.integral / gains.proportional / (5.0 * core::f64::consts::PI / 3.0);
        assert!(fabs(p * gains.proportional * sqrt(1.0 + ki_over_w * ki_over_w) - 1.0 / margin) < 1e-12);
        assert!(fabs(ki_over_w - 1.0 / sqrt(3.0)) < 1e-12, "eq. 8: the controller's phase is -pi/6");
    }

    #[test]
    fn sampled_the_margin_is_less_than_half_of_what_was_asked_for() {
        let margin = sampled_gain_margin(as_printed(1.0, 4.0), 1.0);
        assert!((1.82..1.86).contains(&margin), "true margin {margin} at G_m = 4");
    }

    #[test]
    fn a_pure_integrator_oscillates_at_gain_two() {
        let gains = Gains { proportional: 0.0, integral: 0.5 };
        assert!((sampled_gain_margin(gains, 1.0) - 4.0).abs() < 0.01);
    }
}
