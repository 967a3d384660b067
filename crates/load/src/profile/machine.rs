//! How busy the client and its machine are: a rate that the client could not exceed says nothing of the server.

use crate::client::{Outcome, Record, Sink};
use nix::time::ClockId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The clock of the load's thread is read once in so many records; it is a system call.
const EVERY: u32 = 8;

/// Times that a load's thread tells itself, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadTime {
    /// The processor time that it has taken.
    taken: Arc<AtomicU64>,
    /// When the last answer was complete, from the load's start.
    answered: Arc<AtomicU64>,
}

impl ThreadTime {
    /// A sink that keeps them up to date.
    pub(super) fn sink(&self) -> Sink {
        let Self { taken, answered } = self.clone();
        let mut records = 0_u32;
        Box::new(move |record: &Record| {
            if matches!(record.outcome, Outcome::Answer(_)) {
                answered.store(nanoseconds(record.arrival + record.latency), Ordering::Relaxed);
            }
            records = records.wrapping_add(1);
            if records.is_multiple_of(EVERY)
                && let Ok(time) = ClockId::CLOCK_THREAD_CPUTIME_ID.now()
            {
                taken.store(nanoseconds(time.into()), Ordering::Relaxed);
            }
        })
    }

    /// Seconds of a processor so far.
    pub(super) fn seconds(&self) -> f64 {
        self.taken.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// When the last answer was complete (s from the load's start).
    pub(super) fn answered(&self) -> f64 {
        self.answered.load(Ordering::Relaxed) as f64 / 1e9
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The processors' time of this machine, from `/proc/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineTime {
    busy: u64,
    all: u64,
}

impl MachineTime {
    /// Now; none where the system does not say.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, and guests that are in user already.
    fn parse(stat: &str) -> Option<Self> {
        let times = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = times.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
        let all = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        Some(Self { busy: all - idle, all })
    }

    /// The busy share of all processors since then.
    pub(super) fn share_since(earlier: Option<Self>) -> Option<f64> {
        let (now, earlier) = (Self::now()?, earlier?);
        let all = now.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(now.busy.saturating_sub(earlier.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_proc_stat_is_understood() {
        let stat = "cpu  100 0 50 800 50 0 0 0 100 0\ncpu0 1 2 3\n";
        assert_eq!(MachineTime::parse(stat), Some(MachineTime { busy: 150, all: 1000 }));
        assert_eq!(MachineTime::parse("cpus 1"), None);
        assert_eq!(MachineTime::parse(""), None);
    }

    #[test]
    fn a_share_needs_time_to_pass() {
        assert_eq!(MachineTime::share_since(None), None);
        let ever = MachineTime { busy: 0, all: 0 };
        let share = MachineTime::share_since(Some(ever));
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{share:?}");
    }
}
