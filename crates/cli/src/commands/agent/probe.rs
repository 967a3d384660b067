//! The probes: a thread asks for a page again and again.
//!
//! The loop can see at any moment how long the present probe has been waiting, so the loop never waits for an answer.

use crate::service::page::PageClient;
use crate::service::sync::lock;
use plimsoll_core::agent::Probe;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[derive(Default)]
struct ProbeState {
    /// The probes that have ended.
    ended: Probe,
    /// When the present probe began; `None` between probes.
    since: Option<Instant>,
}

/// The running probes. When the value is dropped, the thread ends after its present probe.
pub(super) struct Probes {
    state: Arc<Mutex<ProbeState>>,
    thread: JoinHandle<()>,
}

impl Probes {
    pub(super) fn start(client: PageClient, every: Duration) -> io::Result<Probes> {
        let state = Arc::new(Mutex::new(ProbeState::default()));
        let shared = Arc::downgrade(&state);
        let thread = repeat("probe", every, move || {
            let started = Instant::now();
            lock(&*shared.upgrade()?).since = Some(started);
            let page = client.get();
            let state = shared.upgrade()?;
            let mut state = lock(&state);
            state.since = None;
            // An overloaded server answers 502, 503 or 504, so a status of 500 or more does not count as an answer.
            let answered = page.is_ok_and(|page| page.status < 500).then_some(started.elapsed());
            state.ended = state.ended.next(answered);
            Some(())
        })?;
        Ok(Probes { state, thread })
    }

    /// Whether the thread has ended, which only a panic causes.
    pub(super) fn have_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Runs `thread` in the place of the probing thread.
    #[cfg(test)]
    pub(super) fn of(thread: impl FnOnce() + Send + 'static) -> Probes {
        Probes { state: Arc::default(), thread: thread::spawn(thread) }
    }

    /// Ends a probe, answered after this time or not at all.
    #[cfg(test)]
    pub(super) fn end(&self, answered: Option<Duration>) {
        let mut state = lock(&self.state);
        state.ended = state.ended.next(answered);
    }

    pub(super) fn look(&self) -> Probe {
        let state = lock(&self.state);
        Probe { waiting: state.since.map(|since| since.elapsed()), ..state.ended }
    }
}

/// Calls `ask` on a thread of its own, once in each interval, until it returns none.
pub(super) fn repeat(
    name: &str,
    every: Duration,
    mut ask: impl FnMut() -> Option<()> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        loop {
            let started = Instant::now();
            if ask().is_none() {
                return;
            }
            thread::sleep(every.saturating_sub(started.elapsed()));
        }
    })
}
