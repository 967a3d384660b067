//! The utilization loop of one plant: holds U at the set point by moving the service level m.
//!
//! *Observes*: the [`Measurement`] of a period. *Law*: one of `laws/`. *Gives out*: the service level of each class.
//!
//! The default law acts on the offered load: the arrival rate of each class times the cost of a request at the level given,
//! summed without an upper bound, and the backlog. A measured U would not do, since it saturates at 1 and shows a change one
//! period late. The measured U has another use: the law's bias corrects the offset between it and the set point. (The paper's
//! law, for comparison, acts on the served work, clipped at 1.) The costs are learned from counted service times, or from a
//! plant's reports.
//!
//! [`UtilizationLoop::step`] is one control period from top to bottom, and each stage is a file:
//!
//! `sense` -> `costs` -> `offered` (as a `demand`) -> `served` -> `gateway_places` -> `observation` -> law ->
//! [`allocation`](crate::control::allocation) -> `client_fractions` -> `retry_after_forecast` ->
//! `status` -> `output`. No stage reads the status that the step produces.
//!
//! The learned costs of the classes, which plants have in common, are an input that no stage changes: the engine calls
//! [`UtilizationLoop::learn_steps`] before a step, and lowers the doubted costs of its output after the step.

mod client_fractions;
pub(crate) mod costs;
pub(crate) mod demand;
mod gateway_places;
pub(crate) mod laws;
pub(crate) mod loop_state;
mod observation;
pub(crate) mod offered;
mod output;
mod reload;
mod retry_after_forecast;
pub(crate) mod sense;
mod served;
mod status;
pub(crate) mod tuning;
pub(crate) mod view;

use crate::control::allocation::Allocation;
use crate::control::allocation::contracts::ContractShares;
use crate::control::cost::class::ClassCosts;
use crate::control::cost::shared_machine::WorkerTime;
use crate::control::{Due, Loop};
use crate::promises::{Mode, Sense};
use crate::telemetry::measurement::Measurement;
use crate::telemetry::status::{PlantStatus, SiteStatus};
use crate::time::{Duration, Instant};
use alloc::{boxed::Box, vec::Vec};
use client_fractions::ClientFractions;
use costs::{CostModel, RequestCosts, idles};
use gateway_places::CountedPart;
use laws::{Law, Observation};
use observation::{StagesBefore, Steps};
use offered::PlantDemand;
pub(crate) use output::{HeldContracts, PlantOutput, RejectedClasses, UsualCosts};
pub(crate) use reload::PlantReload;
use retry_after_forecast::{ReturningClients, TurnedAway};
use sense::Sensed;
use served::ServedLoad;
use view::{ClassView, PlantView};

/// While requests are rejected, a request without a promise waits at most this long, or for one service or behind the queue of
/// a healthy day if that is longer.
const LONGEST_UNPROMISED_WAIT: Duration = Duration::from_millis(500);

/// The loop of one plant.
pub(crate) struct UtilizationLoop {
    view: PlantView,
    mode: Mode,
    law: Box<dyn Law>,
    /// U* of the last period, reduced for delays that are missed.
    set_point: f64,
    sensed: Sensed,
    /// The part of U* that the server may count while a gateway's places are taken.
    places: CountedPart,
    costs: CostModel,
    /// The part of c that is time of the workers.
    worker_time: WorkerTime,
    demand: PlantDemand,
    served: ServedLoad,
    contracts: ContractShares,
    allocation: Allocation,
    fractions: ClientFractions,
    returning: ReturningClients,
    /// Whether the costs were forgotten in this period.
    forgotten: bool,
    status: PlantStatus,
    sites: Vec<SiteStatus>,
}

/// The inputs of the loop in one period.
pub(crate) struct PlantInput<'a> {
    pub(crate) measured: Measurement<'a>,
    /// By class number: the costs learned here and at other plants.
    pub(crate) costs: &'a [ClassCosts],
    /// c: seconds of the gateway's own machine, of all its processors, per rejection.
    pub(crate) rejection_cost: f64,
    /// The utilization of these processors, if it was read.
    pub(crate) processors: Option<f64>,
    /// The reports of the server's processes on its listen queue.
    pub(crate) unseen_queue: SeenQueue,
    /// The longest time that a request may wait in the queue.
    pub(crate) max_wait: Duration,
    /// Whether the number of workers was promised, or has been found.
    pub(crate) capacity_known: bool,
    /// As in [`Observation`].
    pub(crate) possible_workers: f64,
    /// The part by which the set point is reduced because promised delays are missed.
    pub(crate) set_point_reduction: f64,
    /// The part of its places that a gateway before this server last reported as taken, and how long ago.
    pub(crate) reported_load: Option<(f64, Duration)>,
    /// Whether the queue itself rejects requests that would be late.
    pub(crate) sheds: bool,
    /// As in [`Observation`].
    pub(crate) best_effort_waits: bool,
}

/// The reports of a server's processes on its listen queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenQueue {
    /// Whether the queue was never empty in the period.
    pub(crate) is_never_empty: bool,
    /// Whether the processes reported how many requests wait, so that arrivals are counted as they come.
    pub(crate) is_reported: bool,
}

impl Loop for UtilizationLoop {
    type Inputs<'a> = PlantInput<'a>;
    type Outputs<'a> = PlantOutput<'a>;
    type Promises<'a> = PlantReload<'a>;

    fn due(&self) -> Due {
        Due::Period
    }

    fn step(&mut self, _now: Instant, input: PlantInput<'_>) -> PlantOutput<'_> {
        let (plant, measured, learned) = (&self.view, &input.measured, input.costs);
        let before = self.allocation.level;
        self.set_point = plant.promised.set_point * (1.0 - input.set_point_reduction);
        self.costs.rejection = rejection_cost(plant, &input, &mut self.worker_time);

        let sensed = Sensed::new(plant, measured, self.costs.rejection, &self.sensed);
        let steps = Steps::of(plant, measured, learned);
        let costs = self.costs.learn(plant, measured, learned);
        let demand = self.demand.estimate(plant, measured, &costs);
        let served = self.served.sum(plant, measured, &costs);
        let target = self.law.target(&Observation::of(&StagesBefore {
            plant,
            input: &input,
            mode: self.mode,
            set_points: self.places.set_points(self.set_point, &input, &sensed),
            level: before,
            at_lowest: self.allocation.is_at_lowest(plant, demand),
            at_least: self.allocation.is_at_least(plant),
            sensed: &sensed,
            steps,
            costs: &costs,
            demand: &demand.whole,
            served: served.total,
            costs_begin: self.forgotten,
        }));
        // Costs that were forgotten within this period are learned from too few requests to degrade any class by them.
        let known = input.capacity_known && !core::mem::take(&mut self.forgotten);
        let fitted = self.contracts.fit(plant, &target, demand, known.then_some((measured, &costs)));
        let allocation = self.allocation.allocate(plant, &target, &fitted, known);
        let levels = self.fractions.set(plant, allocation, measured);
        let returns = self.returning.step(&TurnedAway {
            seconds: measured.seconds,
            set_point: self.set_point,
            arriving: demand.whole.offered(1.0, 0.0),
            turned_away: plant.turned_away(measured, &costs),
            waiting: demand.whole.backlog(1.0) * measured.nominal_seconds,
        });
        let doubts = idles(&sensed, measured, self.set_point) && allocation.level < plant.top;
        let doubted = if doubts { self.costs.doubt(plant, measured) } else { Vec::new() };
        self.sensed = sensed;

        status::write(&mut self.status, plant, &sensed, allocation);
        self.status.utilization_model = served.linear;
        // A backlog waits for the workers; a backlog of the link is not seen.
        self.status.utilization_offered = served.total.max(served.work + demand.whole.backlog(before));
        self.status.bias = if known { self.law.bias() } else { 0.0 };
        self.status.come_again = (returns.soonest, returns.latest);
        status::write_sites(&mut self.sites, served, demand);
        let rejects = allocation.rejects || allocation.did_reject;
        let healthy_wait = observation::healthy_wait(plant, &input, &self.sensed);
        // If a class has a ratio, requests start in the order of arrival, and only this bound keeps waits short while the
        // capacity is not known.
        let bounds_waits = if plant.has_ratio() { allocation.lasts() } else { allocation.lasts() && known };
        PlantOutput {
            doubted,
            levels,
            returns,
            rejected: rejects.then_some(RejectedClasses { view: plant, allocation }),
            longest_wait: bounds_waits
                .then_some(LONGEST_UNPROMISED_WAIT.max(sensed.usual_service()).max(healthy_wait)),
            usual_costs: UsualCosts { view: plant, costs: &self.costs, service_time: sensed.service_time },
            contracts: (core::mem::take(&mut self.contracts.changed))
                .then_some(HeldContracts { view: plant, contracts: &self.contracts }),
        }
    }

    fn reload(&mut self, promises: PlantReload<'_>) {
        self.take_over(&promises);
    }
}

impl UtilizationLoop {
    /// The stage before a step: updates the learned costs of each class by the period's requests of all classes together.
    pub(crate) fn learn_steps(&mut self, measured: &Measurement<'_>, learned: &mut [ClassCosts]) {
        self.costs.learn_steps(&self.view, measured, learned);
    }

    /// Whether every class has its highest level.
    pub(crate) fn is_at_top(&self) -> bool {
        self.allocation.is_at_top(&self.view)
    }

    /// Begins idle periods, in which no request arrives and none is in the system: the sensed values become zero.
    pub(crate) fn begin_idle(&mut self) {
        self.sensed = Sensed::default();
        status::write(&mut self.status, &self.view, &self.sensed, &self.allocation);
        (self.status.utilization_offered, self.status.utilization_model) = (0.0, 0.0);
        for site in &mut self.sites {
            (site.utilization, site.guaranteed_share) = (0.0, 0.0);
        }
    }

    /// Ends the idle periods; `periods` is their number.
    pub(crate) fn end_idle(&mut self, periods: u32) {
        self.law.idle(periods, self.set_point);
        self.allocation.idle();
        self.fractions.idle(periods);
        self.returning = ReturningClients::default();
    }

    /// Mean service time of the last period, or the time for which a busy plant has released no request if that is longer.
    pub(crate) fn service_time(&self) -> Duration {
        self.sensed.service_time.max(Duration::from_secs_f64(self.sensed.silent_seconds))
    }

    /// For how long a busy plant has released no request (s).
    pub(crate) fn silent_seconds(&self) -> f64 {
        self.sensed.silent_seconds
    }

    /// The load of a gateway's places at a server that decides itself, as a part of the load that they may fill; the gateway
    /// sends it to that server. It is the part of the places that was taken in the last period. While this loop rejects
    /// requests, it is the part that all arriving requests would take, if that is more.
    pub(crate) fn place_load(&self) -> f64 {
        let asked = if self.allocation.rejects { self.demand.whole.offered(1.0, 0.0) } else { 0.0 };
        self.sensed.utilization.max(asked) / self.set_point
    }

    /// Sets the share of the plant that is available from now on.
    pub(crate) fn set_available(&mut self, share: f64) {
        self.costs.set_available(share);
    }

    /// Forgets the costs of the requests, because the plant has another number of workers than they were measured with. Passes
    /// each class and level to `forget`.
    pub(crate) fn forget_costs(&mut self, mut forget: impl FnMut(usize, usize)) {
        for class in &self.view.classes {
            class.levels_here().for_each(|level| forget(class.class, level));
        }
        self.forgotten = true;
    }
}

impl PlantView {
    /// The load, at the lowest level, of the requests that were turned away in the period; of two resources, that of the more
    /// loaded one.
    fn turned_away(&self, measured: &Measurement<'_>, costs: &RequestCosts<'_>) -> f64 {
        let work = self.of_rejected(measured, |index, _| costs.priced(index, 1));
        match self.promised.bandwidth_bytes_per_second {
            Some(bandwidth) => {
                work.max(self.of_rejected(measured, |_, class| costs.bytes(class, 1) / bandwidth))
            }
            None => work,
        }
    }

    /// The sum of `each` over the requests that were turned away, per second.
    fn of_rejected(&self, measured: &Measurement<'_>, each: impl Fn(usize, &ClassView) -> f64) -> f64 {
        let own = self.classes.iter().enumerate().filter(|(_, class)| class.base == 0);
        let active = own.filter(|(_, class)| measured.classes[class.class].active);
        let sum = |(index, class): (usize, &ClassView)| {
            measured.classes[class.class].window.counts.rejected() as f64 * each(index, class)
        };
        active.map(sum).sum::<f64>() / measured.seconds
    }
}

/// The part of c that is time of the plant's workers, which is learned here; 0 unless the gateway and the plant share a
/// machine.
fn rejection_cost(plant: &PlantView, input: &PlantInput<'_>, worker_time: &mut WorkerTime) -> f64 {
    let measured = &input.measured;
    if plant.promised.same_host && plant.promised.sense == Sense::Gap {
        let rejecting = input.rejection_cost * sense::rejected(plant, measured);
        let visible = (1.0 - sense::hidden(measured)) * rejecting;
        worker_time.learn(sense::busy(measured), input.processors, visible);
    }
    if plant.promised.same_host { input.rejection_cost * worker_time.part() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::view::by_hand::{arrivals, class, learned, measured, plant};
    use super::*;
    use crate::request::Reason;

    #[test]
    fn clients_that_are_turned_away_from_a_full_link_are_as_much_of_it_as_they_would_be() {
        let mut own = plant(alloc::vec![class(0, 1), class(1, 1)]);
        let mut classes = [arrivals(10.0, 1), arrivals(10.0, 1)];
        for class in &mut classes {
            class.window.counts.reasons[Reason::Overload as usize] = 40;
        }
        let learned = [learned(&[0.004]), learned(&[0.008])];
        let period = measured(&classes, &[0, 0]);
        let mut turned_away = |bandwidth| {
            own.promised.bandwidth_bytes_per_second = bandwidth;
            let mut model = CostModel::new(&own);
            own.turned_away(&period, &model.learn(&own, &period, &learned))
        };
        // 40 requests of 1 ms of the plant and 40 of 2 ms, all of 1,000 bytes.
        let found = [None, Some(1e6), Some(5e4)].map(&mut turned_away);
        for (found, wanted) in found.iter().zip([0.12, 0.12, 1.6]) {
            assert!((found - wanted).abs() < 1e-12, "{found} for {wanted}");
        }
    }
}
