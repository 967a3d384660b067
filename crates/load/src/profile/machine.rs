//! How busy the client is: a rate that the client could not exceed says nothing of the server.

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
