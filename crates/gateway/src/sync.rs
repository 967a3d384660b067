//! The lock that threads share things behind, and when what they count is logged.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The same is logged at most this often.
pub(crate) const REPORT_AGAIN: Duration = Duration::from_secs(600);

/// Takes a lock, also after a panic: what the gateway's locks guard is whole after each of its writes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was logged of something that is counted: how often it was, and when.
#[derive(Debug, Default)]
pub(crate) struct RareNews(Mutex<(u64, Option<Instant>)>);

impl RareNews {
    /// Whether it is news that it was so often by now: at the first one, and then at times while more come.
    pub(crate) fn take(&self, count: u64, now: Instant) -> bool {
        let mut logged = lock(&self.0);
        let (known, at) = *logged;
        let is_news = count > known && at.is_none_or(|at| now.saturating_duration_since(at) >= REPORT_AGAIN);
        if is_news {
            *logged = (count, Some(now));
        }
        is_news
    }
}

/// Why something fails, and whether that was logged.
#[derive(Debug, Default)]
pub(crate) struct TroubleNews(Mutex<TroubleSeen>);

#[derive(Debug, Default)]
struct TroubleSeen {
    known: Option<String>,
    unlogged: Option<String>,
}

impl TroubleNews {
    /// The reason for which something fails now, if it does. Another reason than before is news.
    pub(crate) fn put(&self, why: Option<String>) {
        let mut trouble = lock(&self.0);
        if why.is_some() && why != trouble.known {
            trouble.unlogged.clone_from(&why);
        }
        trouble.known = why;
    }

    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.0).unlogged.take()
    }
}
