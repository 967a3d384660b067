//! Threads beside the requests' way: each works until it is signalled to end.

use crate::sync::lock;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// A thread that works in the background. It is signalled to end when this is dropped, and nothing waits for it then.
#[derive(Debug)]
pub(crate) struct Background {
    is_ending: Arc<AtomicBool>,
    /// The thread, to be unparked when it is to end.
    pub thread: Thread,
    handle: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts a thread of this name, which is unparked once it is to end.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<Self> {
        let is_ending = Arc::<AtomicBool>::default();
        let seen = is_ending.clone();
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || work(&seen))?;
        Ok(Background { is_ending, thread: handle.thread().clone(), handle: Mutex::new(Some(handle)) })
    }

    fn signal(&self) -> Option<JoinHandle<()>> {
        self.is_ending.store(true, Relaxed);
        self.thread.unpark();
        lock(&self.handle).take()
    }

    /// Signals the thread to end, and waits until it has. False if that was done before.
    pub(crate) fn stop(&self) -> bool {
        // A panic there was reported by its thread; nothing is left to do here.
        self.signal().map(JoinHandle::join).is_some()
    }

    /// Signals the thread to end, and waits for that at most so long.
    pub(crate) fn finish(&self, most: Duration) {
        let Some(thread) = self.signal() else { return };
        let until = Instant::now() + most;
        while !thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.signal();
    }
}
