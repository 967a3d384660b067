//! The utilization loop of one plant: holds U at the set point by moving the service level m.
//!
//! *Observes*: the [`Measurement`] of a period. *Law*: one of `laws/`. *Gives out*: the service level of each class.
//!
//! The law acts on the offered load: the arrival rate of each class times the cost of a request at the level given, summed
//! without an upper bound, and the backlog. A measured U would not do, since it saturates at 1 and shows a change one
//! period late. The measured U has another use: the law's bias corrects the offset between it and the set point. The costs are
//! learned from counted service times, or from what a plant reports.
//!
//! [`UtilizationLoop::step`] is one control period from top to bottom, and each stage is a file:
//!
//! `sense` -> `costs` -> `offered` (as a `demand`) and `served` -> law -> [`allocation`](crate::control::allocation) ->
//! `levels` -> `status`.

pub(crate) mod costs;
pub(crate) mod demand;
pub(crate) mod laws;
mod levels;
pub(crate) mod offered;
mod reload;
mod returns;
mod sense;
mod served;
mod status;
pub mod tuning;
pub(crate) mod view;

use crate::actuator::return_time::ReturnTimes;
use crate::control::allocation::Allocation;
use crate::control::cost::class::ClassCosts;
use crate::control::cost::host::WorkerTime;
use crate::control::{Due, Loop};
use crate::promises::{Mode, Sense};
use crate::telemetry::measurement::Measurement;
use crate::telemetry::status::{PlantStatus, SiteStatus};
use crate::time::{Duration, Instant};
use alloc::{boxed::Box, vec::Vec};
use costs::{CostModel, RequestCosts, idles};
use laws::{Law, Observation};
use levels::Levels;
use offered::PlantDemand;
pub(crate) use reload::PlantReload;
use returns::{ReturningClients, TurnedAway};
use sense::Sensed;
use served::ServedLoad;
use view::{ClassView, PlantView};

/// The backlog, in periods of work, that the law disregards where the queue itself rejects requests that would be late.
const WAITS_IN_TIME: f64 = 0.25;

/// The part of the longest wait for which requests without a promised time may wait behind what a pause has left.
const ABSORBED_WAIT: f64 = 0.5;

/// The longest wait without a promise while requests are rejected, or one service where that is longer.
const MOST_WAIT: Duration = Duration::from_millis(500);

/// The cost of a request to which a dearer one is cut in the search for workers, in mean service times.
const MOST_USUAL: f64 = 4.0;

/// The loop of one plant.
pub(crate) struct UtilizationLoop {
    view: PlantView,
    mode: Mode,
    law: Box<dyn Law>,
    /// U* of the last period, reduced for delays that are missed.
    set_point: f64,
    sensed: Sensed,
    costs: CostModel,
    /// What part of c is time of the workers.
    worker_time: WorkerTime,
    demand: PlantDemand,
    served: ServedLoad,
    allocation: Allocation,
    levels: Levels,
    returning: ReturningClients,
    /// When requests that are turned away in the next period may come again.
    pub(crate) returns: ReturnTimes,
    /// Whether the costs were forgotten in this period.
    forgotten: bool,
    status: PlantStatus,
    sites: Vec<SiteStatus>,
}

/// What the loop observes in one period.
pub(crate) struct PlantInput<'a> {
    pub(crate) measured: Measurement<'a>,
    /// By class number: what was learned of the costs, here and at other plants.
    pub(crate) costs: &'a mut [ClassCosts],
    /// c: seconds of the gateway's own machine, of all its processors, per rejection.
    pub(crate) rejection_cost: f64,
    /// The utilization of these processors, if it was read.
    pub(crate) processors: Option<f64>,
    /// The longest time that a request may wait in the queue.
    pub(crate) max_wait: Duration,
    /// Whether the number of workers was promised, or has been found.
    pub(crate) capacity_known: bool,
    /// How many workers there may be, as a multiple of their number: more than 1 where it is found and not yet sure.
    pub(crate) possible_workers: f64,
    /// By what part the set point is reduced, because promised delays are missed.
    pub(crate) set_point_reduction: f64,
    /// Whether the queue itself rejects requests that would be late.
    pub(crate) sheds: bool,
    /// As in [`Observation`].
    pub(crate) best_effort_waits: bool,
}

impl Loop for UtilizationLoop {
    type Inputs<'a> = PlantInput<'a>;
    /// The service level m of each class, by class number.
    type Outputs<'a> = &'a [(usize, f64)];
    type Promises<'a> = PlantReload<'a>;

    fn due(&self) -> Due {
        Due::Period
    }

    fn step(&mut self, _now: Instant, input: PlantInput<'_>) -> &[(usize, f64)] {
        self.costs.learn_fall(&self.view, &input.measured, input.costs);
        let (plant, measured, learned) = (&self.view, &input.measured, &*input.costs);
        let before = self.allocation.level;
        self.set_point = plant.promised.set_point * (1.0 - input.set_point_reduction);
        if plant.promised.same_host && plant.promised.sense == Sense::Gap {
            let rejecting = input.rejection_cost * sense::rejected(plant, measured);
            let visible = (1.0 - sense::hidden(measured)) * rejecting;
            self.worker_time.learn(sense::busy(measured), input.processors, visible);
        }
        let c = input.rejection_cost * self.worker_time.part();
        self.costs.rejection = if plant.promised.same_host { c } else { 0.0 };

        let sensed = Sensed::new(plant, measured, self.costs.rejection, &self.sensed);
        let steady = is_steady(plant, measured, learned);
        let rose = |class: usize| measured.classes[class].rose || learned[class].rose();
        let unconfirmed = plant.classes.iter().any(|class| rose(class.class));
        let costs = self.costs.learn(plant, measured, learned);
        let demand = self.demand.estimate(plant, measured, &costs);
        let served = self.served.sum(plant, measured, &costs);
        // Unless m is applied, the measurement does not depend on it and must not move the bias.
        let controls = self.mode == Mode::Control;
        let overridden = sensed.too_slow && controls;
        let wait_periods = input.max_wait.as_secs_f64() / measured.nominal_seconds;
        let (target, terms) = self.law.target(&Observation {
            set_point: self.set_point,
            capacity: plant.capacity(self.mode).map(|all| all * (1.0 - input.set_point_reduction)),
            possible_workers: input.possible_workers,
            measured: if overridden { 1.0 } else { sensed.utilization },
            served: served.total,
            overridden,
            steady: steady && controls,
            level: before,
            demand: &demand.whole,
            ordinary_backlog: if self.set_point >= 1.0 && input.sheds { WAITS_IN_TIME } else { 0.0 },
            wait_periods,
            absorbed: if plant.promised.set_point < 1.0 { ABSORBED_WAIT * wait_periods } else { 0.0 },
            service_periods: sensed.service_time.as_secs_f64() / measured.nominal_seconds,
            best_effort_waits: input.best_effort_waits && !plant.has_ratio(),
            unconfirmed,
        });
        // Costs that were forgotten within this period are learned from too few requests to degrade any class by them.
        let known = input.capacity_known && !core::mem::take(&mut self.forgotten);
        let allocation = self.allocation.allocate(plant, &target, demand, known);
        let levels = self.levels.set(plant, allocation, measured);

        let turned_away = plant.turned_away(measured, &costs);
        self.returns = self.returning.step(&TurnedAway {
            seconds: measured.seconds,
            set_point: self.set_point,
            arriving: demand.whole.offered(1.0, 0.0),
            turned_away,
            waiting: demand.whole.backlog(1.0) * measured.nominal_seconds,
        });

        self.sensed = sensed;
        status::write(&mut self.status, plant, &sensed, allocation);
        self.status.utilization_model = served.linear;
        self.status.utilization_offered = served.total + demand.whole.backlog(before);
        self.status.bias = if known { terms.bias } else { 0.0 };
        status::write_sites(&mut self.sites, served, demand);
        if idles(&sensed, measured, self.set_point) && allocation.level < plant.top {
            self.costs.doubt(plant, measured, input.costs);
        }
        levels
    }

    fn reload(&mut self, promises: PlantReload<'_>) {
        self.take_over(&promises);
    }
}

impl UtilizationLoop {
    /// Whether the queue is to know whose requests are rejected for the load: some are or were in the period before.
    pub(crate) fn tells_the_queue(&self) -> bool {
        self.allocation.rejects || self.allocation.did_reject
    }

    /// The classes whose requests are rejected for the load; none where a ratio needs the order of arrival. They would be
    /// rejected if the capacity was known, where it is not: then more waits than can be served in time, too.
    pub(crate) fn rejected(&self) -> impl Iterator<Item = usize> {
        let own = self.view.owned().filter(|class| !class.exempt && !self.view.has_ratio());
        own.filter(|class| self.allocation.wanted(&self.view, class) < 1.0).map(|class| class.class)
    }

    /// How long such requests wait at most if they have no promise. A first period may be a burst that the queue takes up.
    pub(crate) fn most_wait(&self) -> Option<Duration> {
        self.allocation.keeps_rejecting.then_some(MOST_WAIT.max(self.sensed.service_time))
    }

    /// Whether every class has its highest level.
    pub(crate) fn is_at_top(&self) -> bool {
        self.allocation.is_at_top(&self.view)
    }

    /// Begins idle periods, in which no request comes and none is there: what was sensed becomes zero.
    pub(crate) fn begin_idle(&mut self) {
        self.sensed = Sensed::default();
        status::write(&mut self.status, &self.view, &self.sensed, &self.allocation);
        (self.status.utilization_offered, self.status.utilization_model) = (0.0, 0.0);
        for site in &mut self.sites {
            (site.utilization, site.guaranteed_share) = (0.0, 0.0);
        }
    }

    /// Ends the idle periods; there were so many.
    pub(crate) fn end_idle(&mut self, periods: u32) {
        self.law.idle(periods, self.set_point);
        self.levels.idle(periods);
        self.returning = ReturningClients::default();
    }

    /// Mean service time of the last period, or for how long a busy plant has released nothing.
    pub(crate) fn service_time(&self) -> Duration {
        self.sensed.service_time.max(Duration::from_secs_f64(self.sensed.silent_seconds))
    }

    /// What a request of each class and level usually costs, in any unit: passes it as a part of the mean service time. A class
    /// that is not known costs as much as the mean; rare requests that cost many times of it count as so many.
    pub(crate) fn usual_costs(&self, learned: &[ClassCosts], mut each: impl FnMut(usize, usize, f64)) {
        let mean = self.sensed.service_time.as_secs_f64();
        if mean <= 0.0 {
            return;
        }
        let costs = self.costs.costs(learned);
        let workers = f64::from(self.costs.workers());
        for class in &self.view.classes {
            for level in class.levels_here() {
                let own = costs.at(class, level).map_or(1.0, |cost| cost * workers / mean);
                each(class.class, level, own.min(MOST_USUAL));
            }
        }
    }

    /// Forgets the costs of the requests, because the plant has another number of workers than they were measured with.
    /// Passes each class and level.
    pub(crate) fn forget_costs(&mut self, mut forget: impl FnMut(usize, usize)) {
        for class in &self.view.classes {
            class.levels_here().for_each(|level| forget(class.class, level));
        }
        self.forgotten = true;
    }
}

impl PlantView {
    /// The load, at the lowest level, of the requests that were turned away in the period.
    fn turned_away(&self, measured: &Measurement<'_>, costs: &RequestCosts<'_>) -> f64 {
        let own = self.classes.iter().enumerate().filter(|(_, class)| class.owns_actuator && class.here[1]);
        let active = own.filter(|(_, class)| measured.classes[class.class].active);
        let load = |(place, class): (usize, &ClassView)| {
            measured.classes[class.class].window.counts.rejected() as f64 * costs.priced(place, 1)
        };
        active.map(load).sum::<f64>() / measured.seconds
    }
}

/// Whether no rate and no cost stepped in the period.
fn is_steady(plant: &PlantView, measured: &Measurement<'_>, learned: &[ClassCosts]) -> bool {
    let stepped = |class: usize| measured.classes[class].stepped || learned[class].stepped;
    !plant.classes.iter().any(|class| stepped(class.class))
}
