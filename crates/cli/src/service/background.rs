//! Lets a command run beside more important work: only with idle time, on one processor, and in bounded memory.

use crate::output::failure::Failure;
use nix::sys::resource::{Resource, setrlimit};
use rustix::process::nice;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The most memory of this process (bytes); allocations beyond it fail.
const MOST_MEMORY: u64 = 1 << 30;
/// The lowest priority.
const LOWEST: i32 = 19;
/// The time between two lines of progress.
const EACH: Duration = Duration::from_millis(500);
/// The beginning of a progress line; the part that is done follows, from 0 to 1 or `?`, and then a text.
pub(crate) const PROGRESS: &str = "progress ";

/// Moves this process to the background; must be called before other threads start. If memory runs out, the kernel ends this
/// process first.
pub(crate) fn go() -> Result<(), Failure> {
    // A failure is ignored, because a kernel may lack this file.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let failed = |what: &str, why: io::Error| Failure::Failed(format!("--background: {what}: {why}"));
    nice(LOWEST).map_err(|error| failed("no lower priority", error.into()))?;
    setrlimit(Resource::RLIMIT_DATA, MOST_MEMORY, MOST_MEMORY)
        .map_err(|error| failed("no bound of memory", error.into()))?;
    one_processor().map_err(|error| failed("no processor alone", error))
}

/// Binds all threads to the last of the processors that this process may use.
fn one_processor() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut last = CpuSet::new();
    (0..CpuSet::MAX_CPU)
        .rev()
        .find(|processor| allowed.is_set(*processor))
        .into_iter()
        .for_each(|it| last.set(it));
    Ok(sched_setaffinity(None, &last)?)
}

/// Lines of progress on stderr, for the program that started this one.
#[derive(Debug, Default)]
pub(crate) struct ProgressLines {
    said: Option<Instant>,
}

impl ProgressLines {
    /// Prints how far the work is, if a line is due.
    ///
    /// # Errors
    /// The program that reads the lines has gone.
    pub(crate) fn say(&mut self, done: Option<f64>, text: impl FnOnce() -> String) -> io::Result<()> {
        let now = Instant::now();
        if self.said.is_some_and(|said| now.duration_since(said) < EACH) {
            return Ok(());
        }
        self.said = Some(now);
        let done = done.map_or("?".to_owned(), |done| format!("{done:.4}"));
        writeln!(io::stderr(), "{PROGRESS}{done} {}", text())
    }
}
