//! The load of the processors that this process may use, as the kernel counts it: it includes a server on the same machine.

use std::fs::read_to_string;
use std::time::Duration;

/// Ticks of these processors since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
}

/// The work of the processors, summed over the readings.
#[derive(Debug)]
pub(super) struct Processors {
    cores: u32,
    last: Option<Ticks>,
    worked: Duration,
}

impl Processors {
    pub(super) fn new(cores: u32) -> Self {
        Processors { cores, last: None, worked: Duration::ZERO }
    }

    /// The work of the processors so far, divided by their number. `None` if the kernel does not report it, or if the process
    /// may use them only for a part of the time, since its own processor time cannot be compared with theirs then.
    pub(super) fn worked(&mut self, elapsed_seconds: f64) -> Option<Duration> {
        let status = read_to_string("/proc/self/status").ok()?;
        let allowed = allowed(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)?;
        if allowed.len() != self.cores as usize {
            return None;
        }
        let now = ticks(&read_to_string("/proc/stat").ok()?, &allowed)?;
        if let Some(last) = self.last.replace(now) {
            let (busy, all) = (now.busy.saturating_sub(last.busy), now.all.saturating_sub(last.all));
            if all > 0 {
                self.worked += Duration::from_secs_f64(elapsed_seconds * (busy as f64 / all as f64).min(1.0));
            }
        }
        Some(self.worked)
    }
}

/// The numbers in a list like `0-3,8`.
fn allowed(list: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(numbers)
}

/// The sum over these processors: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
fn ticks(stat: &str, processors: &[usize]) -> Option<Ticks> {
    let mut sum = Ticks { busy: 0, all: 0 };
    let mut found = 0;
    for line in stat.lines().skip(1).map_while(|line| line.strip_prefix("cpu")) {
        let (number, times) = line.split_once(' ')?;
        if processors.contains(&number.parse().ok()?) {
            let times: Vec<u64> =
                times.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
            let (all, idle) = (times.iter().sum::<u64>(), times.get(3)? + times.get(4)?);
            sum = Ticks { busy: sum.busy + all - idle, all: sum.all + all };
            found += 1;
        }
    }
    (found == processors.len()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9\ncpu0 100 0 50 800 50 0 0 0 100 0\ncpu1 0 0 0 10 0 0 0 5\ncpu2 1 1 1 1 1 1 1 1\nintr 5\n";

    #[test]
    fn the_allowed_processors_are_summed() {
        assert_eq!(ticks(STAT, &[0, 1]), Some(Ticks { busy: 155, all: 1015 }));
        assert_eq!(ticks(STAT, &[2]), Some(Ticks { busy: 6, all: 8 }));
        assert_eq!((ticks(STAT, &[3]), ticks("", &[0])), (None, None));
    }

    #[test]
    fn a_list_of_processors_is_understood() {
        assert_eq!(allowed("\t0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!((allowed("5"), allowed("x")), (Some(vec![5]), None));
    }

    #[test]
    fn work_never_exceeds_the_time() {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let mut processors = Processors::new(cores);
        // The process may use all processors of its set.
        if processors.worked(1.0).is_some() {
            assert!(processors.worked(1.0).is_some_and(|worked| worked <= Duration::from_secs(1)));
        }
        assert_eq!(Processors::new(cores + 1).worked(1.0), None);
    }
}
