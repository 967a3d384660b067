//! SIGTERM, SIGINT and SIGHUP, waited for by a thread instead of handled in one.
//!
//! A handler may do next to nothing, and needs unsafe code. Blocked in every thread, the signals stay pending until
//! [`Signals::wait`] takes them.

use crate::output::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To end: SIGTERM, SIGINT.
    Stop,
    /// To read the configuration again: SIGHUP.
    Reload,
}

/// The signals, blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals(SigSet);

impl Signals {
    /// Blocks them in this thread and those that it starts from now on: call it before there are others.
    pub(crate) fn block() -> Result<Self, Failure> {
        let set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        set.thread_block().map_err(|error| Failure::Failed(format!("cannot block signals: {error}")))?;
        Ok(Signals(set))
    }

    /// Waits for one.
    pub(crate) fn wait(self) -> Asked {
        match self.0.wait() {
            Ok(Signal::SIGHUP) => Asked::Reload,
            // It fails for an invalid set only; ending then is better than running without an end.
            _ => Asked::Stop,
        }
    }

    /// Waits for one that asks to end; the others are passed over.
    pub(crate) fn wait_for_stop(self) {
        while self.wait() != Asked::Stop {}
    }
}

/// Whether the user wants it to end: looked at by what takes long, to print what there is so far.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Waits for a signal; a second one ends the process at once.
    pub(crate) fn listen(signals: Signals) -> Result<Interrupt, Failure> {
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        let wait = move || {
            signals.wait();
            tell.store(true, Ordering::Relaxed);
            signals.wait();
            std::process::exit(1);
        };
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(wait);
        thread.map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))?;
        Ok(Interrupt(told))
    }

    /// Whether a signal has come.
    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
