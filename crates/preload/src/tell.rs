//! Messages to the operator, once in each process, on its standard error.

use plimsoll_ffi::Fault;
use rustix::fs::FileType;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A message that is written once.
#[derive(Debug, Default)]
pub(crate) struct Once(AtomicBool);

impl Once {
    pub(crate) const fn new() -> Once {
        Once(AtomicBool::new(false))
    }

    /// Writes the message, unless it was written since the last [`Once::again`].
    pub(crate) fn tell(&self, text: &str) {
        if self.0.swap(true, Relaxed) {
            return;
        }
        let (error, line) = (std::io::stderr(), format!("plimsoll: {text}\n"));
        // If the server has closed its standard error, the descriptor may now be a connection.
        let is_socket =
            rustix::fs::fstat(&error).map_or(true, |told| FileType::from_raw_mode(told.st_mode).is_socket());
        if !is_socket {
            // If the write fails, nobody can be told.
            let _ = rustix::io::write(&error, line.as_bytes());
        }
    }

    /// Allows the message to be written again.
    pub(crate) fn again(&self) {
        self.0.store(false, Relaxed);
    }
}

/// One message for each fault.
#[derive(Debug)]
pub(crate) struct OnceEach([Once; Fault::ALL.len()]);

impl OnceEach {
    pub(crate) const fn new() -> OnceEach {
        OnceEach([const { Once::new() }; Fault::ALL.len()])
    }

    /// The message for a fault.
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
