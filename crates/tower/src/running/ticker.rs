//! The thread that runs the control loops: it calls the engine's `tick` when the engine says so.
//!
//! It is a thread and not a task, because the loops must run when the executor's threads are busy, which is when they are
//! needed. It holds the layer only while it ticks, so that it ends with the last layer, service and response.
//!
//! A panic of a loop ends no request: levels stand still, the layer says so, requests that wait are answered all the same, and
//! the loops are tried again, at the latest after a second.

use super::Running;
use plimsoll_core::request::Verdicts;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The longest sleep, so that the end is seen within this time even if its wake-up is lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// The shortest sleep after a panic, each of which writes a message.
const SLEEP_AFTER_PANIC: Duration = Duration::from_millis(100);

impl Running {
    /// Runs the loops that are due; for how long to sleep then.
    pub(crate) fn try_tick(&self) -> Duration {
        let mut verdicts = Verdicts::new();
        // The engine's locks are taken after a panic too: what they guard is whole after each write.
        let ticked = catch_unwind(AssertUnwindSafe(|| self.tick(&mut verdicts)));
        let is_frozen = ticked.is_err();
        let answered = |_| catch_unwind(AssertUnwindSafe(|| self.answer_waiting(&mut verdicts)));
        let next = ticked.or_else(answered);
        self.deliver(verdicts);
        self.is_frozen.store(is_frozen, Relaxed);
        let least = if is_frozen { SLEEP_AFTER_PANIC } else { Duration::ZERO };
        next.map_or(LONGEST_SLEEP, |next| next.since(self.clock.now()).clamp(least, LONGEST_SLEEP))
    }
}

pub(crate) fn start(running: &Arc<Running>) -> io::Result<()> {
    let weak = Arc::downgrade(running);
    let thread = thread::Builder::new().name("plimsoll-tick".to_owned()).spawn(move || {
        while let Some(sleep) = weak.upgrade().map(|running| running.try_tick()) {
            thread::park_timeout(sleep);
        }
    })?;
    // The only place that sets it, once for each layer that is built.
    let _ = running.ticker.set(thread.thread().clone());
    Ok(())
}
