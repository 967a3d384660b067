//! The binary under test.

use crate::built::assert_current;
use crate::process::{PATIENCE, wait_until};
use crate::{Folder, Process, Response, exchange};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output};
use std::sync::OnceLock;
use std::{env, thread};

/// `plimsoll run FILE`, listening.
#[derive(Debug)]
pub struct Plimsoll {
    /// The running program.
    pub process: Process,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where `/status` and `/metrics` are.
    pub admin: SocketAddr,
    folder: Folder,
    /// The process that has taken the first one's place.
    successor: Option<u32>,
}

impl Plimsoll {
    /// Starts it with this configuration, whose listeners use port 0. Panics, with the log, if it does not come up.
    pub fn run(configuration: &str) -> Plimsoll {
        Plimsoll::run_with(configuration, &[])
    }

    /// The same, with these variables in its environment.
    pub fn run_with(configuration: &str, variables: &[(&str, &str)]) -> Plimsoll {
        Plimsoll::run_in(Folder::new(), configuration, variables)
    }

    /// Starts it in the folder of one that has ended, with what that one has left there.
    pub fn run_again(ended: &Plimsoll, configuration: &str) -> Plimsoll {
        Plimsoll::run_in(ended.folder.clone(), configuration, &[])
    }

    fn run_in(folder: Folder, configuration: &str, variables: &[(&str, &str)]) -> Plimsoll {
        let file = folder.write("plimsoll.toml", configuration);
        let log = folder.path().join("plimsoll.log");
        let mut command = Command::new(binary());
        command.arg("run").arg(file).envs(variables.iter().copied());
        let mut process = Process::spawn("plimsoll", &mut command, &log);
        let (address, admin) = process.wait_for("its addresses", |log| {
            Some((address_after(log, "listening on ")?, address_after(log, "admin on ")?))
        });
        Plimsoll { process, address, admin, folder, successor: None }
    }

    /// Replaces the configuration that a reload reads.
    pub fn rewrite(&self, configuration: &str) {
        self.folder.write("plimsoll.toml", configuration);
    }

    /// Where the configuration is.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("plimsoll.toml")
    }

    /// Sends SIGHUP, and waits until it says that it has reloaded for the `nth` time, from 1.
    pub fn hang_up(&mut self, nth: usize) {
        self.process.signal(Signal::SIGHUP);
        self.process.wait_for("reload", |log| (log.matches("reloaded ").count() >= nth).then_some(()));
    }

    /// The process that serves.
    pub fn pid(&self) -> u32 {
        self.successor.unwrap_or_else(|| self.process.pid())
    }

    /// Sends SIGUSR2, and waits until another process has taken this one's place; returns its number.
    pub fn upgrade(&mut self) -> u32 {
        let old = self.pid();
        signal(old, Signal::SIGUSR2);
        let taken = format!("took the place of process {old}\n");
        let process = wait_until(PATIENCE, || {
            let log = self.process.log();
            let handed = log.rfind("handed over to process ").filter(|_| log.contains(&taken))?;
            let number: u32 = log[handed..].split([' ', ':']).nth(4)?.parse().ok()?;
            (number != old).then_some(number)
        });
        let process = process.unwrap_or_else(|| panic!("no upgrade:\n{}", self.process.log()));
        self.successor = Some(process);
        process
    }

    /// Waits until a process that was replaced has ended.
    pub fn wait_for_end_of(&mut self, process: u32) {
        let gone = wait_until(PATIENCE, || {
            // The first one is this test's own child.
            let ended = process == self.process.pid() && self.process.ended().is_some();
            (ended || is_gone(process)).then_some(())
        });
        assert!(gone.is_some(), "process {process} does not end:\n{}", self.process.log());
    }

    /// Posts to `/reload` of the admin listener.
    pub fn post_reload(&self) -> Response {
        let head = "POST /reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        exchange(self.admin, head)
    }

    /// Runs it to its end with other arguments: a configuration that is refused, `check`, `demo`.
    pub fn output(arguments: &[&str]) -> Output {
        let ran = Command::new(binary()).args(arguments).output();
        ran.unwrap_or_else(|error| panic!("cannot run {}: {error}", binary().display()))
    }

    /// A GET for a page of the admin listener.
    pub fn ask_admin(&self, path: &str) -> Response {
        exchange(self.admin, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    /// The sum of a metric's samples over all its labels, from `/metrics`. Panics if there is none.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.ask_admin("/metrics").text();
        let values: Vec<f64> = samples(&page, name).collect();
        assert!(!values.is_empty(), "no metric {name} in:\n{page}");
        values.iter().sum()
    }

    /// The same of the samples with this label, such as `code="5xx"`; 0 if there is none.
    pub fn metric_of(&self, name: &str, label: &str) -> f64 {
        let page = self.ask_admin("/metrics").text();
        let labelled: String =
            page.lines().filter(|line| line.contains(label)).flat_map(|line| [line, "\n"]).collect();
        samples(&labelled, name).sum()
    }

    /// Waits until a metric is `wanted`. Panics with what it is if that takes too long.
    pub fn wait_for_metric(&self, name: &str, wanted: f64) {
        let found = wait_until(PATIENCE, || (self.metric(name) == wanted).then_some(()));
        assert!(found.is_some(), "{name} stays at {}, not {wanted}", self.metric(name));
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.end_successor();
        if self.process.ended().is_none() {
            self.process.signal(Signal::SIGTERM);
        }
        self.process.wait()
    }

    /// Asks the process that has taken the first one's place to stop, and waits until it has; kills it if it does not.
    fn end_successor(&mut self) {
        let Some(process) = self.successor.take().filter(|process| !is_gone(*process)) else { return };
        signal(process, Signal::SIGTERM);
        if wait_until(PATIENCE, || is_gone(process).then_some(())).is_none() {
            signal(process, Signal::SIGKILL);
        }
    }
}

/// The binary: `PLIMSOLL_BIN`, else the one that lies beside the test's own folder. Panics if there is none.
pub fn binary() -> PathBuf {
    let beside = || {
        let test = env::current_exe().ok()?;
        Some(test.parent()?.parent()?.join("plimsoll"))
    };
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        let named = env::var_os("PLIMSOLL_BIN").map(PathBuf::from);
        let found = named.clone().or_else(beside).unwrap_or_default();
        assert!(found.is_file(), "no binary at {}: run `make e2e`, which builds it", found.display());
        if named.is_none() {
            assert_current(&found);
        }
        found
    };
    FOUND.get_or_init(find).clone()
}

/// The values of one metric in Prometheus' text form.
pub(crate) fn samples<'a>(page: &'a str, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    page.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let labelled = rest.starts_with('{') || rest.starts_with(' ');
        labelled.then(|| rest.rsplit(' ').next()?.parse().ok())?
    })
}

/// Sends a signal to a process.
pub fn signal(process: u32, signal: Signal) {
    // An error means that it has ended.
    let _ = kill(Pid::from_raw(process.cast_signed()), signal);
}

/// Whether a process that is nobody's child here has ended: nobody may wait for it in a container.
pub fn is_gone(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
}

/// The address after the first `label` in the log; only of a line that is complete.
pub(crate) fn address_after(log: &str, label: &str) -> Option<SocketAddr> {
    let complete = &log[..log.rfind('\n')?];
    let rest = &complete[complete.find(label)? + label.len()..];
    let end = rest.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c))).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Drop for Plimsoll {
    fn drop(&mut self) {
        self.end_successor();
        // A gateway that fell over by itself must fail the test, whatever the clients saw.
        if !thread::panicking() {
            let code = self.process.ended().and_then(|status| status.code());
            assert!(
                matches!(code, None | Some(0)),
                "plimsoll ended by itself with {code:?}:\n{}",
                self.process.log()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_a_metric_and_none_that_begins_alike() {
        let page = "# HELP a_total A.\na_total{x=\"1 2\"} 3\na_total{x=\"2\"} 4\na_totals 9\nb 0.5\n";
        assert_eq!(samples(page, "a_total").sum::<f64>(), 7.0);
        assert_eq!(samples(page, "b").sum::<f64>(), 0.5);
    }

    #[test]
    fn reads_addresses_of_complete_lines_only() {
        let log = "INFO listening on 127.0.0.1:4711 threads=2\nadmin on 127.0.0.1:80";
        assert_eq!(address_after(log, "listening on "), "127.0.0.1:4711".parse().ok());
        assert_eq!(address_after(log, "admin on "), None);
        assert_eq!(address_after("listening on [::1]:5\n", "listening on "), "[::1]:5".parse().ok());
    }
}
