//! The thread that runs the control loops: it calls the engine's `tick` when the engine says so.
//!
//! It is a thread and not a task, because the loops must run when the executor's threads are busy, which is when they are
//! needed. It holds the layer only while it ticks, so that it ends with the last layer, service and response.

use super::Running;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The longest sleep, so that the end is seen within this time even if its wake-up is lost.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

pub(crate) fn start(running: &Arc<Running>) -> io::Result<()> {
    let (weak, clock) = (Arc::downgrade(running), running.clock.clone());
    let thread = thread::Builder::new().name("plimsoll-tick".to_owned()).spawn(move || {
        while let Some(next) = weak.upgrade().map(|running| running.tick()) {
            thread::park_timeout(next.since(clock.now()).min(LONGEST_SLEEP));
        }
    })?;
    // The only place that sets it, once for each layer that is built.
    let _ = running.ticker.set(thread.thread().clone());
    Ok(())
}
