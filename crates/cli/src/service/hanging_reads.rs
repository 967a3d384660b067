//! Runs readings that may hang on threads of their own: a configuration may be a pipe that nobody writes to, or be on a disk
//! that is gone, and a name server may not answer. Such a call cannot be interrupted. So the result is waited for with a limit,
//! and a thread that hangs is left behind until the process ends.

use crate::output::failure::Failure;
use crate::service::signals::Requested;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a reload may take to read files and look names up.
const LIMIT: Duration = Duration::from_secs(10);
/// How many readings may hang before no more are begun.
const MOST_HANGING: usize = 8;
/// How often a reading at the start checks whether the end was requested.
const LOOK: Duration = Duration::from_millis(50);

/// The readings of a running gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings(Arc<AtomicUsize>);

/// A reading in progress, counted while this value lives.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Readings {
    /// The result of `read`, if it comes in time.
    pub(crate) fn in_time<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let hanging = self.0.fetch_add(1, Relaxed);
        let under_way = UnderWay(self.0.clone());
        if hanging >= MOST_HANGING {
            return Err(Failure::Failed(format!(
                "{hanging} earlier reloads still read, and do not come back: see to the file and to the name servers"
            )));
        }
        let receiver = begin(move || {
            let _under_way = under_way;
            read()
        })?;
        receiver.recv_timeout(LIMIT).unwrap_or_else(|_| {
            Err(Failure::Failed(format!(
                "reading the configuration and looking its names up takes longer than {} s",
                LIMIT.as_secs()
            )))
        })
    }
}

/// The result of `read`; `None` if the end is requested first.
pub(crate) fn unless_stopped<T: Send + 'static>(
    requests: &Receiver<Requested>,
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    let receiver = begin(read)?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return result.map(Some),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Failed("the configuration was not read to its end".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) if requests.try_iter().any(|one| one == Requested::Stop) => {
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn begin<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Receiver<Result<T, Failure>>, Failure> {
    let (sender, receiver) = mpsc::channel();
    // After the limit no thread receives the result, so an error is ignored.
    let give = move || drop(sender.send(read()));
    let thread = thread::Builder::new().name("read-aside".to_owned()).spawn(give);
    thread.map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
    Ok(receiver)
}
