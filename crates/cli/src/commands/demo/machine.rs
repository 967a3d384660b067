//! What the demo uses of the machine that it runs on, and what the machine allows.

use crate::output::failure::Failure;
use crate::service::open_files::raise_open_files;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The number of client sockets that may be open; this process holds the other end of each too.
pub(crate) fn client_sockets(wanted: usize) -> Result<usize, Failure> {
    const OTHER_FILES: u64 = 1000;
    let limit = raise_open_files()
        .map_err(|error| Failure::Failed(format!("the limit of open files cannot be raised: {error}")))?;
    let sockets = usize::try_from(limit.saturating_sub(OTHER_FILES) / 2).unwrap_or(usize::MAX);
    if sockets < wanted {
        return Err(Failure::Failed(format!(
            "this process may open {limit} files, and the demo needs {}: raise the limit, `ulimit -Hn`, \
             or write a smaller `--capacity`",
            2 * wanted as u64 + OTHER_FILES
        )));
    }
    Ok(sockets)
}

/// Counts this process's use of all cores from now on.
pub(crate) struct CpuMeter {
    started: Instant,
    used: Duration,
}

impl CpuMeter {
    pub(crate) fn start() -> CpuMeter {
        CpuMeter { started: Instant::now(), used: used() }
    }

    /// The processor time used since the start, as a share of all cores.
    pub(crate) fn share(&self) -> f64 {
        let available = self.started.elapsed().as_secs_f64() * cores() as f64;
        used().saturating_sub(self.used).as_secs_f64() / available.max(1e-9)
    }
}

fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF);
    let micros = usage.map_or(0, |usage| (usage.user_time() + usage.system_time()).num_microseconds());
    Duration::from_micros(micros.try_into().unwrap_or(0))
}
