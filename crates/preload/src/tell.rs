//! What an operator has to know, once in each process, on its standard error.

use plimsoll_ffi::Fault;
use rustix::fs::FileType;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is told once.
#[derive(Debug, Default)]
pub(crate) struct Once(AtomicBool);

impl Once {
    pub(crate) const fn new() -> Once {
        Once(AtomicBool::new(false))
    }

    /// Tells it, unless that has been done since the last [`Once::again`].
    pub(crate) fn tell(&self, text: &str) {
        if self.0.swap(true, Relaxed) {
            return;
        }
        let (error, line) = (std::io::stderr(), format!("plimsoll: {text}\n"));
        // A server that has closed it may have a connection there now.
        let is_socket =
            rustix::fs::fstat(&error).map_or(true, |told| FileType::from_raw_mode(told.st_mode).is_socket());
        if !is_socket {
            // Nobody is left to be told that it cannot be told.
            let _ = rustix::io::write(&error, line.as_bytes());
        }
    }

    /// From now on it may be told again.
    pub(crate) fn again(&self) {
        self.0.store(false, Relaxed);
    }
}

/// What is told once of each fault.
#[derive(Debug)]
pub(crate) struct OnceEach([Once; Fault::ALL.len()]);

impl OnceEach {
    pub(crate) const fn new() -> OnceEach {
        OnceEach([const { Once::new() }; Fault::ALL.len()])
    }

    /// That of a fault.
    pub(crate) fn of(&self, fault: Fault) -> &Once {
        // Faults are numbered from -1 down.
        &self.0[(fault as i32).unsigned_abs() as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_told_once() {
        let faults = OnceEach::new();
        faults.of(Fault::File).0.store(true, Relaxed);
        let is_told = |fault: &&Fault| faults.of(**fault).0.load(Relaxed);
        assert_eq!(Fault::ALL.iter().filter(is_told).collect::<Vec<_>>(), [&Fault::File]);
    }
}
