//! Room: what to do. Seven loops of one shape (`Loop`), each with its law.
//!
//! | loop | is due | observes | law | gives out |
//! |---|---|---|---|---|
//! | `utilization` | each period | measurement, costs, demand | `utilization/laws` | service levels, by `allocation` |
//! | `delay` | after departures | response times of a window | `delay/law` | quotas of workers, a set-point reduction |
//! | `ratio` | after departures | response times of two windows | `ratio/law` | weights and holds of classes |
//! | `workers` | each sample | departures by number in service | `workers/law` | workers and limit of a plant |
//! | `workers/refusals` | each sample | refusals by number in service | `workers/refusals` | the most that a plant takes |
//! | `deadline` | each sample | service times, work started | `deadline/types`, `higher_ranks` | what admission reads |
//! | `deadline/budgets` | each budget period | requested and carried work | `admission/aces` | the budgets of the paper AC |
//!
//! `cost` learns what requests cost, for the utilization loops; `allocation` alone turns a target into levels; `departures` has
//! what the loops that run on departures share; `server_queue` bounds how many requests wait inside a server whose classes were
//! promised times.

pub(crate) mod allocation;
pub(crate) mod cost;
pub(crate) mod deadline;
pub(crate) mod delay;
pub(crate) mod departures;
pub(crate) mod ratio;
pub(crate) mod server_queue;
pub(crate) mod utilization;
pub(crate) mod workers;

use crate::time::Instant;

pub use allocation::contracts::KnownContract;
pub use deadline::{KnownRule, KnownTypeCost, KnownTypes};
pub use delay::law::{DelayLaw, Feedback, Residual};
pub use ratio::law::{RatioLaw, Reached, Turn};
pub(crate) use utilization::demand::Demand;
pub(crate) use utilization::laws::feed_forward::FeedForward;
pub(crate) use utilization::laws::{Law, LawTarget, LoadTarget, Observation};
pub(crate) use utilization::tuning;
pub use workers::KnownWorkers;

/// The shape of every loop. The engine steps a loop when its timer is due, which [`Loop::due`] sets, and publishes the outputs
/// of the step.
pub(crate) trait Loop {
    /// The observations that a step takes.
    type Inputs<'a>;
    /// The decisions that a step gives out.
    type Outputs<'a>
    where
        Self: 'a;
    /// The part of new promises that the loop needs.
    type Promises<'a>;

    /// When the next step is due.
    fn due(&self) -> Due;

    /// One step of the loop.
    fn step<'a>(&'a mut self, now: Instant, inputs: Self::Inputs<'_>) -> Self::Outputs<'a>;

    /// Takes new promises, and keeps what was learned of the classes and plants that stay.
    fn reload(&mut self, promises: Self::Promises<'_>);
}

/// When a loop is due: its entry in the engine's timer table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Due {
    /// No promise needs the loop.
    #[default]
    Never,
    /// At the end of each sample; a period has several.
    Sample,
    /// At the end of each control period.
    Period,
    /// At an instant that the loop chooses.
    At(Instant),
}

impl Due {
    /// The instant that the loop has chosen; far away for a loop that runs at samples, at periods, or never.
    pub(crate) fn instant(self) -> Instant {
        if let Due::At(due) = self { due } else { Instant::FAR }
    }
}
