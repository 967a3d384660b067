//! The probes: a thread asks for a page again and again.
//!
//! The loop can see at any moment how long the probe under way has been waiting, so it never waits for an answer itself.

use crate::service::page::PageClient;
use plimsoll_core::agent::Probe;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What the thread and the loop share.
#[derive(Default)]
struct ProbeState {
    /// Probes that have ended.
    ended: u64,
    /// The response time of the last one, if it was answered.
    answered: Option<Duration>,
    /// When the probe under way began.
    since: Option<Instant>,
}

/// The probes, running. When the value is dropped, the thread ends after the probe under way.
pub(super) struct Probes {
    state: Arc<Mutex<ProbeState>>,
    thread: JoinHandle<()>,
}

impl Probes {
    /// Starts the thread.
    pub(super) fn start(client: PageClient, every: Duration) -> io::Result<Probes> {
        let state = Arc::new(Mutex::new(ProbeState::default()));
        let shared = Arc::downgrade(&state);
        let ask = move || while probe(&shared, &client, every).is_some() {};
        let thread = thread::Builder::new().name("probe".to_owned()).spawn(ask)?;
        Ok(Probes { state, thread })
    }

    /// Whether the thread has ended, which only a panic brings about.
    pub(super) fn have_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Runs `thread` in the place of the probing thread.
    #[cfg(test)]
    pub(super) fn of(thread: impl FnOnce() + Send + 'static) -> Probes {
        Probes { state: Arc::default(), thread: thread::spawn(thread) }
    }

    /// The state of the probes now.
    pub(super) fn look(&self) -> Probe {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Probe {
            ended: state.ended,
            answered: state.answered,
            waiting: state.since.map(|since| since.elapsed()),
        }
    }
}

/// Sends one probe and sleeps for the rest of the interval; none when the [`Probes`] are gone.
fn probe(state: &Weak<Mutex<ProbeState>>, client: &PageClient, every: Duration) -> Option<()> {
    let started = Instant::now();
    state.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner).since = Some(started);
    let page = client.get();
    let took = started.elapsed();
    {
        let state = state.upgrade()?;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended += 1;
        state.since = None;
        // 502, 503 and 504 are what an overloaded server says: they do not count as an answer.
        state.answered = page.is_ok_and(|page| page.status < 500).then_some(took);
    }
    thread::sleep(every.saturating_sub(took));
    Some(())
}
