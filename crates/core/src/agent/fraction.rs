//! PI on the fraction that is degraded (CA 4.2.2): the engine's own level law, on m = 1 + F.
//!
//! Up to the load line everybody gets full quality; above it the law solves `R C(F) = U*` and trims what is left
//! (`control/feed_forward.rs`). In overload R is not known (see the module above), so everybody is degraded at once, and
//! the law begins from there with the load as it then shows, two periods after the last late answer. Overload again within
//! half a minute of more full quality is another matter: then the model was wrong, the law is told so, and trusts it less
//! for a while.
//!
//! A change costs the server something (nginx starts new workers), so small ones are not made, nor two close together;
//! except down by much, where waiting costs more. Up by much waits for some seconds after a step of the load: a crowd
//! that pauses for a second has not gone, and full quality for all would fill the queue when it goes on. What counts is
//! the mean of what the law has said for some periods: chance moves F by a twentieth from one period to the next where a
//! hundred requests come in it. The law is told what was applied, and its feedback stands still while that is not what it
//! said: else the difference would be integrated, and each deadband become an oscillation.

use super::load::OfferedLoad;
use super::{Change, LawInput, Why};
use crate::control::{FeedForward, Law, Observation};
use crate::time::{Duration, Instant};
use libm::fabs;

/// Periods without overload before the load is taken as known.
const QUIET: u32 = 2;
/// Overload so soon after a change upwards is of its making.
const JUDGED: Duration = Duration::from_secs(30);
/// So long nobody is degraded for what a few requests seemed to cost; in overload, at once.
const LEARNING: Duration = Duration::from_secs(10);
/// Down by this much does not wait, and up by this much waits for a load that is settled.
const URGENT: f64 = 0.15;
/// No request waits here where anybody could drop it: a backlog is not seen at all.
const WAIT_PERIODS: f64 = 10.0;
const SERVICE_PERIODS: f64 = 0.01;
/// What is applied is what the law said, but for this.
const NEAR: f64 = 0.05;
/// How fast the mean of what the law says follows it.
const SMOOTHING: f64 = 0.2;

pub(super) struct FractionLaw {
    law: FeedForward,
    /// When it first knew what is offered.
    begun: Option<Instant>,
    step: f64,
    apart: Duration,
    changed: Option<Instant>,
    raised: Option<Instant>,
    /// Periods since overload.
    quiet: u32,
    /// What the law last said, and its mean.
    wanted: f64,
    mean: f64,
}

impl FractionLaw {
    pub(super) fn new(applied: f64, step: f64, apart: Duration) -> Self {
        let law = FeedForward::new(1.0 + applied);
        FractionLaw {
            law,
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

    /// `ends`: a period ends with this sample.
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
        // So far off its mean it is the load that moved, not chance; and a mean never quite arrives at an end.
        let moved = fabs(wanted - self.mean) >= self.step;
        let exact = moved || self.is_at_an_end(wanted);
        self.change(now, seen.applied, if exact { wanted } else { self.mean }, why)
    }

    /// F as the law wants it.
    fn ask(&mut self, seen: &LawInput, load: &OfferedLoad, load_line: f64) -> Option<f64> {
        let demand = load.demand()?;
        let served = demand.offered(1.0 + seen.applied, 0.0);
        let decision = self.law.next(&Observation {
            set_point: load_line,
            measured: if seen.overloaded { 1.0 } else { load.utilization().min(1.0) },
            served,
            overridden: seen.overloaded,
            steady: load.is_steady() && fabs(seen.applied - self.wanted) < self.step.max(NEAR),
            demand: &demand,
            wait_periods: WAIT_PERIODS,
            service_periods: SERVICE_PERIODS,
            ordinary_backlog: 0.0,
            unconfirmed: load.rose(),
        });
        self.wanted = (decision.m - 1.0).clamp(0.0, 1.0);
        Some(self.wanted)
    }

    fn is_worth_it(&self, now: Instant, applied: f64, wanted: f64) -> bool {
        let rested = self.changed.is_none_or(|changed| now.since(changed) >= self.apart);
        let enough = if self.is_at_an_end(wanted) { 0.0 } else { self.step };
        wanted < applied - URGENT || rested && wanted != applied && fabs(self.mean - applied) >= enough
    }

    /// Nearer to an end than the step, the end itself is a change worth making.
    fn is_at_an_end(&self, wanted: f64) -> bool {
        (wanted <= 0.0 || wanted >= 1.0) && fabs(wanted - self.mean) < self.step
    }

    fn hold(&mut self, applied: f64) {
        self.law.track(1.0 + applied);
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
