//! The token buckets of a contract, which tell the requests inside a site's contract from those beyond it (UC 5.1).
//!
//! A request beyond the contract is not turned away here: it is an ordinary request, so the service level of its class
//! degrades or rejects it, and the allocation gives the class what the site's U* carries.
//!
//! There are two buckets in the manner of GCRA, each one word that threads share: requests against R_max, and delivered
//! bytes against W_max. A word is a *pacing time*: the instant until which everything that arrived would last at the
//! promised rate. Its lead over now measures what arrived early. A request conforms while the lead is at most the burst.
//!
//! **Every** arrival advances the pacing time, whether it conforms or not, up to half a burst beyond the limit. In a plain
//! bucket only conforming requests advance it. Then a site at 2.5 times its rate would have 40 % of its requests at full
//! quality, which uses the contract up, and the rest rejected. UC 5.1 asks for something else: a site over its rate loses
//! the guarantee of full quality as a whole, and gets what U* carries, most of it degraded before any request is rejected.
//! Here the lead of such a site stays at its limit, and no request conforms until the rate has fallen.
//!
//! Chance must not break a contract that is used exactly. The lead of Poisson arrivals at R_max is a random walk without
//! drift, which would be beyond the burst half of the time. So the pace is faster than promised by a small *slack* e.
//! The walk then has the drift -e and an exponential stationary distribution, and lies beyond a burst of K requests with
//! probability `exp(-2 e K)`; `e = ln(1000) / 2 K` makes that a thousandth (K = 100: 3.5 %). What a site takes inside the
//! slack still counts against its U*, so the slack only changes which requests are degraded.
//!
//! Bytes are counted at their delivery, where no clock is read. So `sent` only adds, and the next arrival limits the lead
//! from both sides. A degraded response counts with the bytes that its request asked for, which are those of full quality. If it counted with
//! its own, degrading would bring the site back inside its bandwidth: half of its requests would take all of U* at full
//! quality, and the others would be rejected for it.

use crate::promises::Guarantee;
use crate::time::Instant;
use libm::log;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The probability with which chance may break a contract that is used exactly.
const CHANCE: f64 = 1e-3;
/// The largest slack: a short burst leaves no room for chance.
const MOST_SLACK: f64 = 0.1;

/// The token buckets of one site's contract.
pub(crate) struct TokenBucket {
    guarantee: Guarantee,
    requests: Pace,
    bytes: Option<Pace>,
}

impl TokenBucket {
    pub(crate) fn new(guarantee: &Guarantee) -> Self {
        let burst_seconds = guarantee.burst.as_secs_f64();
        let slack = (-log(CHANCE) / (2.0 * guarantee.rate * burst_seconds)).min(MOST_SLACK);
        let pace = |rate: f64| Pace::new(rate * (1.0 + slack), guarantee.burst.as_nanos() as u64);
        let bytes = guarantee.bandwidth_bytes_per_second.map(pace);
        TokenBucket { guarantee: *guarantee, requests: pace(guarantee.rate), bytes }
    }

    /// The contract.
    pub(crate) fn guarantee(&self) -> &Guarantee {
        &self.guarantee
    }

    /// Counts an arrival; returns whether it is inside the contract.
    pub(crate) fn conforms(&self, now: Instant) -> bool {
        let inside = self.requests.take(now, self.requests.step_ns(1));
        // The second bucket is looked at in any case, because that limits its lead.
        inside & self.bytes.as_ref().is_none_or(|bytes| bytes.take(now, 0))
    }

    /// Whether a bandwidth was promised.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// Counts delivered bytes, as many as they would be at full quality.
    pub(crate) fn sent(&self, bytes: u64) {
        if let Some(pace) = &self.bytes {
            pace.word.fetch_add(pace.step_ns(bytes), Ordering::Relaxed);
        }
    }
}

/// One token bucket.
struct Pace {
    /// The pacing time (ns).
    word: AtomicU64,
    ns_per_unit: f64,
    burst_ns: u64,
}

impl Pace {
    fn new(units_per_second: f64, burst_ns: u64) -> Self {
        Pace { word: AtomicU64::new(0), ns_per_unit: 1e9 / units_per_second, burst_ns }
    }

    fn step_ns(&self, units: u64) -> u64 {
        (units as f64 * self.ns_per_unit) as u64
    }

    /// Advances by `step_ns`; returns whether the lead was within the burst before.
    fn take(&self, now: Instant, step_ns: u64) -> bool {
        let now = now.as_nanos();
        let most = self.burst_ns + self.burst_ns / 2;
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let lead = word.saturating_sub(now);
            let next = now.saturating_add((lead.saturating_add(step_ns)).min(most.max(step_ns)));
            match self.word.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return lead <= self.burst_ns,
                Err(seen) => word = seen,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The share of Poisson arrivals at `rate` that conforms to 100/s over `seconds`.
    fn conforming(rate: f64, seconds: f64, seed: u64) -> f64 {
        let bucket = TokenBucket::new(&Guarantee::new(100.0, 1e9));
        let mut random = Random::new(seed);
        let (mut now, mut inside, mut all) = (0.0, 0.0, 0.0);
        while now < seconds {
            let uniform = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
            now -= log(1.0 - uniform) / rate;
            inside += f64::from(u8::from(bucket.conforms(Instant::from_secs_f64(now))));
            all += 1.0;
        }
        inside / all
    }

    #[test]
    fn chance_does_not_break_a_contract_that_is_offered_exactly() {
        for seed in 0..20 {
            let share = conforming(100.0, 1000.0, seed);
            assert!(share > 0.99, "seed {seed}: {share}");
        }
    }

    #[test]
    fn a_site_over_its_rate_loses_the_guarantee_as_a_whole() {
        for seed in 0..5 {
            let share = conforming(250.0, 1000.0, seed);
            // The first burst conforms, which is 200 of 150,000 requests.
            assert!(share < 0.005, "seed {seed}: {share}");
        }
    }

    #[test]
    fn the_guarantee_comes_back_when_the_rate_falls() {
        let bucket = TokenBucket::new(&Guarantee::new(100.0, 1e9));
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        (0..5000).for_each(|ms| _ = bucket.conforms(at(ms)));
        assert!(!bucket.conforms(at(5000)));
        // At half of the rate the half burst beyond the limit is gone within 2 s.
        let back = (5000..9000).step_by(20).find(|ms| bucket.conforms(at(*ms))).expect("it comes back");
        assert!((6000..7500).contains(&back), "after {} ms", back - 5000);
    }

    #[test]
    fn bytes_count_as_they_are_delivered() {
        let bucket = TokenBucket::new(&Guarantee::new(1000.0, 1e6));
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert!(bucket.conforms(at(1000)));
        bucket.sent(1_900_000);
        assert!(bucket.conforms(at(1001)), "within the burst of 2 MB");
        bucket.sent(200_000);
        assert!(!bucket.conforms(at(1002)));
        assert!(bucket.conforms(at(1200)), "200 kB later");
        // The lead is never more than half a burst beyond the limit.
        bucket.sent(1 << 40);
        assert!(!bucket.conforms(at(1200)));
        assert!(bucket.conforms(at(2300)));
    }

    #[test]
    fn a_rate_slower_than_its_burst_still_conforms() {
        let bucket = TokenBucket::new(&Guarantee::new(0.1, 1e6));
        for second in (0..1000).step_by(10) {
            assert!(bucket.conforms(Instant::from_secs_f64(f64::from(second))), "{second}");
        }
    }
}
