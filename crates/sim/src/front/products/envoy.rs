//! Envoy's overload filters, applied in the order in which they are written, as in Envoy's chain of filters.
//!
//! - `adaptive_concurrency`: a limit found from latency (`front/limit/gradient.rs`); `concurrency_update_interval=100ms`,
//!   `min_rtt_interval=60s`.
//! - `admission_control`: rejects by chance while requests fail; `sampling_window=30s`, `sr_threshold=95`, `aggression=1`,
//!   `rps_threshold=0`, `max_rejection_probability=80`.
//!
//! ```text
//! P = ((n - n_success / sr_threshold) / (n + 1))^(1 / aggression), at most max_rejection_probability
//! ```
//!
//! over the requests of the sampling window, in slots of a second; 0 while there are fewer than `rps_threshold` requests a
//! second. What admission control itself rejects is not counted; what a later filter rejects counts as a failure (Envoy
//! documentation, "Admission Control"; `admission_control.cc`). A request whose client leaves is not counted.

use super::directives::{percent, time};
use super::{Asked, Directives, Gone, MakeRules, Rules, Ruling};
use crate::front::limit::{Ask, Gradient, Limiter, RoundTrip};
use plimsoll_core::random::Random;
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_core::time::{Duration, Instant};
use std::collections::VecDeque;

const WRITTEN: &str = "envoy: adaptive_concurrency; admission_control sr_threshold=95";

/// The chain of filters before one cluster.
#[derive(Debug)]
struct Envoy {
    filters: Vec<Filter>,
    in_flight: u32,
}

#[derive(Debug)]
enum Filter {
    Concurrency(Gradient),
    Admission(AdmissionControl),
}

/// The settings from which a filter is made.
#[derive(Clone, Copy, Debug)]
enum FilterKeys {
    Concurrency { update: Duration, probe: Duration },
    Admission(AdmissionKeys),
}

#[derive(Clone, Copy, Debug)]
struct AdmissionKeys {
    window: Duration,
    threshold: f64,
    aggression: f64,
    least_rate: f64,
    most: f64,
}

/// `admission_control`.
#[derive(Debug)]
struct AdmissionControl {
    keys: AdmissionKeys,
    random: Random,
    /// The seconds of the window: the beginning of each, its requests and its successes.
    slots: VecDeque<(Instant, u64, u64)>,
}

pub(super) fn read(directives: Directives<'_>) -> Result<MakeRules, String> {
    let mut all = Vec::new();
    directives.each(WRITTEN, |name, words| {
        let mut value = |key: &str, default: &'static str| words.value(key).unwrap_or(default);
        all.push(match name {
            "adaptive_concurrency" => FilterKeys::Concurrency {
                update: time(value("concurrency_update_interval", "100ms"), "ms")?,
                probe: time(value("min_rtt_interval", "60s"), "ms")?,
            },
            "admission_control" => FilterKeys::Admission(AdmissionKeys {
                window: time(value("sampling_window", "30s"), "s")?,
                threshold: percent(value("sr_threshold", "95"))?.max(0.01),
                aggression: positive(value("aggression", "1"))?.max(1.0),
                least_rate: positive(value("rps_threshold", "0"))?,
                most: percent(value("max_rejection_probability", "80"))?,
            }),
            _ => return Err(format!("there is no directive \"{name}\" here")),
        });
        Ok(())
    })?;
    Ok(Box::new(move |_, seed| {
        let filter = |keys: &FilterKeys| match *keys {
            FilterKeys::Concurrency { update, probe } => {
                Filter::Concurrency(Gradient::new(update, probe, seed))
            }
            FilterKeys::Admission(keys) => Filter::Admission(AdmissionControl {
                keys,
                random: Random::new(!seed),
                slots: VecDeque::new(),
            }),
        };
        Box::new(Envoy { filters: all.iter().map(filter).collect(), in_flight: 0 })
    }))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("\"{text}\" is not a number of 0 or more"))
}

impl AdmissionControl {
    fn counted(&mut self, now: Instant) -> (f64, f64) {
        while self.slots.front().is_some_and(|(began, ..)| now.since(*began) >= self.keys.window) {
            self.slots.pop_front();
        }
        let sum = self.slots.iter().fold((0, 0), |sum, slot| (sum.0 + slot.1, sum.1 + slot.2));
        (sum.0 as f64, sum.1 as f64)
    }

    fn rejects(&mut self, now: Instant) -> bool {
        let (all, successes) = self.counted(now);
        let keys = self.keys;
        if all / keys.window.as_secs_f64() < keys.least_rate {
            return false;
        }
        let share = (all - successes / keys.threshold) / (all + 1.0);
        self.random.uniform() < share.max(0.0).powf(1.0 / keys.aggression).min(keys.most)
    }

    fn record(&mut self, now: Instant, success: bool) {
        let is_new = self.slots.back().is_none_or(|(began, ..)| now.since(*began) >= Duration::from_secs(1));
        if is_new {
            self.slots.push_back((now, 0, 0));
        }
        if let Some((_, all, successes)) = self.slots.back_mut() {
            *all += 1;
            *successes += u64::from(success);
        }
    }
}

impl Rules for Envoy {
    fn arrive(&mut self, now: Instant, _asked: Asked<'_>) -> Ruling {
        let ask = Ask { in_flight: self.in_flight, service: Duration::ZERO };
        for place in 0..self.filters.len() {
            let passes = match &mut self.filters[place] {
                Filter::Concurrency(gradient) => gradient.admit(now, ask),
                Filter::Admission(control) => !control.rejects(now),
            };
            if !passes {
                // The filters before the one that rejects see the answer as a failure.
                self.filters[..place].iter_mut().for_each(|filter| {
                    if let Filter::Admission(control) = filter {
                        control.record(now, false);
                    }
                });
                return Ruling::Reject(Reason::Overload);
            }
        }
        self.in_flight += 1;
        Ruling::Start(self.in_flight)
    }

    fn released(&mut self, now: Instant, gone: Gone) {
        self.in_flight -= 1;
        let sample = RoundTrip { started: gone.started, in_flight: gone.holds, ended: gone.ended };
        for filter in &mut self.filters {
            match filter {
                Filter::Concurrency(gradient) => gradient.released(now, sample),
                Filter::Admission(_) if gone.ended == Outcome::Abandoned => {}
                Filter::Admission(control) => control.record(now, gone.ended == Outcome::Completed),
            }
        }
    }

    fn tick(&mut self, now: Instant) -> Instant {
        let ticks = self.filters.iter_mut().map(|filter| match filter {
            Filter::Concurrency(gradient) => gradient.tick(now),
            Filter::Admission(_) => Instant::FAR,
        });
        ticks.min().unwrap_or(Instant::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, request, rules, wrong};
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9) as u64)
    }

    /// The share that is rejected after a second in which half of a hundred requests failed.
    fn rejected(text: &str, later: f64) -> f64 {
        let mut chain = rules(text);
        let one = request("/", 1);
        let asked = asked(&one, 1);
        let started: Vec<Ruling> = (0..100).map(|_| chain.arrive(at(0.0), asked)).collect();
        for (n, ruling) in started.iter().enumerate() {
            let Ruling::Start(holds) = *ruling else { panic!("nothing has failed yet") };
            let ended = if n % 2 == 0 { Outcome::Completed } else { Outcome::Failed };
            chain.released(at(0.5), Gone { holds, started: at(0.0), ended });
        }
        let rejected = |_: &i32| chain.arrive(at(later), asked) == Ruling::Reject(Reason::Overload);
        (0..10_000).filter(rejected).count() as f64 / 10_000.0
    }

    #[test]
    fn admission_control_rejects_by_the_success_rate() {
        // (100 - 50 / 0.95) / 101 = 0.469; the standard error of 10,000 draws is 0.005.
        let share = rejected("envoy: admission_control", 1.0);
        assert!((share - 0.469).abs() < 0.02, "{share}");
        let share = rejected("envoy: admission_control sr_threshold=50", 1.0);
        assert_eq!(share, 0.0, "half is what it allows");
        let share = rejected("envoy: admission_control aggression=2", 1.0);
        assert!((share - 0.469_f64.sqrt()).abs() < 0.02, "{share}");
        let share = rejected("envoy: admission_control max_rejection_probability=20", 1.0);
        assert!((share - 0.2).abs() < 0.02, "{share}");
        assert_eq!(rejected("envoy: admission_control rps_threshold=10", 1.0), 0.0);
        assert_eq!(rejected("envoy: admission_control", 31.0), 0.0, "the window has passed");
    }

    #[test]
    fn what_a_later_filter_rejects_is_a_failure() {
        // Three are let through while the round trip is measured.
        let one = request("/", 1);
        let passed = |text: &str| {
            let mut chain = rules(text);
            let asked = asked(&one, 1);
            let first: Vec<bool> =
                (0..100).map(|_| chain.arrive(at(0.0), asked) != Ruling::Reject(Reason::Overload)).collect();
            assert_eq!(first.iter().filter(|passed| **passed).count(), 3, "{text}");
            format!("{chain:?}").contains("(Instant(0), 0, 0)") || format!("{chain:?}").contains("slots: []")
        };
        assert!(passed("envoy: adaptive_concurrency; admission_control"), "nothing was counted");
        assert!(!passed("envoy: admission_control; adaptive_concurrency"), "the rejections were counted");
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "envoy:",
            "envoy: circuit_breakers",
            "envoy: admission_control sr_threshold=200",
            "envoy: adaptive_concurrency x",
        ] {
            assert!(wrong(text).ends_with(&format!("; it is written {WRITTEN}")), "{}", wrong(text));
        }
    }
}
