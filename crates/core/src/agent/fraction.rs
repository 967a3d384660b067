//! PI control of the fraction F of clients at full quality (CA 4.2.2): the engine's default law of utilization, on m = 1 + F.
//!
//! Up to the load line every client gets full quality; above it the law solves `R C(F) = U*` and corrects the residual by PI
//! (`control/utilization/laws/feed_forward.rs`). In overload R is not known (`overload.rs`), so all clients are degraded at
//! once. After two periods without overload the law goes on from F = 0, with the load that the counters then show. If overload
//! comes within half a minute after a rise of F, the model was wrong: the law takes that overload as an error, and trusts the
//! model less for a while.
//!
//! A change costs the server something (nginx starts new workers), so small changes are not made, nor two changes in close
//! succession. A large step down is made at once, because waiting would cost more. A large step up is made only some seconds
//! after a step of the load: clients that pause for a second have not gone, and full quality for all would fill the queue when
//! they go on. Changes follow a smoothed mean of the law's F, since with a hundred requests in a period chance moves F by a
//! twentieth from one period to the next. The law takes the applied F, and its feedback is frozen while the applied F differs
//! from its own; otherwise it would integrate the difference, and each deadband would become an oscillation.

use super::offered_load::OfferedLoad;
use super::{Change, LawInput, Why};
use crate::control::allocation::next_level::next_level;
use crate::control::{FeedForward, Law, LawTarget, Observation};
use crate::time::{Duration, Instant};
use libm::fabs;

/// Periods without overload after which the load counts as known.
const QUIET: u32 = 2;
/// Overload within this time after a step up is attributed to that step.
const JUDGED: Duration = Duration::from_secs(30);
/// For this long after the load is first known clients are degraded only in overload, since a few requests are little evidence
/// of costs.
const LEARNING: Duration = Duration::from_secs(10);
/// A step down by this much is made at once, and a step up by this much only when the load has settled.
const URGENT: f64 = 0.15;
/// The law's inputs for a backlog of waiting requests, which the agent neither sees nor can drop.
const WAIT_PERIODS: f64 = 10.0;
const SERVICE_PERIODS: f64 = 0.01;
/// An applied F within this distance of the law's F counts as equal.
const NEAR: f64 = 0.05;
/// The gain of the smoothed mean of the law's F.
const SMOOTHING: f64 = 0.2;

pub(super) struct FractionLaw {
    law: FeedForward,
    /// The service level that the law goes on from: level 1 is the degraded content, level 2 the full one.
    service_level: f64,
    /// When the offered load was first known.
    begun: Option<Instant>,
    step: f64,
    apart: Duration,
    changed: Option<Instant>,
    raised: Option<Instant>,
    /// Periods since the last overload.
    quiet: u32,
    /// The law's last F, and its smoothed mean.
    wanted: f64,
    mean: f64,
}

impl FractionLaw {
    pub(super) fn new(applied: f64, step: f64, apart: Duration) -> Self {
        FractionLaw {
            law: FeedForward::default(),
            service_level: 1.0 + applied,
            begun: None,
            step,
            apart,
            changed: None,
            raised: None,
            quiet: QUIET,
            wanted: applied,
            mean: applied,
        }
    }

    /// Takes a sample; `ends` says whether a period ends with it.
    pub(super) fn step(
        &mut self,
        (now, ends): (Instant, bool),
        seen: &LawInput,
        load: &OfferedLoad,
        load_line: f64,
    ) -> Option<Change> {
        if seen.overloaded {
            self.quiet = 0;
            let is_after_rise = self.raised.is_some_and(|raised| now.since(raised) < JUDGED);
            if ends && is_after_rise {
                self.run_law(seen, load, load_line);
            }
            self.hold(0.0);
            return self.change(now, seen.applied, 0.0, seen.why);
        }
        if !ends {
            return None;
        }
        self.quiet = self.quiet.saturating_add(1);
        if !seen.load_known || self.quiet <= QUIET {
            return None;
        }
        let wanted = self.run_law(seen, load, load_line)?;
        self.mean += SMOOTHING * (wanted - self.mean);
        let why = Why::Load { at_full: load.at(1.0)?, line: load_line };
        let lull = wanted > seen.applied + URGENT && !load.is_settled();
        let begun = *self.begun.get_or_insert(now);
        let unsure = wanted < seen.applied && now.since(begun) < LEARNING;
        if lull || unsure || !self.is_worth_it(now, seen.applied, wanted) {
            self.hold(seen.applied);
            return None;
        }
        // If F is this far from its mean, the load has changed, and the difference is not chance. A smoothed mean never quite
        // reaches 0 or 1, so near these ends the law's F is taken as it is.
        let moved = fabs(wanted - self.mean) >= self.step;
        let exact = moved || self.is_at_an_end(wanted);
        self.change(now, seen.applied, if exact { wanted } else { self.mean }, why)
    }

    /// Runs the law for a period; returns its F, if the load is known.
    fn run_law(&mut self, seen: &LawInput, load: &OfferedLoad, load_line: f64) -> Option<f64> {
        let demand = load.demand()?;
        let served = demand.offered(1.0 + seen.applied, 0.0);
        let target = self.law.target(&Observation {
            set_point: load_line,
            rejects_beyond: load_line,
            capacity: None,
            measured: if seen.overloaded { 1.0 } else { load.utilization().min(1.0) },
            served,
            overridden: seen.overloaded,
            steady: load.is_steady() && fabs(seen.applied - self.wanted) < self.step.max(NEAR),
            level: self.service_level,
            at_lowest: self.service_level <= 1.0,
            at_least: self.service_level <= 0.0,
            demand: &demand,
            wait_periods: WAIT_PERIODS,
            tolerated_backlog: 0.0,
            load_error: 0.0,
            arrivals_error: 0.0,
            possible_workers: 1.0,
            service_periods: SERVICE_PERIODS,
            healthy_backlog: 0.0,
            at_once: f64::INFINITY,
            in_server: 0.0,
            ordinary_backlog: 0.0,
            unconfirmed: load.rose(),
            costs_begin: false,
            best_effort_waits: false,
            waits_unseen: false,
            full_at: None,
        });
        self.service_level = match target {
            LawTarget::Load(load) => next_level(&load, self.service_level, &demand),
            LawTarget::Level(m) => m,
        };
        self.wanted = (self.service_level - 1.0).clamp(0.0, 1.0);
        Some(self.wanted)
    }

    fn is_worth_it(&self, now: Instant, applied: f64, wanted: f64) -> bool {
        let may_change = self.changed.is_none_or(|changed| now.since(changed) >= self.apart);
        let enough = if self.is_at_an_end(wanted) { 0.0 } else { self.step };
        wanted < applied - URGENT || may_change && wanted != applied && fabs(self.mean - applied) >= enough
    }

    /// Whether the law's F is 0 or 1, and its mean is nearer to it than the step. If so, the change is made however small.
    fn is_at_an_end(&self, wanted: f64) -> bool {
        (wanted <= 0.0 || wanted >= 1.0) && fabs(wanted - self.mean) < self.step
    }

    /// Sets the F from which the law goes on.
    fn hold(&mut self, applied: f64) {
        self.service_level = 1.0 + applied;
    }

    fn change(&mut self, now: Instant, applied: f64, fraction: f64, why: Why) -> Option<Change> {
        if fraction == applied {
            return None;
        }
        (self.changed, self.mean) = (Some(now), fraction);
        if fraction > applied {
            self.raised = Some(now);
        }
        Some(Change { fraction, why })
    }
}
