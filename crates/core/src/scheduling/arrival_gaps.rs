//! The times between the arrivals of a class, from which lambda and c_a^2 are estimated.
//!
//! **Only gaps of busy times count.** A gap is *idle* if it is longer than [`LONGEST`](ArrivalGaps::LONGEST) mean gaps, and the
//! request at its end finds none of its class in service. The queue has begun anew then, so the length of the gap decides no
//! wait, while its square would outweigh a thousand others in c_a^2. Poisson arrivals have no such gap (`e^-20`). A gap that is
//! as long while requests of the class are in service is a part of the traffic: service lasts longer than the pauses, so the
//! queue sees bursts and pauses together.
//!
//! **After ten idle gaps in a row, the next ones count.** If the rate of even arrivals falls more than twentyfold, all later
//! gaps are long, and without this lambda would never fall.
//!
//! An idle gap is left out altogether, and with it the request at its end: the number of gaps, their sum and the sum of their
//! squares are of the same requests. If only squares were cut, and the mean were not, c_a^2 could be below 0, as it would be
//! for 5 s of Poisson arrivals between silences of 30 s.

use crate::time::{Duration, Instant};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// Distinguishes gaps of busy times from idle ones. Threads share it.
pub struct ArrivalGaps {
    last_arrival_ns: AtomicU64,
    longest_ns: AtomicU64,
    /// The number of idle gaps since the last gap that was not idle.
    idle_in_a_row: AtomicU64,
}

/// A gap that is idle in any case (ns): ten minutes. With longer gaps, sums of squares of microseconds would overflow.
const IDLE_NS: u64 = 600_000_000_000;

impl Default for ArrivalGaps {
    fn default() -> Self {
        ArrivalGaps {
            last_arrival_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(IDLE_NS),
            idle_in_a_row: AtomicU64::new(0),
        }
    }
}

impl ArrivalGaps {
    /// How many mean gaps may lie between two arrivals of one busy time.
    pub const LONGEST: f64 = 20.0;
    /// After this number of idle gaps in a row, which is the departures of an update, long gaps are the traffic itself and
    /// count.
    const TRAFFIC: u64 = 10;

    /// Sets the longest gap of a busy time.
    pub fn set_longest(&self, longest: Duration) {
        self.longest_ns.store(longest.as_nanos().min(IDLE_NS.into()) as u64, Ordering::Relaxed);
    }

    /// The gap (ns) that ends with a request admitted at `now`; `None` for an idle gap, and for the first request. `is_alone`:
    /// no request of its class is in service.
    pub fn arrive(&self, now: Instant, is_alone: bool) -> Option<u64> {
        let last = self.last_arrival_ns.swap(now.as_nanos(), Ordering::Relaxed);
        let gap = now.as_nanos().saturating_sub(last);
        let is_long = gap > self.longest_ns.load(Ordering::Relaxed);
        if !(is_alone && is_long) {
            if self.idle_in_a_row.load(Ordering::Relaxed) > 0 {
                self.idle_in_a_row.store(0, Ordering::Relaxed);
            }
        } else if self.idle_in_a_row.fetch_add(1, Ordering::Relaxed) < Self::TRAFFIC {
            return None;
        }
        (last > 0 && gap <= IDLE_NS).then_some(gap)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_long_gap_before_a_class_without_requests_is_idle() {
        let gaps = ArrivalGaps::default();
        let at = |ms: u64| Instant::from_nanos(1_000_000 * ms);
        assert_eq!(gaps.arrive(at(1000), true), None, "the first request ends no gap");
        assert_eq!(gaps.arrive(at(9000), true), Some(8_000_000_000), "before anything is known");
        gaps.set_longest(Duration::from_millis(200));
        assert_eq!(gaps.arrive(at(9200), true), Some(200_000_000));
        assert_eq!(gaps.arrive(at(9500), true), None);
        assert_eq!(gaps.arrive(at(9800), false), Some(300_000_000), "requests of the class are still served");
        assert_eq!(gaps.arrive(at(9810), true), Some(10_000_000), "an idle gap ends with its request");
    }

    #[test]
    fn idle_gaps_in_a_row_are_the_traffic() {
        let gaps = ArrivalGaps::default();
        gaps.set_longest(Duration::from_millis(200));
        let mut now = Instant::from_nanos(1_000_000_000);
        let mut after = |ms: u64| {
            now += Duration::from_millis(ms);
            gaps.arrive(now, true)
        };
        after(1);
        let found: u32 = (0..9).map(|_| u32::from(after(300).is_some())).sum();
        assert_eq!((found, after(10)), (0, Some(10_000_000)), "a gap of a busy time between them");
        assert_eq!((0..10).find_map(|_| after(300)), None);
        assert_eq!((after(300), after(300)), (Some(300_000_000), Some(300_000_000)));
        assert_eq!((after(10), after(300)), (Some(10_000_000), None));
    }
}
