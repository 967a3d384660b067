//! Promises that allow a long queue, which no quota holds.
//!
//! At the least quota of 1.03 times the load some 33 requests wait, whatever the promise. A longer queue of n requests settles
//! within about 2 n^2 departures, so that a quota nearer to the load would wander. Where more may wait, the class has less
//! than its load takes, and a request that has waited as long as it may starts next, whatever the quota. The workers that the
//! class thereby does not need go to the classes with shorter promises beside it, whichever has the higher priority.

use crate::promises::QueueBounds;
use crate::time::Duration;

/// A queue is long if at least this number of requests may wait in it.
const LONG: f64 = 50.0;
/// A queue that was long is so until this part of them may wait, because the rate is not known exactly.
const STILL_LONG: f64 = 0.7;
/// The part of its load by which the quota of a class with a long queue lies below that load; the least quota lies twice as
/// far below.
const SHORT_OF: f64 = 0.1;

/// Whether the queue of a class may be long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongQueue {
    longest_wait: Option<Duration>,
}

/// The workers that a class with a long queue asks for, the least, and one over the slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShortQuota {
    pub(super) workers: f64,
    pub(super) least: f64,
    pub(super) gain: f64,
}

impl LongQueue {
    /// `None` where the queue is short: `wait` is how long a request may wait (s), `load` the workers that the class's work
    /// takes. The rate is that of the load, because the latest arrivals may be a short burst.
    pub(super) fn step(&mut self, wait: f64, load: f64, service_seconds: f64) -> Option<ShortQuota> {
        let long = if self.longest_wait.is_some() { STILL_LONG * LONG } else { LONG };
        let is_long = load / service_seconds * wait > long;
        let most = 0.9 * QueueBounds::LONGEST_WAIT.as_secs_f64();
        self.longest_wait = is_long.then(|| Duration::from_secs_f64(wait.min(most)));
        is_long.then_some(ShortQuota {
            workers: (1.0 - SHORT_OF) * load,
            least: (1.0 - 2.0 * SHORT_OF) * load,
            gain: 0.5 * SHORT_OF * load,
        })
    }

    /// The wait after which a request starts next; `None` where the queue is short.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        self.longest_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_queue_is_held_by_its_longest_wait() {
        let mut queue = LongQueue::default();
        // A hundred requests a second.
        assert_eq!(queue.step(0.5, 4.0, 0.04), None);
        assert_eq!(queue.longest_wait(), None);
        let quota = queue.step(0.51, 4.0, 0.04).expect("51 may wait");
        assert!(quota.least < quota.workers && quota.workers < 4.0 && quota.gain > 0.0, "{quota:?}");
        assert_eq!(queue.longest_wait(), Some(Duration::from_millis(510)));
        assert!(queue.step(0.36, 4.0, 0.04).is_some(), "it stays long where the rate is not known exactly");
        assert_eq!(queue.step(0.34, 4.0, 0.04), None);
    }
}
