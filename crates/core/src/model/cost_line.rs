//! The linear model of UC eq. 1, `U = a R + b W`, learned online (UC 4.3).
//!
//! A sample is n requests, their bytes and their work: `work = a n + b bytes`, weighted by 1/n, since the work of n requests
//! has n times the variance of one. The fit is least squares in information form, one batch of samples a period, with
//! *directional* forgetting: in the coordinates in which the present information I is the identity, the batch's J has two
//! eigenvalues mu; along each eigenvector `min(1 - lambda, mu)` is forgotten, so never more than the period adds. If all pages
//! have one size, R and W are collinear; plain forgetting would then let the information in the other direction fade to
//! nothing, and a and b would drift. Here a direction that is not excited keeps what was learned, and a period without requests
//! changes nothing. (Forgetting along the regressor of each sample, as Cao and Schwartz 2000 do, forgets the direction that two
//! samples have in common much more slowly: after 33 time constants the estimate was still 2 % off.)
//!
//! Costs are not negative: if the estimate leaves the quadrant a, b >= 0, [`LinearModel::costs`] gives the constrained minimum.
//! The estimate itself is not clipped, so that it can return.

use super::Served;
use super::level_cost::REMEMBER;
use libm::sqrt;

/// The estimates of a and b, with the information behind them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinearModel {
    /// Estimate of (a [s per request], b [s per KiB]).
    pub theta: [f64; 2],
    /// Information matrix (symmetric), by row: first, off-diagonal, last.
    pub information: [f64; 3],
    /// Variance of one request's work around the line [s^2].
    #[cfg_attr(feature = "serde", serde(rename = "variance"))]
    pub residual_variance: f64,
    /// The number of periods from which the model has learned.
    pub periods: u32,
}

/// The part that an excited direction forgets in a period: `1 - exp(-1/30)`, so that after 30 periods 1/e is left.
const MOST_FORGOTTEN: f64 = 0.0327838995179941;
/// Bytes are counted in KiB inside, so that both columns of the regression are of one magnitude.
const KIB: f64 = 1024.0;
const NOTHING_KNOWN: f64 = 1e-9;
/// If the evidence of a cost is less than that of one request, the cost is not known.
const LEAST_EVIDENCE: f64 = 1.0;

/// The sums of a period's samples that the model needs.
#[derive(Default)]
pub(crate) struct CostBatch {
    /// The estimate before the batch.
    theta: [f64; 2],
    information: [f64; 3],
    gradient: [f64; 2],
    /// The sum of the squared weighted errors.
    squares: f64,
    count: f64,
}

impl CostBatch {
    /// Adds a sample; a sample without requests does not count.
    pub(crate) fn add(&mut self, sample: Served) {
        if sample.requests <= 0.0 {
            return;
        }
        let weight = sqrt(sample.requests);
        let phi = [weight, sample.bytes / KIB / weight];
        let error = sample.work_seconds / weight - phi[0] * self.theta[0] - phi[1] * self.theta[1];
        let [i00, i01, i11] = self.information;
        self.information = [i00 + phi[0] * phi[0], i01 + phi[0] * phi[1], i11 + phi[1] * phi[1]];
        self.gradient = [self.gradient[0] + phi[0] * error, self.gradient[1] + phi[1] * error];
        self.squares += error * error;
        self.count += 1.0;
    }
}

impl Default for LinearModel {
    fn default() -> Self {
        LinearModel {
            theta: [0.0; 2],
            information: [NOTHING_KNOWN, 0.0, NOTHING_KNOWN],
            residual_variance: 0.0,
            periods: 0,
        }
    }
}

impl LinearModel {
    /// Starts from known costs [s per request, s per byte], worth a thousand requests of evidence.
    pub(crate) fn known(per_request_seconds: f64, per_byte_seconds: f64) -> Self {
        LinearModel {
            theta: [per_request_seconds, per_byte_seconds * KIB],
            information: [1000.0, 0.0, 1000.0],
            residual_variance: per_request_seconds * per_request_seconds,
            periods: 1,
        }
    }

    /// Whether the values are possible: a kept file may have been damaged.
    pub(crate) fn is_possible(&self) -> bool {
        let [first, across, last] = self.information;
        let finite = self.theta.iter().chain(&self.information).all(|value| value.is_finite());
        let spread = self.residual_variance >= 0.0 && self.residual_variance.is_finite();
        // If all samples are collinear, rounding may make the determinant slightly negative.
        finite && spread && first > 0.0 && last > 0.0 && across * across <= first * last * (1.0 + 1e-9)
    }

    /// Learns from a period's samples; a sample without requests does not count. Returns whether anything was learned.
    pub(crate) fn learn(&mut self, samples: impl Iterator<Item = Served>) -> bool {
        let mut batch = self.batch();
        samples.for_each(|sample| batch.add(sample));
        self.take(&batch)
    }

    /// Begins a period's batch.
    pub(crate) fn batch(&self) -> CostBatch {
        CostBatch { theta: self.theta, ..CostBatch::default() }
    }

    /// Takes a period's batch. Returns whether anything was learned.
    pub(crate) fn take(&mut self, batch: &CostBatch) -> bool {
        if batch.count == 0.0 {
            return false;
        }
        self.information = forget(self.information, batch.information);
        for (kept, new) in self.information.iter_mut().zip(batch.information) {
            *kept += new;
        }
        let step = self.solve(batch.gradient);
        self.theta = [self.theta[0] + step[0], self.theta[1] + step[1]];
        self.periods = self.periods.saturating_add(1);
        if self.periods > 1 {
            let gain = if self.periods < 10 { 0.5 } else { 0.1 };
            self.residual_variance += gain * (batch.squares / batch.count - self.residual_variance);
        }
        true
    }

    /// Multiplies all costs by `factor`.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.theta = self.theta.map(|cost| factor * cost);
        self.residual_variance *= factor * factor;
    }

    /// Lowers the costs: see [`CostEstimate::doubt`](super::CostEstimate::doubt).
    pub(crate) fn doubt(&mut self) {
        self.theta = self.theta.map(|cost| REMEMBER * cost);
    }

    /// (a [s/request], b [s/byte]), neither negative.
    pub(crate) fn costs(&self) -> (f64, f64) {
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

    /// a and b, each only if the samples distinguish it from the other. Pages of one size determine only the cost of such a
    /// page, and its division between a and b is arbitrary.
    pub(crate) fn coefficients(&self) -> (Option<f64>, Option<f64>) {
        let (a, b) = self.costs();
        // b counts as known if the cost of a mean response's bytes is.
        let mean = (self.information[1] / self.information[0]).max(1.0);
        let known = |phi| self.evidence(phi) >= LEAST_EVIDENCE;
        (known([1.0, 0.0]).then_some(a), known([0.0, mean]).then_some(b))
    }

    /// How well the cost of a request of `bytes` is known: 1 less its relative standard error, in [0, 1]. It is 0 if the
    /// samples are less evidence of this cost than one such request, however well the costs of other sizes are known.
    pub(crate) fn confidence(&self, bytes: f64) -> f64 {
        let phi = [1.0, bytes / KIB];
        let expected = self.theta[0] + self.theta[1] * phi[1];
        let evidence = self.evidence(phi);
        if self.periods < 2 || expected <= 0.0 || evidence < LEAST_EVIDENCE {
            return 0.0;
        }
        (1.0 - sqrt(self.residual_variance / evidence) / expected).clamp(0.0, 1.0)
    }

    /// The number of requests with the regressor `phi` that would be as much evidence of its cost as all samples: `1 / (phi'
    /// I^-1 phi)`. It is computed along the eigenvectors of I, where no cancellation hides that a direction was never excited.
    fn evidence(&self, phi: [f64; 2]) -> f64 {
        let [i00, i01, i11] = self.information;
        let spread = sqrt((i00 - i11) * (i00 - i11) + 4.0 * i01 * i01);
        let most = 0.5 * (i00 + i11 + spread);
        let least = ((i00 * i11 - i01 * i01) / most).max(NOTHING_KNOWN);
        // The eigenvector of the larger eigenvalue, in that of its two forms that subtracts no nearly equal numbers.
        let [x, y] = if i00 >= i11 { [most - i11, i01] } else { [i01, most - i00] };
        let square = x * x + y * y;
        let (c, s) = if square > 0.0 { (x / sqrt(square), y / sqrt(square)) } else { (1.0, 0.0) };
        let (along, across) = (c * phi[0] + s * phi[1], c * phi[1] - s * phi[0]);
        1.0 / (along * along / most + across * across / least)
    }

    /// The inverse of the information times a vector.
    fn solve(&self, vector: [f64; 2]) -> [f64; 2] {
        let [i00, i01, i11] = self.information;
        let determinant = i00 * i11 - i01 * i01;
        // If the samples are collinear within rounding, solve along the one direction that is known.
        if determinant <= 1e-12 * i00 * i11 {
            let trace = i00 + i11;
            return [vector[0] / trace, vector[1] / trace];
        }
        [(i11 * vector[0] - i01 * vector[1]) / determinant, (i00 * vector[1] - i01 * vector[0]) / determinant]
    }
}

/// The information that directional forgetting leaves of `kept` before `batch` is added.
fn forget(kept: [f64; 3], batch: [f64; 3]) -> [f64; 3] {
    // kept = L L^T; whitened = L^-1 batch L^-T.
    let l00 = sqrt(kept[0]);
    let l10 = kept[1] / l00;
    let l11 = sqrt((kept[2] - l10 * l10).max(1e-12 * kept[2]));
    let w00 = batch[0] / (l00 * l00);
    let w01 = (batch[1] / l00 - l10 * w00) / l11;
    let w11 = (batch[2] - 2.0 * l10 * batch[1] / l00 + l10 * l10 * w00) / (l11 * l11);
    // The eigenvectors of the whitened matrix are (c, s) and (-s, c), found by the double angle.
    let (difference, spread) = (w00 - w11, sqrt((w00 - w11) * (w00 - w11) + 4.0 * w01 * w01));
    let (double, cs) = if spread > 0.0 { (difference / spread, w01 / spread) } else { (1.0, 0.0) };
    let (cc, ss) = (0.5 * (1.0 + double), 0.5 * (1.0 - double));
    let first = 1.0 - MOST_FORGOTTEN.min(cc * w00 + 2.0 * cs * w01 + ss * w11);
    let second = 1.0 - MOST_FORGOTTEN.min((ss * w00 - 2.0 * cs * w01 + cc * w11).max(0.0));
    let (d00, d01, d11) = (cc * first + ss * second, cs * (first - second), ss * first + cc * second);
    // L D L^T
    [
        l00 * l00 * d00,
        l00 * (l10 * d00 + l11 * d01),
        l10 * l10 * d00 + 2.0 * l10 * l11 * d01 + l11 * l11 * d11,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use libm::fabs;

    const A: f64 = 0.001_604;
    const B: f64 = 0.063e-3 / 1024.0;

    fn sample(n: f64, bytes_each: f64, scale: f64) -> Served {
        Served { requests: n, work_seconds: scale * n * (A + B * bytes_each), bytes: n * bytes_each }
    }

    fn close(value: f64, wanted: f64) -> bool {
        fabs(value - wanted) < 0.01 * wanted
    }

    fn period(model: &mut LinearModel, sizes_kib: &[f64], scale: f64) {
        model.learn(sizes_kib.iter().map(|kib| sample(50.0, kib * KIB, scale)));
    }

    #[test]
    fn a_line_of_which_all_takes_longer_is_known_as_well() {
        let mut line = LinearModel::default();
        let served =
            |bytes: f64| Served { requests: 10.0, bytes: 10.0 * bytes, work_seconds: 0.1 + 1e-5 * bytes };
        (0..50).for_each(|_| _ = line.learn([served(1e3), served(1e5)].into_iter()));
        let (before, sure) = (line.costs(), line.confidence(1e4));
        line.scale(1.5);
        let (a, b) = line.costs();
        assert!((a / before.0 - 1.5).abs() < 1e-9 && (b / before.1 - 1.5).abs() < 1e-9, "{a} {b} {before:?}");
        assert!(before.0 > 0.0 && before.1 > 0.0 && (line.confidence(1e4) - sure).abs() < 1e-9);
    }

    #[test]
    fn finds_the_papers_coefficients() {
        let mut model = LinearModel::default();
        for _ in 0..5 {
            period(&mut model, &[1.0, 8.0, 64.0], 1.0);
        }
        let (a, b) = model.costs();
        assert!(close(a, A) && close(b, B), "a = {a}, b = {b}");
        assert!(model.confidence(8192.0) > 0.9);
    }

    #[test]
    fn follows_a_server_that_slows_to_half() {
        let mut model = LinearModel::default();
        for k in 0..250 {
            period(&mut model, &[1.0, 64.0], if k < 50 { 1.0 } else { 2.0 });
        }
        let (a, b) = model.costs();
        assert!(close(a, 2.0 * A) && close(b, 2.0 * B), "a = {a}, b = {b}");
    }

    #[test]
    fn one_page_size_moves_only_the_direction_that_it_excites() {
        let mut model = LinearModel::default();
        for _ in 0..10 {
            period(&mut model, &[1.0, 64.0], 1.0);
        }
        for _ in 0..10_000 {
            period(&mut model, &[8.0], 1.0);
        }
        let (a, b) = model.costs();
        assert!(close(a, A) && close(b, B), "a = {a}, b = {b} after many periods of one size");
        assert!(model.information.iter().all(|i| i.is_finite()));
    }

    /// UC's server serves pages of one size: nothing distinguishes a from b, and the confidence in other sizes must be 0.
    #[test]
    fn of_one_page_size_no_other_is_known() {
        for kib in [1.0, 32.0, 300.0] {
            let mut model = LinearModel::default();
            for _ in 0..5000 {
                period(&mut model, &[kib], 1.0);
            }
            let own = model.confidence(kib * KIB);
            assert!(own > 0.99, "{own} of {kib} KiB");
            for other in [0.0, 0.5, 0.9, 1.1, 2.0, 10.0] {
                let confidence = model.confidence(other * kib * KIB);
                assert!(confidence == 0.0, "{confidence} of {other} times {kib} KiB");
            }
            assert_eq!(model.coefficients(), (None, None));
            // A second size determines a and b, and the costs of sizes near it.
            for _ in 0..30 {
                period(&mut model, &[2.0 * kib], 1.0);
            }
            let (a, b) = model.coefficients();
            assert!(close(a.unwrap(), A) && close(b.unwrap(), B), "{a:?} {b:?}");
            assert!(model.confidence(1.5 * kib * KIB) > 0.99);
        }
        let known = LinearModel::known(A, B).coefficients();
        assert!(close(known.0.unwrap(), A) && close(known.1.unwrap(), B), "{known:?}");
        assert_eq!(LinearModel::default().coefficients(), (None, None));
        // Responses without a body show nothing of the cost of a byte.
        let mut bodiless = LinearModel::default();
        for _ in 0..50 {
            period(&mut bodiless, &[0.0], 1.0);
        }
        assert!(matches!(bodiless.coefficients(), (Some(a), None) if close(a, A)));
    }

    #[test]
    fn never_negative() {
        let mut model = LinearModel::default();
        let work = [(1024.0, 0.004), (65536.0, 0.001)];
        for _ in 0..2 {
            model.learn(work.iter().map(|(bytes, work)| Served {
                requests: 10.0,
                work_seconds: 10.0 * work,
                bytes: 10.0 * bytes,
            }));
        }
        let (a, b) = model.costs();
        assert!(a > 0.0 && b == 0.0, "a = {a}, b = {b}");
    }

    #[test]
    fn without_requests_nothing_moves() {
        let mut model = LinearModel::known(A, B);
        assert!(!model.learn([Served::default()].into_iter()));
        assert!(close(model.costs().0, A) && close(model.costs().1, B));
    }
}
