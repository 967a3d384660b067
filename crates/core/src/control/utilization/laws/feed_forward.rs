//! The default law of the utilization loop: solve for m, and correct the residual by PI.
//!
//! Feed-forward: the highest m whose offered load, backlog included, is at most U*, corrected by the feedback. If U* is 1 and
//! the queue itself rejects late requests, up to a quarter more load is admitted at the lowest level. A step of the load is
//! answered in the period after it shows, whatever its size, because no integrator has to follow it. The solution divides by
//! the process gain p = dU/dm of its segment, which is the gain scheduling of UC 4.4.
//!
//! Feedback: PI on `e = U* - measured`. The integral part, the bias, removes the offset that the model does not know, such as
//! work that no request shows. The proportional part adds a quarter of this period's error to the next period's target, but
//! moves at most one client in 400; so means over several periods lie closer to U* than independent errors would leave them.
//! Since the feed-forward has divided by p, the feedback sees the plant `y_{k+1} = g u_k` with g near 1; K_p = 0.25 and K_i T =
//! 0.1 have a true gain margin of 3.3 there (tested).
//!
//! Anti-windup: the bias is bounded. While m is at an end of its range and the error points beyond it, the bias stands still at
//! m = 0 and fades at m = M. It stands still while the load is above U* and each class has the least level that it may be given
//! (a deadline refuses requests itself), while each class has its lowest level and the plant carries that load, while the load
//! steps, and while a backlog drains, since the measured U does not follow from the present m then. A backlog that does not
//! drain shows that too much is admitted, and lowers the bias.
//!
//! Rules beside the formula:
//! - A load that the plant carries at the lowest level is not rejected (`carried_load.rs`).
//! - Backlog alone rejects no request. If the lowest level carries the arriving load, m stays at least 1 and the backlog drains
//!   with the remaining capacity, unless that would take longer than half of the time that a request may wait.
//! - A step up that only the period's last sample shows may be a burst: requests are degraded for it, but none is rejected yet.
//! - If a server decides itself, requests wait in its listen queue, which the engine does not see. While requests wait there,
//!   the server accepts as many as it can serve, however many arrive: the offered load seems to equal the served load, and
//!   would lower m by a few hundredths a period, while clients leave. So after some periods in which all workers were busy all
//!   the time, the target load is half of the present load in each period until a worker is free. If the server's processes
//!   report that the queue was never empty in a period, all workers were busy too: a process is also occupied before it decides
//!   and after it has answered, so that the busy time that it counts stays below 1. The counted time then stands for 1, and the
//!   bias falls at once by as much as U* is too high for that.
//! - m does not leave M while the plant is measured well below its set point and no request waits.
//! - A change of m below the deadband is not made. (A bound on larger changes was tried; it kept m from rising again after a
//!   backlog had drained.)

use super::carried_load::{CarriedLoad, CarryTest};
use super::{Law, LawTarget, LoadTarget, Observation};
use libm::pow;

/// State of the law.
#[derive(Clone, Debug)]
pub(crate) struct FeedForward {
    /// The integral part: the bias of the set point.
    bias: f64,
    /// The proportional part.
    proportional: f64,
    was_steady: bool,
    last_backlog: f64,
    carried: CarriedLoad,
    /// Periods since the response-time override last held.
    quiet: u32,
    /// Periods in a row in which all workers of a plant with an unseen queue were busy.
    full: u32,
}

/// The busy part from which a plant with an unseen queue counts as full, and the number of such periods after which the plant
/// is known to accept requests as fast as it can.
const FULL: f64 = 0.995;
const FULL_PERIODS: u32 = 3;
/// The part of the present load that is admitted then.
const HALVED: f64 = 0.5;
/// K_i T: what one period's error adds to the bias.
const INTEGRAL: f64 = 0.1;
/// K_p: what one period's error adds to the next period's target.
const PROPORTIONAL: f64 = 0.25;
/// The most by which the proportional part moves m, and by which that move changes from one period to the next.
const PROPORTIONAL_REACH: f64 = 0.0025;
/// An error beyond this is a transient, not an offset.
const LARGEST_ERROR: f64 = 0.1;
/// The gain of one period's error while the response-time override holds, and while the bias returns from it: the model is
/// known to be far off then.
const OVERRIDE: f64 = 0.5;
/// An override lowers the bias at least by the error that a set point of 0.85 would leave: with a set point of 1, full
/// utilization is no error.
const LEAST_OVERRIDE: f64 = 0.15;
/// The bias returns quickly while less than this part of the set point is used: the first part holds within [`LATELY`] after an
/// override, so that a plant that lost half of its workers is not taken for an idle one.
const FAR_BELOW: [f64; 2] = [0.4, 0.5];
/// Periods after an override in which the next one is likely.
const LATELY: u32 = 60;
/// The bias returns after this many periods without the override; if it returned sooner, override and return would alternate.
const QUIET: u32 = 5;
/// The largest positive bias, and the lowest as a part of the set point: a negative bias may be nearly as large as the set
/// point, because the override measures what no model knows.
const LARGEST_BIAS: f64 = 0.3;
const LOWEST_BIAS: f64 = -0.95;
/// A backlog below this many periods of work is the ordinary queue of a busy server. If a service takes longer than that, one
/// waiting request per worker is ordinary.
const ORDINARY_BACKLOG: f64 = 0.1;
/// The load admitted beyond the set point if the set point is 1 and the queue rejects requests that would be late: the queue
/// then bounds the delay, so the utilization need not be held. The additional load keeps workers from being idle by chance, and
/// makes up for an error of an eighth in the costs or in the number of workers, which would reject requests although the plant
/// has room.
const BEYOND: f64 = 0.25;
/// A backlog that is less than this part of the last period's drains.
const DRAINING: f64 = 0.9;
/// A backlog drains within a period, or within as many service times where those are longer.
const DRAIN_SERVICES: f64 = 3.0;
/// A plant measured this far below its set point is calm.
const CALM: f64 = 0.1;

impl Default for FeedForward {
    fn default() -> Self {
        FeedForward {
            bias: 0.0,
            proportional: 0.0,
            was_steady: false,
            last_backlog: 0.0,
            carried: CarriedLoad::default(),
            quiet: u32::MAX,
            full: 0,
        }
    }
}

impl FeedForward {
    /// Moves the bias; returns whether the measurement can be taken as the effect of the present m.
    fn integrate(&mut self, seen: &Observation<'_>, backlog: f64) -> bool {
        let top = f64::from(seen.demand.top);
        let error = error(seen);
        self.quiet = if seen.overridden { 0 } else { self.quiet.saturating_add(1) };
        let used = FAR_BELOW[usize::from(self.quiet >= LATELY)] * seen.set_point;
        let far_back = self.quiet >= QUIET && self.bias < 0.0 && seen.measured < used;
        let step = if seen.overridden || far_back {
            OVERRIDE * if seen.overridden { error.min(-LEAST_OVERRIDE) } else { error }
        } else {
            INTEGRAL * error.clamp(-LARGEST_ERROR, LARGEST_ERROR)
        };
        let draining = backlog > 0.0 && (error > 0.0 || backlog < DRAINING * self.last_backlog);
        self.last_backlog = backlog;
        let trustworthy = seen.overridden || (seen.steady && self.was_steady && !draining);
        let at_an_end = (seen.level >= top && error > 0.0)
            || ((seen.level <= 0.0 || seen.at_least) && error < 0.0)
            || (error < 0.0
                && seen.at_lowest
                && self.carries(seen).is_some_and(|carries| self.carried.is_carried(seen, &carries)));
        if trustworthy && !at_an_end {
            self.bias = (self.bias + step).clamp(LOWEST_BIAS * seen.set_point, LARGEST_BIAS);
        } else if at_an_end && seen.level >= top {
            // While m stays at M the bias of the last overload fades.
            self.bias *= 1.0 - INTEGRAL;
        }
        // The most that a full plant can count shows soonest by what part U* is too high.
        if let Some(counted) = seen.full_at {
            self.bias = self.bias.min((counted - 1.0) * seen.set_point);
        }
        self.was_steady = seen.steady;
        trustworthy
    }

    /// U* with the feedback; at most half of the present load once an unseen queue has kept all workers busy for some periods.
    fn line(&mut self, seen: &Observation<'_>) -> f64 {
        let is_full = seen.waits_unseen && seen.measured >= FULL;
        self.full = if is_full { self.full.saturating_add(1) } else { 0 };
        let line = (seen.set_point + self.bias + self.proportional).max(0.0);
        if self.full < FULL_PERIODS { line } else { line.min(HALVED * seen.demand.offered(seen.level, 0.0)) }
    }

    /// The load that the plant carries without rejecting. It is not known while the response-time override holds, nor soon
    /// after it.
    fn carries(&self, seen: &Observation<'_>) -> Option<CarryTest> {
        if self.quiet > QUIET { self.carried.what_is_carried(seen, self.bias) } else { None }
    }
}

impl Law for FeedForward {
    fn bias(&self) -> f64 {
        self.bias
    }

    fn restore(&mut self, bias: f64) {
        self.bias = bias.clamp(LOWEST_BIAS, LARGEST_BIAS);
    }

    fn target(&mut self, seen: &Observation<'_>) -> LawTarget {
        let demand = seen.demand;
        let waiting = demand.backlog(seen.level);
        let backlog =
            (waiting - seen.ordinary_backlog.max(ORDINARY_BACKLOG).max(seen.service_periods)).max(0.0);
        self.carried.follow(seen);
        let trustworthy = self.integrate(seen, backlog);
        let reach = PROPORTIONAL_REACH * demand.gain(seen.level);
        self.proportional = if trustworthy && reach > 0.0 && !seen.overridden {
            let wanted = PROPORTIONAL * error(seen);
            wanted.clamp(self.proportional - reach, self.proportional + reach).clamp(-reach, reach)
        } else {
            0.0
        };

        let carries = self.carries(seen);
        let carried = carries.is_some_and(|carries| self.carried.is_carried(seen, &carries));
        let (line, lightest) = (self.line(seen), demand.offered(1.0, 0.0));
        // Beyond the line only requests at the lowest level are admitted: no request is served better while others are
        // rejected.
        let beyond = if seen.ordinary_backlog > 0.0 { BEYOND } else { seen.rejects_beyond - seen.set_point };
        let most = line + beyond;
        let load = line.max(lightest.min(most));
        let is_shed = seen.best_effort_waits && !carried && lightest > load;
        let drains = backlog > 0.0 && !is_shed;
        LawTarget::Load(LoadTarget {
            load,
            drain: if drains { 1.0 / (DRAIN_SERVICES * seen.service_periods).max(1.0) } else { 0.0 },
            room: 1.0,
            backlog: drains,
            calm: seen.measured < seen.set_point - CALM && waiting <= 0.0,
            carried,
            carries,
            unconfirmed: seen.unconfirmed,
            wait_periods: seen.wait_periods,
        })
    }

    fn idle(&mut self, periods: u32, _set_point: f64) {
        self.bias *= pow(1.0 - INTEGRAL, f64::from(periods));
        self.carried.idle();
        self.quiet = self.quiet.saturating_add(periods);
    }
}

/// How far U is below the set point, for the feedback. A set point that is lowered because a gateway's places are taken lowers
/// levels and rejects no request: once all classes have the lowest level, a load above it is no error, and rejections hold the
/// set point as promised.
fn error(seen: &Observation<'_>) -> f64 {
    let set_point = if seen.level < 1.0 {
        seen.rejects_beyond
    } else if seen.at_lowest {
        seen.measured.clamp(seen.set_point, seen.rejects_beyond.max(seen.set_point))
    } else {
        seen.set_point
    };
    set_point - seen.measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::allocation::next_level::next_level;
    use crate::control::{Demand, tuning};
    use libm::fabs;

    fn demand(arriving: &[f64], waiting: &[f64]) -> Demand {
        let mut demand = Demand::arriving(arriving);
        for (load, waiting) in demand.levels.iter_mut().zip(waiting) {
            load.waiting = *waiting;
        }
        demand
    }

    fn seen(demand: &Demand, measured: f64) -> Observation<'_> {
        Observation {
            set_point: 0.85,
            rejects_beyond: 0.85,
            capacity: Some(1.0),
            measured,
            served: measured,
            overridden: false,
            steady: true,
            level: 0.0,
            at_lowest: true,
            at_least: false,
            demand,
            wait_periods: 10.0,
            service_periods: 0.01,
            healthy_backlog: 0.0,
            at_once: f64::INFINITY,
            in_server: 0.0,
            unconfirmed: false,
            costs_begin: false,
            tolerated_backlog: 0.0,
            load_error: 0.0,
            arrivals_error: 0.1,
            possible_workers: 1.0,
            best_effort_waits: false,
            ordinary_backlog: 0.0,
            waits_unseen: false,
            full_at: None,
        }
    }

    /// The law, and the m that its targets lead to.
    #[derive(Clone)]
    struct Follower {
        law: FeedForward,
        m: f64,
    }

    impl Follower {
        fn new(m: f64) -> Self {
            Follower { law: FeedForward::default(), m }
        }

        fn next(&mut self, seen: &Observation<'_>) -> f64 {
            let seen = Observation { level: self.m, at_lowest: self.m <= 1.0, ..seen.clone() };
            let LawTarget::Load(target) = self.law.target(&seen) else { panic!("the law fills a load") };
            self.m = next_level(&target, self.m, seen.demand);
            self.m
        }
    }

    #[test]
    fn what_few_connections_ask_is_not_rejected_whatever_it_is_and_many_are_remembered() {
        let demand = demand(&[0.0, 3.0], &[]);
        let mut law = Follower::new(1.0);
        let mut m = |at_once: f64| law.next(&Observation { at_once, ..seen(&demand, 0.85) });
        assert_eq!([0.1, 0.4].map(&mut m), [1.0, 1.0]);
        assert!(m(0.6) < 1.0, "more than half a second of work can wait");
        assert!(m(0.1) < 1.0, "the connections may be of a pool that is no larger than it must be");
        assert_eq!((0..100).map(|_| m(0.1)).last(), Some(1.0));
    }

    #[test]
    fn feedback_has_a_true_gain_margin_of_at_least_three() {
        let gains = tuning::Gains { proportional: PROPORTIONAL, integral: INTEGRAL };
        let margin = tuning::tests::sampled_gain_margin(gains, 1.0);
        assert!((3.0..4.0).contains(&margin), "{margin}");
        let override_gains = tuning::Gains { proportional: 0.0, integral: OVERRIDE };
        assert!(tuning::tests::sampled_gain_margin(override_gains, 1.0) > 3.0);
    }

    #[test]
    fn an_unmodelled_load_is_removed_by_the_bias() {
        // The model says 3.0 at full and 0.45 at light; the plant has a load of 0.1 more that no request shows.
        let demand = demand(&[0.0, 0.45, 3.0], &[]);
        let mut law = Follower::new(2.0);
        let mut measured = 0.0;
        for _ in 0..100 {
            let m = law.next(&seen(&demand, measured));
            measured = (demand.offered(m, 0.0) + 0.1).min(1.0);
        }
        assert!(fabs(measured - 0.85) < 0.01, "{measured}");
    }

    /// A gateway's places are taken, so that the line is lowered to 0.6.
    #[test]
    fn a_line_that_is_lowered_for_places_of_a_gateway_lowers_levels_and_rejects_nobody() {
        let after = |light: f64, periods: usize| {
            let demand = demand(&[0.0, light, 3.0], &[]);
            let mut law = Follower::new(2.0);
            for _ in 0..periods {
                let measured = demand.offered(law.m, 0.0).min(1.0);
                law.next(&Observation { set_point: 0.6, ..seen(&demand, measured) });
            }
            (law.m, demand.offered(law.m, 0.0), law.law.bias)
        };
        let (m, load, _) = after(0.4, 50);
        assert!(m > 1.0 && fabs(load - 0.6) < 0.01, "{m} {load}");
        // Light pages for all clients take more than the lowered line and less than the line.
        let (m, _, bias) = after(0.7, 200);
        assert!(m == 1.0 && fabs(bias) < 0.11, "{m} {bias}");
        // A load above the line is rejected down to the line, as without a gateway.
        let (m, load, _) = after(1.2, 200);
        assert!(m < 1.0 && fabs(load - 0.85) < 0.01, "{m} {load}");
    }

    #[test]
    fn backlog_degrades_but_does_not_reject() {
        // The light level carries the arriving load (0.8), but not within one period the backlog (0.6) too.
        let burst = demand(&[0.0, 0.8, 4.0], &[0.0, 0.6, 3.0]);
        assert_eq!(Follower::new(2.0).next(&seen(&burst, 1.0)), 1.0);
        // With one level only, the backlog of a burst that has passed is served.
        let passed = demand(&[0.0, 0.5], &[0.0, 1.5]);
        assert_eq!(Follower::new(1.0).next(&seen(&passed, 1.0)), 1.0);
        // If the backlog takes too long to drain, requests are rejected.
        let hopeless = demand(&[0.0, 0.8, 4.0], &[0.0, 1.5, 9.0]);
        assert!(Follower::new(2.0).next(&seen(&hopeless, 1.0)) < 1.0);
    }

    #[test]
    fn what_a_pause_has_left_waits_while_the_plant_carries_what_arrives() {
        let mut left = demand(&[0.0, 0.9, 5.0], &[0.0, 2.7, 15.0]);
        let mut law = Follower::new(1.0);
        (0..10).for_each(|_| law.law.carried.sustained.follow(0.9, 100.0, false));
        fn absorbs(demand: &Demand) -> Observation<'_> {
            Observation { tolerated_backlog: 5.0, ..seen(demand, 1.0) }
        }
        assert_eq!(law.clone().next(&absorbs(&left)), 1.0);
        assert!(law.clone().next(&seen(&left, 1.0)) < 1.0, "a time was promised");
        left.levels[1].waiting = 5.5;
        assert!(law.clone().next(&absorbs(&left)) < 1.0, "the backlog waits too long");
        (left.levels[1].waiting, left.levels[1].arriving) = (2.7, 1.1);
        assert!(law.next(&absorbs(&left)) < 1.0, "the plant does not carry the load");
    }

    #[test]
    fn an_excess_that_the_error_of_the_costs_may_make_rejects_nobody() {
        let mut perhaps = demand(&[0.0, 1.15], &[0.0, 2.0]);
        let absorbs = Observation { tolerated_backlog: 5.0, ..seen(&perhaps, 1.0) };
        let mut law = Follower::new(1.0);
        (0..10).for_each(|_| law.law.carried.sustained.follow(1.05, 100.0, false));
        assert!(law.clone().next(&absorbs) < 1.0, "the costs are known well");
        assert_eq!(law.clone().next(&Observation { load_error: 0.2, ..absorbs.clone() }), 1.0);
        assert!(law.clone().next(&Observation { load_error: 0.06, ..absorbs }) < 1.0, "it is not chance");
        perhaps.levels[1].waiting = 5.5;
        let waits = Observation { tolerated_backlog: 5.0, load_error: 0.2, ..seen(&perhaps, 1.0) };
        assert!(law.next(&waits) < 1.0, "the backlog is no chance");
    }

    #[test]
    fn calm_is_full_quality_and_small_changes_are_not_made() {
        let calm = demand(&[0.0, 0.1, 0.5], &[]);
        assert_eq!(Follower::new(1.0).next(&seen(&calm, 0.5)), 2.0);
        let over = demand(&[0.0, 0.45, 3.0], &[]);
        let mut law = Follower::new(2.0);
        let first = law.next(&seen(&over, 0.85));
        let slightly_more = demand(&[0.0, 0.451, 3.003], &[]);
        assert_eq!(law.next(&seen(&slightly_more, 0.85)), first);
    }

    #[test]
    fn a_step_that_one_sample_shows_degrades_and_rejects_nobody() {
        let perhaps = demand(&[0.0, 1.5], &[0.0, 0.3]);
        let unconfirmed = Observation { unconfirmed: true, ..seen(&perhaps, 1.0) };
        let mut law = Follower::new(1.0);
        assert_eq!(law.next(&unconfirmed), 1.0);
        assert!(law.next(&seen(&perhaps, 1.0)) < 1.0);
    }

    #[test]
    fn idle_periods_fade_the_law_as_so_many_steps_with_nothing() {
        let (calm, nothing) = (demand(&[0.0, 0.5], &[]), demand(&[0.0, 0.0], &[]));
        let mut law = Follower::new(1.0);
        for _ in 0..3 {
            law.next(&Observation { overridden: true, ..seen(&calm, 1.0) });
        }
        while law.next(&seen(&nothing, 0.0)) < 1.0 {}
        let mut idle = law.clone();
        assert!(law.law.bias < -0.1, "there is a bias to fade: {}", law.law.bias);
        (0..4).for_each(|_| _ = law.next(&seen(&nothing, 0.0)));
        idle.law.idle(4, 0.85);
        assert!(
            fabs(idle.law.bias - law.law.bias) < 1e-12 && idle.law.quiet == law.law.quiet && idle.m == law.m
        );
        assert!(law.law.bias < -0.01);
    }

    #[test]
    fn after_the_override_the_way_back_is_short() {
        let calm = demand(&[0.0, 0.5], &[]);
        let mut law = Follower::new(1.0);
        for _ in 0..15 {
            law.next(&Observation { overridden: true, ..seen(&calm, 1.0) });
        }
        assert!(law.law.bias < -0.7);
        let back = (0..40).position(|_| {
            let measured = 0.5 * law.m;
            law.next(&seen(&calm, measured)) >= 1.0
        });
        assert!(back.is_some_and(|periods| (QUIET as usize..=12).contains(&periods)), "{back:?}");
    }

    #[test]
    fn a_server_whose_listen_queue_nobody_sees_halves_its_load_until_it_is_not_full() {
        // A full server accepts as many requests as it can serve at the present level, however many arrive.
        let m_after = |waits_unseen: bool, periods: usize| {
            let mut one = Follower::new(2.0);
            for _ in 0..periods {
                let taken = 1.0 / (0.15 + 0.85 * (one.m - 1.0).max(0.0));
                let demand = demand(&[0.0, 0.15 * taken, taken], &[0.0; 3]);
                one.next(&Observation { waits_unseen, ..seen(&demand, 1.0) });
            }
            one.m
        };
        let found = [(true, 2), (true, 6), (false, 6)].map(|(unseen, periods)| m_after(unseen, periods));
        assert!(found[0] > 1.5 && found[1] == 1.0 && found[2] > 1.0, "{found:?}");
    }
}
