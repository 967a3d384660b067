//! When a request that is turned away may come again, in one word of a plant: the loop writes it, rejections read it.
//!
//! Every request is told an instant of its own, drawn evenly between the soonest and the latest. Told the same, all of them
//! would come back at once, as a second wave.

use crate::random::Random;
use crate::time::{Duration, Instant};
use core::sync::atomic::{AtomicU64, Ordering};

/// The times after which turned-away requests are to come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReturnTimes {
    pub(crate) soonest: Duration,
    pub(crate) latest: Duration,
}

/// The same in a word: milliseconds, the soonest above.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct AtomicReturnTimes(AtomicU64);

impl AtomicReturnTimes {
    pub(crate) fn set(&self, times: ReturnTimes) {
        let ms = |time: Duration| time.as_millis().min(u32::MAX.into()) as u64;
        self.0.store(ms(times.soonest) << 32 | ms(times.latest), Ordering::Relaxed);
    }

    /// Takes over what another word says.
    pub(crate) fn follow(&self, other: &Self) {
        self.0.store(other.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// After what time a request of this client that came at this instant is to come again.
    pub(crate) fn draw(&self, arrived: Instant, client: u64) -> Duration {
        let word = self.0.load(Ordering::Relaxed);
        let (soonest, latest) = (word >> 32, word & u64::from(u32::MAX));
        let part = Random::new(arrived.as_nanos() ^ client).uniform();
        Duration::from_micros(1000 * soonest + (part * 1000.0 * latest.saturating_sub(soonest) as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_times_all_over_the_range() {
        let word = AtomicReturnTimes::default();
        assert_eq!(word.draw(Instant::from_nanos(5), 7), Duration::ZERO);
        let [soonest, latest] = [2, 6].map(Duration::from_secs);
        word.set(ReturnTimes { soonest, latest });
        let told = |n: u64| word.draw(Instant::from_nanos(n * 1000), 7).as_secs_f64();
        let all: [f64; 4000] = core::array::from_fn(|n| told(n as u64));
        for quarter in 0..4 {
            let from = 2.0 + f64::from(quarter);
            let number = all.iter().filter(|told| (from..from + 1.0).contains(*told)).count();
            assert!((900..1100).contains(&number), "{number} of 4000 from {from} s on");
        }
    }
}
