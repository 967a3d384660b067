//! SIGTERM and SIGINT, waited for by a thread instead of handled in one.
//!
//! A handler may do next to nothing, and needs unsafe code. Blocked in every thread, the signals stay pending until
//! [`Signals::wait`] takes them.

use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal};

/// The signals that end the program, blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals(SigSet);

impl Signals {
    /// Blocks them in this thread and those that it starts from now on: call it before there are others.
    pub(crate) fn block() -> Result<Self, Failure> {
        let set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
        set.thread_block().map_err(|error| Failure::Failed(format!("cannot block signals: {error}")))?;
        Ok(Signals(set))
    }

    /// Waits for one, whatever it is.
    pub(crate) fn wait(self) {
        // It fails for an invalid set only; ending then is better than running without an end.
        let _ = self.0.wait();
    }
}
