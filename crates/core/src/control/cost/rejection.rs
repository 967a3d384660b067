//! The cost c of a rejection, learned from the gateway's own CPU time.
//!
//! `CPU = x served + c rejected` is fitted by the recursive least squares of the linear model, with rejections in the place of
//! bytes, only over periods with rejections. In a calm hour a request costs more: caches are cold, and few requests share the
//! CPU time that the process takes without any. That cost, times the requests served in a crowd, would leave hardly anything to
//! rejections. If many requests of a period began to wait, or were rejected after waiting, the period is left out, because a
//! part of their CPU time is another period's: a queue that is rejected at once would look like many rejections that cost
//! nothing.
//!
//! The CPU time of a process holds the kernel's work in its calls, but not that of interrupts. c is in seconds of the whole
//! machine's processors; `shared_machine.rs` says which part of it counts as time of a plant's workers, which is another unit.

use crate::model::{LinearModel, Served};
use crate::telemetry::measurement::ClassMeasurement;
use crate::time::Duration;
use libm::fabs;

/// The learned cost c of a rejection.
#[derive(Default)]
pub(crate) struct RejectionCost {
    line: LinearModel,
    /// c as promised, which counts until enough requests were rejected.
    pub(crate) promised: Option<f64>,
    last_cpu: Option<Duration>,
    /// The number of rejections that the line has learned from. The line learns nothing from a period in which no request was
    /// served.
    learned_from: f64,
    /// The CPU time per rejection in periods with more rejections than served requests, an upper bound of c.
    most: Option<f64>,
    /// The rejections of these periods.
    most_from: f64,
}

impl RejectionCost {
    /// The linear model divides its second column by this, because it counts bytes in KiB.
    const COLUMN: f64 = 1024.0;
    /// The weight of a period in the upper bound of c.
    const LATE: f64 = 0.2;
    /// A period with at most this number of rejections says nothing of the upper bound.
    const MANY: f64 = 10.0;
    /// A period counts if at most this part of its arrivals began to wait, or was rejected after waiting.
    const WAITED: f64 = 0.1;
    /// Below this number of rejections the noise exceeds the cost.
    const ENOUGH: f64 = 100.0;

    /// Learns from a period's measurements and the CPU time used so far.
    pub(crate) fn learn(&mut self, classes: &[ClassMeasurement], cpu: Option<Duration>) {
        let Some(cpu) = cpu else { return };
        if let Some(last) = self.last_cpu {
            let sum = |count: fn(&ClassMeasurement) -> u64| classes.iter().map(count).sum::<u64>() as f64;
            let rejected = sum(|class| class.window.counts.rejected());
            let served = sum(|class| class.window.started);
            let arrived = sum(|class| class.window.counts.arrivals);
            let in_period = fabs(arrived - served - rejected) <= Self::WAITED * arrived;
            let used = cpu.saturating_sub(last).as_secs_f64();
            if in_period && rejected > served.max(Self::MANY) {
                let most = self.most.get_or_insert(used / rejected);
                *most += Self::LATE * (used / rejected - *most);
                self.most_from += rejected;
            }
            if in_period && rejected > 0.0 {
                let bytes = rejected * Self::COLUMN;
                if self.line.learn([Served { requests: served, bytes, work_seconds: used }].into_iter()) {
                    self.learned_from += rejected;
                }
            }
        }
        self.last_cpu = Some(cpu);
    }

    /// Leaves out a period, so that its CPU time does not count for the next one.
    pub(crate) fn pass_over(&mut self, cpu: Option<Duration>) {
        self.last_cpu = cpu.or(self.last_cpu);
    }

    /// c [s of the whole machine]; `None` while it is not known. An estimate above the upper bound is noise and is cut to it;
    /// if no period gave a bound, the estimate is cut to the cost of serving. If all requests are rejected, the bound is all
    /// that is known.
    pub(crate) fn per_rejection_seconds(&self) -> Option<f64> {
        if self.learned_from >= Self::ENOUGH {
            let (served, rejected) = self.line.costs();
            Some((rejected * Self::COLUMN).min(self.most.unwrap_or(served)))
        } else if self.most_from >= Self::ENOUGH {
            self.most
        } else {
            self.promised
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Reason;

    #[test]
    fn c_is_as_promised_until_enough_was_rejected_and_then_as_measured() {
        let mut cost = RejectionCost { promised: Some(0.5), ..RejectionCost::default() };
        let mut class = ClassMeasurement::default();
        let mut cpu = Duration::ZERO;
        cost.learn(&[], Some(cpu));
        for period in 0..200_u64 {
            let (served, rejected) = (100 + period % 7, 5 * (period % 3));
            class.window.started = served;
            class.window.counts.arrivals = served + rejected;
            class.window.counts.reasons[Reason::Overload as usize] = rejected;
            cpu += Duration::from_micros(200 * served + 40 * rejected);
            if period < 10 {
                assert_eq!(cost.per_rejection_seconds(), Some(0.5));
            }
            cost.learn(core::slice::from_ref(&class), Some(cpu));
        }
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((known - 40e-6).abs() < 2e-6, "{known}");
    }

    /// A crowd that does not change. In the first period most requests begin to wait, in the second these are rejected too.
    #[test]
    fn a_queue_that_is_rejected_at_once_does_not_take_from_the_cost_of_rejections() {
        let (mut cost, mut random) = (RejectionCost::default(), crate::random::Random::new(5));
        let mut class = ClassMeasurement::default();
        let mut cpu = Duration::ZERO;
        cost.learn(&[], Some(cpu));
        for period in 0..90_u64 {
            let served = 125 + random.below(25);
            let (arrived, rejected) = match period {
                0 => (served + 450, 0),
                1 => (served + 450, 900),
                _ => (served + 450, 440 + random.below(21)),
            };
            class.window.started = served;
            class.window.counts.arrivals = arrived;
            class.window.counts.reasons[Reason::Overload as usize] = rejected;
            cpu += Duration::from_micros(500 * arrived);
            cost.learn(core::slice::from_ref(&class), Some(cpu));
        }
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((450e-6..550e-6).contains(&known), "{known}");
    }

    /// A calm hour with few requests, each of which costs more; then a crowd.
    #[test]
    fn a_calm_hour_does_not_take_from_the_cost_of_rejections() {
        let mut cost = RejectionCost::default();
        let mut class = ClassMeasurement::default();
        let mut cpu = Duration::ZERO;
        cost.learn(&[], Some(cpu));
        for period in 0..60_u64 {
            let crowd = period >= 30;
            let (served, rejected) =
                if crowd { (77 + period % 3, 730 + 10 * (period % 4)) } else { (20 + period % 3, 0) };
            class.window.started = served;
            class.window.counts.arrivals = served + rejected;
            class.window.counts.reasons[Reason::Overload as usize] = rejected;
            let each = if crowd { 250 } else { 350 };
            cpu += Duration::from_micros(each * served + 15 * rejected + 2000);
            cost.learn(core::slice::from_ref(&class), Some(cpu));
        }
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((14e-6..17e-6).contains(&known), "{known}");
    }

    /// A period with this number of served and of rejected requests; `waited` of the latter were rejected after waiting. A
    /// served request takes 200 us of the CPU, a rejected one 40.
    fn learn(cost: &mut RejectionCost, cpu: &mut Duration, (served, rejected, waited): (u64, u64, u64)) {
        let mut class = ClassMeasurement::default();
        class.window.started = served;
        class.window.counts.arrivals = served + rejected - waited;
        class.window.counts.reasons[Reason::Overload as usize] = rejected;
        *cpu += Duration::from_micros(200 * served + 40 * rejected);
        cost.learn(core::slice::from_ref(&class), Some(*cpu));
    }

    #[test]
    fn what_was_promised_counts_until_something_was_learned() {
        let (mut cost, mut cpu) =
            (RejectionCost { promised: Some(0.5), ..RejectionCost::default() }, Duration::ZERO);
        cost.learn(&[], Some(cpu));
        // Most of the rejected requests waited first, so nothing is learned from these periods.
        (0..20).for_each(|_| learn(&mut cost, &mut cpu, (10, 90, 60)));
        assert_eq!(cost.per_rejection_seconds(), Some(0.5));
        (0..20).for_each(|period| learn(&mut cost, &mut cpu, (10 + period % 7, 90 + 9 * (period % 4), 0)));
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((known - 40e-6).abs() < 2e-6, "{known}");
    }

    #[test]
    fn periods_in_which_all_is_rejected_show_the_cost() {
        for promised in [None, Some(0.5)] {
            let (mut cost, mut cpu) =
                (RejectionCost { promised, ..RejectionCost::default() }, Duration::ZERO);
            cost.learn(&[], Some(cpu));
            learn(&mut cost, &mut cpu, (0, 50, 0));
            assert_eq!(cost.per_rejection_seconds(), promised, "too few rejections");
            (0..20).for_each(|_| learn(&mut cost, &mut cpu, (0, 500, 0)));
            let known = cost.per_rejection_seconds().expect("learned");
            assert!((known - 40e-6).abs() < 1e-9, "{known}");
        }
    }

    #[test]
    fn the_time_of_a_period_that_is_left_out_is_not_the_next_ones() {
        let (mut cost, mut cpu) = (RejectionCost::default(), Duration::ZERO);
        cost.learn(&[], Some(cpu));
        for period in 0..60 {
            if period % 3 == 0 {
                cpu += Duration::from_millis(500);
                cost.pass_over(Some(cpu));
            }
            learn(&mut cost, &mut cpu, (10 + period % 7, 90 + 9 * (period % 4), 0));
        }
        let known = cost.per_rejection_seconds().expect("learned");
        assert!((known - 40e-6).abs() < 2e-6, "{known}");
    }
}
