//! The processor time of the server's processes: the process that the pid file names, and its children.
//!
//! Processes come and go: nginx starts new workers when it reads its configuration again. A process counts from its second look
//! on, so that a process which could not be read at one look is not counted twice.

use plimsoll_config::Agent;
use plimsoll_core::agent::ProcessorTime;
use procfs::process::Process;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, thread};

/// Reads the processor time. If it cannot be read, nothing is shown.
pub(crate) struct ProcessorSense {
    pid: PathBuf,
    before: Option<(Instant, Processes)>,
}

/// The processor time of each process in clock ticks, by its number and its start.
#[derive(Debug, Default)]
struct Processes {
    ticks: BTreeMap<(i32, u64), u64>,
    threads: u64,
}

impl ProcessorSense {
    /// The sense, if the file says where the server writes its process id.
    pub(crate) fn of(agent: &Agent) -> Option<ProcessorSense> {
        Some(ProcessorSense { pid: agent.pid.clone()?, before: None })
    }

    /// The processor time that the processes used since the last look.
    pub(crate) fn look(&mut self, now: Instant) -> Option<ProcessorTime> {
        let (then, before) = match processes(&self.pid) {
            Ok(found) => self.before.replace((now, found))?,
            Err(_) => {
                self.before = None;
                return None;
            }
        };
        let (_, found) = self.before.as_ref()?;
        let used =
            |(process, ticks): (&(i32, u64), &u64)| Some(ticks.saturating_sub(*before.ticks.get(process)?));
        let used: u64 = found.ticks.iter().filter_map(used).sum();
        let machine = thread::available_parallelism().map_or(1, usize::from) as u64;
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        (seconds > 0.0).then(|| ProcessorTime {
            used_seconds: used as f64 / procfs::ticks_per_second() as f64,
            seconds,
            processors: found.threads.clamp(1, machine) as f64,
        })
    }

    /// How many processes there are, or why they cannot be read.
    pub(crate) fn count(&self) -> Result<usize, String> {
        processes(&self.pid).map(|found| found.ticks.len())
    }
}

fn processes(pid: &Path) -> Result<Processes, String> {
    let name = pid.display();
    let text = fs::read_to_string(pid).map_err(|error| format!("cannot read {name}: {error}"))?;
    let number = text.trim().parse::<i32>().map_err(|_| format!("{name} holds no process id"))?;
    let unknown = |error| format!("cannot see the process {number} of {name}: {error}");
    let parent = Process::new(number).map_err(unknown)?;
    let mut found = Processes::default();
    let own = found.add(&parent).map_err(unknown)?;
    let children = parent.task_main_thread().and_then(|thread| thread.children()).unwrap_or_default();
    for child in children {
        // A child that has just ended is no error.
        let child = i32::try_from(child).ok().and_then(|child| Process::new(child).ok());
        found.threads += child.and_then(|child| found.add(&child).ok()).unwrap_or(0);
    }
    // A process with children leaves the work to them, so its own threads do not count.
    found.threads = if found.ticks.len() > 1 { found.threads } else { own };
    Ok(found)
}

impl Processes {
    /// Adds a process; returns how many threads it has.
    fn add(&mut self, process: &Process) -> procfs::ProcResult<u64> {
        let stat = process.stat()?;
        self.ticks.insert((stat.pid, stat.starttime), stat.utime + stat.stime);
        Ok(stat.num_threads.max(1) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    /// The child of a shell is busy until it is killed, or has had twenty seconds of a processor.
    #[test]
    fn a_busy_child_is_seen_and_a_missing_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let mut sense = ProcessorSense { pid: pid.clone(), before: None };
        assert!(sense.count().is_err_and(|why| why.contains("cannot read")));
        assert_eq!(sense.look(Instant::now()), None);
        let shell = ["-c", "ulimit -t 20; while :; do :; done & echo $! > child; wait"];
        let mut parent = Command::new("sh").args(shell).current_dir(folder.path()).spawn().unwrap();
        fs::write(&pid, format!("{}\n", parent.id())).unwrap();
        let begun = Instant::now();
        let seen = loop {
            thread::sleep(Duration::from_millis(50));
            let time = sense.look(Instant::now());
            if let Some(time) = time.filter(|time| time.used_seconds > 0.0) {
                break time;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", sense.count());
        };
        assert_eq!((sense.count(), seen.processors), (Ok(2), 1.0));
        let child = fs::read_to_string(folder.path().join("child")).unwrap();
        drop(Command::new("kill").args(["-9", child.trim()]).status());
        parent.wait().unwrap();
        assert!(sense.count().is_err_and(|why| why.contains("cannot see the process")));
        assert_eq!((sense.look(Instant::now()), sense.before.is_none()), (None, true));
    }
}
