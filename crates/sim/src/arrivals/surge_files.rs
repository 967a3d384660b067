//! SURGE's files: how large they are, and how often each is asked for.
//!
//! P. Barford and M. Crovella, "Generating Representative Web Workloads for Network and Server Performance Evaluation"
//! (SIGMETRICS 1998):
//!
//! | what | distribution |
//! |---|---|
//! | size of a file, the body | lognormal, `mu = 9.357`, `sigma = 1.318` |
//! | size of a file, the tail | Pareto, `k = 133,000` bytes, `alpha = 1.1` |
//! | how often a file is asked for | Zipf: in proportion to 1 over its rank |
//!
//! The tail has the 3 % of the files that the lognormal law puts above `k`. SURGE matches sizes with ranks so that the sizes of
//! requests have a tail of their own; here a file's size is independent of its rank. The mean of all requests must be known
//! before they come, and must not depend on a seed, so no size is drawn: the file of rank r has the quantile `frac(r phi)` of
//! the law, where phi is the golden ratio, because any number of successive ranks is then spread evenly over the law (Kuipers
//! and Niederreiter, "Uniform Distribution of Sequences", 1974). SURGE's temporal locality, how soon a file is asked for again,
//! is left out: no server of the simulation keeps a cache.

use crate::workload::{Law, Page};
use libm::erfc;
use std::f64::consts::FRAC_1_SQRT_2;

/// Mean and standard deviation of the logarithm of a size in bytes.
const BODY: (f64, f64) = (9.357, 1.318);
/// The least size in the tail (bytes), and the exponent of the tail.
const TAIL: (f64, f64) = (133_000.0, 1.1);
/// The fractional part of the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Files in the manner of SURGE, the most popular first. They share the page's weight; a `*` in the page's path becomes the
/// file's rank, from 1 on.
pub fn surge_files(page: &Page, count: u32) -> Vec<Page> {
    let all: f64 = (1..=count).map(|rank| 1.0 / f64::from(rank)).sum();
    let file = |rank: u32| Page {
        path: page.path.replacen('*', &rank.to_string(), 1),
        weight: page.weight / f64::from(rank) / all,
        bytes: size((f64::from(rank) * GOLDEN).fract()).round(),
        bytes_law: Law::Deterministic,
        ..page.clone()
    };
    (1..=count).map(file).collect()
}

/// The size (bytes) that this share of all files is below.
fn size(share: f64) -> f64 {
    let (least, alpha) = TAIL;
    let in_body = lognormal(least.ln());
    if share > in_body {
        return least * ((1.0 - share) / (1.0 - in_body)).powf(-1.0 / alpha);
    }
    // The bisection halves the range of the logarithm in each step.
    let (mut low, mut high) = (0.0, least.ln());
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if lognormal(middle) < share { low = middle } else { high = middle }
    }
    high.exp()
}

/// The share of the lognormal law below a size, given the logarithm of the size.
fn lognormal(log_size: f64) -> f64 {
    0.5 * erfc((BODY.0 - log_size) / BODY.1 * FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page { weight: 3.0, bytes_law: Law::Exponential, ..Page::new("/files/*.html", 1.0) }
    }

    #[test]
    fn sizes_have_the_published_quantiles_and_files_the_published_popularity() {
        let files = surge_files(&page(), 5_000);
        assert_eq!(
            (files[0].path.as_str(), files[4_999].path.as_str()),
            ("/files/1.html", "/files/5000.html")
        );
        assert!((files.iter().map(|file| file.weight).sum::<f64>() - 3.0).abs() < 1e-9);
        assert!((files[0].weight / files[99].weight - 100.0).abs() < 1e-9);
        // The lognormal law has exp(mu + z sigma), with z of normal tables; the tail has k (0.03201 / p)^(1 / alpha).
        let quantile = |z: f64| (9.357 + z * 1.318_f64).exp();
        let tail = |beyond: f64| 133_000.0 * (0.03201 / beyond).powf(1.0 / 1.1);
        for (share, published) in [
            (0.1, quantile(-1.2816)),
            (0.5, quantile(0.0)),
            (0.9, quantile(1.2816)),
            (0.99, tail(0.01)),
            (0.998, tail(0.002)),
        ] {
            // The popular files alone are spread over the law as all files are.
            for count in [500, 5_000] {
                let below = files[..count].iter().filter(|file| file.bytes <= published).count();
                let found = below as f64 / count as f64;
                assert!(
                    (found - share).abs() < 0.004,
                    "{found} below {published} among {count}, {share} published"
                );
            }
        }
    }

    #[test]
    fn a_popular_file_is_as_large_as_any_on_average() {
        let files = surge_files(&page(), 2_000);
        let median = (9.357_f64).exp();
        let weight: f64 = files.iter().filter(|file| file.bytes < median).map(|file| file.weight).sum();
        assert!((0.4..0.6).contains(&(weight / 3.0)), "{weight}");
    }
}
