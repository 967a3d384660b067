//! The owner of a lane: a process, by its number, its start time and its program, in one word.
//!
//! A number alone would not do, since the kernel gives the numbers of dead processes to new ones. The start time is that of
//! `/proc/PID/stat`, in ticks since the machine's start. A process that replaces its program (`exec`) keeps both, and nothing
//! of what it held: so there is a mark of the program too, by where the kernel has put its stack, which only the process
//! itself is shown. All processes must see the same `/proc`: those of one machine or of one container. One that sees none (in a
//! folder of its own, by `ChrootDir`) is known by its number alone, and takes nobody for dead.

use std::{fs, io};

/// A process may have a number of so many bits.
const NUMBER_BITS: u32 = 22;
/// The mark has so many bits: of 256 programs one is taken for the one before it, whose lane stays its own then.
const MARK_BITS: u32 = 8;
const MARK: u64 = ((1 << MARK_BITS) - 1) << NUMBER_BITS;

/// The word of this process.
pub(crate) fn own() -> u64 {
    let seen = seen(own_number()).ok().flatten();
    seen.map_or(own_number().into(), |seen| word(own_number(), seen))
}

fn own_number() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether this word is that of a program which this process, whose word is `own`, has replaced.
pub(crate) fn is_replaced(owner: u64, own: u64) -> bool {
    owner != own && owner & !MARK == own & !MARK
}

/// Whether the process that this word names lives, as far as is known.
pub(crate) fn lives(owner: u64) -> bool {
    let (number, known) = (number(owner), owner >> (NUMBER_BITS + MARK_BITS));
    match seen(number) {
        Ok(Some(seen)) => {
            let now = word(number, seen);
            known == 0 || (now & !MARK == owner & !MARK && (number != own_number() || now == owner))
        }
        Ok(None) => number != 0 && !matches!(seen(own_number()), Ok(Some(_))),
        Err(_) => true,
    }
}

/// The number of the process.
pub(crate) fn number(owner: u64) -> u32 {
    (owner & ((1 << NUMBER_BITS) - 1)) as u32
}

/// What is seen of a process.
#[derive(Clone, Copy)]
struct Seen {
    start_ticks: u64,
    /// Where its stack begins; 0 for another user's.
    stack: u64,
}

/// There is room for the ticks of five years, a hundred a second; they go round then.
fn word(number: u32, Seen { start_ticks, stack }: Seen) -> u64 {
    // The stack begins at a multiple of 16, at random in all bits above.
    let mark = (stack >> 4) ^ (stack >> 12) ^ (stack >> 20);
    start_ticks << (NUMBER_BITS + MARK_BITS) | (mark << NUMBER_BITS) & MARK | u64::from(number)
}

/// What is seen of a process; `None` if it is gone, or dead and only not yet waited for by its parent.
fn seen(number: u32) -> io::Result<Option<Seen>> {
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
    let [ticks, stack] = [1, 5].map(|next| fields.nth(next).and_then(|field| field.parse().ok()));
    let seen = ticks.zip(stack).map(|(start_ticks, stack)| Seen { start_ticks, stack });
    seen.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
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
        let owner = word(child.id(), seen(child.id()).unwrap().unwrap());
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
        assert!(!lives(own() + (1 << (NUMBER_BITS + MARK_BITS))), "another start");
        assert!(!lives(own() ^ (1 << NUMBER_BITS)), "another program");
        assert!(!lives(0), "no process");
        assert!(lives(own_number().into()), "its start was not known to it");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let owner = word(child.id(), seen(child.id()).unwrap().unwrap());
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
