//! The probes: a page asked for again and again, by a thread of its own, because an answer may take its time.
//!
//! How long the question under way has been open can be seen at any moment, so that nobody has to wait for an answer
//! that never comes.

use crate::service::page::PageClient;
use plimsoll_core::agent::Probe;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[derive(Default)]
struct State {
    ended: u64,
    answered: Option<Duration>,
    since: Option<Instant>,
}

/// The probes, running. The thread ends with the value, after the question that is open.
pub(super) struct Probes {
    state: Arc<Mutex<State>>,
    thread: JoinHandle<()>,
}

impl Probes {
    /// Starts asking.
    pub(super) fn start(client: PageClient, every: Duration) -> io::Result<Probes> {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::downgrade(&state);
        let ask = move || while probe(&shared, &client, every).is_some() {};
        let thread = thread::Builder::new().name("probe".to_owned()).spawn(ask)?;
        Ok(Probes { state, thread })
    }

    /// Whether nobody asks any more, which only a panic brings about.
    pub(super) fn have_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Something else in the place of the thread.
    #[cfg(test)]
    pub(super) fn of(thread: impl FnOnce() + Send + 'static) -> Probes {
        Probes { state: Arc::default(), thread: thread::spawn(thread) }
    }

    /// How it stands.
    pub(super) fn look(&self) -> Probe {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Probe {
            ended: state.ended,
            answered: state.answered,
            waiting: state.since.map(|since| since.elapsed()),
        }
    }
}

/// One probe, and the rest of the interval; none when nobody looks any more.
fn probe(state: &Weak<Mutex<State>>, client: &PageClient, every: Duration) -> Option<()> {
    let started = Instant::now();
    state.upgrade()?.lock().unwrap_or_else(PoisonError::into_inner).since = Some(started);
    let page = client.get();
    let took = started.elapsed();
    {
        let state = state.upgrade()?;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended += 1;
        state.since = None;
        // An overloaded server says so with 502, 503 or 504: that is no answer.
        state.answered = page.is_ok_and(|page| page.status < 500).then_some(took);
    }
    thread::sleep(every.saturating_sub(took));
    Some(())
}
