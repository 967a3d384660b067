//! Randomness as an argument: the caller hands in a seeded generator. The same seed gives the same run, byte for byte.
//!
//! SplitMix64 (Steele, Lea, Flood 2014) has one word of state and passes BigCrush, and any seed is a good one. The generator
//! makes no secrets. The hash of a client's identity, which clients must not guess, takes only its key from a seed.

/// A generator of random numbers that its seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0..n; n must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with this mean: the interval of a Poisson process of rate 1 / mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_exponential() {
        let mut random = Random::new(1);
        let samples = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..samples {
            let x = random.exponential(2.0);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(samples);
        let variance = squares / f64::from(samples) - mean * mean;
        // Standard errors: 0.006 and 0.036.
        assert!((mean - 2.0).abs() < 0.03 && (variance - 4.0).abs() < 0.2, "{mean}, {variance}");
    }
}
