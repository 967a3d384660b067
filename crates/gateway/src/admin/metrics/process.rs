//! What the kernel says of this process, under the names that Prometheus' own client libraries give it.

use procfs::WithCurrentSystemInfo as _;
use procfs::process::{LimitValue, Process};

/// The figures of `process_*`; those that cannot be read are left out.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::admin) struct ProcessFigures {
    pub(super) cpu_seconds: Option<f64>,
    pub(super) start_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) virtual_bytes: Option<u64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
    pub(super) threads: Option<u64>,
}

impl ProcessFigures {
    pub(in crate::admin) fn read() -> Self {
        let Ok(process) = Process::myself() else { return ProcessFigures::default() };
        let stat = process.stat().ok();
        let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
        let soft_limit = process.limits().ok().map(|limits| limits.max_open_files.soft_limit);
        ProcessFigures {
            cpu_seconds: stat.as_ref().map(|stat| seconds(stat.utime + stat.stime)),
            start_seconds: stat
                .as_ref()
                .and_then(|stat| Some(procfs::boot_time_secs().ok()? as f64 + seconds(stat.starttime))),
            resident_bytes: stat.as_ref().map(|stat| stat.rss_bytes().get()),
            virtual_bytes: stat.as_ref().map(|stat| stat.vsize),
            threads: stat.as_ref().and_then(|stat| u64::try_from(stat.num_threads).ok()),
            open_fds: process.fd_count().ok().map(|count| count as u64),
            max_fds: match soft_limit {
                Some(LimitValue::Value(limit)) => Some(limit),
                Some(LimitValue::Unlimited) | None => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_all_of_them() {
        let figures = ProcessFigures::read();
        assert!(figures.cpu_seconds.is_some_and(|seconds| seconds >= 0.0), "{figures:?}");
        assert!(figures.start_seconds.is_some_and(|since| since > 1.6e9), "{figures:?}");
        assert!(figures.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{figures:?}");
        assert!(figures.virtual_bytes >= figures.resident_bytes, "{figures:?}");
        assert!(figures.open_fds >= Some(3) && figures.threads >= Some(1), "{figures:?}");
    }
}
