//! Finds the costs of a request from the highest rates by size: `T(x) = max(a + b x, b' x)` (UC 7.2, Tables 2 and 3; eq. 9 is
//! the same in rates).
//!
//! The first term is the server's own time, the second the link's: large responses are bound by the link, whatever the server
//! does. Each size belongs to one of the two terms. So the sizes are cut in two at every possible place, each part is fitted
//! alone, and the cut with the least total residuals wins.
//!
//! Residuals are relative, because a rate is measured to some percent at every size, and the tables state errors in percent.
//! Least squares of plain seconds would give nearly all weight to the largest size, and would leave a to chance.
//!
//! The link is found only if it explains much that one line does not (see [`Fit::of`]). A single size is no evidence for it,
//! because a line through the origin passes every point.

/// The link is fitted only if the single line misses some size by more than this.
const TOLERATED: f64 = 0.03;
/// The link is fitted only if both lines together leave less than this part of the single line's squared residuals.
const GAIN: f64 = 0.25;
/// The link is fitted only if it takes more than this many times as long for a byte as the server.
const STEEPER: f64 = 1.1;
/// Sizes that differ by less than this factor are one size.
const ONE_SIZE: f64 = 1.05;

/// A size and the time that one request of it takes of the whole server, 1 / highest rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The body's size (byte).
    pub bytes: f64,
    /// The time that one request takes of the whole server (s).
    pub seconds: f64,
}

/// The costs of a request, in time of the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// a, the time for a request of any size (s).
    pub per_request_seconds: f64,
    /// b, the time for each byte of the body (s/byte).
    pub per_byte_seconds: f64,
    /// b', the cost of the second resource, if it was found (s/byte).
    pub link_per_byte_seconds: Option<f64>,
}

impl Fit {
    /// The fit with the least relative residuals; `None` without points. Costs are never negative.
    pub fn of(points: &[Point]) -> Option<Self> {
        let mut points: Vec<Point> = points.iter().copied().filter(|point| point.seconds > 0.0).collect();
        points.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
        let line = Self::line(&points)?;
        let cuts = 2..points.len().saturating_sub(1);
        let both = cuts.filter_map(|cut| {
            let (own, link) = points.split_at(cut);
            Some(Fit { link_per_byte_seconds: Some(through_origin(link)), ..Self::line(own)? })
        });
        let best = both.min_by(|one, other| one.squares(&points).total_cmp(&other.squares(&points)));
        Some(best.filter(|both| both.is_worth_it(line, &points)).unwrap_or(line))
    }

    fn is_worth_it(&self, line: Fit, points: &[Point]) -> bool {
        let misses = points.iter().any(|point| line.error(*point).abs() > TOLERATED);
        let steeper = self.link_per_byte_seconds.is_some_and(|link| link > STEEPER * self.per_byte_seconds);
        misses && steeper && self.squares(points) < GAIN * line.squares(points)
    }

    /// Weighted least squares of `a + b x`, a and b not negative.
    fn line(points: &[Point]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let constant = || {
            let (weights, sum) =
                points.iter().fold((0.0, 0.0), |(w, s), p| (w + p.seconds.powi(-2), s + 1.0 / p.seconds));
            Fit { per_request_seconds: sum / weights, ..Fit::default() }
        };
        if last.bytes < ONE_SIZE * first.bytes {
            return Some(constant());
        }
        let [mut w, mut wx, mut wxx, mut wt, mut wxt] = [0.0; 5];
        for Point { bytes, seconds } in points {
            let weight = seconds.powi(-2);
            w += weight;
            wx += weight * bytes;
            wxx += weight * bytes * bytes;
            wt += weight * seconds;
            wxt += weight * bytes * seconds;
        }
        let determinant = w * wxx - wx * wx;
        let (a, b) = ((wt * wxx - wxt * wx) / determinant, (w * wxt - wx * wt) / determinant);
        Some(match (a < 0.0, b < 0.0) {
            (_, true) => constant(),
            (true, false) => Fit { per_byte_seconds: through_origin(points), ..Fit::default() },
            (false, false) => Fit { per_request_seconds: a, per_byte_seconds: b, ..Fit::default() },
        })
    }

    /// The time that a request of `bytes` takes by this fit (s).
    pub fn seconds(&self, bytes: f64) -> f64 {
        let own = self.per_request_seconds + self.per_byte_seconds * bytes;
        own.max(self.link_per_byte_seconds.unwrap_or(0.0) * bytes)
    }

    /// Whether the link bounds the rate of requests of `bytes`.
    pub fn is_link_bound(&self, bytes: f64) -> bool {
        let own = self.per_request_seconds + self.per_byte_seconds * bytes;
        self.link_per_byte_seconds.is_some_and(|link| link * bytes > own)
    }

    /// How much longer the fitted time is than the measured one, as a share of the measured one.
    pub fn error(&self, point: Point) -> f64 {
        self.seconds(point.bytes) / point.seconds - 1.0
    }

    fn squares(&self, points: &[Point]) -> f64 {
        points.iter().map(|point| self.error(*point).powi(2)).sum()
    }
}

/// Weighted least squares of `b x`.
fn through_origin(points: &[Point]) -> f64 {
    let ratios = || points.iter().map(|point| point.bytes / point.seconds);
    let squares: f64 = ratios().map(|ratio| ratio * ratio).sum();
    if squares > 0.0 { ratios().sum::<f64>() / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn points(sizes: &[f64], seconds: impl Fn(f64) -> f64) -> Vec<Point> {
        sizes.iter().map(|&bytes| Point { bytes, seconds: seconds(bytes) }).collect()
    }

    const SIZES: [f64; 5] = [1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0];

    /// UC Table 1, (KB, ms).
    const PAPER: [(f64, f64); 10] = [
        (1.0, 1.706),
        (2.0, 1.73),
        (4.0, 1.858),
        (8.0, 2.075),
        (16.0, 2.611),
        (32.0, 3.322),
        (64.0, 5.917),
        (128.0, 11.76),
        (256.0, 23.81),
        (512.0, 47.62),
    ];

    fn close(value: f64, wanted: f64, share: f64) {
        assert!((value / wanted - 1.0).abs() < share, "{value} is not {wanted}");
    }

    #[test]
    fn a_true_line_is_found_exactly_and_no_link() {
        let fit = Fit::of(&points(&SIZES, |x| 1e-3 + 2e-8 * x)).unwrap();
        close(fit.per_request_seconds, 1e-3, 1e-9);
        close(fit.per_byte_seconds, 2e-8, 1e-9);
        assert_eq!(fit.link_per_byte_seconds, None);
    }

    #[test]
    fn the_papers_server_has_its_break_at_64_kb() {
        let points: Vec<Point> =
            PAPER.iter().map(|(kb, ms)| Point { bytes: kb * 1024.0, seconds: ms / 1e3 }).collect();
        let fit = Fit::of(&points).unwrap();
        // The paper's 1.604 and 0.063 fit the sizes up to 16 KB and miss 32 KB by 8.9 %; least squares spread that error.
        close(fit.per_request_seconds, 1.604e-3, 0.04);
        close(fit.per_byte_seconds * 1024.0, 0.063e-3, 0.15);
        close(fit.link_per_byte_seconds.unwrap() * 1024.0, 0.093e-3, 0.005);
        for point in &points {
            assert!(fit.error(*point).abs() < 0.045, "{} KB: {}", point.bytes / 1024.0, fit.error(*point));
            assert_eq!(fit.is_link_bound(point.bytes), point.bytes >= 65_536.0);
        }
        // A single line misses the large sizes in the same way as the paper's Table 2.
        let line = Fit::line(&points).unwrap();
        assert!(points.iter().any(|point| line.error(*point).abs() > 0.08));
    }

    /// UC 7.4, Fig. 10: the increase of the highest rate if a light page has an eighth of the bytes. The paper's text says less
    /// than 100 % below 32 KB, and from 160/s to 460/s at 64 KB. A page that the link bounds would gain the whole factor 8.
    #[test]
    fn pages_of_an_eighth_gain_what_fig_10_says() {
        let points: Vec<Point> =
            PAPER.iter().map(|(kb, ms)| Point { bytes: kb * 1024.0, seconds: ms / 1e3 }).collect();
        let fit = Fit::of(&points).unwrap();
        let gain = |kb: f64| fit.seconds(kb * 1024.0) / fit.seconds(kb * 128.0) - 1.0;
        let gains: Vec<f64> = PAPER.iter().map(|(kb, _)| gain(*kb)).collect();
        assert!(gains.windows(2).all(|pair| pair[0] < pair[1] + 1e-12), "larger pages gain more: {gains:?}");
        assert!(gain(8.0) < 0.3 && gain(32.0) < 1.0, "{gains:?}");
        close(gain(64.0), 460.0 / 160.0 - 1.0, 0.1);
        close(gain(512.0), 7.0, 1e-9);
    }

    #[test]
    fn noise_makes_no_link() {
        let mut random = Random::new(3);
        for _ in 0..1000 {
            let noisy = points(&SIZES, |x| 1e-3 + 2e-8 * x);
            let noisy: Vec<Point> = noisy
                .into_iter()
                .map(|point| Point { seconds: point.seconds * (0.99 + 0.02 * random.uniform()), ..point })
                .collect();
            let fit = Fit::of(&noisy).unwrap();
            assert_eq!(fit.link_per_byte_seconds, None, "{noisy:?}");
            close(fit.per_request_seconds, 1e-3, 0.02);
        }
    }

    #[test]
    fn a_link_is_found_under_noise() {
        let mut random = Random::new(4);
        for _ in 0..1000 {
            let noisy: Vec<Point> = points(&SIZES, |x| f64::max(1e-3 + 1e-8 * x, 3e-8 * x))
                .into_iter()
                .map(|point| Point { seconds: point.seconds * (0.99 + 0.02 * random.uniform()), ..point })
                .collect();
            let fit = Fit::of(&noisy).unwrap();
            close(fit.link_per_byte_seconds.unwrap(), 3e-8, 0.02);
            close(fit.per_request_seconds, 1e-3, 0.04);
        }
    }

    #[test]
    fn one_size_gives_the_request_all_of_it() {
        let fit = Fit::of(&points(&[4096.0], |_| 2e-3)).unwrap();
        assert_eq!((fit.per_request_seconds, fit.per_byte_seconds), (2e-3, 0.0));
        let twice = Fit::of(&points(&[4096.0, 4100.0], |x| if x > 4096.0 { 1e-3 } else { 2e-3 })).unwrap();
        assert_eq!(twice.per_byte_seconds, 0.0);
        assert_eq!(Fit::of(&[]), None);
    }

    #[test]
    fn costs_are_never_negative() {
        let falling = Fit::of(&points(&SIZES, |x| 1e-3 - 1e-9 * x)).unwrap();
        assert_eq!(falling.per_byte_seconds, 0.0);
        let convex = Fit::of(&points(&SIZES[..3], |x| 1e-12 * x * x)).unwrap();
        assert_eq!(convex.per_request_seconds, 0.0);
        assert!(convex.per_byte_seconds > 0.0);
    }
}
