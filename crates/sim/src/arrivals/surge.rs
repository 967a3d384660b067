//! SURGE's user equivalents: each asks for a page and the files in it one after another, then is inactive for a while.
//!
//! P. Barford and M. Crovella, "Generating Representative Web Workloads for Network and Server Performance Evaluation"
//! (SIGMETRICS 1998), table 4:
//!
//! | what | distribution |
//! |---|---|
//! | files of a page | Pareto, `k = 1`, `alpha = 2.43`; the whole part is taken |
//! | time between two files of a page (active OFF) | Weibull, `a = 1.46` s, `b = 0.382` |
//! | time between two pages (inactive OFF) | Pareto, `k = 1` s, `alpha = 1.5` |
//!
//! SURGE's users wait for their answers: each time is counted from the answer to the request before. The paper QM (3.2) changed
//! that so that the rate of requests does not depend on the server: each time is counted from the request before. The workload
//! says which of the two holds. Like the other processes, all users together have the rate 1 in a time of their own, if answers
//! take no time. If there are as many users as [`user_rate`] requests a second of each give the rate, that time is SURGE's own.

use crate::distribution::normal;
use plimsoll_core::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

const FILES_TAIL: f64 = 2.43;
const ACTIVE_SCALE: f64 = 1.46;
const ACTIVE_SHAPE: f64 = 0.382;
const INACTIVE_TAIL: f64 = 1.5;
/// `ACTIVE_SCALE gamma(1 + 1 / ACTIVE_SHAPE)` (s).
const MEAN_ACTIVE: f64 = 5.538;
/// The mean of the whole part of a Pareto variable with `k = 1` is `zeta(FILES_TAIL)`.
const MEAN_FILES: f64 = 1.3701;
/// The mean of a Pareto variable with `k = 1` s (s).
const MEAN_INACTIVE: f64 = INACTIVE_TAIL / (INACTIVE_TAIL - 1.0);
/// The most files that are left of a page that is in progress when a run begins.
const MOST_FILES: u32 = 10_000;

/// Requests per second of one user.
pub(super) fn user_rate() -> f64 {
    MEAN_FILES / (MEAN_INACTIVE + (MEAN_FILES - 1.0) * MEAN_ACTIVE)
}

/// All user equivalents together.
pub(super) struct UserEquivalents {
    /// For each user, when it asks next (s), the earliest first, and how many files of its page are left after that. Times are
    /// not negative, so their bits order as the numbers do.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// Requests per second of all users.
    rate: f64,
    now: f64,
    waits: bool,
    /// If users wait for their answers: how many more files of its page the user of the last arrival wants.
    left: Option<u32>,
}

impl UserEquivalents {
    /// Users in their stationary state.
    pub(super) fn new(users: u32, waits: bool, random: &mut Random) -> Self {
        let users = users.max(1);
        let next = (0..users).map(|_| Reverse(under_way(random))).collect();
        UserEquivalents { next, rate: f64::from(users) * user_rate(), now: 0.0, waits, left: None }
    }

    /// The time from one request to the next. If users wait, only each user's first request comes from here.
    pub(super) fn interval(&mut self, random: &mut Random) -> f64 {
        let began = self.now;
        let Some(mut first) = self.next.peek_mut() else { return f64::INFINITY };
        let Reverse((time, left)) = *first;
        self.now = f64::from_bits(time);
        if self.waits {
            PeekMut::pop(first);
            self.left = Some(left);
        } else {
            let (gap, left) = step(left, random);
            *first = Reverse(((self.now + gap).to_bits(), left));
        }
        (self.now - began) * self.rate
    }

    /// If users wait for their answers: how many more files of its page the user of the last arrival wants.
    pub(super) fn files_left(&self) -> Option<u32> {
        self.left
    }

    /// The time from an answer to its user's next request, and how many files are left after that.
    pub(super) fn after_answer(&self, left: u32, random: &mut Random) -> (f64, u32) {
        let (gap, left) = step(left, random);
        (gap * self.rate, left)
    }
}

/// If a user has `left` files of its page left: the time until it asks again, and how many are left after that.
fn step(left: u32, random: &mut Random) -> (f64, u32) {
    match left.checked_sub(1) {
        Some(left) => (active_off(random), left),
        None => (inactive_off(random), files(random) - 1),
    }
}

/// The stationary state of a user: when it asks next, and what is left after that. The residual of a time has the density `P(X
/// > x) / E X`; if all times began fresh, there would be too many requests for hours.
fn under_way(random: &mut Random) -> (u64, u32) {
    let active = (MEAN_FILES - 1.0) * MEAN_ACTIVE;
    if random.uniform() * (active + MEAN_INACTIVE) < MEAN_INACTIVE {
        return (inactive_left(random).to_bits(), files(random) - 1);
    }
    // After the present file, r files are left with a probability proportional to (r + 2)^-FILES_TAIL, that of a page with that
    // many.
    let (mut left, mut chance) = (0, random.uniform() * (MEAN_FILES - 1.0));
    while left < MOST_FILES {
        chance -= f64::from(left + 2).powf(-FILES_TAIL);
        if chance <= 0.0 {
            break;
        }
        left += 1;
    }
    (active_left(random).to_bits(), left)
}

/// The residual of a time between two pages (s): uniform below 1 s with probability `(alpha - 1) / alpha`, otherwise with a
/// Pareto tail of exponent alpha - 1.
fn inactive_left(random: &mut Random) -> f64 {
    if random.uniform() * INACTIVE_TAIL < INACTIVE_TAIL - 1.0 {
        return random.uniform();
    }
    pareto(INACTIVE_TAIL - 1.0, random)
}

/// The residual of a time between two files (s): a uniform part of a time drawn in proportion to its length; of such a time x,
/// `(x / a)^b` has the gamma distribution of shape 1 + 1 / b.
fn active_left(random: &mut Random) -> f64 {
    random.uniform() * ACTIVE_SCALE * gamma(1.0 + 1.0 / ACTIVE_SHAPE, random).powf(1.0 / ACTIVE_SHAPE)
}

/// A gamma variate, for a shape of at least 1 (Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000).
fn gamma(shape: f64, random: &mut Random) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - random.uniform()).ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

fn pareto(tail: f64, random: &mut Random) -> f64 {
    (1.0 - random.uniform()).powf(-1.0 / tail)
}

/// The number of files of a page.
fn files(random: &mut Random) -> u32 {
    pareto(FILES_TAIL, random) as u32
}

/// A time between two files of a page (s).
fn active_off(random: &mut Random) -> f64 {
    ACTIVE_SCALE * (-(1.0 - random.uniform()).ln()).powf(1.0 / ACTIVE_SHAPE)
}

/// A time between two pages (s).
fn inactive_off(random: &mut Random) -> f64 {
    pareto(INACTIVE_TAIL, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(draw: impl FnMut() -> f64) -> Vec<f64> {
        let mut all: Vec<f64> = std::iter::repeat_with(draw).take(200_000).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// At each quantile q the share of draws at most x(q) of the published distribution, within five standard errors.
    fn has_quantiles(all: &[f64], quantile: impl Fn(f64) -> f64) {
        for q in [0.1, 0.5, 0.9, 0.99, 0.999_f64] {
            let share = all.partition_point(|x| *x <= quantile(q)) as f64 / all.len() as f64;
            let error = (q * (1.0 - q) / all.len() as f64).sqrt();
            assert!((share - q).abs() < 5.0 * error, "{share} at {q}");
        }
    }

    #[test]
    fn times_have_the_published_quantiles_and_pages_the_published_numbers_of_files() {
        let mut random = Random::new(71);
        has_quantiles(&sorted(|| inactive_off(&mut random)), |q| (1.0 - q).powf(-1.0 / 1.5));
        let weibull = |q: f64| 1.46 * (-(1.0 - q).ln()).powf(1.0 / 0.382);
        has_quantiles(&sorted(|| active_off(&mut random)), weibull);
        let all = sorted(|| f64::from(files(&mut random)));
        for n in [2.0, 3.0, 5.0, 10.0_f64] {
            let (share, published) = (1.0 - all.partition_point(|x| *x < n) as f64 / 2e5, n.powf(-2.43));
            assert!((share - published).abs() < 5.0 * (published / 2e5).sqrt(), "{n}: {share}, {published}");
        }
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        let zeta = (1..100_000).map(|n| f64::from(n).powf(-FILES_TAIL)).sum::<f64>();
        assert!((zeta - MEAN_FILES).abs() < 1e-3, "{zeta}");
        // gamma(1 + 1 / b) = integral of the quantile function over [0, 1], by the substitution q = 1 - exp(-y).
        let mean: f64 = (0..400_000)
            .map(|n| {
                let y = (f64::from(n) + 0.5) * 1e-4;
                1e-4 * ACTIVE_SCALE * y.powf(1.0 / ACTIVE_SHAPE) * (-y).exp()
            })
            .sum();
        assert!((mean - MEAN_ACTIVE).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_run_begins_as_if_users_had_always_been_there() {
        // 40,000 users: the first second has as many requests as any other.
        let mut users = UserEquivalents::new(40_000, false, &mut Random::new(72));
        let mut random = Random::new(73);
        let rate = 40_000.0 * user_rate();
        let (mut time, mut counts) = (0.0, [0.0; 20]);
        while time < 20.0 {
            time += users.interval(&mut random) / rate;
            if let Some(count) = counts.get_mut(time as usize) {
                *count += 1.0 / rate;
            }
        }
        assert!(counts.iter().all(|count| (count - 1.0_f64).abs() < 0.05), "{counts:?}");
    }
}
