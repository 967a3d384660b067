//! The owner of a lane: a process, by its number and its start time, in one word.
//!
//! A number alone would not do, since the kernel gives the numbers of dead processes to new ones. The start time is that of
//! `/proc/PID/stat`, in ticks since the machine's start. All processes must see the same `/proc`: those of one machine or of
//! one container.

use std::fs;

/// A process may have a number of so many bits.
const NUMBER_BITS: u32 = 22;

/// The word of this process.
pub(crate) fn own() -> u64 {
    let number = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    word(number, start_ticks(number).unwrap_or(0))
}

/// Whether the process that this word names lives.
pub(crate) fn lives(owner: u64) -> bool {
    let number = number(owner);
    start_ticks(number).is_some_and(|ticks| word(number, ticks) == owner)
}

/// The number of the process.
pub(crate) fn number(owner: u64) -> u32 {
    (owner & ((1 << NUMBER_BITS) - 1)) as u32
}

fn word(number: u32, start_ticks: u64) -> u64 {
    start_ticks << NUMBER_BITS | u64::from(number)
}

/// When a process started; `None` if it is gone, or dead and only not yet waited for by its parent.
fn start_ticks(number: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name of the program is in brackets and may hold anything, brackets too.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let ticks = fields.nth(18)?.parse().ok();
    if matches!(state, "Z" | "X") { None } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_until_it_ends_and_its_number_alone_is_not_it() {
        assert!(lives(own()) && number(own()) == std::process::id());
        assert!(!lives(own() + (1 << NUMBER_BITS)), "another start");
        assert!(!lives(0), "no process");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let owner = word(child.id(), start_ticks(child.id()).unwrap());
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
