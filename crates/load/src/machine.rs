//! This machine's settings and figures that the crate needs from its kernel.

use nix::sys::socket::{setsockopt, sockopt};
use std::os::fd::AsFd;

/// Gives `socket` (and the sockets that a listening socket accepts) the congestion control Reno, which every kernel has and
/// every user may choose; if it is refused, the socket keeps the default.
///
/// If the default is BBR, every socket paces its segments by a kernel timer, also over loopback, which costs processor time and
/// delay that no web server causes.
pub(crate) fn plain_congestion_control(socket: &impl AsFd) {
    let _ = setsockopt(socket, sockopt::TcpCongestion, &"reno".into());
}

/// The time of all processors together since the start of the machine, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineTime {
    busy: u64,
    all: u64,
}

impl MachineTime {
    /// The time now; `None` if `/proc/stat` does not have it.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line: user, nice, system, idle, iowait, irq, softirq, steal; guest time is included in user time.
    fn parse(stat: &str) -> Option<Self> {
        let times = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = times.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
        let all = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        Some(Self { busy: all - idle, all })
    }

    /// The busy share of all processors since an earlier time.
    pub(crate) fn share_since(earlier: Option<Self>) -> Option<f64> {
        let (now, earlier) = (Self::now()?, earlier?);
        let all = now.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(now.busy.saturating_sub(earlier.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_proc_stat_is_understood() {
        let stat = "cpu  100 0 50 800 50 0 0 0 100 0\ncpu0 1 2 3\n";
        assert_eq!(MachineTime::parse(stat), Some(MachineTime { busy: 150, all: 1000 }));
        assert_eq!(MachineTime::parse("cpus 1"), None);
        assert_eq!(MachineTime::parse(""), None);
    }

    #[test]
    fn a_share_needs_time_to_pass() {
        assert_eq!(MachineTime::share_since(None), None);
        let ever = MachineTime { busy: 0, all: 0 };
        let share = MachineTime::share_since(Some(ever));
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{share:?}");
    }
}
