//! The token buckets of a contract, which distinguish the requests inside a site's contract from those beyond it (UC 5.1).
//!
//! A request beyond the contract is not turned away here: it is an ordinary request, so the service level of its class
//! degrades or rejects it, and the allocation gives the class what the site's U* carries.
//!
//! There are two buckets in the manner of GCRA, each one word that threads share: requests against R_max, and delivered
//! bytes against W_max. A word is GCRA's *theoretical arrival time*: the instant until which everything that arrived would
//! last at the promised rate. Its lead over now measures what arrived early. A request conforms while the lead is at most the
//! *depth*.
//!
//! **Every** arrival advances this time, whether it conforms or not, up to half a depth beyond the limit. In a plain
//! bucket only conforming requests advance it. Then a site at 2.5 times its rate would have 40 % of its requests at full
//! quality, which uses the contract up, and the rest rejected. UC 5.1 asks for something else: a site over its rate loses
//! the guarantee of full quality as a whole, and gets what U* carries, most of it degraded before any request is rejected.
//! Here the lead of such a site stays at its limit, and no request conforms until the rate has fallen.
//!
//! Chance must not break a contract that is used exactly. The lead of Poisson arrivals at R_max is a random walk without drift,
//! which would be beyond any depth half of the time. So the pace is faster than promised by a small *slack* e. The walk then
//! has the drift -e and a stationary distribution that is exponential in heavy traffic: it lies beyond a depth of B units with
//! probability `exp(-2 e B / q)`, where `q = E S^2 / E S` is the size of a step, as a unit of load meets it: 1 for requests;
//! for bytes the mean size of a response if all have one size, and many times that where a few large responses carry much of
//! the bytes (Kingman's approximation: variance over twice the drift). For a probability of [`CHANCE`], `e = -ln(CHANCE) q / 2
//! B`. If the promised burst is so short that this e would exceed [`MOST_SLACK`], e is that, and the depth follows: 85
//! requests, and 85 q bytes, q being learned from the responses. A depth of several of the largest responses is not generous: a
//! shorter measurement could not distinguish a contract that is used exactly from one that is exceeded. It is right where large
//! responses recur. A single response that is larger than all before it together counts as no more than they do, so that one
//! download in a thousand pages at most doubles q. What a site takes inside the slack still counts against its U*, so the slack
//! only changes which requests are degraded.
//!
//! Requests that come many at once, as those of a page, are larger steps than the 1 for which e is chosen. Then the promise
//! needs room instead: a rate a tenth above what comes, and a burst of twenty pages (docs/decisions, 6).
//!
//! A deep bucket would let a burst at a slow contract take its server for a minute. So if the bucket of requests is deeper than
//! the promised burst, a second one beside it has that burst as its depth, at twice the rate: Poisson arrivals at R_max are
//! eight ahead of twice the rate less often than [`CHANCE`], with a probability of 3e-5 (the wait of M/D/1 at a load of 1/2,
//! since a slack of 1 is too large for the formula above).
//!
//! Where the contracts of a plant cannot all be carried, a site that would take more than its part is *held*: none of its
//! requests conforms until all can be carried (`control/allocation/contracts.rs`).
//!
//! Bytes are counted at their delivery, where no clock is read. So `sent` only adds, and the next arrival limits the lead
//! from both sides. A degraded response counts with the bytes that its request asked for, which are those of full quality. If
//! it counted with its own, degrading would bring the site back inside its bandwidth: half of its requests would take all of U*
//! at full quality, and the others would be rejected for it.

use crate::promises::Guarantee;
use crate::sync::shared::Shared;
use crate::time::Instant;
use libm::log;

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The probability with which chance may break a contract that is used exactly.
const CHANCE: f64 = 2e-4;
/// The largest slack.
const MOST_SLACK: f64 = 0.05;
/// How many requests Poisson arrivals at R_max are ahead of twice the rate less often than [`CHANCE`].
const LEAST_BURST: f64 = 8.0;
/// The number of responses that the mean size is learned from: at twice this number, half of them are forgotten.
const REMEMBERED: f64 = 10_000.0;

/// The token buckets of one site's contract.
pub(crate) struct TokenBucket {
    guarantee: Guarantee,
    /// Whether chance makes the bucket of requests deeper than the burst that was promised.
    has_burst: bool,
    words: Shared<ContractWords>,
}

/// The words of a contract's token buckets.
#[derive(Default)]
#[repr(C)]
pub(crate) struct ContractWords {
    requests: GcraBucket,
    /// The bucket that bounds a burst, where chance makes `requests` too deep to bound it.
    burst: GcraBucket,
    /// Used where a bandwidth was promised.
    bytes: GcraBucket,
    sizes: ResponseSizes,
    /// 1 if the site is held to its part of what the plant carries.
    held: AtomicU64,
}

impl TokenBucket {
    /// The buckets over these words, which may be in use already by others with the same contract.
    pub(crate) fn new(words: Shared<ContractWords>, guarantee: &Guarantee) -> Self {
        let least = guarantee.rate * guarantee.burst.as_secs_f64();
        let has_burst = words.requests.adapt(guarantee.rate, least, 1.0) > least;
        words.burst.set(2.0 * guarantee.rate, least.max(LEAST_BURST));
        let bucket = TokenBucket { guarantee: *guarantee, has_burst, words };
        bucket.adapt();
        bucket
    }

    /// Adapts the depth in bytes to the sizes of the responses.
    pub(crate) fn adapt(&self) {
        let Guarantee { rate, bandwidth_bytes_per_second, burst } = self.guarantee;
        if let Some(bandwidth) = bandwidth_bytes_per_second {
            let step = self.words.sizes.step().unwrap_or(bandwidth / rate);
            self.words.bytes.adapt(bandwidth, bandwidth * burst.as_secs_f64(), step);
        }
    }

    /// The contract.
    pub(crate) fn guarantee(&self) -> &Guarantee {
        &self.guarantee
    }

    /// Counts an arrival; returns whether it is inside the contract.
    pub(crate) fn conforms(&self, now: Instant) -> bool {
        let ContractWords { requests, burst, bytes, .. } = &*self.words;
        let inside = requests.take(now, requests.step_ns(1));
        // All are looked at in any case, because that advances and limits their leads.
        inside
            & !self.is_held()
            & (!self.has_burst || burst.take(now, burst.step_ns(1)))
            & (!self.counts_bytes() || bytes.take(now, 0))
    }

    /// Whether no request is inside the contract, since the plant does not carry what the site would take.
    pub(crate) fn is_held(&self) -> bool {
        self.words.held.load(Ordering::Relaxed) != 0
    }

    /// Sets whether the plant carries less than the site would take, so that no request is inside the contract.
    pub(crate) fn hold(&self, held: bool) {
        self.words.held.store(u64::from(held), Ordering::Relaxed);
    }

    /// The time in which the contract promises one request (ns).
    pub(crate) fn pace_ns(&self) -> u64 {
        (1e9 / self.guarantee.rate) as u64
    }

    /// Whether a bandwidth was promised.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.guarantee.bandwidth_bytes_per_second.is_some()
    }

    /// Learns the size of a response that was delivered at full quality.
    pub(crate) fn learn(&self, bytes: u64) {
        if let Some(bandwidth) = self.guarantee.bandwidth_bytes_per_second {
            self.words.sizes.learn(bytes as f64, bandwidth / self.guarantee.rate);
        }
    }

    /// Counts delivered bytes. The caller gives the size that the response would have at full quality.
    pub(crate) fn sent(&self, bytes: u64) {
        if self.counts_bytes() {
            let bucket = &self.words.bytes;
            bucket.tat_ns.fetch_add(bucket.step_ns(bytes), Ordering::Relaxed);
        }
    }
}

/// The sizes of responses at full quality, as sums of f64.
#[derive(Default)]
#[repr(C)]
struct ResponseSizes {
    count: AtomicU64,
    bytes: AtomicU64,
    squares: AtomicU64,
}

impl ResponseSizes {
    /// Learns a size, the first one as at most `promised`. No response adds more to the sum of squares than all before it: a
    /// mix of sizes is learned from several large responses, and a single one does not open the bucket for long.
    fn learn(&self, bytes: f64, promised: f64) {
        let known = f64::from_bits(self.squares.load(Ordering::Relaxed));
        let most = if known > 0.0 { known } else { promised * promised };
        let square = (bytes * bytes).min(most);
        self.add([1.0, libm::sqrt(square), square]);
    }

    fn add(&self, [count, bytes, squares]: [f64; 3]) {
        for (word, value) in [(&self.count, count), (&self.bytes, bytes), (&self.squares, squares)] {
            let sum = |bits: u64| Some((f64::from_bits(bits) + value).to_bits());
            // The function always has a value, so there is always a sum.
            _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        }
    }

    /// E S^2 / E S; `None` while nothing was delivered. Forgets what is old.
    fn step(&self) -> Option<f64> {
        let words = [&self.count, &self.bytes, &self.squares];
        let [count, bytes, squares] = words.map(|word| f64::from_bits(word.load(Ordering::Relaxed)));
        if count > 2.0 * REMEMBERED {
            self.add([count, bytes, squares].map(|sum| -0.5 * sum));
        }
        (bytes > 0.0).then(|| squares / bytes)
    }
}

/// One token bucket, by the generic cell rate algorithm.
#[derive(Default)]
#[repr(C)]
struct GcraBucket {
    /// The theoretical arrival time (ns).
    tat_ns: AtomicU64,
    /// An f64.
    ns_per_unit: AtomicU64,
    depth_ns: AtomicU64,
}

impl GcraBucket {
    fn set(&self, units_per_second: f64, depth: f64) {
        let ns_per_unit = 1e9 / units_per_second;
        self.ns_per_unit.store(ns_per_unit.to_bits(), Ordering::Relaxed);
        self.depth_ns.store((depth * ns_per_unit) as u64, Ordering::Relaxed);
    }

    /// Sets pace and depth for a promised rate that comes in steps of this size, where the promised burst is `least`;
    /// returns the depth.
    fn adapt(&self, rate: f64, least: f64, step: f64) -> f64 {
        let chance = -0.5 * log(CHANCE) * step;
        let depth = least.max(chance / MOST_SLACK);
        self.set(rate * (1.0 + chance / depth), depth);
        depth
    }

    fn step_ns(&self, units: u64) -> u64 {
        (units as f64 * f64::from_bits(self.ns_per_unit.load(Ordering::Relaxed))) as u64
    }

    /// Advances by `step_ns`; returns whether the lead was within the depth before.
    fn take(&self, now: Instant, step_ns: u64) -> bool {
        let now = now.as_nanos();
        let depth = self.depth_ns.load(Ordering::Relaxed);
        let most = depth + depth / 2;
        let lead = |tat: u64| tat.saturating_sub(now);
        let next = |tat| now.saturating_add(lead(tat).saturating_add(step_ns).min(most.max(step_ns)));
        let before = self.tat_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tat| Some(next(tat)));
        before.is_ok_and(|tat| lead(tat) <= depth)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::random::Random;
    use alloc::vec::Vec;

    /// The share of Poisson arrivals at `rate` that conforms to 100/s over `seconds`.
    fn conforming(rate: f64, seconds: f64, seed: u64) -> f64 {
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(100.0, 1e9));
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

    /// The share of pages' requests that conforms to 100/s with a burst of `burst` pages: pages come by Poisson's law, each
    /// with `requests` requests at once, at `part` of the rate.
    fn conforming_pages((requests, burst): (u64, f64), part: f64) -> f64 {
        let burst = crate::time::Duration::from_secs_f64(burst * requests as f64 / 100.0);
        let bucket = TokenBucket::new(Shared::default(), &Guarantee { burst, ..Guarantee::new(100.0, 1e9) });
        let (mut random, mut now, mut inside) = (Random::new(requests), 0.0, 0);
        const PAGES: u64 = 50_000;
        for _ in 0..PAGES {
            now += random.exponential(requests as f64 / (100.0 * part));
            inside += (0..requests).filter(|_| bucket.conforms(Instant::from_secs_f64(now))).count();
        }
        inside as f64 / (PAGES * requests) as f64
    }

    /// A rate with room and a burst of many pages do it, and neither alone.
    #[test]
    fn chance_breaks_a_contract_of_pages_unless_it_has_room() {
        for requests in [10, 30] {
            let with = |burst, part| conforming_pages((requests, burst), part);
            let found =
                [(20.0, 0.9), (40.0, 0.95), (20.0, 1.0), (5.0, 0.9)].map(|(burst, part)| with(burst, part));
            assert!(found[0] > 0.985 && found[1] > 0.975, "{requests} requests: {found:?}");
            assert!(
                (0.5..0.9).contains(&found[2]) && (0.6..0.95).contains(&found[3]),
                "{requests}: {found:?}"
            );
        }
    }

    /// Sizes of responses with a mean of about 1, by the quantile of the size.
    type Sizes = fn(f64) -> f64;
    const SIZES: [(&str, Sizes); 5] = [
        ("constant", |_| 1.0),
        ("exponential", |u| -log(1.0 - u)),
        ("one in a hundred is large", |u| if u < 0.01 { 50.5 } else { 0.5 }),
        ("Pareto 1.5 up to a thousand times", |u| pareto(u, 1.5, 1e3)),
        ("Pareto 1.2 up to ten thousand times", |u| pareto(u, 1.2, 1e4)),
    ];

    fn pareto(u: f64, shape: f64, ratio: f64) -> f64 {
        let span = 1.0 - libm::pow(ratio, -shape);
        let mean = shape / span * (libm::pow(ratio, 1.0 - shape) - 1.0) / (1.0 - shape);
        libm::pow(1.0 - u * span, -1.0 / shape) / mean
    }

    /// Uses a contract of `rate` responses per second and their bytes, or of the bytes alone if `bytes_only`, `multiple` times
    /// over. Returns the share of the requests that conforms, and the conforming bytes in seconds' worth of the contract.
    fn used(
        (rate, seconds): (f64, f64),
        multiple: fn(f64) -> f64,
        sizes: Sizes,
        (seed, bytes_only): (u64, bool),
    ) -> (f64, f64) {
        const MEAN: f64 = 16_000.0;
        let promised = if bytes_only { 10.0 * rate } else { rate };
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(promised, rate * MEAN));
        let mut random = Random::new(seed);
        let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (mut now, mut second, mut inside, mut all, mut bytes) = (0.0, 1.0, 0.0, 0.0, 0.0);
        while now < seconds {
            now -= log(1.0 - uniform()) / (rate * multiple(now));
            while second < now {
                bucket.adapt();
                second += 1.0;
            }
            let size = sizes(uniform()) * MEAN;
            let conforms = bucket.conforms(Instant::from_secs_f64(now));
            bucket.sent(size as u64);
            bucket.learn(size as u64);
            let conforming = f64::from(u8::from(conforms));
            (inside, all, bytes) = (inside + conforming, all + 1.0, bytes + conforming * size);
        }
        (inside / all, bytes / (rate * MEAN))
    }

    #[test]
    fn chance_does_not_break_a_contract_whatever_the_sizes_and_however_slow() {
        for rate in [0.7_f64, 7.0, 30.0, 120.0] {
            for (name, sizes) in SIZES {
                let seconds = (120_000.0 / rate).clamp(2_400.0, 10_000.0);
                let share = |seed| used((rate, seconds), |_| 1.0, sizes, (seed, seed % 2 == 0)).0;
                let shares: Vec<f64> = (40..46).map(share).collect();
                let mean = shares.iter().sum::<f64>() / 6.0;
                // Once beyond the depth the lead stays there for minutes, so that chance is not spread evenly.
                let each = shares.iter().all(|share| *share > 0.9);
                assert!(mean >= 0.99 && each, "{rate}/s, {name}: {mean}, {shares:?}");
            }
        }
    }

    /// Offers `multiple` times a contract for the bytes of 120 responses/s; after `at` seconds comes one response of `times`
    /// times the mean. Returns the share that conforms from 30 s to 400 s.
    fn with_an_outlier(multiple: f64, (at, times): (f64, f64), seed: u64) -> f64 {
        const MEAN: f64 = 32_000.0;
        const RATE: f64 = 120.0;
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(2.0 * RATE, RATE * MEAN));
        let mut random = Random::new(seed);
        let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (mut now, mut second, mut inside, mut all, mut outlier) = (0.0, 1.0, 0.0, 0.0, times);
        while now < 400.0 {
            now -= log(1.0 - uniform()) / (RATE * multiple);
            while second < now {
                bucket.adapt();
                second += 1.0;
            }
            let conforms = bucket.conforms(Instant::from_secs_f64(now));
            let mut size = MEAN;
            if now > at && outlier > 0.0 {
                size *= core::mem::take(&mut outlier);
            }
            bucket.sent(size as u64);
            bucket.learn(size as u64);
            if now > 30.0 {
                inside += f64::from(u8::from(conforms));
                all += 1.0;
            }
        }
        inside / all
    }

    #[test]
    fn one_huge_response_neither_opens_a_bandwidth_nor_closes_it() {
        for outlier in [(20.0, 600.0), (20.0, 6_000.0), (20.0, 600_000.0), (0.0, 6_000.0)] {
            for seed in 70..74 {
                let twice = with_an_outlier(2.0, outlier, seed);
                assert!(twice < 0.05, "{outlier:?}, seed {seed}: {twice} of twice the bandwidth");
                let inside = with_an_outlier(0.9, outlier, seed);
                assert!(inside > 0.97, "{outlier:?}, seed {seed}: {inside} of what is inside");
            }
        }
    }

    #[test]
    fn a_minute_above_a_contract_brings_no_more_of_it_in_ten() {
        // The last law is left out: its mean over ten minutes is not that of its contract, by chance alone.
        for (name, sizes) in &SIZES[..4] {
            let minute = |t| if (240.0..300.0).contains(&t) { 1.1 } else { 1.0 };
            let got =
                (40..46).map(|seed| used((120.0, 600.0), minute, *sizes, (seed, true)).1).sum::<f64>() / 6.0;
            assert!(got <= 1.02 * 600.0, "{name}: {got}");
        }
        // A site that exceeds it all the time loses the guarantee, the later the more the sizes vary.
        for (name, sizes) in &SIZES[..4] {
            for seed in 40..46 {
                let (_, got) = used((120.0, 600.0), |_| 1.1, *sizes, (seed, true));
                assert!(got < 0.95 * 600.0, "{name}, seed {seed}: {got}");
            }
        }
    }

    #[test]
    fn a_crowd_at_a_slow_contract_has_the_burst_that_was_promised() {
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(2.0, 1e9));
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let inside = |range: core::ops::Range<u64>| range.filter(|ms| bucket.conforms(at(*ms))).count();
        let at_once = inside(10_000..10_200);
        assert!((4..=10).contains(&at_once), "{at_once} of 200 at once");
        let later = inside(10_200..40_200);
        assert!(later <= 85, "{later} of 1000/s in half a minute");
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
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(100.0, 1e9));
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        (0..5000).for_each(|ms| _ = bucket.conforms(at(ms)));
        assert!(!bucket.conforms(at(5000)));
        // At half of the rate the half burst beyond the limit is gone within 2 s.
        let back = (5000..9000).step_by(20).find(|ms| bucket.conforms(at(*ms))).expect("it comes back");
        assert!((6000..7500).contains(&back), "after {} ms", back - 5000);
    }

    #[test]
    fn bytes_count_as_they_are_delivered() {
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(1000.0, 1e6));
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
        let bucket = TokenBucket::new(Shared::default(), &Guarantee::new(0.1, 1e6));
        for second in (0..1000).step_by(10) {
            assert!(bucket.conforms(Instant::from_secs_f64(f64::from(second))), "{second}");
        }
    }
}
