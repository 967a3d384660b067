//! Gradient2 as published: Netflix concurrency-limits 0.5.4, `limit/Gradient2Limit.java` with its defaults, fed by
//! `limit/WindowedLimit.java` with its own, as the project's README installs it on a server.
//!
//! A window gives the mean round trip (`short`), the most requests in flight, and whether one failed. `long` is the plain mean
//! of the first ten windows, then an exponential mean over 600; if it is more than twice `short` it is cut by 5 %. Then, unless
//! less than half of the limit was in use,
//!
//! ```text
//! gradient = clamp(1.5 long / short, 0.5, 1)
//! limit    = 0.8 limit + 0.2 (limit gradient + 4), clamped to [least, most]
//! ```
//!
//! A window ends with the first request that started and ended after the window's time was up; with fewer than ten samples it
//! is thrown away. Failures are ignored, and a client that left gives no sample. If `window` is zero, each request updates the
//! limit, as in the class without the wrapper.

use super::{Ask, Limiter, Limits, RoundTrip};
use plimsoll_core::request::Outcome;
use plimsoll_core::time::{Duration, Instant};

const SMOOTHING: f64 = 0.2;
const QUEUE_SIZE: f64 = 4.0;
const LONG_WINDOW: f64 = 600.0;
const WARM_UP: u32 = 10;
const TOLERANCE: f64 = 1.5;
const LEAST_SAMPLES: u32 = 10;
const LEAST_RTT: Duration = Duration::from_micros(100);

/// Follows the ratio of a long-term to a short-term mean round trip.
#[derive(Debug)]
pub(in crate::front) struct Gradient2 {
    bounds: Limits,
    /// How long round trips are averaged; zero: each request updates the limit.
    length: Duration,
    limit: f64,
    long: LongTerm,
    window: Window,
    window_ends: Instant,
}

/// `ExpAvgMeasurement.java`.
#[derive(Debug, Default)]
struct LongTerm {
    mean: f64,
    sum: f64,
    count: u32,
}

impl LongTerm {
    fn add(&mut self, sample: f64) -> f64 {
        if self.count < WARM_UP {
            self.count += 1;
            self.sum += sample;
            self.mean = self.sum / f64::from(self.count);
        } else {
            let factor = 2.0 / (LONG_WINDOW + 1.0);
            self.mean = self.mean * (1.0 - factor) + sample * factor;
        }
        self.mean
    }
}

/// `ImmutableAverageSampleWindow.java`.
#[derive(Debug, Default)]
struct Window {
    seconds: f64,
    samples: u32,
    most_in_flight: u32,
}

impl Gradient2 {
    pub(in crate::front) fn new(bounds: Limits, length: Duration) -> Self {
        Gradient2 {
            bounds,
            length,
            limit: bounds.initial.into(),
            long: LongTerm::default(),
            window: Window::default(),
            window_ends: Instant::ZERO,
        }
    }

    fn update(&mut self, short: f64, in_flight: u32) {
        let long = self.long.add(short);
        if long / short > 2.0 {
            self.long.mean *= 0.95;
        }
        if f64::from(in_flight) < self.limit / 2.0 {
            return;
        }
        // The gradient uses `long` as it was before the cut, as published.
        let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
        let wanted = self.limit * gradient + QUEUE_SIZE;
        let limit = self.limit * (1.0 - SMOOTHING) + wanted * SMOOTHING;
        self.limit = limit.min(self.bounds.most.into()).max(self.bounds.least.into());
    }
}

impl Limiter for Gradient2 {
    fn admit(&mut self, _now: Instant, ask: Ask) -> bool {
        ask.in_flight < self.limit as u32
    }

    fn released(&mut self, now: Instant, sample: RoundTrip) {
        let rtt = now.since(sample.started);
        if sample.ended == Outcome::Abandoned || rtt.is_zero() {
            return;
        }
        if self.length.is_zero() {
            self.update(rtt.as_secs_f64(), sample.in_flight);
            return;
        }
        if rtt < LEAST_RTT {
            return;
        }
        self.window.seconds += rtt.as_secs_f64();
        self.window.samples += 1;
        self.window.most_in_flight = self.window.most_in_flight.max(sample.in_flight);
        if now > self.window_ends {
            let window = std::mem::take(&mut self.window);
            // The default bounds of the window are both 1 s, so the published `clamp(2 rtt, least, most)` is always 1 s.
            self.window_ends = now + self.length;
            if window.samples >= LEAST_SAMPLES {
                self.update(window.seconds / f64::from(window.samples), window.most_in_flight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{after, at};
    use super::*;

    fn limiter(window: Duration) -> Gradient2 {
        Gradient2::new(Limits { initial: 20, least: 20, most: 200 }, window)
    }

    /// A second of samples at this round trip.
    fn second(limiter: &mut Gradient2, from: f64, rtt_ms: u64, in_flight: u32) {
        for n in 0..100 {
            let now = at(from + 0.01 * f64::from(n) + 0.005);
            limiter.released(now, after(now, Duration::from_millis(rtt_ms), in_flight));
        }
    }

    #[test]
    fn grows_by_its_queue_while_round_trips_stay_and_not_unused() {
        let mut limiter = limiter(Duration::from_secs(1));
        for k in 1..=20 {
            second(&mut limiter, f64::from(k), 40, 200);
        }
        // 0.2 x 4 a window; the first window ended with its first sample and was too small.
        assert!((limiter.limit - 20.0 - 0.8 * 19.0).abs() < 0.9, "{}", limiter.limit);
        // The first sample of this second ends the window before.
        second(&mut limiter, 21.0, 40, 5);
        let before = limiter.limit;
        for k in 22..=30 {
            second(&mut limiter, f64::from(k), 40, 5);
        }
        assert_eq!(limiter.limit, before);
    }

    #[test]
    fn shrinks_when_round_trips_grow_beyond_the_tolerance() {
        let mut limiter = limiter(Duration::from_secs(1));
        for k in 1..=100 {
            second(&mut limiter, f64::from(k), 40, 200);
        }
        let before = limiter.limit;
        second(&mut limiter, 101.0, 400, 200);
        second(&mut limiter, 102.0, 400, 200);
        // Gradient 0.5 at most: 0.8 + 0.1, plus 0.8.
        let least = 0.9 * before + 0.8;
        assert!(limiter.limit < before - 3.0 && limiter.limit >= 0.9 * least, "{before}: {}", limiter.limit);
    }

    #[test]
    fn without_a_window_each_request_counts_as_published() {
        let mut limiter = limiter(Duration::ZERO);
        let now = at(10.0);
        limiter.released(now, after(now, Duration::from_millis(40), 20));
        assert!((limiter.limit - 20.8).abs() < 1e-12);
        // long = (40 + 120) / 2 = 80; gradient = 1.5 x 80 / 120 = 1.
        limiter.released(now, after(now, Duration::from_millis(120), 20));
        assert!((limiter.limit - 21.6).abs() < 1e-12);
        // long = (40 + 120 + 400) / 3; gradient = 0.7.
        limiter.released(now, after(now, Duration::from_millis(400), 20));
        let expected = 21.6 * 0.8 + 0.2 * (21.6 * 0.7 + 4.0);
        assert!((limiter.limit - expected).abs() < 1e-9, "{}", limiter.limit);
        let left = RoundTrip { ended: Outcome::Abandoned, ..after(now, Duration::from_millis(400), 20) };
        limiter.released(now, left);
        assert!((limiter.limit - expected).abs() < 1e-9);
    }
}
