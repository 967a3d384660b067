//! The time that each block of 64 KB in a request's body adds to its service: AC's `T(s, n) = a + floor(s / 64 KB) (b + c n)`
//! (eq. 1).
//!
//! Each type has its own law. a is the type's [`ServiceTime`](super::ServiceTime) after the time of the blocks is taken off.
//! The number n of server processes is fixed, so b and c cannot be distinguished, and the law learns the slope `b + c n`. The
//! slope is that of least squares, from sums that forget:
//!
//! ```text
//! slope = (sum of b t - sum of b sum of t / n) / (sum of b^2 - (sum of b)^2 / n)
//! ```
//!
//! where a request has b blocks and takes the time t. If sizes differ too little, the slope stays. It is never negative. A few
//! bodies among many requests without one do not move the slope: with exponential times, a single request of three blocks would
//! set each block's time to what a third of its own time happened to be. `(sum of b)^2 / sum of b^2` counts the bodies, large
//! ones for more than small ones.
//!
//! Only the size of a request's body is known before service. The size of the response is part of the type's mean cost.

use libm::pow;

/// The requests of one type since the last step, with their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sized {
    /// Requests, whatever their size.
    pub requests: f64,
    /// The sum of their times.
    pub took: f64,
    /// The sum of their blocks.
    pub blocks: f64,
    /// The sum of the squares of their blocks.
    pub squares: f64,
    /// The sum of the products of a request's blocks and its time.
    pub products: f64,
}

/// The slope, in any unit of time that is the same throughout.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SizeLaw {
    sums: Sized,
    slope: f64,
}

/// The number of requests that the sums remember.
const MEMORY: f64 = 400.0;
/// What a new slope needs: this number of bodies, and this variance of the blocks over all requests.
const ENOUGH: f64 = 8.0;
const LEAST_VARIANCE: f64 = 0.02;

impl SizeLaw {
    /// The law with a slope that was learned elsewhere.
    pub(crate) fn of(slope: f64) -> Self {
        SizeLaw { slope, ..SizeLaw::default() }
    }

    /// The time that each block takes.
    pub(crate) fn slope(&self) -> f64 {
        self.slope
    }

    /// Learns from a batch.
    pub(crate) fn learn(&mut self, seen: &Sized) {
        let keep = pow(1.0 - 1.0 / MEMORY, seen.requests);
        let add = |sum: &mut f64, value: f64| *sum = *sum * keep + value;
        let sums = &mut self.sums;
        add(&mut sums.requests, seen.requests);
        add(&mut sums.took, seen.took);
        add(&mut sums.blocks, seen.blocks);
        add(&mut sums.squares, seen.squares);
        add(&mut sums.products, seen.products);
        let n = sums.requests;
        let variance = sums.squares - sums.blocks * sums.blocks / n.max(1.0);
        let bodies = sums.blocks * sums.blocks / sums.squares.max(f64::MIN_POSITIVE);
        if bodies >= ENOUGH && variance >= LEAST_VARIANCE * n {
            self.slope = ((sums.products - sums.blocks * sums.took / n) / variance).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Requests that take 2 ms, and 3 ms more for each block.
    fn seen(random: &mut Random, count: u32, most: u64) -> Sized {
        let mut seen = Sized::default();
        for _ in 0..count {
            let blocks = (random.bits() >> 20) % (most + 1);
            let noise = 0.9 + 0.2 * (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
            let (blocks, took) = (blocks as f64, (2.0 + 3.0 * blocks as f64) * noise);
            seen.requests += 1.0;
            seen.took += took;
            seen.blocks += blocks;
            seen.squares += blocks * blocks;
            seen.products += blocks * took;
        }
        seen
    }

    #[test]
    fn a_slope_is_found_among_sizes_that_differ() {
        let (mut law, mut random) = (SizeLaw::default(), Random::new(3));
        law.learn(&seen(&mut random, 4, 40));
        assert_eq!(law.slope(), 0.0, "four bodies are no evidence");
        law.learn(&seen(&mut random, 400, 0));
        law.learn(&seen(&mut random, 1, 400));
        assert_eq!(law.slope(), 0.0, "one body among hundreds of requests is none either");
        for _ in 0..20 {
            law.learn(&seen(&mut random, 5, 40));
        }
        assert!((2.8..3.2).contains(&law.slope()), "{law:?}");
        // Requests without a body do not move the slope.
        for _ in 0..1000 {
            law.learn(&seen(&mut random, 5, 0));
        }
        assert!((2.8..3.2).contains(&law.slope()), "{law:?}");
    }
}
