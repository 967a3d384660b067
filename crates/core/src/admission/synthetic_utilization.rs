//! Admission by instantaneous synthetic utilization, for comparison with the decision by unfinished work.
//!
//! ```text
//! sum over current requests of C_i / D_i, the own one among them, over s workers  <=  1 / (1 + sqrt(1/2)) = 0.586
//! ```
//!
//! UC 3, which writes 0.58; Abdelzaher, Sharma and Lu, "A utilization bound for aperiodic tasks and priority driven
//! scheduling". A request is *current* from its admission until its deadline is past, whether it is done or not. When the
//! server falls idle, no earlier request can delay a later one, so all requests cease to be current.
//!
//! The theorem is about one processor with preemption and known costs, which serves the shortest relative deadline first. A
//! web server has none of that, so here the bound is a rule of thumb with two fifths in reserve. C is the mean of the
//! estimate, and s workers divide the sum evenly. The sum for a request has only requests of its own and higher
//! priorities, so that a higher class is not refused because of a lower one. A request of a lower class may then be late
//! because of requests of higher classes that arrive after it.
//!
//! The sum takes constant time and needs no clean-up. For each rank the work is kept by arrival time, in intervals (*parts*)
//! of a thirty-second of the deadline, each in one word ([`Tagged`]). Parts that are too old are skipped, and later parts
//! reuse their words. So a request counts for up to a thirty-second of its deadline too long, and nothing leaks. Work is
//! reserved before the sum is taken, as for unfinished work.
//!
//! The rule is not the default, because it serves less. With small requests before one worker it serves as much as admission by
//! unfinished work at an offered load of twice the capacity, with shorter waits, but 7 % less at the capacity; before 64
//! workers, which are seldom all idle so that the sum is seldom reset, a tenth less at both. With requests of a fifth of the
//! deadline it leaves a quarter of the server unused, and a request whose cost is above 0.58 of the deadline of all
//! workers is never admitted (`crates/sim/tests/deadlines/synthetic.rs`).

use crate::admission::unfinished_work::Workers;
use crate::scheduling::rank::Rank;
use crate::sync::tagged::Tagged;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::f64::consts::FRAC_1_SQRT_2;

/// The parts of a deadline: arrival times are kept to one of them.
const PARTS: u16 = 32;
/// Words of a rank: for the parts that count, rounded up to a power of two.
const WORDS: usize = 64;
/// The schedulable bound.
const BOUND: f64 = 1.0 / (1.0 + FRAC_1_SQRT_2);

/// The current requests of a plant, by slot of its unfinished work.
#[derive(Clone, Default)]
pub(crate) struct Synthetic(Vec<(Rank, Arc<Current>)>);

/// The current requests of one rank.
struct Current {
    part_us: u64,
    deadline_us: f64,
    /// Work, by the part in which it arrived.
    arrived: Vec<Tagged>,
}

impl Current {
    fn new(rank: Rank) -> Self {
        let mut arrived = Vec::new();
        arrived.resize_with(WORDS, Tagged::default);
        let deadline_us = rank.deadline_ns / 1000;
        Current {
            part_us: (deadline_us / u64::from(PARTS)).max(1),
            deadline_us: deadline_us.max(1) as f64,
            arrived,
        }
    }

    fn part(&self, now: Instant) -> u16 {
        (now.as_nanos() / 1000 / self.part_us) as u16
    }

    fn word(&self, part: u16) -> &Tagged {
        &self.arrived[usize::from(part) % WORDS]
    }

    /// Work (us) of requests whose deadline is not past.
    fn work_us(&self, now: Instant) -> u64 {
        let part = self.part(now);
        let still = |age: u16| {
            let counted = part.wrapping_sub(age);
            let (tag, us) = self.word(counted).get();
            if tag == counted { us } else { 0 }
        };
        (0..=PARTS).map(still).sum()
    }

    /// Removes all work because the server is idle, except work of the present part, which may be arriving on another
    /// thread.
    fn clear(&self, now: Instant) {
        let part = self.part(now);
        for word in &self.arrived {
            let (tag, us) = word.get();
            if tag != part && us > 0 {
                word.subtract(tag, us);
            }
        }
    }
}

impl Synthetic {
    /// Follows the ranks of the slots. A slot of another rank than before begins anew.
    pub(crate) fn following(mut self, ranks: impl Iterator<Item = Rank>) -> Self {
        for (slot, rank) in ranks.enumerate() {
            match self.0.get_mut(slot) {
                Some(own) if own.0 == rank => {}
                Some(own) => *own = (rank, Arc::new(Current::new(rank))),
                None => self.0.push((rank, Arc::new(Current::new(rank)))),
            }
        }
        self
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }

    /// Counts an arriving request; returns the part in which it arrived.
    pub(crate) fn reserve(&self, slot: usize, now: Instant, work_us: u64) -> u16 {
        let current = &self.0[slot].1;
        let part = current.part(now);
        current.word(part).add(part, work_us);
        part
    }

    /// Gives back the work of a request that is refused or leaves before its start, since it delays no other request.
    pub(crate) fn unreserve(&self, slot: usize, part: u16, work_us: u64) {
        self.0[slot].1.word(part).subtract(part, work_us);
    }

    /// Whether the sum, with this request in it, is within the bound; if not, after which time it might be, if ever.
    pub(crate) fn admits(
        &self,
        slot: usize,
        work_us: u64,
        workers: &Workers,
    ) -> Result<(), Option<Duration>> {
        let ((rank, own), at) = (&self.0[slot], workers.at.unwrap_or(Instant::ZERO));
        let counted =
            || self.0.iter().filter(|(other, _)| other.band <= rank.band && other.deadline_ns < u64::MAX);
        if workers.empty {
            self.0.iter().for_each(|(_, current)| current.clear(at));
        }
        let sum = counted().map(|(_, current)| current.work_us(at) as f64 / current.deadline_us).sum::<f64>();
        let most = BOUND * f64::from(workers.all.max(1));
        if sum <= most {
            Ok(())
        } else if work_us as f64 / own.deadline_us > most {
            Err(None)
        } else {
            // The time until enough of the sum has ceased to be current, if it had arrived evenly.
            Err(Some(Duration::from_micros(((sum - most) / sum * own.deadline_us) as u64 + 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: usize = 0;
    const SECOND: usize = 1;

    /// Two ranks with a deadline of a second, and one without.
    fn synthetic() -> Synthetic {
        let second = Some(Duration::from_secs(1));
        let ranks = [Rank::ordinary(1, second), Rank::ordinary(2, second), Rank::ordinary(3, None)];
        Synthetic::default().following(ranks.into_iter())
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis((1 << 40) + ms)
    }

    fn workers(ms: u64, all: u32, empty: bool) -> Workers {
        Workers {
            all,
            idle: empty,
            left: (0.0, 0.0),
            queued: (0.0, 0.0),
            at: Some(at(ms)),
            empty,
            known: true,
        }
    }

    /// How many requests of 10 ms are admitted at one moment.
    fn admitted(synthetic: &Synthetic, slot: usize, workers: &Workers) -> u32 {
        let mut count = 0;
        loop {
            let part = synthetic.reserve(slot, workers.at.unwrap_or(Instant::ZERO), 10_000);
            if synthetic.admits(slot, 10_000, workers).is_err() {
                synthetic.unreserve(slot, part, 10_000);
                return count;
            }
            count += 1;
        }
    }

    #[test]
    fn the_sum_stays_below_the_bound_for_a_deadline() {
        let synthetic = synthetic();
        assert_eq!(admitted(&synthetic, FIRST, &workers(0, 1, false)), 58);
        assert_eq!(admitted(&synthetic, FIRST, &workers(999, 1, false)), 0);
        // A request may count a thirty-second of its deadline too long.
        assert_eq!(admitted(&synthetic, FIRST, &workers(1063, 1, false)), 58);
        // Four workers carry four times as much.
        assert_eq!(admitted(&synthetic, FIRST, &workers(1063, 4, false)), 3 * 58 + 2);
    }

    #[test]
    fn a_refusal_says_when_there_is_room() {
        let synthetic = synthetic();
        admitted(&synthetic, FIRST, &workers(0, 1, false));
        synthetic.reserve(FIRST, at(0), 10_000);
        let Err(Some(room)) = synthetic.admits(FIRST, 10_000, &workers(0, 1, false)) else {
            panic!("it is full")
        };
        assert!(room > Duration::ZERO && room < Duration::from_millis(20), "{room:?}");
        // A request that exceeds the bound even alone is never admitted.
        synthetic.reserve(SECOND, at(5000), 700_000);
        assert_eq!(synthetic.admits(SECOND, 700_000, &workers(5000, 1, true)), Err(None));
    }

    #[test]
    fn an_idle_server_has_all_given_back_but_what_arrives_now() {
        let synthetic = synthetic();
        assert_eq!(admitted(&synthetic, FIRST, &workers(0, 1, false)), 58);
        assert_eq!(admitted(&synthetic, FIRST, &workers(100, 1, true)), 58);
        assert_eq!(admitted(&synthetic, FIRST, &workers(101, 1, true)), 0);
    }

    #[test]
    fn a_higher_class_is_not_refused_for_what_a_lower_one_holds() {
        let synthetic = synthetic();
        assert_eq!(admitted(&synthetic, SECOND, &workers(0, 1, false)), 58);
        assert_eq!(admitted(&synthetic, FIRST, &workers(0, 1, false)), 58);
        assert_eq!(admitted(&synthetic, SECOND, &workers(1063, 1, false)), 58);
        assert_eq!(admitted(&synthetic, FIRST, &workers(1063, 1, false)), 58);
        assert_eq!(admitted(&synthetic, SECOND, &workers(1063, 1, false)), 0);
    }

    #[test]
    fn a_request_that_leaves_early_or_late_leaks_nothing() {
        let synthetic = synthetic();
        let part = synthetic.reserve(FIRST, at(0), 500_000);
        synthetic.unreserve(FIRST, part, 500_000);
        assert_eq!(admitted(&synthetic, FIRST, &workers(10, 1, false)), 58);
        // Two seconds later other parts use the words; taking back an old request is too late, and harmless.
        let late = synthetic.reserve(FIRST, at(20), 0);
        assert_eq!(admitted(&synthetic, FIRST, &workers(2020, 1, false)), 58);
        synthetic.unreserve(FIRST, late, 500_000);
        assert_eq!(admitted(&synthetic, FIRST, &workers(2020, 1, false)), 0);
    }
}
