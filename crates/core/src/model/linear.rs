//! The linear model of UC eq. 1, `U = a R + b W`, learned online (UC 4.3).
//!
//! A sample is n requests, their bytes and their work: `work = a n + b bytes`, weighted by 1/n, since a mean of n
//! requests has 1/n of the variance. Recursive least squares, in information form, with *directional* forgetting
//! (Cao and Schwartz 2000): before a sample with regressor phi is added, only the information along phi decays,
//! `I -= (1 - lambda) (I phi phi^T I) / (phi^T I phi)`. One page size makes R and W collinear; plain forgetting would
//! then let the other direction fade to nothing and a and b run away. Here a direction that is not excited keeps what
//! was learned, and a sample without requests freezes everything.
//!
//! a, b >= 0: where the estimate leaves the quadrant, [`LinearModel::costs`] gives the constrained minimum, and the
//! state stays unclipped, so that it finds its way back.

use super::Served;
use libm::{exp, fabs, sqrt};

/// a and b with the information behind them.
#[derive(Clone, Debug)]
pub struct LinearModel {
    /// Estimate of (a, b per KiB).
    theta: [f64; 2],
    /// Information matrix (symmetric): [0][0], [0][1], [1][1].
    information: [f64; 3],
    /// Variance of one request's work around the line [s^2].
    residual_variance: f64,
    samples: u32,
}

/// Requests after which a direction that is excited has forgotten all but 1/e, in periods.
const TIME_CONSTANT_PERIODS: f64 = 30.0;
/// Bytes are counted in KiB inside, so that both columns of the regression are of one magnitude.
const KIB: f64 = 1024.0;
const NOTHING_KNOWN: f64 = 1e-9;

impl Default for LinearModel {
    fn default() -> Self {
        LinearModel {
            theta: [0.0; 2],
            information: [NOTHING_KNOWN, 0.0, NOTHING_KNOWN],
            residual_variance: 0.0,
            samples: 0,
        }
    }
}

impl LinearModel {
    /// Starts from known costs [s per request, s per byte], worth a thousand requests of evidence.
    pub fn known(per_request_seconds: f64, per_byte_seconds: f64) -> Self {
        LinearModel {
            theta: [per_request_seconds, per_byte_seconds * KIB],
            information: [1000.0, 0.0, 1000.0],
            residual_variance: per_request_seconds * per_request_seconds,
            samples: 1,
        }
    }

    /// Takes one sample; `share` is its part of the period's requests, which sets how much it forgets.
    pub fn learn(&mut self, served: Served, share: f64) {
        let n = served.requests;
        if n <= 0.0 {
            return;
        }
        let weight = sqrt(n);
        let phi = [weight, served.bytes / KIB / weight];
        let y = served.work_seconds / weight;

        let [i00, i01, i11] = self.information;
        let along = [i00 * phi[0] + i01 * phi[1], i01 * phi[0] + i11 * phi[1]];
        let excitation = phi[0] * along[0] + phi[1] * along[1];
        let forget = 1.0 - exp(-share / TIME_CONSTANT_PERIODS);
        let decay = if excitation > 0.0 { forget / excitation } else { 0.0 };
        self.information = [
            i00 - decay * along[0] * along[0] + phi[0] * phi[0],
            i01 - decay * along[0] * along[1] + phi[0] * phi[1],
            i11 - decay * along[1] * along[1] + phi[1] * phi[1],
        ];
        let error = y - phi[0] * self.theta[0] - phi[1] * self.theta[1];
        let step = self.solve(phi);
        self.theta[0] += step[0] * error;
        self.theta[1] += step[1] * error;
        self.samples = self.samples.saturating_add(1);
        if self.samples > 2 {
            self.residual_variance += 0.1 * (error * error - self.residual_variance);
        }
    }

    /// (a [s/request], b [s/byte]), neither negative.
    pub fn costs(&self) -> (f64, f64) {
        let [i00, i01, i11] = self.information;
        let [a, b] = self.theta;
        let (a, b) = if a < 0.0 {
            (0.0, b + i01 / i11 * a)
        } else if b < 0.0 {
            (a + i01 / i00 * b, 0.0)
        } else {
            (a, b)
        };
        (a.max(0.0), b.max(0.0) / KIB)
    }

    /// How well the cost of a request of `bytes` is known: 1 less its relative standard error, in [0, 1].
    pub fn confidence(&self, bytes: f64) -> f64 {
        let phi = [1.0, bytes / KIB];
        let expected = self.theta[0] + self.theta[1] * phi[1];
        if self.samples < 3 || expected <= 0.0 {
            return 0.0;
        }
        let inverse = self.solve(phi);
        let variance = self.residual_variance * (phi[0] * inverse[0] + phi[1] * inverse[1]);
        (1.0 - sqrt(fabs(variance)) / expected).clamp(0.0, 1.0)
    }

    /// The inverse of the information times a vector.
    fn solve(&self, vector: [f64; 2]) -> [f64; 2] {
        let [i00, i01, i11] = self.information;
        let determinant = i00 * i11 - i01 * i01;
        // Collinear to rounding: the solution along the one direction that is known.
        if determinant <= 1e-12 * i00 * i11 {
            let trace = i00 + i11;
            return [vector[0] / trace, vector[1] / trace];
        }
        [(i11 * vector[0] - i01 * vector[1]) / determinant, (i00 * vector[1] - i01 * vector[0]) / determinant]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: f64 = 0.001_604;
    const B: f64 = 0.063e-3 / 1024.0;

    fn sample(n: f64, bytes_each: f64, scale: f64) -> Served {
        Served { requests: n, work_seconds: scale * n * (A + B * bytes_each), bytes: n * bytes_each }
    }

    fn close(value: f64, wanted: f64) -> bool {
        fabs(value - wanted) < 0.01 * wanted
    }

    #[test]
    fn finds_the_papers_coefficients() {
        let mut model = LinearModel::default();
        for _ in 0..5 {
            for kib in [1.0, 8.0, 64.0] {
                model.learn(sample(50.0, kib * 1024.0, 1.0), 1.0 / 3.0);
            }
        }
        let (a, b) = model.costs();
        assert!(close(a, A) && close(b, B), "a = {a}, b = {b}");
        assert!(model.confidence(8192.0) > 0.9);
    }

    #[test]
    fn follows_a_server_that_slows_to_half() {
        let mut model = LinearModel::default();
        for period in 0..400 {
            let scale = if period < 50 { 1.0 } else { 2.0 };
            for kib in [1.0, 64.0] {
                model.learn(sample(50.0, kib * 1024.0, scale), 0.5);
            }
        }
        let (a, b) = model.costs();
        assert!(close(a, 2.0 * A) && close(b, 2.0 * B), "a = {a}, b = {b}");
    }

    #[test]
    fn one_page_size_moves_only_the_direction_that_it_excites() {
        let mut model = LinearModel::default();
        for _ in 0..10 {
            for kib in [1.0, 64.0] {
                model.learn(sample(50.0, kib * 1024.0, 1.0), 0.5);
            }
        }
        for _ in 0..10_000 {
            model.learn(sample(50.0, 8192.0, 1.0), 1.0);
        }
        let (a, b) = model.costs();
        assert!(close(a, A) && close(b, B), "a = {a}, b = {b} after much of one size");
        assert!(model.information.iter().all(|i| i.is_finite()));
    }

    #[test]
    fn never_negative() {
        let mut model = LinearModel::default();
        for (bytes, work) in [(1024.0, 0.004), (65536.0, 0.001), (1024.0, 0.004), (65536.0, 0.001)] {
            model.learn(Served { requests: 10.0, work_seconds: 10.0 * work, bytes: 10.0 * bytes }, 0.5);
        }
        let (a, b) = model.costs();
        assert!(a > 0.0 && b == 0.0, "a = {a}, b = {b}");
    }

    #[test]
    fn without_requests_nothing_moves() {
        let mut model = LinearModel::known(A, B);
        model.learn(Served::default(), 1.0);
        assert!(close(model.costs().0, A) && close(model.costs().1, B));
    }
}
