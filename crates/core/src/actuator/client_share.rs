//! The share of requests behind the fraction of clients.
//!
//! The law asks that a fraction F of the *requests* be served at the higher level; the knob picks a fraction of the
//! *clients*. They differ where clients differ: some ask more than others, and one that is rejected and tries again at
//! once asks most of all, so that a thousandth of the requests may be half of the clients. What a period's counters show,
//! `ratio = (share of requests at the higher level) / (fraction of the knob)`, is followed, and the knob is set to
//! F / ratio.
//!
//! Why not leave it to the trim: that adds to the set point, and this multiplies, by up to a thousand.

use libm::{exp, fabs, log, pow};

/// The calibration of one class's knob.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientShare {
    /// ln of the ratio.
    log_ratio: f64,
    /// What the knob was set to.
    set: f64,
}

/// Of what is within the noise of a few hundred requests, and of what is not.
const GAIN: f64 = 0.1;
const FAST_GAIN: f64 = 0.5;
const NOISE: f64 = 0.5;
/// Fewer requests tell nothing.
const FEWEST: u64 = 20;
/// A thousandfold either way is no calibration any more.
const MOST: f64 = 7.0;

impl ClientShare {
    /// Where to set the knob so that requests are served as m says; `top` is M.
    pub(crate) fn knob(&mut self, m: f64, top: f64) -> f64 {
        let whole = libm::floor(m).min((top - 1.0).max(0.0));
        let fraction = (m - whole).clamp(0.0, 1.0);
        // All is all: there the calibration has nothing to say.
        let scaled = if fraction >= 1.0 { 1.0 } else { (fraction * exp(-self.log_ratio)).min(1.0) };
        self.set = whole + scaled;
        self.set
    }

    /// Takes so many periods in which nothing came.
    pub(crate) fn rest(&mut self, periods: u32) {
        if self.log_ratio != 0.0 {
            self.log_ratio *= pow(1.0 - GAIN, f64::from(periods));
        }
    }

    /// Takes a period: requests decided by level 0..=M while the knob stood where it was set.
    pub(crate) fn learn(&mut self, decided: &[u64]) {
        let whole = libm::floor(self.set);
        let fraction = self.set - whole;
        let total: u64 = decided.iter().sum();
        let upper = decided.get(whole as usize + 1).copied().unwrap_or(0) as f64;
        let none_expected = upper == 0.0 && fraction * (total as f64) < 1.0;
        if fraction <= 0.0 || total < FEWEST || none_expected {
            // Everybody is served alike: what was learned fades.
            self.log_ratio *= 1.0 - GAIN;
            return;
        }
        let seen = log(upper.max(0.5) / total as f64 / fraction);
        let error = seen - self.log_ratio;
        self.log_ratio += if fabs(error) > NOISE { FAST_GAIN } else { GAIN } * error;
        self.log_ratio = self.log_ratio.clamp(-MOST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_clients_need_no_calibration() {
        let mut share = ClientShare::default();
        for _ in 0..50 {
            assert!(fabs(share.knob(1.25, 2.0) - 1.25) < 1e-9);
            share.learn(&[0, 750, 250]);
        }
        assert_eq!(share.knob(2.0, 2.0), 2.0);
        assert_eq!(share.knob(0.0, 2.0), 0.0);
    }

    #[test]
    fn finds_the_fraction_of_clients_that_carries_the_share() {
        // Clients that are served ask once where rejected ones ask ten times.
        let mut share = ClientShare::default();
        let mut rate = 1e5;
        let mut wanted = 0.01;
        for _ in 0..100 {
            let clients = share.knob(wanted, 1.0);
            let (served, rejected) = (1e4 * clients, 1e5 * (1.0 - clients));
            share.learn(&[rejected as u64, served as u64]);
            // What a server that carries 6,000 wants of the requests that come, followed as the rate tracker does.
            rate += 0.2 * (served + rejected - rate);
            wanted = (6000.0 / rate).min(1.0);
        }
        let clients = share.knob(wanted, 1.0);
        assert!(fabs(clients - 0.6) < 0.06, "{clients}");
    }

    #[test]
    fn nobody_where_nobody_was_expected_says_nothing() {
        let mut share = ClientShare::default();
        share.knob(1e-9, 2.0);
        share.learn(&[1000, 0, 0]);
        assert!(fabs(share.knob(0.5, 2.0) - 0.5) < 1e-9);
    }

    #[test]
    fn nobody_below_the_fraction_is_found_too() {
        // Ten clients: a knob of one in a hundred serves none of them.
        let mut share = ClientShare::default();
        let mut periods = 0;
        while share.knob(0.01, 1.0) < 0.1 {
            share.learn(&[1000, 0]);
            periods += 1;
        }
        assert!(periods < 10, "{periods} periods");
    }
}
