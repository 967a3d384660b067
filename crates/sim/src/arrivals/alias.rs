//! Draws one of many outcomes by weight, in constant time.
//!
//! The alias method (Walker 1977, in Vose's form, 1991): n columns of equal width, each shared by at most two of the
//! outcomes. One draw of 64 bits takes a column and a place in it.

use plimsoll_core::random::Random;

/// Outcomes 0..n with their shares.
pub(super) struct Alias {
    /// For each column, the share (0..=1) that belongs to the outcome of the same number, and the outcome that has the rest.
    columns: Vec<(f64, u32)>,
}

impl Alias {
    /// Weights are relative. An outcome whose weight is not above zero is never drawn; if no weight is, all are equally likely.
    pub(super) fn new(weights: &[f64]) -> Self {
        let count = weights.len() as f64;
        let weight = |weight: &f64| if weight.is_finite() { weight.max(0.0) } else { 0.0 };
        let sum: f64 = weights.iter().map(weight).sum();
        let width = |given: &f64| if sum > 0.0 { weight(given) / sum * count } else { 1.0 };
        let mut columns: Vec<(f64, u32)> =
            (0..).zip(weights).map(|(own, given)| (width(given), own)).collect();
        let (mut narrow, mut wide): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|&column| columns[column].0 < 1.0);
        while let (Some(poor), Some(&rich)) = (narrow.pop(), wide.last()) {
            columns[poor].1 = rich as u32;
            columns[rich].0 -= 1.0 - columns[poor].0;
            if columns[rich].0 < 1.0 {
                wide.pop();
                narrow.push(rich);
            }
        }
        // Columns that are left are full, but for rounding.
        for column in narrow.into_iter().chain(wide) {
            columns[column].0 = 1.0;
        }
        Alias { columns }
    }

    /// An outcome; 0 if there are none.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        if self.columns.len() <= 1 {
            return 0;
        }
        let place = random.uniform() * self.columns.len() as f64;
        let column = (place as usize).min(self.columns.len() - 1);
        let (own, other) = self.columns[column];
        if place - (column as f64) < own { column } else { other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(weights: &[f64], draws: u32) -> Vec<f64> {
        let (alias, mut random) = (Alias::new(weights), Random::new(5));
        let mut counts = vec![0.0; weights.len()];
        for _ in 0..draws {
            counts[alias.draw(&mut random)] += 1.0;
        }
        counts
    }

    #[test]
    fn shares_are_the_weights() {
        let weights = [5.0, 0.0, 1.0, 0.5, 20.0, 3.5, 70.0];
        let draws = 1_000_000;
        for (count, weight) in counts(&weights, draws).into_iter().zip(weights) {
            let expected = f64::from(draws) * weight / 100.0;
            assert!(
                (count - expected).abs() <= 4.0 * expected.sqrt(),
                "{weight}: {count}, expected {expected}"
            );
        }
    }

    #[test]
    fn odd_weights() {
        assert_eq!(Alias::new(&[]).draw(&mut Random::new(1)), 0);
        assert_eq!(counts(&[3.0], 10), [10.0]);
        assert_eq!(counts(&[f64::NAN, 1.0, -1.0, f64::INFINITY], 10), [0.0, 10.0, 0.0, 0.0]);
        assert!(counts(&[0.0, 0.0], 1000).iter().all(|count| *count > 400.0));
    }
}
