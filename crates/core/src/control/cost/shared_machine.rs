//! A plant that shares its machine with the gateway has two resources, its workers and the processors. Its utilization is that
//! of the fuller one, as with a link (UC eq. 9).
//!
//! c is in seconds of the machine's processors, U in time of the plant's workers. If a worker's work is its processor's, both
//! are the same: in UC's server, and where the T_f experiment of UC 7.5 saturates the processors. If workers mostly wait (for a
//! database, say), rejections take time of processors that have time to spare, and none of the workers' time.
//!
//! The case shows while requests are rejected. A part of the rejections' processor time, Erlang's C of it, hides in services
//! that become longer while all workers are busy. If the processors are what workers use, the utilization of the processors
//! exceeds that of the workers by the rest, `(1 - C) c R`. If the processors are less busy than the workers, they are not what
//! workers use. Without a reading of the machine's processors, c counts in full: the plant is then less full than it might be,
//! and never fuller.

use crate::time::{Duration, Instant};

/// The utilization of the machine's processors, from the time that they have worked so far.
#[derive(Default)]
pub(crate) struct ProcessorLoad {
    last: Option<(Instant, Duration)>,
}

impl ProcessorLoad {
    /// The utilization since the last reading; `worked` is in seconds of the whole machine.
    pub(crate) fn since_last(&mut self, now: Instant, worked: Option<Duration>) -> Option<f64> {
        let worked = worked?;
        let (then, before) = self.last.replace((now, worked))?;
        let seconds = now.since(then).as_secs_f64();
        (seconds > 0.0).then(|| (worked.saturating_sub(before).as_secs_f64() / seconds).min(1.0))
    }
}

/// The learned part of c that counts as time of a plant's workers.
pub(crate) struct WorkerTime {
    /// `found` is the difference of the utilizations of processors and workers; `expected` is the difference if workers use the
    /// processors.
    found: f64,
    expected: f64,
}

impl WorkerTime {
    /// The weight of a period.
    const LATE: f64 = 0.2;
    /// If rejections take less of the processors than this, they are no evidence.
    const LEAST: f64 = 0.01;

    pub(crate) fn new() -> Self {
        WorkerTime { found: 1.0, expected: 1.0 }
    }

    /// Takes a period: the utilization of the workers, that of the processors if it was read, and `expected`, the part of `c R`
    /// that does not hide in longer services.
    pub(crate) fn learn(&mut self, workers: f64, processors: Option<f64>, expected: f64) {
        let Some(processors) = processors else { return };
        if expected < Self::LEAST {
            return;
        }
        let found = (processors - workers).clamp(-expected, 2.0 * expected);
        let first = self.expected == 1.0;
        let weight = if first { 1.0 } else { Self::LATE };
        self.found += weight * (found - self.found);
        self.expected += weight * (expected - self.expected);
    }

    /// The part of c, in [0, 1].
    pub(crate) fn part(&self) -> f64 {
        (self.found / self.expected).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part after 60 periods whose rejections take 0.3 of the processors; the server takes `own` of the processors for each
    /// second of its workers' time. `noise` is that of the reading.
    fn part(own: f64, noise: f64) -> f64 {
        let mut part = WorkerTime::new();
        for period in 0..60 {
            let noise = if period % 2 == 0 { noise } else { -noise };
            let (workers, rejecting) = (0.8, 0.3);
            // The work that hides in longer services is work of the processors too.
            let processors = own * workers + (1.0 - own * workers) * rejecting;
            part.learn(workers, Some((processors + noise).clamp(0.0, 1.0)), (1.0 - workers) * rejecting);
        }
        part.part()
    }

    #[test]
    fn rejections_take_of_workers_only_where_these_use_the_processors() {
        for noise in [0.0, 0.02] {
            assert!(part(1.0, noise) > 0.95, "{}", part(1.0, noise));
            assert_eq!((part(0.1, noise), part(0.5, noise)), (0.0, 0.0));
        }
    }

    #[test]
    fn without_a_reading_or_rejections_all_counts() {
        let mut part = WorkerTime::new();
        part.learn(0.8, None, 0.3);
        part.learn(0.8, Some(0.1), 0.001);
        part.learn(1.0, Some(1.0), 0.0);
        assert_eq!(part.part(), 1.0);
    }

    #[test]
    fn the_processors_load_is_what_they_worked_since_the_last_reading() {
        let (mut load, at) = (ProcessorLoad::default(), |s: u64| Instant::from_nanos(s * 1_000_000_000));
        assert_eq!(load.since_last(at(1), Some(Duration::from_secs(5))), None);
        assert_eq!(load.since_last(at(2), None), None);
        assert_eq!(load.since_last(at(3), Some(Duration::from_secs(6))), Some(0.5));
        assert_eq!(load.since_last(at(3), Some(Duration::from_secs(6))), None);
    }
}
