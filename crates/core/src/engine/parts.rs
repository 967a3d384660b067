//! What the engine is made of beside its timers: what counts, and what decides.

use crate::control::cost::class::ClassCosts;
use crate::control::cost::rejection::RejectionCost;
use crate::control::deadline::DeadlineLoop;
use crate::control::deadline::budgets::BudgetLoop;
use crate::control::delay::DelayLoop;
use crate::control::ratio::RatioLoop;
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::WorkerSearch;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_search::HeavySearch;
use crate::telemetry::monitor::{Monitors, PlantMonitor};
use alloc::{string::String, sync::Arc, vec::Vec};

/// What counts and measures.
#[derive(Default)]
pub(crate) struct Sensors {
    /// By lane, the ticker's own last.
    pub(crate) counters: Vec<Arc<LaneCounters>>,
    /// The ticker's own lane has counted requests: it started or dropped some that waited. Most never do.
    pub(crate) has_counted: bool,
    pub(crate) classes: Monitors,
    /// By plant.
    pub(crate) plants: Vec<PlantMonitor>,
    pub(crate) heavy: HeavySearch,
    /// By class: how many requests wait at the plant whose loop runs.
    pub(crate) waiting: Vec<u32>,
}

impl Sensors {
    /// The lanes that may have counted. An idle lane's counters are as many as another's, and would be fetched from far
    /// memory for nothing.
    pub(crate) fn counting_lanes(&self) -> &[Arc<LaneCounters>] {
        &self.counters[..self.counters.len() - usize::from(!self.has_counted)]
    }
}

/// What decides: the loops, and what they have learned.
#[derive(Default)]
pub(crate) struct Loops {
    /// By plant.
    pub(crate) utilization: Vec<UtilizationLoop>,
    /// By class: what its requests cost.
    pub(crate) costs: Vec<ClassCosts>,
    /// By class: m as applied.
    pub(crate) applied: Vec<f64>,
    /// c.
    pub(crate) rejection: RejectionCost,
    pub(crate) delays: DelayLoop,
    pub(crate) ratios: RatioLoop,
    pub(crate) deadlines: DeadlineLoop,
    pub(crate) budgets: BudgetLoop,
    /// By plant, where no number of workers is promised.
    pub(crate) searches: Vec<Option<WorkerSearch>>,
    /// No loop is due at samples, which update rates only.
    pub(crate) samples_only_rates: bool,
}

/// The idle periods.
#[derive(Default)]
pub(crate) struct Idle {
    /// Whether no class is degraded. While no request comes either, the loops have nothing to do.
    pub(crate) is_possible: bool,
    /// Idle periods that the loops do not know of yet.
    pub(crate) periods: u32,
}

/// What the status says of a class, whether it is promised still or not.
#[derive(Clone, Default)]
pub(crate) struct ClassRow {
    pub(crate) site: String,
    pub(crate) class: String,
    pub(crate) plant: usize,
    /// Names of the levels 1..=M.
    pub(crate) levels: Vec<String>,
    /// Their plants.
    pub(crate) plants: Vec<usize>,
    pub(crate) removed: bool,
}
