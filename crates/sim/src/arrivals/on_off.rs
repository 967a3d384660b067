//! Self-similar arrivals: many sources that are on and off for times with heavy tails.
//!
//! With on and off times of tail `x^-alpha`, 1 < alpha < 2, the sum of many such sources is self-similar with
//! `H = (3 - alpha) / 2` over times that are long against one period (Willinger, Taqqu, Sherman, Wilson, "Self-Similarity
//! Through High-Variability", 1997, theorem 1). On and off last equally long on average. A source that is on sends a
//! Poisson stream of [`REQUESTS`] requests on average: within one period the process is bursty but not self-similar, as
//! traffic is.
//!
//! Time here is that of a process of rate 1. The initial state is drawn from the stationary distribution: the residual length
//! of a period has the density `P(X > x) / E X`, whose tail is even heavier, so the effect of starting with all periods fresh
//! would last very long.

use crate::distribution::exponential;
use plimsoll_core::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Mean number of requests in one on period: a page and what belongs to it.
const REQUESTS: f64 = 10.0;

/// The sources together.
pub(super) struct OnOff {
    /// Tail exponent of the periods.
    alpha: f64,
    /// Shortest period.
    least: f64,
    /// The rate of a source while it is on.
    rate: f64,
    /// How many sources are on.
    on: u32,
    /// For each source, when it switches and whether it is on now, the earliest first. Times are not negative, so their bits
    /// order as the numbers do.
    turns: BinaryHeap<Reverse<(u64, u32, bool)>>,
    now: f64,
}

impl OnOff {
    /// Sources in their stationary state.
    pub(super) fn new(hurst: f64, sources: u32, random: &mut Random) -> Self {
        let sources = sources.max(1);
        let alpha = 3.0 - 2.0 * hurst;
        // On average half of the sources are on.
        let rate = 2.0 / f64::from(sources);
        let mean = REQUESTS / rate;
        let least = mean * (alpha - 1.0) / alpha;
        let mut all = OnOff { alpha, least, rate, on: 0, turns: BinaryHeap::new(), now: 0.0 };
        for source in 0..sources {
            let on = random.uniform() < 0.5;
            all.on += u32::from(on);
            let left = all.residual(random);
            all.turns.push(Reverse((left.to_bits(), source, on)));
        }
        all
    }

    /// Time from one request to the next.
    pub(super) fn interval(&mut self, random: &mut Random) -> f64 {
        let began = self.now;
        let mut left = exponential(random);
        loop {
            let rate = self.rate * f64::from(self.on);
            let Some(mut first) = self.turns.peek_mut() else { return left };
            let Reverse((turn, source, on)) = *first;
            let turn = f64::from_bits(turn);
            let reached = rate * (turn - self.now);
            if left < reached {
                self.now += left / rate;
                // Times are stored relative to the last request, so they stay small however long the run is.
                return self.now - began;
            }
            left -= reached;
            self.now = turn;
            let period = self.least * (1.0 - random.uniform()).powf(-1.0 / self.alpha);
            *first = Reverse(((turn + period).to_bits(), source, !on));
            self.on = if on { self.on - 1 } else { self.on + 1 };
        }
    }

    /// The residual length of a period at an arbitrary time: uniform below the shortest period with probability `least / E X =
    /// (alpha - 1) / alpha`, otherwise with a Pareto tail of exponent alpha - 1.
    fn residual(&self, random: &mut Random) -> f64 {
        if random.uniform() * self.alpha < self.alpha - 1.0 {
            return self.least * random.uniform();
        }
        self.least * (1.0 - random.uniform()).powf(-1.0 / (self.alpha - 1.0))
    }
}
