//! SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2, waited for by a thread instead of handled in one.
//!
//! Signals that are blocked in every thread stay pending until [`Signals::wait`] takes them; a handler needs unsafe code.

use crate::output::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// End the process: SIGTERM, SIGINT.
    Stop,
    /// Read the configuration again: SIGHUP.
    Reload,
    /// Reopen the access logs, whose files were moved away: SIGUSR1.
    ReopenLogs,
    /// Start the program again and let it take this process's place: SIGUSR2.
    Upgrade,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals(SigSet);

impl Signals {
    /// Blocks the signals in this thread and in those that it starts later; must be called before there are others.
    pub(crate) fn block() -> Result<Self, Failure> {
        let all = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];
        let set = SigSet::from_iter(all);
        set.thread_block().map_err(|error| Failure::Failed(format!("cannot block signals: {error}")))?;
        Ok(Signals(set))
    }

    fn wait(self) -> Requested {
        match self.0.wait() {
            Ok(Signal::SIGHUP) => Requested::Reload,
            Ok(Signal::SIGUSR1) => Requested::ReopenLogs,
            Ok(Signal::SIGUSR2) => Requested::Upgrade,
            // Waiting fails only for an invalid set; then to end is better than to run without a way to end.
            _ => Requested::Stop,
        }
    }

    /// Waits for a signal that requests the end, and ignores the others.
    pub(crate) fn wait_for_stop(self) {
        while self.wait() != Requested::Stop {}
    }

    /// Starts a thread that receives signals until the first one that requests the end.
    pub(crate) fn receive(self) -> Result<mpsc::Receiver<Requested>, Failure> {
        let (sender, receiver) = mpsc::channel();
        wait_in_thread(move || {
            loop {
                let requested = self.wait();
                // If there is no receiver, the process is about to end.
                if sender.send(requested).is_err() || requested == Requested::Stop {
                    return;
                }
            }
        })?;
        Ok(receiver)
    }
}

fn wait_in_thread(wait: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = thread::Builder::new().name("signals".to_owned()).spawn(wait);
    thread.map(drop).map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))
}

/// Whether the user wants a command to end. A long command checks this, and then prints what it has so far.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts a thread that waits for a signal; a second signal ends the process at once.
    pub(crate) fn listen(signals: Signals) -> Result<Interrupt, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let request = Arc::clone(&requested);
        wait_in_thread(move || {
            signals.wait();
            request.store(true, Ordering::Relaxed);
            signals.wait();
            std::process::exit(1);
        })?;
        Ok(Interrupt(requested))
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
