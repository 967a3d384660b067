//! The utilization loop of one plant: holds U at the set point by moving the service level m.
//!
//! The offered load drives it, R times the cost at the level given, unclipped, plus the backlog: a measured U saturates at
//! 1 and comes late. The measurement trains the costs, and supervises through the law's bias. [`UtilizationLoop::step`] is
//! one control period from top to bottom; each stage is a file:
//!
//! `sense` -> `costs` -> `offered` (with `demand`) and `served` -> a law (`feed_forward`, `paper`) ->
//! [`allocation`](crate::control::allocation) -> `levels` -> `status`.

pub(crate) mod costs;
pub(crate) mod demand;
pub(crate) mod feed_forward;
pub(crate) mod law;
mod levels;
pub(crate) mod offered;
pub(crate) mod paper;
mod reload;
mod sense;
mod served;
mod status;
pub mod tuning;
pub(crate) mod view;

use crate::control::allocation::Allocation;
use crate::control::cost::class::ClassCosts;
use crate::promises::Mode;
use crate::telemetry::measurement::Measurement;
use crate::telemetry::status::{PlantStatus, SiteStatus};
use crate::time::Duration;
use alloc::{boxed::Box, vec::Vec};
use costs::{CostModel, idles};
use law::{Law, Observation};
use levels::Levels;
use offered::PlantDemand;
use sense::Sensed;
use served::ServedLoad;
use view::PlantView;

/// Backlog, in periods of work, that waits in time where the queue turns away what would not.
const WAITS_IN_TIME: f64 = 0.25;

/// The loop of one plant.
pub(crate) struct UtilizationLoop {
    view: PlantView,
    mode: Mode,
    law: Box<dyn Law>,
    /// The set point of the last period, reduced for the delays that the plant misses.
    set_point: f64,
    sensed: Sensed,
    costs: CostModel,
    demand: PlantDemand,
    served: ServedLoad,
    allocation: Allocation,
    levels: Levels,
    /// The costs were forgotten in this period.
    forgotten: bool,
    status: PlantStatus,
    sites: Vec<SiteStatus>,
}

/// What the loop takes in one period.
pub(crate) struct PlantInput<'a> {
    pub(crate) measured: Measurement<'a>,
    /// c, the cost of a rejection on the gateway's own machine.
    pub(crate) rejection_cost: f64,
    /// How long a request may wait.
    pub(crate) max_wait: Duration,
    /// The number of workers was promised, or found.
    pub(crate) capacity_known: bool,
    /// By what part the set point is reduced, for delays that the plant misses.
    pub(crate) set_point_reduction: f64,
    /// The queue itself turns away what would be late.
    pub(crate) sheds: bool,
}

impl UtilizationLoop {
    /// One control period, from what was counted to what requests will read: the service level of each class, by number.
    pub(crate) fn step(&mut self, input: &PlantInput<'_>, learned: &mut [ClassCosts]) -> &[(usize, f64)] {
        let (plant, measured) = (&self.view, &input.measured);
        let before = self.allocation.level;
        self.set_point = plant.promised.set_point * (1.0 - input.set_point_reduction);
        self.costs.rejection = if plant.promised.same_host { input.rejection_cost } else { 0.0 };

        let sensed = Sensed::new(plant, measured, self.costs.rejection, &self.sensed);
        let steady = is_steady(plant, measured, learned);
        let costs = self.costs.learn(plant, measured, learned);
        let demand = self.demand.estimate(plant, measured, &costs);
        let served = self.served.sum(plant, measured, &costs);
        // Without control the measurement says nothing of m, and the bias must not follow it.
        let controls = self.mode == Mode::Control;
        let overridden = sensed.too_slow && controls;
        let (target, terms) = self.law.target(&Observation {
            set_point: self.set_point,
            measured: if overridden { 1.0 } else { sensed.utilization },
            served: served.total,
            overridden,
            steady: steady && controls,
            level: before,
            demand: &demand.whole,
            ordinary_backlog: if self.set_point >= 1.0 && input.sheds { WAITS_IN_TIME } else { 0.0 },
            wait_periods: input.max_wait.as_secs_f64() / measured.nominal_seconds,
            service_periods: sensed.service_time.as_secs_f64() / measured.nominal_seconds,
            unconfirmed: plant.classes.iter().any(|class| measured.classes[class.class].rose),
        });
        // What a part of a period taught of the costs is chance.
        let known = input.capacity_known && !core::mem::take(&mut self.forgotten);
        let allocation = self.allocation.allocate(plant, &target, demand, known);
        let levels = self.levels.set(plant, allocation, measured);
        if idles(&sensed, measured, self.set_point) && allocation.level < plant.top {
            self.costs.doubt(plant, measured, learned);
        }

        self.sensed = sensed;
        status::write(&mut self.status, &sensed, allocation);
        self.status.utilization_model = served.linear;
        self.status.utilization_offered = served.total + demand.whole.backlog(before);
        self.status.trim = if known { terms.bias } else { 0.0 };
        status::write_sites(&mut self.sites, served, demand);
        levels
    }

    /// Whether every class has its highest level.
    pub(crate) fn is_at_top(&self) -> bool {
        self.allocation.is_at_top(&self.view)
    }

    /// Nothing comes, and nothing is there: all senses say so from now on.
    pub(crate) fn begin_rest(&mut self) {
        self.sensed = Sensed::default();
        status::write(&mut self.status, &self.sensed, &self.allocation);
        (self.status.utilization_offered, self.status.utilization_model) = (0.0, 0.0);
        for site in &mut self.sites {
            (site.utilization, site.guaranteed_share) = (0.0, 0.0);
        }
    }

    /// So many periods of it went by.
    pub(crate) fn end_rest(&mut self, periods: u32) {
        self.law.rest(periods, self.set_point);
        self.levels.rest(periods);
    }

    /// Mean service time of the last period.
    pub(crate) fn service_time(&self) -> Duration {
        self.sensed.service_time
    }

    /// The plant is not what it was taken for, and what was measured of its requests says nothing: forgets it. Passes each
    /// class and level.
    pub(crate) fn forget_costs(&mut self, mut forget: impl FnMut(usize, usize)) {
        for class in &self.view.classes {
            class.levels_here().for_each(|level| forget(class.class, level));
        }
        self.forgotten = true;
    }
}

/// Whether no rate and no cost stepped in the period.
fn is_steady(plant: &PlantView, measured: &Measurement<'_>, learned: &[ClassCosts]) -> bool {
    let stepped = |class: usize| measured.classes[class].stepped || learned[class].stepped;
    !plant.classes.iter().any(|class| stepped(class.class))
}
