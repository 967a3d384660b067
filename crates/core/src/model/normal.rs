//! Quantiles of the standard normal distribution.

use core::f64::consts::FRAC_1_SQRT_2;
use libm::erfc;

/// Less than a part in 10^15 of the distribution lies beyond this many deviations.
const FARTHEST: f64 = 8.0;
/// Each halving of the interval gives one binary digit.
const HALVINGS: u32 = 50;

/// The number of deviations above the mean below which `part` of a normal distribution lies.
pub(crate) fn normal_quantile(part: f64) -> f64 {
    let (mut low, mut high) = (-FARTHEST, FARTHEST);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        let beyond = 0.5 * erfc(middle * FRAC_1_SQRT_2);
        if beyond > 1.0 - part { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (part, deviations) in [(0.5, 0.0), (0.9, 1.281_552), (0.99, 2.326_348), (0.999, 3.090_232)] {
            assert!((normal_quantile(part) - deviations).abs() < 1e-6, "{part}: {}", normal_quantile(part));
        }
    }
}
