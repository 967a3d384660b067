//! SAC, simple admission control (AC, section 5): "each admitted request is allocate (sic) one CQ irrespective of the
//! request type, thus there is no estimation of service time".
//!
//! Time is cut into periods of T; each has `floor(s T / quantum)` units, and what is not used is lost. The quantum is
//! the time of the cheapest type: the paper's capacity is that of static objects, 1,000 a second, which cost one unit
//! (tables 1 and 2). So it admits too much as soon as others come: 1.587 times the capacity with the paper's mix.
//!
//! Where the print is open: it calls SAC "analogous to the leaky bucket", and describes a grant of units; units per
//! period are taken, as for the paper's own algorithm (eq. 4). Admission while the CPU is idle (said under CAC) is not
//! given to SAC.

use super::{Ask, Limiter};
use plimsoll_core::time::{Duration, Instant};

/// A number of requests a period.
#[derive(Debug)]
pub(in crate::front) struct Sac {
    period_ns: u64,
    units: u64,
    slot: u64,
    left: u64,
}

impl Sac {
    /// Neither `period` nor `quantum` may be zero.
    pub(in crate::front) fn new(servers: u32, period: Duration, quantum: Duration) -> Self {
        let units = f64::from(servers) * period.as_secs_f64() / quantum.as_secs_f64();
        // 8 s of work in units of 40 ms are 200, not 199.99...
        let units = (units + 1e-9) as u64;
        Sac { period_ns: period.as_nanos() as u64, units, slot: 0, left: units }
    }
}

impl Limiter for Sac {
    fn admit(&mut self, now: Instant, _ask: Ask) -> bool {
        let slot = now.as_nanos() / self.period_ns;
        if slot != self.slot {
            (self.slot, self.left) = (slot, self.units);
        }
        let admitted = self.left > 0;
        self.left -= u64::from(admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ask, at};
    use super::*;

    #[test]
    fn each_period_has_its_units_and_saves_none() {
        let mut limiter = Sac::new(8, Duration::from_secs(1), Duration::from_millis(40));
        let mut admitted = |from: f64, n: u32| {
            let times = (0..n).map(|k| at(from + f64::from(k) * 1e-4));
            times.filter(|now| limiter.admit(*now, ask(1000))).count()
        };
        assert_eq!(admitted(0.0, 500), 200);
        assert_eq!(admitted(0.9, 500), 0);
        assert_eq!(admitted(1.0, 50), 50);
        assert_eq!(admitted(2.5, 500), 200);
    }
}
