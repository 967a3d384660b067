//! Whether a ratio can be reached at this load without leaving work undone.
//!
//! A conservation law bounds the ratios that can be reached. While no worker is idle with requests waiting, `sum rho_i W_i` is
//! the same for every order of service that does not depend on service times, and for every set A of classes the sum over A is
//! at least its value under strict priority for A. So the targets `T_i = c delta_i` leave one c, `c = sum rho_i T_i / sum rho_i
//! delta_i`, and they can be reached if for every set of the first classes `c sum rho_i delta_i` is no less than under strict
//! priority. A model could check that from rates and service times, but only as exactly as it knows `1 - rho`, and only for
//! Poisson arrivals. A test of the law's own errors needs neither:
//!
//! Let `x_i` be the errors that the law integrates, per window. If the ratio can be reached, their sum stays once the weights
//! are right. If it cannot, the weights reach the end of their range and x keeps a mean d, so that the sum grows by d with
//! every window. Here the sum is bounded to +-[`SLACK`]; since a bounded sum does not grow, **what the bound cuts off has the
//! mean d**, exactly, for any noise. Noise alone is cut off on both sides and cancels. `d_i / share_i` is the part by which the
//! normalized response time of class i is off: if two classes differ by more than [`TOLERANCE`], the ratio cannot be reached.
//!
//! Invariants: an error that the weights correct in time is not counted, whatever its size; a lasting error is counted,
//! whatever its size, but a small one later. The test is not whether a weight is at its end, because chance moves weights
//! back from there, and close to the limit of feasibility the remaining error is less than the noise of one window.

use libm::fabs;

/// The bound of the sum, in windows of an error of 1. By the law's integral gain this is a weight of e^1.5, at which the order
/// of service is nearly that of strict priority.
const SLACK: f64 = 0.43;
/// Windows over which the part that is cut off is averaged.
const MEMORY: f64 = 20.0;
/// The largest relative error of a ratio that counts as reached.
const TOLERANCE: f64 = 0.05;
/// The largest error of a class that is remembered; a larger one would take long to forget.
const MOST: f64 = 2.0 * TOLERANCE;
/// If a sum comes back from its bound to this value, the weights do correct the error.
const TURNED: f64 = 0.25 * SLACK;

/// The test of one class: the error that its weight does not correct.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FeasibilityTest {
    /// The bounded sum of the errors.
    sum: f64,
    /// The part of the sum that the bound cut off, per window, over the class's share of the departures.
    cut: f64,
}

impl FeasibilityTest {
    /// Adds a step of the law's integral, for a class with this share of the departures; `fresh` is the part of a window that
    /// has passed since the last step.
    pub(crate) fn add(&mut self, step: f64, share: f64, fresh: f64) {
        let sum = self.sum + step;
        self.sum = sum.clamp(-SLACK, SLACK);
        let cut = (sum - self.sum) / (MEMORY * share.max(1e-9));
        self.cut = (self.cut * (1.0 - fresh / MEMORY).max(0.0) + cut).clamp(-MOST, MOST);
    }

    /// The part by which the class's normalized response time is off for long.
    fn lasting(&self) -> f64 {
        if fabs(self.sum) >= TURNED { self.cut } else { 0.0 }
    }
}

/// Whether two of these classes have a lasting error of their ratio.
pub(crate) fn any<'a>(classes: impl Iterator<Item = &'a FeasibilityTest>) -> bool {
    let range = classes
        .map(FeasibilityTest::lasting)
        .fold((f64::MAX, f64::MIN), |(least, most), one| (least.min(one), most.max(one)));
    range.1 - range.0 > TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Two classes with half of the departures each, whose ratio is off by `off` and by chance, over windows of 100 updates.
    fn after(classes: &mut [FeasibilityTest; 2], windows: u32, off: f64, random: &mut Random) {
        for _ in 0..100 * windows {
            let chance = 0.2 * (random.uniform() - 0.5);
            // If the ratio is off by `off`, a class with half of the departures is off the mean by half of it.
            let step = (off + chance) * 0.25 * 0.01;
            classes[0].add(step, 0.5, 0.01);
            classes[1].add(-step, 0.5, 0.01);
        }
    }

    #[test]
    fn a_lasting_error_counts_whatever_its_size_unless_it_is_within_the_tolerance() {
        for (off, windows, said) in [(0.5, 40, true), (0.1, 60, true), (0.03, 400, false), (0.0, 400, false)]
        {
            let mut classes = [FeasibilityTest::default(); 2];
            after(&mut classes, windows, off, &mut Random::new(3));
            assert_eq!(any(classes.iter()), said, "off by {off} for {windows} windows");
            let counted = classes[0].cut - classes[1].cut;
            assert!(fabs(counted - off.min(2.0 * MOST)) < 0.03, "{counted} of {off}");
        }
    }

    #[test]
    fn an_error_that_the_weights_correct_does_not_count_and_one_corrected_later_counts_no_more() {
        let (mut classes, mut random) = ([FeasibilityTest::default(); 2], Random::new(3));
        after(&mut classes, 3, 0.5, &mut random);
        assert!(!any(classes.iter()), "settling takes that long");
        after(&mut classes, 100, 0.0, &mut random);
        assert!(!any(classes.iter()));
        after(&mut classes, 20, 0.5, &mut random);
        assert!(any(classes.iter()));
        // The error changes its sign, as when the load has risen.
        after(&mut classes, 3, -0.5, &mut random);
        assert!(!any(classes.iter()));
    }
}
