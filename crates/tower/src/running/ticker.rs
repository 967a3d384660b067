//! The thread that runs the control loops: it calls the engine's `tick` when the engine says so.
//!
//! It is a thread and not a task, because the loops must run when the executor's threads are busy, which is when they are
//! needed. It holds the layer only while it ticks, so that it ends with the last layer, service and response.
//!
//! A panic of a loop ends no request: levels stand still, the layer says so, and the loops are tried again after a second.

use super::Running;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// The longest sleep, so that the end is seen within this time even if its wake-up is lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

impl Running {
    /// Runs the loops that are due; for how long to sleep then.
    fn try_tick(&self) -> Duration {
        // The engine's locks are taken after a panic too: what they guard is whole after each write.
        let ticked = catch_unwind(AssertUnwindSafe(|| self.tick().since(self.clock.now())));
        self.is_frozen.store(ticked.is_err(), Relaxed);
        ticked.map_or(LONGEST_SLEEP, |sleep| sleep.min(LONGEST_SLEEP))
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
