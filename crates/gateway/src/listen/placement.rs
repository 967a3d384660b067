//! Which thread a new connection goes to: the one with the fewest connections among those with time to spare.
//!
//! A thread has time to spare while it sleeps in its selector. Each thread reports its share of such time ten times a second. A
//! thread that has not reported for two intervals is stuck, for instance in a disk read, and counts as one without spare time.
//! By number of connections alone, a thread with busy connections would get as many new ones as a thread with idle ones.

use plimsoll_core::time::{Duration, Instant};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A thread with a smaller spare share gets a new connection only if all other threads have as little.
const LEAST_SPARE: f64 = 1.0 / 4.0;
/// How long a report is valid; after this time the thread has missed an interval.
const STALE: Duration = Duration::from_millis(200);

/// How much of its time a thread sleeps. Only the thread itself writes, all threads read. A thread that has not run yet can
/// spare all of its time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SpareTime {
    /// When the thread last fell asleep (ns).
    asleep_since: AtomicU64,
    /// How long it has slept since its last report, up to its last wake-up (ns).
    asleep: AtomicU64,
    reported: SpareReport,
}

/// The report that other threads read, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct SpareReport {
    /// When the thread last reported (ns).
    at: AtomicU64,
    /// The share of the reported interval that the thread was awake, in thousandths.
    busy: AtomicU32,
}

impl SpareTime {
    pub(crate) fn fall_asleep(&self, now: Instant) {
        self.asleep_since.store(now.as_nanos(), Relaxed);
    }

    pub(crate) fn wake_up(&self, now: Instant) {
        let slept = now.as_nanos().saturating_sub(self.asleep_since.load(Relaxed));
        self.asleep.store(self.asleep.load(Relaxed) + slept, Relaxed);
    }

    /// Reports the share of time slept since the last report.
    pub(crate) fn report(&self, now: Instant) {
        let passed = now.as_nanos().saturating_sub(self.reported.at.swap(now.as_nanos(), Relaxed));
        let asleep = self.asleep.swap(0, Relaxed);
        if passed > 0 {
            let awake = passed.saturating_sub(asleep) as f64;
            self.reported.busy.store((awake / passed as f64 * 1000.0).ceil() as u32, Relaxed);
        }
    }

    fn is_enough(&self, now: Instant) -> bool {
        let is_stale = now.since(Instant::from_nanos(self.reported.at.load(Relaxed))) > STALE;
        !is_stale && f64::from(1000 - self.reported.busy.load(Relaxed)) / 1000.0 > LEAST_SPARE
    }
}

/// The thread for a connection that the thread `own` has accepted. If `own` is as good as the best, it keeps the connection,
/// since handing over costs time.
pub(crate) fn place(
    spare: &[SpareTime],
    connections: impl Fn(usize) -> usize,
    own: usize,
    now: Instant,
) -> usize {
    let rank = |&thread: &usize| (!spare[thread].is_enough(now), connections(thread), thread != own);
    (0..spare.len()).min_by_key(rank).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_NS: u64 = 100_000_000;

    /// Threads that have just reported these spare shares.
    fn threads(shares: &[f64]) -> (Vec<SpareTime>, Instant) {
        let (before, now) = (Instant::from_nanos(INTERVAL_NS), Instant::from_nanos(2 * INTERVAL_NS));
        let thread = |share: &f64| {
            let thread = SpareTime::default();
            thread.report(before);
            thread.fall_asleep(before);
            thread.wake_up(Instant::from_nanos(INTERVAL_NS + (share * INTERVAL_NS as f64) as u64));
            thread.report(now);
            thread
        };
        (shares.iter().map(thread).collect(), now)
    }

    fn placed(shares: &[f64], connections: &[usize], own: usize) -> usize {
        let (threads, now) = threads(shares);
        place(&threads, |thread| connections[thread], own, now)
    }

    #[test]
    fn the_thread_with_the_fewest_connections_gets_it() {
        assert_eq!(placed(&[0.9, 0.9, 0.9], &[2, 1, 2], 0), 1);
        assert_eq!(placed(&[0.9, 0.9, 0.9], &[2, 2, 2], 2), 2, "on equal terms its own thread keeps it");
    }

    #[test]
    fn a_thread_without_spare_time_gets_none_while_another_has_some() {
        assert_eq!(placed(&[0.0, 0.2, 0.3], &[0, 0, 9], 0), 2);
        assert_eq!(placed(&[0.0, 0.2, 0.1], &[3, 2, 9], 0), 1, "all are busy: the fewest connections decide");
    }

    #[test]
    fn a_stuck_thread_gets_none() {
        let (threads, now) = threads(&[0.9, 0.9]);
        let later = now + STALE + Duration::from_nanos(1);
        threads[0].fall_asleep(now);
        threads[0].wake_up(later);
        threads[0].report(later);
        assert_eq!(place(&threads, |thread| 9 - 9 * thread, 1, later), 0, "the other has not reported");
    }

    #[test]
    fn a_thread_that_has_not_run_yet_has_time_to_spare() {
        let threads = [SpareTime::default(), SpareTime::default()];
        assert!(threads.iter().all(|thread| thread.is_enough(Instant::from_nanos(0))));
    }
}
