//! A server of a test: its process, its log, its end.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

/// How long a server may take to start, to end, or to do what is waited for. Only a failure takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How often a condition of another process is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A running program whose output goes to a file.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it. `log` gets what it prints. Panics if it cannot be started.
    pub fn spawn(name: &'static str, command: &mut Command, log: &Path) -> Process {
        Process::spawn_with(name, command, Stdio::null(), log)
    }

    /// The same, with a standard input.
    pub fn spawn_with(name: &'static str, command: &mut Command, input: Stdio, log: &Path) -> Process {
        let file =
            File::create(log).unwrap_or_else(|error| panic!("cannot write {}: {error}", log.display()));
        let same = file.try_clone().unwrap_or_else(|error| panic!("cannot share {}: {error}", log.display()));
        let child = command
            .stdin(input)
            .stdout(file)
            .stderr(same)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Process { name, child, log: log.to_owned() }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until `ready` finds what it looks for in the log. Panics, with the log, if the program ends first or the
    /// time is over.
    pub fn wait_for<T>(&mut self, what: &str, mut ready: impl FnMut(&str) -> Option<T>) -> T {
        let found = wait_until(PATIENCE, || {
            // The log is read after the status, so that the last lines of a process that has ended are in it.
            let ended = self.ended();
            let log = self.log();
            let found = ready(&log);
            let is_possible = found.is_some() || ended.is_none();
            assert!(is_possible, "{} ended ({ended:?}) before {what}:\n{log}", self.name);
            found
        });
        found.unwrap_or_else(|| panic!("{}: no {what} in {PATIENCE:?}:\n{}", self.name, self.log()))
    }

    /// Its status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap_or_else(|error| panic!("cannot wait for {}: {error}", self.name))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        kill(pid, signal).unwrap_or_else(|error| panic!("cannot send {signal} to {}: {error}", self.name));
    }

    /// Waits for its end. Panics, with the log, if it takes too long.
    pub fn wait(&mut self) -> ExitStatus {
        let ended = wait_until(PATIENCE, || self.ended());
        ended.unwrap_or_else(|| panic!("{} does not end:\n{}", self.name, self.log()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // TERM first: nginx and Apache end their children then.
            self.signal(Signal::SIGTERM);
            end(&mut self.child);
        }
        if thread::panicking() {
            eprintln!("---- log of {} ----\n{}----", self.name, self.log());
        }
    }
}

/// Looks again and again until there is something; `None` when the time is over.
pub fn wait_until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let found = look();
        if found.is_some() || start.elapsed() >= patience {
            return found;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Waits for five seconds until a program that was asked to end has ended, then kills it.
pub(crate) fn end(child: &mut Child) {
    wait_until(Duration::from_secs(5), || child.try_wait().transpose());
    drop(child.kill());
    drop(child.wait());
}

/// A port for a server that cannot say which one it chose.
///
/// The port lies below those that the system gives to outgoing connections, and this process hands it out once, so that nothing
/// takes it before the server does.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 20) as u16 * 1_000;
    let mut ports = (0..1_000).map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed) % 1_000);
    let found = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    found.unwrap_or_else(|| panic!("no port is free on 127.0.0.1 from {first}"))
}

/// Where a program is. Panics, with what to do, if it is not installed.
pub fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed, and this test needs it: run `make deps`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folder;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn shell(script: &str, folder: &Folder) -> Process {
        Process::spawn("shell", Command::new("sh").arg("-c").arg(script), &folder.path().join("log"))
    }

    #[test]
    fn reads_the_log_and_the_status() {
        let folder = Folder::new();
        let mut process = shell("echo ready at 5; exit 3", &folder);
        assert_eq!(process.wait_for("readiness", |log| log.contains("at 5").then_some(5)), 5);
        assert_eq!(process.wait().code(), Some(3));
    }

    #[test]
    fn an_early_end_fails_with_the_log() {
        let folder = Folder::new();
        let mut process = shell("echo no such file >&2; exit 1", &folder);
        let failed = catch_unwind(AssertUnwindSafe(|| process.wait_for("readiness", |_| None::<()>)));
        let message = failed.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("ended") && message.contains("no such file"), "{message}");
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let folder = Folder::new();
        let process = shell("exec sleep 600", &folder);
        let place = PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(place.exists());
        drop(process);
        assert!(!place.exists());
    }

    #[test]
    fn a_missing_program_is_a_failure_that_says_what_to_do() {
        assert!(program("sh").is_file());
        let failed = catch_unwind(|| program("no-such-server")).unwrap_err();
        assert!(failed.downcast::<String>().unwrap().contains("make deps"));
    }
}
