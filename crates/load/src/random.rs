//! A seeded generator: the same seed gives the same run.
//!
//! xoshiro256++ (Blackman and Vigna 2019), its state filled by splitmix64. Twenty lines of our own instead of a
//! dependency, because arrivals in tests and demonstrations must be the same numbers for as long as the seed is.

/// A stream of pseudo-random numbers that its seed determines.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of `seed`. Every seed is a good one, zero too.
    pub fn seeded(seed: u64) -> Self {
        let mut weyl = seed;
        let state = std::array::from_fn(|_| {
            weyl = weyl.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (weyl ^ (weyl >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Self { state }
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; 0 if `bound` is 0. The bias is below 2^-32 for a 32-bit bound.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u32
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_stream() {
        let mut one = Random::seeded(7);
        let mut same = Random::seeded(7);
        let mut other = Random::seeded(8);
        let first: Vec<u64> = (0..8).map(|_| one.bits()).collect();
        assert_eq!(first, (0..8).map(|_| same.bits()).collect::<Vec<_>>());
        assert_ne!(first, (0..8).map(|_| other.bits()).collect::<Vec<_>>());
    }

    #[test]
    fn exponential_has_mean_one_and_variance_one() {
        let mut random = Random::seeded(1);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.03, "variance {variance}");
    }

    #[test]
    fn below_reaches_every_value_about_equally() {
        let mut random = Random::seeded(3);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
