//! When a request that is turned away may come again, in one word of a plant: the loop writes it, rejections read it.
//!
//! Every request is told an instant of its own, drawn evenly between the soonest and the latest. Told the same, all of them
//! would come back at once, as a second wave.

use crate::random::Random;
use crate::time::{Duration, Instant};
use core::sync::atomic::{AtomicU64, Ordering};

/// If admission would not let a client in before a time t, it is told an instant between t and t + t / LATER, or up to the
/// latest of the forecast if that is later.
const LATER: u32 = 4;

/// The longest time for which the load keeps a request away (s): no load is known that far ahead. In that time a server that is
/// half empty makes up for ten seconds at three times the set point.
pub(crate) const LONGEST: f64 = 120.0;

/// The times after which turned-away requests are to come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReturnTimes {
    pub(crate) soonest: Duration,
    pub(crate) latest: Duration,
}

/// [`ReturnTimes`] in a word: milliseconds, the soonest above.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct AtomicReturnTimes(AtomicU64);

impl AtomicReturnTimes {
    pub(crate) fn set(&self, times: ReturnTimes) {
        let ms = |time: Duration| time.as_millis().min(u32::MAX.into()) as u64;
        self.0.store(ms(times.soonest) << 32 | ms(times.latest), Ordering::Relaxed);
    }

    /// Copies another word.
    pub(crate) fn follow(&self, other: &Self) {
        self.0.store(other.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The time after which this client is to come again: between the soonest and the latest, and no less than `at_least`.
    pub(crate) fn draw(&self, arrived: Instant, client: u64, at_least: Duration) -> Duration {
        let word = self.0.load(Ordering::Relaxed);
        let [soonest, latest] = [word >> 32, word & u64::from(u32::MAX)].map(Duration::from_millis);
        let soonest = soonest.max(at_least);
        let latest = latest.max(at_least.saturating_add(at_least / LATER));
        let part = Random::new(arrived.as_nanos() ^ client).uniform();
        soonest + Duration::from_nanos((part * latest.saturating_sub(soonest).as_nanos() as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_times_all_over_the_range() {
        let word = AtomicReturnTimes::default();
        assert_eq!(word.draw(Instant::from_nanos(5), 7, Duration::ZERO), Duration::ZERO);
        let [soonest, latest] = [2, 6].map(Duration::from_secs);
        word.set(ReturnTimes { soonest, latest });
        let told = |n: u64| word.draw(Instant::from_nanos(n * 1000), 7, Duration::ZERO).as_secs_f64();
        let all: [f64; 4000] = core::array::from_fn(|n| told(n as u64));
        for quarter in 0..4 {
            let from = 2.0 + f64::from(quarter);
            let number = all.iter().filter(|told| (from..from + 1.0).contains(*told)).count();
            assert!((900..1100).contains(&number), "{number} of 4000 from {from} s on");
        }
    }

    /// All that one period of a budget refuses might come in the next, however far that is beyond the forecast.
    #[test]
    fn nobody_is_told_the_same_as_another_where_admission_says_later() {
        let word = AtomicReturnTimes::default();
        let [soonest, latest] = [2, 6].map(Duration::from_secs);
        word.set(ReturnTimes { soonest, latest });
        let at_least = Duration::from_secs(20);
        let told = |n: u64| word.draw(Instant::from_nanos(n * 1000), 7, at_least).as_secs_f64();
        let all: [f64; 1000] = core::array::from_fn(|n| told(n as u64));
        assert!(all.iter().all(|told| (20.0..25.0).contains(told)), "{all:?}");
        let early = all.iter().filter(|told| **told < 22.5).count();
        assert!((420..580).contains(&early), "{early} of 1000 in the first half");
    }
}
