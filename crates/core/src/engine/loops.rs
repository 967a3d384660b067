//! What the engine runs: the sensors that measure, and the loops that decide.

use crate::control::cost::class::ClassCosts;
use crate::control::cost::rejection::RejectionCost;
use crate::control::deadline::Deadlines;
use crate::control::response::ResponseLoops;
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::Search;
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_search::HeavySearch;
use crate::telemetry::monitor::{Monitors, PlantMonitor};
use crate::time::Duration;
use alloc::{sync::Arc, vec::Vec};

/// What counts and measures.
#[derive(Default)]
pub(crate) struct Sensors {
    /// By lane, the ticker's own last.
    pub(crate) counters: Vec<Arc<LaneCounters>>,
    /// Whether the lane of `tick` has counted requests: it started or dropped some that waited. It seldom does.
    pub(crate) has_counted: bool,
    pub(crate) classes: Monitors,
    /// By plant.
    pub(crate) plants: Vec<PlantMonitor>,
    pub(crate) heavy: HeavySearch,
    /// By class: how many requests wait at the plant whose loop runs.
    pub(crate) waiting: Vec<u32>,
}

impl Sensors {
    /// The lanes that may have counted: without the lane of `tick` as long as it has not, to save reading its counters.
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
    /// The loops of promised delays and ratios.
    pub(crate) responses: ResponseLoops,
    /// What requests cost and how fast work comes, where deadlines are promised.
    pub(crate) deadlines: Deadlines,
    /// By plant: the search for the number of workers, where no number is promised.
    pub(crate) searches: Vec<Option<Search>>,
    /// By plant: the mean service time above which the worker search raises no limit.
    pub(crate) guards: Vec<Duration>,
    /// No worker search runs and no deadline is promised: a sample updates rates only.
    pub(crate) samples_only_rates: bool,
}
