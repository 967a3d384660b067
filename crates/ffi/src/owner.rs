//! The owner of a lane: a process, by its number and its start time, in one word.
//!
//! A number alone would not do, since the kernel gives the numbers of dead processes to new ones. The start time is that of
//! `/proc/PID/stat`, in ticks since the machine's start. All processes must see the same `/proc`: those of one machine or of
//! one container. One that sees none (in a folder of its own, by `ChrootDir`) is known by its number alone, and takes nobody
//! for dead.

use std::{fs, io};

/// A process may have a number of so many bits.
const NUMBER_BITS: u32 = 22;

/// The word of this process.
pub(crate) fn own() -> u64 {
    word(own_number(), start_ticks(own_number()).ok().flatten().unwrap_or(0))
}

fn own_number() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether the process that this word names lives, as far as is known.
pub(crate) fn lives(owner: u64) -> bool {
    let (number, known) = (number(owner), owner >> NUMBER_BITS);
    match start_ticks(number) {
        Ok(Some(ticks)) => known == 0 || ticks == known,
        Ok(None) => number != 0 && !matches!(start_ticks(own_number()), Ok(Some(_))),
        Err(_) => true,
    }
}

/// The number of the process.
pub(crate) fn number(owner: u64) -> u32 {
    (owner & ((1 << NUMBER_BITS) - 1)) as u32
}

fn word(number: u32, start_ticks: u64) -> u64 {
    start_ticks << NUMBER_BITS | u64::from(number)
}

/// When a process started; `None` if it is gone, or dead and only not yet waited for by its parent.
fn start_ticks(number: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{number}/stat")) {
        Err(error) if is_gone(&error) => return Ok(None),
        stat => stat?,
    };
    // The name of the program is in brackets and may hold anything, brackets too.
    let mut fields = stat.rsplit(')').next().unwrap_or("").split_ascii_whitespace();
    let state = fields.next();
    // A process whose first thread has ended is shown as dead while others of its threads go on.
    let threads: u32 = fields.nth(16).and_then(|threads| threads.parse().ok()).unwrap_or(0);
    if state == Some("X") || (state == Some("Z") && threads <= 1) {
        return Ok(None);
    }
    let ticks = fields.nth(1).and_then(|ticks| ticks.parse().ok());
    ticks.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// It ended before its file was opened, or while it was read.
fn is_gone(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_while_one_of_its_threads_does() {
        let program = "import ctypes, threading, time\n\
                       threading.Thread(target=time.sleep, args=(60,)).start()\n\
                       ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3").args(["-c", program]).spawn().unwrap();
        let owner = word(child.id(), start_ticks(child.id()).unwrap().unwrap());
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert!(lives(owner));
        child.kill().unwrap();
        while lives(owner) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_process_lives_until_it_ends_and_its_number_alone_is_not_it() {
        assert!(lives(own()) && number(own()) == std::process::id());
        assert!(!lives(own() + (1 << NUMBER_BITS)), "another start");
        assert!(!lives(0), "no process");
        assert!(lives(word(std::process::id(), 0)), "its start was not known to it");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let owner = word(child.id(), start_ticks(child.id()).unwrap().unwrap());
        assert!(lives(owner));
        child.kill().unwrap();
        // Dead before it is waited for, and after.
        while lives(owner) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!lives(owner));
    }
}
