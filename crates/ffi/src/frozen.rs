//! Whether a controller is awake, as a process of the server sees it, and whether one will come back to the state that the
//! process has mapped.

use crate::state_file::StateFile;
use plimsoll_core::time::Instant;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// After this number of control periods, and this time, without a tick a controller is taken to be dead.
const SILENT_PERIODS: u64 = 5;
const SILENT: Duration = Duration::from_secs(3);
/// While no controller is awake, how often a process checks whether the state was made anew (ns).
const LOOK_NS: u64 = 1_000_000_000;

/// Why no controller is awake. Its number is part of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Frozen {
    /// There is no controller now: levels stand still until there is one again.
    Silent = 1,
    /// The path leads to another state: no controller will come back to the one that this process has mapped.
    Replaced = 2,
}

impl Frozen {
    /// What to tell the operator.
    pub fn text(self) -> &'static str {
        match self {
            Frozen::Silent => "no controller is awake, so levels stand still: start `plimsoll control`",
            Frozen::Replaced => {
                "the state was made anew, so levels stand still: start the server's processes anew (apachectl graceful)"
            }
        }
    }
}

/// What a process watches of the controller.
pub(crate) struct ControllerWatch {
    silent_ns: u64,
    state_file: StateFile,
    /// Whether the state was made anew by the last check, and when the check was (ns).
    is_replaced: AtomicBool,
    looked_ns: AtomicU64,
}

impl ControllerWatch {
    /// For the state that has just been mapped from this path.
    pub(crate) fn new(path: &Path, period_ns: u64) -> Self {
        ControllerWatch {
            silent_ns: (SILENT_PERIODS * period_ns).max(SILENT.as_nanos() as u64),
            state_file: StateFile::of(path),
            is_replaced: AtomicBool::new(false),
            looked_ns: AtomicU64::new(0),
        }
    }

    /// Why no controller is awake, if the last one was awake at `heartbeat_ns`; `None` if one is awake.
    pub(crate) fn look(&self, now: Instant, heartbeat_ns: u64) -> Option<Frozen> {
        // The distance counts in both directions: a tick may have come since `now` was read, and a time far ahead is of an
        // earlier start of the machine.
        if now.as_nanos().abs_diff(heartbeat_ns) <= self.silent_ns {
            return None;
        }
        Some(if self.is_replaced_at(now) { Frozen::Replaced } else { Frozen::Silent })
    }

    /// Whether the state was made anew; the kernel is asked once a second.
    fn is_replaced_at(&self, now: Instant) -> bool {
        if now.as_nanos().saturating_sub(self.looked_ns.load(Relaxed)) > LOOK_NS {
            self.looked_ns.store(now.as_nanos(), Relaxed);
            self.is_replaced.store(self.state_file.is_replaced(), Relaxed);
        }
        self.is_replaced.load(Relaxed)
    }

    /// Makes the next check ask the kernel.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        self.looked_ns.store(0, Relaxed);
    }
}
