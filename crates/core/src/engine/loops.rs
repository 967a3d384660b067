//! What the engine runs: the sensors that measure, and the loops that decide.

use crate::actuator::levels_by_plant::LevelsByPlant;
use crate::control::cost::class::ClassCosts;
use crate::control::cost::rejection::RejectionCost;
use crate::control::cost::shared_machine::ProcessorLoad;
use crate::control::deadline::DeadlineLoop;
use crate::control::deadline::budgets::BudgetLoop;
use crate::control::delay::DelayLoop;
use crate::control::ratio::RatioLoop;
use crate::control::utilization::UtilizationLoop;
use crate::control::workers::{RefusalLoop, WorkerSearch};
use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_search::HeavySearch;
use crate::telemetry::monitor::{Monitors, PlantMonitor};
use crate::telemetry::snapshot::PlantSnapshot;
use crate::telemetry::unseen_queue::UnseenQueue;
use alloc::{sync::Arc, vec::Vec};

/// The sensors: what counts and measures.
#[derive(Default)]
pub(crate) struct Sensors {
    /// The counters of each lane; those of the lane of `tick` come last.
    pub(crate) counters: Vec<Arc<LaneCounters>>,
    /// Whether the lane of `tick` has counted requests: it started or dropped some that waited, or clients were turned away
    /// where no lane was asked. It seldom does.
    pub(crate) has_counted: bool,
    pub(crate) classes: Monitors,
    /// By plant.
    pub(crate) plants: Vec<PlantMonitor>,
    pub(crate) heavy: HeavySearch,
    /// By class: how many requests wait at the plant whose loop runs.
    pub(crate) waiting: Vec<u32>,
    /// The listen queue of a server whose own processes decide.
    pub(crate) unseen: UnseenQueue,
}

impl Sensors {
    /// Measures what is counted from now on, without what the lanes have counted before.
    pub(crate) fn begin(&mut self) {
        self.classes.begin(&self.counters);
        self.plants
            .iter_mut()
            .enumerate()
            .for_each(|(number, plant)| _ = plant.observe(&self.counters, number));
    }

    /// Measures a plant of `workers` over a period of `seconds`; returns what was counted, and the mean utilization that the
    /// plant has reported.
    pub(crate) fn observe_plant(
        &mut self,
        plant: usize,
        seconds: f64,
        workers: u32,
    ) -> (PlantSnapshot, Option<f64>) {
        let monitor = &mut self.plants[plant];
        let observed = monitor.observe(&self.counters, plant);
        monitor.learn_service(&observed.0, seconds * f64::from(workers));
        observed
    }

    /// The number of lanes whose counters are read. The lane of `tick` is left out as long as it has counted nothing.
    fn counting(&self) -> usize {
        self.counters.len() - usize::from(!self.has_counted)
    }

    /// Samples the rates of all classes, as [`Monitors::sample`].
    pub(crate) fn sample(&mut self, empty: (u64, f64), last_seconds: f64) {
        let counting = self.counting();
        self.classes.sample(&self.counters[..counting], empty, last_seconds, &mut self.unseen);
    }

    /// Measures each class over the period that ends; returns whether anything happened in it.
    pub(crate) fn observe_classes(&mut self) -> bool {
        let counting = self.counting();
        self.classes.observe(&self.counters[..counting])
    }

    /// Whether nothing has happened since the last period.
    pub(crate) fn is_current(&self) -> bool {
        self.classes.is_current(&self.counters[..self.counting()])
    }
}

/// What decides: the loops, and what they have learned.
#[derive(Default)]
pub(crate) struct Loops {
    /// By plant.
    pub(crate) utilization: Vec<UtilizationLoop>,
    /// By class: what its requests cost.
    pub(crate) costs: Vec<ClassCosts>,
    /// By class: its service levels, as applied.
    pub(crate) applied: Vec<LevelsByPlant>,
    /// The order in which the plants' loops are stepped: a plant comes before those to which it passes requests down.
    pub(crate) order: Vec<usize>,
    /// c, the cost of a rejection.
    pub(crate) rejection: RejectionCost,
    /// U of the machine's processors.
    pub(crate) processors: ProcessorLoad,
    pub(crate) delays: DelayLoop,
    pub(crate) ratios: RatioLoop,
    pub(crate) deadlines: DeadlineLoop,
    pub(crate) budgets: BudgetLoop,
    /// By plant: the search for its workers, if their number is not promised.
    pub(crate) searches: Vec<Option<WorkerSearch>>,
    /// By plant.
    pub(crate) refusals: Vec<RefusalLoop>,
    /// Whether samples update rates only, because no loop is due at them.
    pub(crate) samples_only_rates: bool,
}
