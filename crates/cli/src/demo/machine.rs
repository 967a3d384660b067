//! What the demo takes of the machine that it runs on, and what the machine lets it have.

use crate::failure::Failure;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use plimsoll_load::raise_open_files;
use std::thread;
use std::time::{Duration, Instant};

/// Cores of this machine.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The most sockets that each of `sides` may open: a connection through the gateway has four ends here.
pub(crate) fn sockets_for(sides: u64) -> Result<usize, Failure> {
    const ENDS: u64 = 2;
    const OTHER_FILES: u64 = 500;
    const FEWEST: u64 = 4500;
    let limit = raise_open_files()
        .map_err(|error| Failure::Failed(format!("the limit of open files cannot be raised: {error}")))?;
    let sockets = limit.saturating_sub(OTHER_FILES) / (ENDS * sides);
    if sockets < FEWEST {
        return Err(Failure::Failed(format!(
            "this process may open {limit} files, and the demo's visitors need {}: raise the limit, `ulimit -Hn`",
            FEWEST * ENDS * sides + OTHER_FILES
        )));
    }
    Ok(usize::try_from(sockets).unwrap_or(usize::MAX))
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

    /// Used since then, as a share of all cores.
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

/// Sleeps until `instant`, or not at all.
pub(crate) fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}
