//! The thread that runs the control loops: it calls the engine's `tick` at the time that the last call returned.
//!
//! It is a thread and not a task, because the loops are needed most when all threads of the executor are busy. It holds a
//! reference to the layer only while it ticks, so that it ends with the last layer, service and response.
//!
//! A panic of a loop ends no request: levels stand still, `is_frozen` reports it, waiting requests are still answered in time,
//! and the loops run again after at most a second.

use super::Running;
use plimsoll_core::request::Verdicts;
use plimsoll_core::time::Instant;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The longest sleep: the thread sees within this time that it shall end, even if its wake-up is lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep after a panic, since each panic writes a message.
const SLEEP_AFTER_PANIC: Duration = Duration::from_millis(100);
/// The time after which loops that did not run are taken to be dead, as the processes of a server have it.
const SILENT: Duration = Duration::from_secs(3);

impl Running {
    /// Runs the loops that are due; returns how long to sleep until the next call.
    pub(crate) fn try_tick(&self) -> Duration {
        let mut verdicts = Verdicts::new();
        // A panic leaves the engine's locks usable, since the data that they guard is consistent after each single write.
        let ticked = catch_unwind(AssertUnwindSafe(|| self.tick(&mut verdicts)));
        let has_panicked = ticked.is_err();
        let answered = |_| catch_unwind(AssertUnwindSafe(|| self.answer_waiting(&mut verdicts)));
        let next = ticked.or_else(answered);
        self.deliver(verdicts);
        self.has_panicked.store(has_panicked, Relaxed);
        self.ticked_ns.store(self.clock.now().as_nanos(), Relaxed);
        let least = if has_panicked { SLEEP_AFTER_PANIC } else { Duration::ZERO };
        next.map_or(LONGEST_SLEEP, |next| next.since(self.clock.now()).clamp(least, LONGEST_SLEEP))
    }

    /// Whether levels stand still: the loops have panicked, or nobody runs them, as in a process that was forked.
    pub(crate) fn is_frozen(&self) -> bool {
        let ticked = Instant::from_nanos(self.ticked_ns.load(Relaxed));
        self.has_panicked.load(Relaxed) || self.clock.now().since(ticked) > SILENT
    }
}

pub(crate) fn start(running: &Arc<Running>) -> io::Result<()> {
    let weak = Arc::downgrade(running);
    let thread = thread::Builder::new().name("plimsoll-tick".to_owned()).spawn(move || {
        while let Some(sleep) = weak.upgrade().map(|running| running.try_tick()) {
            thread::park_timeout(sleep);
        }
    })?;
    // Nothing else sets the ticker, and this runs once for each layer.
    let _ = running.ticker.set(thread.thread().clone());
    Ok(())
}
