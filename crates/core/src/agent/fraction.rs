//! PI on the fraction that is degraded (CA 4.2.2): the engine's own level law, on m = 1 + F.
//!
//! Up to the load line every client gets full quality; above it the law solves `R C(F) = U*` and corrects the residual
//! by PI (`control/utilization/feed_forward.rs`). In overload R is not known, as `overload.rs` says, so all clients
//! are degraded at once. The law begins again from there, with the load as it then shows, two periods after the last
//! late answer. Overload within half a minute of more full quality means that the model was wrong: the law is told so,
//! and trusts the model less for a while.
//!
//! A change costs the server something (nginx starts new workers), so small changes are not made, nor two in close
//! succession. A large step down is made at once, because waiting would cost more. A large step up waits for some
//! seconds after a step of the load: a crowd that pauses for a second has not gone, and full quality for all would fill
//! the queue when it goes on. Changes follow a smoothed mean of what the law says, since chance moves F by a twentieth
//! from one period to the next where a hundred requests come in it. The law is told the applied F, and its feedback
//! stands still while that differs from what it said; else it would integrate the difference, and each deadband would
//! become an oscillation.

use super::offered_load::OfferedLoad;
use super::{Change, LawInput, Why};
use crate::control::allocation::level::next_level;
use crate::control::{FeedForward, Law, LawTarget, Observation};
use crate::time::{Duration, Instant};
use libm::fabs;

/// Periods without overload after which the load is taken as known.
const QUIET: u32 = 2;
/// Overload within this time after a step up is attributed to that step.
const JUDGED: Duration = Duration::from_secs(30);
/// For this long no client is degraded because of what a few requests seemed to cost; in overload clients are degraded
/// at once.
const LEARNING: Duration = Duration::from_secs(10);
/// A step down by this much does not wait, and a step up by this much waits for a settled load.
const URGENT: f64 = 0.15;
/// The agent cannot drop waiting requests, and never sees a backlog.
const WAIT_PERIODS: f64 = 10.0;
const SERVICE_PERIODS: f64 = 0.01;
/// An applied F within this distance counts as what the law said.
const NEAR: f64 = 0.05;
/// The gain of the mean of what the law says.
const SMOOTHING: f64 = 0.2;

pub(super) struct FractionLaw {
    law: FeedForward,
    /// The service level that the law goes on from: level 1 is the degraded content, level 2 the full one.
    level: f64,
    /// When the offered load was first known.
    begun: Option<Instant>,
    step: f64,
    apart: Duration,
    changed: Option<Instant>,
    raised: Option<Instant>,
    /// Periods since the last overload.
    quiet: u32,
    /// What the law said last, and its mean.
    wanted: f64,
    mean: f64,
}

impl FractionLaw {
    pub(super) fn new(applied: f64, step: f64, apart: Duration) -> Self {
        FractionLaw {
            law: FeedForward::default(),
            level: 1.0 + applied,
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

    /// Takes a sample; `ends` tells that a period ends with it.
    pub(super) fn step(
        &mut self,
        (now, ends): (Instant, bool),
        seen: &LawInput,
        load: &OfferedLoad,
        load_line: f64,
    ) -> Option<Change> {
        if seen.overloaded {
            self.quiet = 0;
            let own_doing = self.raised.is_some_and(|raised| now.since(raised) < JUDGED);
            if ends && own_doing {
                self.ask(seen, load, load_line);
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
        let wanted = self.ask(seen, load, load_line)?;
        self.mean += SMOOTHING * (wanted - self.mean);
        let why = Why::Load { at_full: load.at(1.0)?, line: load_line };
        let lull = wanted > seen.applied + URGENT && !load.is_settled();
        let begun = *self.begun.get_or_insert(now);
        let unsure = wanted < seen.applied && now.since(begun) < LEARNING;
        if lull || unsure || !self.is_worth_it(now, seen.applied, wanted) {
            self.hold(seen.applied);
            return None;
        }
        // At this distance from its mean the load has moved, rather than chance; and a mean never quite reaches 0 or 1.
        let moved = fabs(wanted - self.mean) >= self.step;
        let exact = moved || self.is_at_an_end(wanted);
        self.change(now, seen.applied, if exact { wanted } else { self.mean }, why)
    }

    /// The F that the law asks for.
    fn ask(&mut self, seen: &LawInput, load: &OfferedLoad, load_line: f64) -> Option<f64> {
        let demand = load.demand()?;
        let served = demand.offered(1.0 + seen.applied, 0.0);
        let (target, _) = self.law.target(&Observation {
            set_point: load_line,
            measured: if seen.overloaded { 1.0 } else { load.utilization().min(1.0) },
            served,
            overridden: seen.overloaded,
            steady: load.is_steady() && fabs(seen.applied - self.wanted) < self.step.max(NEAR),
            level: self.level,
            demand: &demand,
            wait_periods: WAIT_PERIODS,
            service_periods: SERVICE_PERIODS,
            ordinary_backlog: 0.0,
            unconfirmed: load.rose(),
        });
        self.level = match target {
            LawTarget::Load(load) => next_level(&load, self.level, &demand),
            LawTarget::Level(m) => m,
        };
        self.wanted = (self.level - 1.0).clamp(0.0, 1.0);
        Some(self.wanted)
    }

    fn is_worth_it(&self, now: Instant, applied: f64, wanted: f64) -> bool {
        let rested = self.changed.is_none_or(|changed| now.since(changed) >= self.apart);
        let enough = if self.is_at_an_end(wanted) { 0.0 } else { self.step };
        wanted < applied - URGENT || rested && wanted != applied && fabs(self.mean - applied) >= enough
    }

    /// Whether F is nearer to 0 or 1 than the step. Then that end is a change worth making.
    fn is_at_an_end(&self, wanted: f64) -> bool {
        (wanted <= 0.0 || wanted >= 1.0) && fabs(wanted - self.mean) < self.step
    }

    fn hold(&mut self, applied: f64) {
        self.level = 1.0 + applied;
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
