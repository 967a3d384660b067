//! Which fraction of the clients sends the wanted fraction of the requests.
//!
//! The law asks that a fraction F of the *requests* be served at the higher level, but the service level picks a
//! fraction of the *clients*. The two differ if some clients send more requests than others. A client that retries at
//! once when it is rejected sends the most, so that a thousandth of the requests may come from half of the clients. The
//! counters of a period show `ratio = (part of the requests at the higher level) / (fraction of the service level)`. The
//! calibration follows this ratio, and the service level is set to F / ratio.
//!
//! Counts may be small, as those of a site that is served one request in a hundred. The mean of the logarithm of such a count
//! is far from the logarithm of its mean. So for small counts the error of the count itself is followed, whose mean is zero at
//! the true ratio, and only a count that is off by more than chance is judged by its logarithm.
//!
//! The law's bias cannot do this: a bias adds to the set point, and this is a factor that may be a thousand.
//!
//! Each pair of neighbouring levels has a ratio of its own. Clients that are rejected try again, those that get lighter pages
//! do not, so what is learned between rejection and the lowest level says nothing of the levels above.

use crate::promises::MAX_LEVELS;
use libm::{exp, fabs, log, pow, sqrt};

/// The calibration of one class's service level.
#[derive(Clone, Debug, Default)]
pub(crate) struct FractionCalibration {
    /// ln of the ratio, by the lower one of two levels.
    log_ratios: [f64; MAX_LEVELS],
    /// Whether any ratio was learned: most classes never learn one.
    has_learned: bool,
    /// The service level that was set last, and the fraction of requests that it is to give the higher one of its two levels.
    set: f64,
    wanted: f64,
}

/// The gain for errors within the noise of a few hundred requests, or that may be chance, and the gain for larger ones.
const GAIN: f64 = 0.1;
const FAST_GAIN: f64 = 0.5;
const NOISE: f64 = 0.5;
/// An error of a small count within this number of standard deviations is chance; the deviation is that of at least
/// [`FEWEST_EXPECTED`] requests.
const DEVIATIONS: f64 = 3.0;
const FEWEST_EXPECTED: f64 = 4.0;
/// If fewer requests are expected at the higher level, the count is small. (By its logarithm a tenth too many would be served
/// at this number, and a thirtieth at twenty.)
const FEW: f64 = 5.0;
/// If fewer requests than this are expected, a count of none teaches nothing.
const NONE: f64 = 1e-3;
/// With fewer requests in a period nothing is learned.
const FEWEST: u64 = 20;
/// The largest calibration, as a logarithm: a thousandfold either way.
const MOST: f64 = 7.0;

impl FractionCalibration {
    /// The calibration at the service level that was set last, as the logarithm of a ratio.
    pub(crate) fn log_ratio(&self) -> f64 {
        self.log_ratios[lower_level(self.set)]
    }

    /// Goes on from a calibration and the service level that was set by it; `top` is M. What is kept may have been damaged.
    pub(crate) fn restore(&mut self, log_ratio: f64, set: f64, top: f64) {
        (self.set, self.has_learned) = (set.clamp(0.0, top), true);
        let log_ratio = log_ratio.clamp(-MOST, MOST);
        self.log_ratios[lower_level(self.set)] = log_ratio;
        self.wanted = (self.set - libm::floor(self.set)) * exp(log_ratio);
    }

    /// The service level at which requests are served as m says; `top` is M.
    pub(crate) fn service_level(&mut self, m: f64, top: f64) -> f64 {
        let whole = libm::floor(m).min((top - 1.0).max(0.0));
        let fraction = (m - whole).clamp(0.0, 1.0);
        // At a fraction of 1 every client gets the higher level, whatever the calibration.
        let log_ratio = self.log_ratios[lower_level(whole)];
        let scaled = if fraction >= 1.0 { 1.0 } else { (fraction * exp(-log_ratio)).min(1.0) };
        (self.set, self.wanted) = (whole + scaled, fraction);
        self.set
    }

    /// Lets the calibration fade over this number of idle periods.
    pub(crate) fn idle(&mut self, periods: u32) {
        for log_ratio in self.log_ratios.iter_mut().filter(|_| self.has_learned) {
            *log_ratio *= pow(1.0 - GAIN, f64::from(periods));
        }
    }

    /// Takes a period's counts of requests by level 0..=M, decided at the service level that was set last. What was learned of
    /// other levels fades.
    pub(crate) fn learn(&mut self, decided: &[u64]) {
        let whole = libm::floor(self.set);
        let own = lower_level(self.set);
        let known = self.log_ratios[own];
        if self.has_learned {
            self.log_ratios.iter_mut().for_each(|log_ratio| *log_ratio *= 1.0 - GAIN);
        }
        let log_ratio = &mut self.log_ratios[own];
        let fraction = self.set - whole;
        let total: u64 = decided.iter().sum();
        let upper = decided.get(whole as usize + 1).copied().unwrap_or(0) as f64;
        let expected = total as f64 * self.wanted;
        if fraction <= 0.0 || total < FEWEST || (upper == 0.0 && expected < NONE) {
            // The period teaches nothing of this ratio, so the calibration fades.
            return;
        }
        let (error, factor) = (upper - expected, log(upper.max(0.5) / expected));
        let is_chance = expected < FEW && fabs(error) <= DEVIATIONS * sqrt(expected.max(FEWEST_EXPECTED));
        let step = if is_chance {
            GAIN * error / expected.max(1.0)
        } else if fabs(factor) <= NOISE {
            GAIN * factor
        } else {
            FAST_GAIN * factor
        };
        *log_ratio = (known + step).clamp(-MOST, MOST);
        self.has_learned = true;
    }
}

/// The lower one of the levels that a service level lies between.
fn lower_level(m: f64) -> usize {
    (m as usize).min(MAX_LEVELS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_clients_need_no_calibration() {
        let mut calibration = FractionCalibration::default();
        for _ in 0..50 {
            assert!(fabs(calibration.service_level(1.25, 2.0) - 1.25) < 1e-9);
            calibration.learn(&[0, 750, 250]);
        }
        assert_eq!(calibration.service_level(2.0, 2.0), 2.0);
        assert_eq!(calibration.service_level(0.0, 2.0), 0.0);
    }

    #[test]
    fn finds_the_fraction_of_clients_that_sends_the_wanted_requests() {
        // A client that is served sends one request where a rejected one sends ten.
        let mut calibration = FractionCalibration::default();
        let mut rate = 1e5;
        let mut wanted = 0.01;
        for _ in 0..100 {
            let clients = calibration.service_level(wanted, 1.0);
            let (served, rejected) = (1e4 * clients, 1e5 * (1.0 - clients));
            calibration.learn(&[rejected as u64, served as u64]);
            // The m of a server that carries 6,000 requests, with the rate followed as the rate tracker does.
            rate += 0.2 * (served + rejected - rate);
            wanted = (6000.0 / rate).min(1.0);
        }
        let clients = calibration.service_level(wanted, 1.0);
        assert!(fabs(clients - 0.6) < 0.06, "{clients}");
    }

    /// Beyond the retries of rejected clients a lighter page is asked for as often as a full one.
    #[test]
    fn what_rejected_clients_teach_is_not_said_of_lighter_pages() {
        let mut calibration = FractionCalibration::default();
        for _ in 0..100 {
            let clients = calibration.service_level(0.01, 2.0);
            let (served, rejected) = (1e4 * clients, 1e5 * (1.0 - clients));
            calibration.learn(&[rejected as u64, served as u64, 0]);
        }
        assert!(calibration.service_level(0.01, 2.0) > 0.05, "{calibration:?}");
        let light_for_most = calibration.clone().service_level(1.3, 2.0);
        assert!(fabs(light_for_most - 1.3) < 1e-9, "{light_for_most}");
        // And a period at lighter pages does not forget what rejected clients taught.
        calibration.service_level(1.5, 2.0);
        calibration.learn(&[0, 500, 500]);
        assert!(calibration.service_level(0.01, 2.0) > 0.05, "{calibration:?}");
    }

    /// A site of 30 or 100 requests a second whose contract is for few: by the logarithm it was served 0.55 of one request a
    /// period, and 1.3 times two.
    #[test]
    fn the_wanted_number_is_served_in_the_mean_also_where_it_is_small() {
        let mut random = crate::random::Random::new(9611);
        for (total, wanted) in [(100_u64, 0.3), (30, 1.0), (100, 1.0), (100, 2.0), (100, 3.0)] {
            let (mut calibration, mut served) = (FractionCalibration::default(), 0);
            for _ in 0..4000 {
                let m = calibration.service_level(wanted / total as f64, 1.0);
                let upper = (0..total).filter(|_| random.uniform() < m).count() as u64;
                calibration.learn(&[total - upper, upper]);
                served += upper;
            }
            let part = served as f64 / 4000.0 / wanted;
            assert!((0.95..=1.1).contains(&part), "{wanted} of {total}: {part}");
        }
    }

    #[test]
    fn none_where_none_was_expected_teaches_nothing() {
        let mut calibration = FractionCalibration::default();
        calibration.service_level(1e-9, 2.0);
        calibration.learn(&[1000, 0, 0]);
        assert!(fabs(calibration.service_level(0.5, 2.0) - 0.5) < 1e-9);
    }

    #[test]
    fn a_fraction_below_every_client_is_found_too() {
        // There are ten clients, and a fraction of one in a hundred serves none of them.
        let mut calibration = FractionCalibration::default();
        let mut periods = 0;
        while calibration.service_level(0.01, 1.0) < 0.1 {
            calibration.learn(&[1000, 0]);
            periods += 1;
        }
        assert!(periods < 10, "{periods} periods");
    }
}
