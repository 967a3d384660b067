//! Draws of a [`Law`]: values with mean 1, so that a mean can be multiplied by them.
//!
//! All laws are drawn by inversion of the distribution function, except the lognormal, which uses Box and Muller's transform
//! (1958). The bounded Pareto on (L, r L) with shape alpha has `P(X > x) = ((L/x)^alpha - r^-alpha) / (1 - r^-alpha)` and the
//! moments `E X^k = L^k alpha / (1 - r^-alpha) (r^(k - alpha) - 1) / (k - alpha)` (Harchol-Balter, "Performance Modeling and
//! Design of Computer Systems", ch. 20); L follows from a mean of 1. The moments stay exact near k = alpha, where the last
//! factor becomes ln r.

use crate::workload::Law;
use plimsoll_core::random::Random;
use std::f64::consts::TAU;
use std::sync::Arc;

/// A [`Law`] with its constants worked out.
#[derive(Clone, Debug)]
pub(crate) struct Distribution(Shape);

#[derive(Clone, Debug)]
enum Shape {
    Deterministic,
    Exponential,
    /// L; 1 - r^-alpha; and -1 / alpha.
    BoundedPareto {
        lowest: f64,
        span: f64,
        exponent: f64,
    },
    /// Standard deviation of the logarithm.
    Lognormal {
        sigma: f64,
    },
    /// The values are multiplied by `scale`.
    Empirical {
        values: Arc<[f64]>,
        scale: f64,
    },
}

impl Distribution {
    /// A distribution of this shape.
    pub(crate) fn new(law: &Law) -> Self {
        Distribution(match law {
            Law::Deterministic => Shape::Deterministic,
            Law::Exponential => Shape::Exponential,
            Law::BoundedPareto { shape, ratio } => bounded_pareto(*shape, *ratio),
            Law::Lognormal { variation } => {
                Shape::Lognormal { sigma: (variation * variation).ln_1p().sqrt() }
            }
            Law::Empirical(values) => empirical(values),
        })
    }

    /// A value.
    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        match &self.0 {
            Shape::Deterministic => 1.0,
            Shape::Exponential => exponential(random),
            Shape::BoundedPareto { lowest, span, exponent } => {
                lowest * (1.0 - random.uniform() * span).powf(*exponent)
            }
            Shape::Lognormal { sigma } => (sigma * normal(random) - 0.5 * sigma * sigma).exp(),
            Shape::Empirical { values, scale } => values[random.below(values.len() as u64) as usize] * scale,
        }
    }
}

fn bounded_pareto(alpha: f64, ratio: f64) -> Shape {
    let span = -(-alpha * ratio.ln()).exp_m1();
    Shape::BoundedPareto { lowest: 1.0 / moment(1.0, alpha, ratio), span, exponent: -1.0 / alpha }
}

/// E X^k of the bounded Pareto for L = 1.
fn moment(k: f64, alpha: f64, ratio: f64) -> f64 {
    let (log_ratio, order) = (ratio.ln(), k - alpha);
    let integral = if order.abs() < 1e-12 { log_ratio } else { (order * log_ratio).exp_m1() / order };
    alpha / -(-alpha * log_ratio).exp_m1() * integral
}

fn empirical(values: &Arc<[f64]>) -> Shape {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    // Without a value above zero there is nothing to scale, so every draw is the mean.
    if !(mean > 0.0 && mean.is_finite()) {
        return Shape::Deterministic;
    }
    Shape::Empirical { values: Arc::clone(values), scale: 1.0 / mean }
}

/// Exponential with mean 1. Like [`Random::exponential`], but with the standard library's logarithm, which is three times as
/// fast; nearly every arrival and service needs one.
pub(crate) fn exponential(random: &mut Random) -> f64 {
    -(1.0 - random.uniform()).ln()
}

/// Standard normal. The transform's second value is thrown away, so that a draw keeps no state.
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.uniform()).ln()).sqrt();
    radius * (TAU * random.uniform()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The squared coefficient of variation, c^2: variance over squared mean.
    fn variation(law: &Law) -> f64 {
        match law {
            Law::Deterministic => 0.0,
            Law::Exponential => 1.0,
            Law::BoundedPareto { shape, ratio } => {
                moment(2.0, *shape, *ratio) / moment(1.0, *shape, *ratio).powi(2) - 1.0
            }
            Law::Lognormal { variation } => variation * variation,
            Law::Empirical(values) => {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>() / values.len() as f64
            }
        }
    }

    /// Mean and squared coefficient of variation of many draws, with the standard errors of both.
    fn measured(law: &Law, draws: u32) -> [(f64, f64); 2] {
        let (distribution, mut random) = (Distribution::new(law), Random::new(7));
        let values: Vec<f64> = (0..draws).map(|_| distribution.draw(&mut random)).collect();
        assert!(values.iter().all(|value| *value >= 0.0 && value.is_finite()), "{law:?}");
        let moments = |of: &dyn Fn(f64) -> f64| {
            let mean = values.iter().map(|x| of(*x)).sum::<f64>() / f64::from(draws);
            let variance = values.iter().map(|x| (of(*x) - mean).powi(2)).sum::<f64>() / f64::from(draws);
            (mean, (variance / f64::from(draws)).sqrt())
        };
        // The mean is known to be 1, so that the second moment about it is a mean too.
        [moments(&|x| x), moments(&|x| (x - 1.0).powi(2))]
    }

    #[test]
    fn means_are_one_and_variations_as_computed() {
        let laws = [
            Law::Deterministic,
            Law::Exponential,
            Law::BoundedPareto { shape: 1.5, ratio: 100.0 },
            Law::BoundedPareto { shape: 1.0, ratio: 50.0 },
            Law::BoundedPareto { shape: 2.0, ratio: 30.0 },
            Law::BoundedPareto { shape: 0.3, ratio: 1000.0 },
            Law::BoundedPareto { shape: 7.0, ratio: 1.5 },
            Law::Lognormal { variation: 0.5 },
            Law::Lognormal { variation: 1.5 },
            Law::Empirical(Arc::from([0.0, 1.0, 2.0, 17.0])),
        ];
        for law in laws {
            let [mean, spread] = measured(&law, 400_000);
            let expected = variation(&law);
            assert!((mean.0 - 1.0).abs() <= 4.0 * mean.1 + 1e-12, "{law:?}: mean {mean:?}");
            assert!(
                (spread.0 - expected).abs() <= 4.0 * spread.1 + 1e-9,
                "{law:?}: variation {spread:?}, expected {expected}"
            );
            // The bound is meaningful only if the standard error is small beside the value.
            assert!(spread.1 <= 0.05 * expected + 1e-9, "{law:?}: {spread:?}");
        }
    }

    #[test]
    fn known_variations() {
        // At alpha = 1 the mean is a logarithm: E X = L r ln r / (r - 1), E X^2 = L^2 r, so c^2 = (r - 1)^2 / (r ln(r)^2) - 1.
        let ratio: f64 = 50.0;
        let expected = (ratio - 1.0).powi(2) / (ratio * ratio.ln().powi(2)) - 1.0;
        assert!((variation(&Law::BoundedPareto { shape: 1.0, ratio }) - expected).abs() < 1e-9);
        assert!((variation(&Law::Lognormal { variation: 1.5 }) - 2.25).abs() < 1e-12);
        // 0 and 2, evenly: c = 1.
        assert!((variation(&Law::Empirical(Arc::from([0.0, 8.0]))) - 1.0).abs() < 1e-12);
        // An unbounded Pareto of shape 3 has c^2 = 1 / (alpha (alpha - 2)) = 1/3.
        let nearly_unbounded = variation(&Law::BoundedPareto { shape: 3.0, ratio: 1e9 });
        assert!((nearly_unbounded - 1.0 / 3.0).abs() < 1e-6, "{nearly_unbounded}");
    }

    #[test]
    fn pareto_keeps_its_bounds() {
        let (alpha, ratio) = (1.1, 1000.0);
        let distribution = Distribution::new(&Law::BoundedPareto { shape: alpha, ratio });
        let mut random = Random::new(3);
        let draws: Vec<f64> = (0..200_000).map(|_| distribution.draw(&mut random)).collect();
        let (least, most) = draws.iter().fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
        assert!(most / least <= ratio * (1.0 + 1e-9) && most / least > 0.5 * ratio, "{least} {most}");
        // P(X > 10 L), by the formula above.
        let tail = (10_f64.powf(-alpha) - ratio.powf(-alpha)) / (1.0 - ratio.powf(-alpha));
        let found = draws.iter().filter(|x| **x > 10.0 * least).count() as f64 / draws.len() as f64;
        assert!((found - tail).abs() < 0.003, "{found} {tail}");
    }

    #[test]
    fn nothing_to_scale_is_the_mean() {
        let mut random = Random::new(1);
        for values in [&[][..], &[0.0, 0.0][..]] {
            assert_eq!(Distribution::new(&Law::Empirical(Arc::from(values))).draw(&mut random), 1.0);
        }
    }
}
