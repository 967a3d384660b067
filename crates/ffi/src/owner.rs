//! The owner of a lane: a process, by its number, its start time and its program, in one word.
//!
//! The number of a process is not enough, since the kernel gives the numbers of dead processes to new ones. So the word has the
//! start time too, from `/proc/PID/stat`, in ticks since the machine's start. A process that replaces its program (`exec`)
//! keeps its number and its start time, and loses everything that it held. So the word also has a mark of the program, made
//! from the address of its stack, which the kernel chooses anew for each program and shows to the process alone.
//!
//! A descriptor of the process (`pidfd_open`) shows whether a process of this number exists, and whether it has ended but its
//! parent has not waited for it. A process that `/proc` does not show may still live: `hidepid`, systemd's `ProtectProc` and
//! `ChrootDir` hide living processes. If `/proc` shows the process, its start time distinguishes it from a dead one with the
//! same number. All processes must be in one PID namespace ([`namespace`]), where a number means the same to each.

use crate::layout::checksum;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where the kernel shows the processes.
const PROC: &str = "/proc";

/// The bits of the word that hold the process's number.
const NUMBER_BITS: u32 = 22;
/// The bits of the word that hold the mark of the program. One program in 256 has the same mark as the one that it replaced,
/// whose lane then stays with the process.
const MARK_BITS: u32 = 8;
const MARK: u64 = ((1 << MARK_BITS) - 1) << NUMBER_BITS;

/// The word of this process.
pub(crate) fn own() -> u64 {
    seen(PROC.as_ref(), own_number()).map_or_else(|| own_number().into(), |seen| word(own_number(), seen))
}

/// The PID namespace of this process; 0 if the kernel does not show it.
pub(crate) fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// A number of the machine's present start, which differs from that of any other; 0 if the kernel does not show it.
pub(crate) fn boot() -> u64 {
    fs::read("/proc/sys/kernel/random/boot_id").map_or(0, |id| checksum(&id))
}

/// Whether this namespace certainly differs from this process's own.
pub(crate) fn is_elsewhere(other: u64) -> bool {
    let own = namespace();
    own != 0 && other != 0 && own != other
}

fn own_number() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}

/// Whether `owner` is the word of a program that this process, whose word is `own`, has replaced by another.
pub(crate) fn is_replaced(owner: u64, own: u64) -> bool {
    owner != own && owner & !MARK == own & !MARK
}

/// Whether the process that this word names lives, as far as the kernel shows.
pub(crate) fn lives(owner: u64) -> bool {
    lives_by(PROC.as_ref(), owner)
}

fn lives_by(proc: &Path, owner: u64) -> bool {
    let (number, known) = (number(owner), owner >> (NUMBER_BITS + MARK_BITS));
    exists(number)
        && seen(proc, number).is_none_or(|seen| {
            let now = word(number, seen);
            known == 0 || (now & !MARK == owner & !MARK && (number != own_number() || now == owner))
        })
}

/// Whether the kernel has a process of this number that has not ended. If it gives no descriptor (Linux before 5.3, too many
/// open files), the null signal decides, which also succeeds for a dead process that nobody has waited for. A process that this
/// one has no right to signal exists too.
fn exists(number: u32) -> bool {
    let Some(pid) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return false };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // The descriptor becomes readable when the last thread of the process has ended.
        Ok(process) => {
            let mut asked = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(1)
        }
        Err(_) => rustix::process::test_kill_process(pid) != Err(Errno::SRCH),
    }
}

/// The number of the process.
pub(crate) fn number(owner: u64) -> u32 {
    (owner & ((1 << NUMBER_BITS) - 1)) as u32
}

/// What the kernel shows of a process.
#[derive(Clone, Copy)]
struct Seen {
    start_ticks: u64,
    /// The address of its stack; 0 if the process is another user's.
    stack: u64,
}

/// The owner's word; the start ticks have room for five years at a hundred a second, and wrap around then.
fn word(number: u32, Seen { start_ticks, stack }: Seen) -> u64 {
    // The stack begins at a multiple of 16, and all bits above are random.
    let mark = (stack >> 4) ^ (stack >> 12) ^ (stack >> 20);
    start_ticks << (NUMBER_BITS + MARK_BITS) | (mark << NUMBER_BITS) & MARK | u64::from(number)
}

/// What `/proc` shows of a process; `None` if it shows nothing.
fn seen(proc: &Path, number: u32) -> Option<Seen> {
    let stat = fs::read(proc.join(number.to_string()).join("stat")).ok()?;
    // The name of the program is in brackets, and may hold any bytes, even brackets.
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
    let [start_ticks, stack] = [19, 5].map(|next| fields.nth(next).and_then(|field| field.parse().ok()));
    Some(Seen { start_ticks: start_ticks?, stack: stack? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    fn word_of(child: &Child) -> u64 {
        word(child.id(), seen(PROC.as_ref(), child.id()).expect("it is shown"))
    }

    #[test]
    fn a_living_process_that_is_not_shown_is_not_dead() {
        let hidden = tempfile::tempdir().unwrap();
        let lives = |owner| lives_by(hidden.path(), owner);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let owner = word_of(&child);
        assert!(lives(owner) && lives(child.id().into()));
        // As under `hidepid=2`, a process is shown to itself alone.
        let own = hidden.path().join(std::process::id().to_string());
        fs::create_dir(&own).unwrap();
        fs::copy("/proc/self/stat", own.join("stat")).unwrap();
        assert!(lives(owner));
        assert!(lives(super::own()) && !lives(super::own() + (1 << (NUMBER_BITS + MARK_BITS))));
        // Nothing distinguishes this process from an earlier one with its number.
        assert!(lives(owner + (1 << (NUMBER_BITS + MARK_BITS))));
        child.kill().unwrap();
        // Dead before it is waited for, and after.
        let end = Instant::now() + Duration::from_secs(30);
        while lives(owner) || lives(child.id().into()) {
            assert!(Instant::now() < end, "a dead process that nobody has waited for lives");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!lives(owner) && !lives(child.id().into()));
        assert!(!lives(0), "no process");
    }

    #[test]
    fn a_process_is_known_whatever_bytes_its_name_has() {
        let program = "import ctypes, time\n\
                       ctypes.CDLL(None).prctl(15, b'\\xff) \\xfe', 0, 0, 0)\n\
                       print('named', flush=True)\n\
                       time.sleep(60)";
        let mut command = Command::new("python3");
        let mut child = command.args(["-c", program]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 5];
        child.stdout.take().unwrap().read_exact(&mut said).unwrap();
        let owner = word_of(&child);
        assert!(lives(owner) && !lives(owner + (1 << (NUMBER_BITS + MARK_BITS))));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_lives_while_one_of_its_threads_does() {
        let program = "import ctypes, threading, time\n\
                       threading.Thread(target=time.sleep, args=(60,)).start()\n\
                       ctypes.CDLL(None).pthread_exit(None)";
        let mut child = Command::new("python3").args(["-c", program]).spawn().unwrap();
        let owner = word_of(&child);
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
        let owner = word_of(&child);
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
