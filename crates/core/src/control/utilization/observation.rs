//! The observation of a period that a law receives, made from the stages before it.

use super::PlantInput;
use super::costs::RequestCosts;
use super::demand::Demand;
use super::gateway_places::SetPoints;
use super::laws::Observation;
use super::sense::Sensed;
use super::view::PlantView;
use crate::control::cost::class::ClassCosts;
use crate::promises::Mode;
use crate::telemetry::measurement::Measurement;
use crate::time::Duration;

/// The backlog, in periods of work, that the law disregards where the queue itself rejects requests that would be late.
const DISREGARDED_BACKLOG: f64 = 0.25;

/// The set point of a plant whose queue rejects late requests, while lighter pages for more clients fit. At 1 the queue would
/// grow and fall by chance alone, and late requests would be rejected although lighter pages fit.
const DEGRADES_AT: f64 = 0.95;

/// The part of the longest wait for which requests may wait behind the backlog of a pause.
const TOLERATED_WAIT: f64 = 0.5;

/// The least part of its workers' time that a server counts if services keep its listen queue from being empty. If it counts
/// less, its processes wait for heads or keep idle connections, and lighter pages free none of them.
const LEAST_COUNTED: f64 = 0.3;

/// The steps of rates and costs in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Whether no rate and no cost stepped.
    is_steady: bool,
    /// Whether a rate or a cost rose and no second sample has confirmed that.
    unconfirmed: bool,
}

impl Steps {
    pub(super) fn of(plant: &PlantView, measured: &Measurement<'_>, learned: &[ClassCosts]) -> Self {
        let stepped = |class: usize| measured.classes[class].stepped || learned[class].stepped;
        let rose = |class: usize| measured.classes[class].rose || learned[class].rose();
        Steps {
            is_steady: !plant.classes.iter().any(|class| stepped(class.class)),
            unconfirmed: plant.classes.iter().any(|class| rose(class.class)),
        }
    }
}

/// The values of the stages before the law.
#[derive(Clone, Copy)]
pub(super) struct StagesBefore<'a> {
    pub(super) plant: &'a PlantView,
    pub(super) input: &'a PlantInput<'a>,
    pub(super) mode: Mode,
    pub(super) set_points: SetPoints,
    /// m as it was in the period.
    pub(super) level: f64,
    /// Whether no class had more than its lowest level.
    pub(super) at_lowest: bool,
    /// As in [`Observation`].
    pub(super) at_least: bool,
    pub(super) sensed: &'a Sensed,
    pub(super) steps: Steps,
    pub(super) costs: &'a RequestCosts<'a>,
    pub(super) demand: &'a Demand,
    /// As in [`Observation`].
    pub(super) served: f64,
    /// Whether costs were forgotten in this period.
    pub(super) costs_begin: bool,
}

/// How many requests wait now and then without an overload, however long they take.
const HEALTHY_QUEUE: f64 = 8.0;

/// How many requests wait by chance alone: at 0.8 of the capacity, one request in two hundred finds as many.
const CHANCE_QUEUE: f64 = 24.0;

/// How long a request waits in the queue of a healthy day; zero if a class was promised a time, since other requests that wait
/// long would take the workers from it.
pub(super) fn healthy_wait(plant: &PlantView, input: &PlantInput<'_>, sensed: &Sensed) -> Duration {
    if plant.promised.set_point >= 1.0 {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(HEALTHY_QUEUE * worker_share(input, sensed)).min(input.max_wait)
}

/// The time of the whole plant that a request takes (s).
fn worker_share(input: &PlantInput<'_>, sensed: &Sensed) -> f64 {
    sensed.worker_seconds / f64::from(input.measured.workers.max(1))
}

/// For how many periods requests may wait while the plant carries the arriving load. If times are promised, they may wait
/// behind a few requests, as chance makes them; not at all if promised delays are missed or the queue itself rejects requests
/// that would be late.
fn tolerated_backlog(plant: &PlantView, input: &PlantInput<'_>, sensed: &Sensed) -> f64 {
    let period = input.measured.nominal_seconds;
    let most = TOLERATED_WAIT * input.max_wait.as_secs_f64() / period;
    match plant.promised.set_point < 1.0 {
        true => most,
        false if input.sheds || input.set_point_reduction > 0.0 => 0.0,
        false => most.min(CHANCE_QUEUE * worker_share(input, sensed) / period),
    }
}

/// How long a request that starts now waits in the server, in services.
fn services_in_server(measured: &Measurement<'_>) -> f64 {
    let workers = measured.workers.max(1);
    f64::from(measured.in_service.saturating_sub(workers)) / f64::from(workers)
}

/// As in [`Observation`]: the arriving load at the lowest level, without requests on connections that were counted before.
fn at_once(plant: &PlantView, measured: &Measurement<'_>, demand: &Demand) -> f64 {
    let (arriving, repeated) = (demand.offered(1.0, 0.0), measured.counted.repeated);
    if repeated == 0 {
        return f64::INFINITY;
    }
    let arrivals = plant.classes.iter().map(|own| measured.classes[own.class].window.counts.arrivals);
    let arrivals: u64 = arrivals.sum();
    arriving * arrivals.saturating_sub(repeated) as f64 / arrivals.max(1) as f64
}

impl<'a> Observation<'a> {
    pub(super) fn of(stages: &StagesBefore<'a>) -> Self {
        let StagesBefore { plant, input, sensed, costs, set_points, .. } = *stages;
        // Unless m is applied, the measurement does not depend on it and must not move the bias.
        let controls = stages.mode == Mode::Control;
        let overridden = sensed.too_slow && controls;
        // No worker is free while requests wait for one, whatever part of its time is counted.
        let is_full = plant.promised.waits_unseen && input.unseen_queue.is_never_empty && controls;
        let full_at = Some(sensed.utilization).filter(|counted| is_full && *counted >= LEAST_COUNTED);
        let period = input.measured.nominal_seconds;
        let wait_periods = input.max_wait.as_secs_f64() / period;
        let service_periods = sensed.usual_service().as_secs_f64() / period;
        let healthy_wait = healthy_wait(plant, input, sensed).as_secs_f64() / period;
        let fills = set_points.of_rejections >= 1.0 && input.sheds;
        let tolerated_backlog = tolerated_backlog(plant, input, sensed);
        let degrades =
            fills && stages.demand.top > 1 && stages.demand.offered(1.0, 0.0) < set_points.of_levels;
        // Below the line no request is rejected, so the chance error of the load does not matter.
        let is_crowded = stages.demand.offered(1.0, 0.0) > set_points.of_rejections;
        Observation {
            set_point: if degrades { DEGRADES_AT } else { set_points.of_levels },
            rejects_beyond: if degrades { DEGRADES_AT } else { set_points.of_rejections },
            capacity: plant
                .capacity(stages.mode, input.unseen_queue.is_reported)
                .map(|all| all * (1.0 - input.set_point_reduction)),
            possible_workers: input.possible_workers,
            measured: if overridden || full_at.is_some() { 1.0 } else { sensed.utilization },
            served: stages.served,
            overridden,
            steady: stages.steps.is_steady && controls,
            level: stages.level,
            at_lowest: stages.at_lowest,
            at_least: stages.at_least,
            demand: stages.demand,
            ordinary_backlog: if fills && !degrades { DISREGARDED_BACKLOG } else { 0.0 },
            wait_periods,
            load_error: costs.load_error(plant, &input.measured),
            arrivals_error: if is_crowded { costs.arrivals_error(plant, &input.measured) } else { 0.0 },
            tolerated_backlog,
            service_periods,
            healthy_backlog: healthy_wait.min(tolerated_backlog),
            at_once: at_once(plant, &input.measured, stages.demand),
            in_server: services_in_server(&input.measured) * service_periods,
            best_effort_waits: input.best_effort_waits && !plant.has_ratio() && !plant.promised.waits_unseen,
            unconfirmed: stages.steps.unconfirmed,
            costs_begin: stages.costs_begin,
            waits_unseen: plant.promised.waits_unseen && !input.unseen_queue.is_reported,
            full_at,
        }
    }
}
