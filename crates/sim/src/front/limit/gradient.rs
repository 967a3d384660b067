//! Adaptive concurrency by gradient as in Envoy, with its defaults: `gradient_controller.h` (commit 0884a2799c7e) and
//! `gradient_controller.cc` (c35f67fb14e4) in `source/extensions/filters/http/adaptive_concurrency/controller/`.
//!
//! ```text
//! gradient = clamp(1.25 minRTT / sampleRTT, 0.5, 2)
//! limit    = limit gradient + sqrt(limit gradient), clamped to [3, 1000]
//! ```
//!
//! sampleRTT is the median round trip of a window of 0.1 s; an empty window changes nothing. minRTT is the median of 50 round
//! trips while the limit is pinned to 3: at the start, then 60 s after each measurement plus up to 15 % by chance, and at once
//! if five windows in a row would have the limit at 3. Requests that started before a measurement began do not count. During a
//! measurement, healthy requests are rejected.
//!
//! Two settings have no default in Envoy: the intervals of 0.1 s and 60 s are those of its documentation's example. Envoy's
//! quantiles come from a histogram with two digits; here they are exact. A client that leaves gives no sample
//! (`cancelLatencySample`); a failed response gives one.

use super::{Ask, Limiter, RoundTrip};
use plimsoll_core::random::Random;
use plimsoll_core::request::Outcome;
use plimsoll_core::time::{Duration, Instant};

const LEAST: u32 = 3;
const MOST: u32 = 1000;
const PROBE_SAMPLES: usize = 50;
const BUFFER: f64 = 0.25;
const JITTER: f64 = 0.15;
const PROBE_AGAIN_AFTER: u32 = 5;

/// Follows the ratio of an ideal round trip, measured by probing, to the present one.
#[derive(Debug)]
pub(in crate::front) struct Gradient {
    /// Between updates of the limit.
    update: Duration,
    /// Between measurements of minRTT, without jitter.
    probe: Duration,
    random: Random,
    limit: u32,
    min_rtt_us: u64,
    samples_us: Vec<u64>,
    /// The limit to return to after a measurement of minRTT; `None` if none runs.
    deferred: Option<u32>,
    epoch: Instant,
    at_least: u32,
    update_due: Instant,
    probe_due: Instant,
}

impl Gradient {
    pub(in crate::front) fn new(update: Duration, probe: Duration, seed: u64) -> Self {
        let mut new = Gradient {
            update,
            probe,
            random: Random::new(seed),
            limit: LEAST,
            min_rtt_us: 0,
            samples_us: Vec::new(),
            deferred: None,
            epoch: Instant::ZERO,
            at_least: 0,
            update_due: Instant::ZERO,
            probe_due: Instant::FAR,
        };
        new.begin_probe(Instant::ZERO);
        new
    }

    fn begin_probe(&mut self, now: Instant) {
        self.probe_due = Instant::FAR;
        if self.deferred.is_some() {
            return;
        }
        self.deferred = Some(self.limit);
        self.set_limit(LEAST);
        self.samples_us.clear();
        self.epoch = now;
    }

    fn end_probe(&mut self, now: Instant, deferred: u32) {
        self.min_rtt_us = self.median();
        self.set_limit(deferred);
        self.deferred = None;
        let range_ms = (self.probe.as_millis() as f64 * JITTER).ceil() as u64;
        let jitter = Duration::from_millis(self.random.below(range_ms.max(1)));
        self.probe_due = now + self.probe + jitter;
        self.update_due = now + self.update;
    }

    fn update(&mut self) {
        if self.samples_us.is_empty() {
            return;
        }
        let ideal = self.min_rtt_us as f64 * (1.0 + BUFFER);
        let gradient = (ideal / self.median().max(1) as f64).clamp(0.5, 2.0);
        let limit = f64::from(self.limit) * gradient;
        self.set_limit(((limit + limit.sqrt()) as u32).clamp(LEAST, MOST));
    }

    fn set_limit(&mut self, limit: u32) {
        let stays_at_least = self.deferred.is_none() && self.limit == LEAST && limit == LEAST;
        self.at_least = if stays_at_least { self.at_least + 1 } else { 0 };
        self.limit = limit;
    }

    /// The median of the samples. The samples are cleared.
    fn median(&mut self) -> u64 {
        let middle = self.samples_us.len().saturating_sub(1) / 2;
        let median = self.samples_us.select_nth_unstable(middle).1;
        let median = *median;
        self.samples_us.clear();
        median
    }
}

impl Limiter for Gradient {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.limit
    }

    fn released(&mut self, now: Instant, sample: RoundTrip) {
        if sample.ended == Outcome::Abandoned || sample.started < self.epoch {
            return;
        }
        self.samples_us.push(now.since(sample.started).as_micros() as u64);
        if let Some(deferred) = self.deferred
            && self.samples_us.len() >= PROBE_SAMPLES
        {
            self.end_probe(now, deferred);
        }
    }

    fn tick(&mut self, now: Instant) -> Instant {
        if now >= self.probe_due {
            self.begin_probe(now);
        }
        if now >= self.update_due {
            if self.deferred.is_none() {
                self.update();
                if self.at_least >= PROBE_AGAIN_AFTER {
                    self.begin_probe(now);
                }
            }
            // While minRTT is measured, a tick only checks whether the measurement is over. A measurement ends between two
            // ticks and moves the next update, which then lies after the next tick.
            self.update_due = now + self.update;
        }
        self.update_due.min(self.probe_due)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{after, ask, at};
    use super::*;

    fn limiter() -> Gradient {
        Gradient::new(Duration::from_millis(100), Duration::from_secs(60), 7)
    }

    fn answered(limiter: &mut Gradient, now: f64, rtt_ms: u64, n: u32) {
        for _ in 0..n {
            limiter.released(at(now), after(at(now), Duration::from_millis(rtt_ms), 3));
        }
    }

    /// A limiter after its first measurement, at 1 s.
    fn measured() -> Gradient {
        let mut limiter = limiter();
        answered(&mut limiter, 1.0, 40, 50);
        limiter
    }

    #[test]
    fn the_limit_is_pinned_until_fifty_have_answered() {
        let mut limiter = limiter();
        assert!(limiter.admit(at(0.0), ask(2)) && !limiter.admit(at(0.0), ask(3)));
        answered(&mut limiter, 1.0, 40, 49);
        assert_eq!(limiter.tick(at(1.05)), at(1.15));
        assert!(limiter.deferred.is_some());
        answered(&mut limiter, 1.1, 40, 1);
        assert_eq!((limiter.deferred, limiter.min_rtt_us, limiter.limit), (None, 40_000, 3));
        assert!(limiter.probe_due >= at(61.1) && limiter.probe_due < at(70.1), "{:?}", limiter.probe_due);
        assert_eq!(limiter.tick(at(1.15)), at(1.2));
    }

    #[test]
    fn grows_by_the_buffer_and_the_root_while_round_trips_stay() {
        let mut limiter = measured();
        answered(&mut limiter, 1.05, 40, 10);
        limiter.tick(at(1.1));
        // 3 x 1.25 = 3.75, and its root 1.94.
        assert_eq!(limiter.limit, 5);
        // An empty window changes nothing.
        limiter.tick(at(1.2));
        assert_eq!(limiter.limit, 5);
    }

    #[test]
    fn at_most_halves_and_at_most_doubles() {
        let mut limiter = measured();
        limiter.limit = 100;
        answered(&mut limiter, 1.05, 900, 10);
        limiter.tick(at(1.1));
        assert_eq!(limiter.limit, 57);
        answered(&mut limiter, 1.15, 1, 10);
        limiter.tick(at(1.2));
        assert_eq!(limiter.limit, 124);
    }

    #[test]
    fn five_windows_at_the_least_measure_again() {
        let mut limiter = measured();
        let mut windows = 0;
        while limiter.deferred.is_none() && windows < 20 {
            windows += 1;
            let now = 1.0 + 0.1 * f64::from(windows);
            answered(&mut limiter, now - 0.05, 400, 10);
            limiter.tick(at(now));
        }
        assert_eq!(windows, 5);
        // Requests that started before the measurement do not count.
        let epoch = limiter.epoch;
        let old = RoundTrip { started: at(1.0), in_flight: 3, ended: Outcome::Completed };
        limiter.released(epoch + Duration::from_millis(10), old);
        assert!(limiter.samples_us.is_empty());
    }

    #[test]
    fn measures_again_after_the_interval_with_a_jitter_of_its_seed() {
        let mut limiter = measured();
        let due = limiter.probe_due;
        limiter.limit = 50;
        limiter.tick(due);
        assert_eq!((limiter.limit, limiter.deferred), (3, Some(50)));
        let due_of = |seed| {
            let mut other = Gradient::new(limiter.update, limiter.probe, seed);
            answered(&mut other, 1.0, 40, 50);
            other.probe_due
        };
        assert_eq!(due_of(7), due);
        assert_ne!(due_of(8), due);
    }
}
