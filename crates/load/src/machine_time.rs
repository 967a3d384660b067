//! What this machine's processors did, from `/proc/stat`.

/// Of all processors together, in ticks since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineTime {
    busy: u64,
    /// What the host gave to others while this machine had work.
    stolen: u64,
    all: u64,
}

impl MachineTime {
    /// Now; none where the system does not say.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, and guests that are in user already.
    fn parse(stat: &str) -> Option<Self> {
        let times = stat.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = times.split_whitespace().take(8).map_while(|time| time.parse().ok()).collect();
        let all = times.iter().sum();
        let idle = times.get(3)? + times.get(4)?;
        Some(Self { busy: all - idle, stolen: times.get(7).copied().unwrap_or(0), all })
    }

    /// The busy share of all processors since then.
    pub(crate) fn share_since(earlier: Option<Self>) -> Option<f64> {
        Self::now()?.part_since(earlier?, |time| time.busy)
    }

    /// The share of them that the host gave to others since then.
    pub(crate) fn stolen_since(earlier: Option<Self>) -> Option<f64> {
        Self::now()?.part_since(earlier?, |time| time.stolen)
    }

    fn part_since(self, earlier: Self, part: fn(Self) -> u64) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        Some(part(self).saturating_sub(part(earlier)) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_proc_stat_is_understood() {
        let stat = "cpu  100 0 50 800 50 0 0 0 100 0\ncpu0 1 2 3\n";
        assert_eq!(MachineTime::parse(stat), Some(MachineTime { busy: 150, stolen: 0, all: 1000 }));
        assert_eq!(MachineTime::parse("cpus 1"), None);
        assert_eq!(MachineTime::parse(""), None);
    }

    #[test]
    fn a_share_needs_time_to_pass() {
        assert_eq!(MachineTime::share_since(None), None);
        let ever = MachineTime { busy: 0, stolen: 0, all: 0 };
        let share = MachineTime::share_since(Some(ever));
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{share:?}");
    }
    #[test]
    fn what_the_host_takes_is_a_part() {
        let before = MachineTime::parse("cpu  100 0 50 800 50 0 0 0 100 0\n");
        let after = MachineTime::parse("cpu  150 0 50 810 50 0 0 40 100 0\n");
        let part = |part| after.zip(before).and_then(|(after, before)| after.part_since(before, part));
        assert_eq!((part(|time| time.stolen), part(|time| time.busy)), (Some(0.4), Some(0.9)));
    }
}
