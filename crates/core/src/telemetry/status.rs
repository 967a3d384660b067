//! The engine's figures as plain data: for `/status`, `/metrics`, the demo's screen and the simulator's traces.
//!
//! Counters run from the engine's start. Gauges such as `in_service` are current; response-time figures of promises cover the
//! departure window; all other figures cover the last control period.

use crate::promises::plan::PlantPlan;
use crate::promises::{Condition, MAX_LEVELS, Mode};
use crate::request::Outcome;
use crate::request::Reason;
use crate::time::{Duration, Instant};
use alloc::{string::String, vec::Vec};

/// A snapshot, taken by [`Engine::status`](crate::Engine::status).
#[derive(Clone, Debug)]
pub struct Status {
    /// When the last control period ended.
    pub at: Instant,
    /// Control, observe or off.
    pub mode: Mode,
    /// T, the control period.
    pub period: Duration,
    /// The time in which the choice of clients turns once round, if it does.
    pub rekey: Option<Duration>,
    /// One row per plant, by number: in the order of the promises, and after a reload those that are new at the end.
    pub plants: Vec<PlantStatus>,
    /// One row per site, in the order of the promises.
    pub sites: Vec<SiteStatus>,
    /// The capacity plan with the costs as they are known now. One row per plant.
    pub plan: Vec<PlantPlan>,
    /// One row per class, numbered as in [`Target::class`](crate::request::Target::class).
    pub classes: Vec<ClassStatus>,
    /// c: the gateway's CPU time per rejection (s), learned; `None` before anything was rejected.
    pub rejection_cost_seconds: Option<f64>,
}

/// A plant, its loop and its model.
#[derive(Clone, Debug, Default)]
pub struct PlantStatus {
    /// The plant's name.
    pub name: String,
    /// No longer promised; requests from before may still be under way.
    pub removed: bool,
    /// s, the number of workers, as configured, found or reported.
    pub workers: u32,
    /// Whether s was found, if it is searched for. Until then no request is degraded or rejected for the load.
    pub workers_found: Option<bool>,
    /// Whether the server reports s.
    pub workers_reported: bool,
    /// The most requests in service at once.
    pub limit: u32,
    /// Why no more may be in service; `None` where the limit is the one that was configured.
    pub limit_reason: Option<LimitReason>,
    /// The share of the plant's servers that is in use, by weight; 1 for a single server. Workers and limit are those of
    /// this share.
    pub available: f64,
    /// U*, the utilization at which the plant is held.
    pub set_point: f64,
    /// Measured utilization: by gaps, or as reported. Saturates at 1.
    pub utilization: f64,
    /// The linear model's utilization, a R + b W over its classes.
    pub utilization_model: f64,
    /// The offered load: R times the cost at the levels given in the period, and the backlog at its end. Unclipped.
    pub utilization_offered: f64,
    /// m, 0..=M; classes with fewer levels clamp it.
    pub service_level: f64,
    /// The bias that PI adds to the set point.
    pub bias: f64,
    /// The part by which the set point is reduced for delays that are missed although all workers could keep them.
    pub set_point_reduction: f64,
    /// The soonest and the latest time after which requests that are rejected now may come again: the loop's forecast of
    /// when the load line has room for the first of them, and for all.
    pub come_again: (Duration, Duration),
    /// The response-time override holds: the plant answers slower than its limit, so U counts as 1.
    pub response_time_override: bool,
    /// The number of requests in service now.
    pub in_service: u32,
    /// The number of requests that wait now.
    pub waiting: u32,
    /// The number of upgraded connections and streams of events now.
    pub tunnels: u32,
    /// Unfinished work, in seconds of one worker; `None` where no deadline is promised.
    pub unfinished_seconds: Option<f64>,
    /// Mean service time of the last period; zero if nothing was served.
    pub service_time: Duration,
    /// The load of a gateway's places at a server that decides itself, in the gateway and in the server; `None` in any
    /// other plant.
    pub places: Option<PlacesStatus>,
}

/// The load of a gateway's places at a server that decides itself, as the gateway sends it with each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacesStatus {
    /// The part of the places that is taken; more than 1 while the gateway rejects requests.
    pub taken: f64,
    /// In the server: how the load was used there. `None` in the gateway.
    pub heard: Option<HeardPlaces>,
}

/// How a server uses the load that a gateway has sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeardPlaces {
    /// The age of the latest value at the end of the last period.
    pub age: Duration,
    /// The part by which the set point of levels is lowered for it.
    pub set_point_reduction: f64,
}

/// Why a plant is given no more requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReason {
    /// The plant's server refuses further requests.
    Refusals,
    /// Some of its servers are out of use, and those that are left get no more than their own share.
    Outage,
    /// The number of workers is searched for: the traffic shows no more of them, or more are not yet tried.
    Search,
    /// The server reports how many workers it has.
    Reported,
    /// Classes were promised times, so that requests wait here, where they are put in order.
    Promises,
}

impl LimitReason {
    /// The reason in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitReason::Refusals => "refusals",
            LimitReason::Outage => "outage",
            LimitReason::Search => "search",
            LimitReason::Reported => "reported",
            LimitReason::Promises => "promises",
        }
    }
}

/// A site: its contract and what it takes.
#[derive(Clone, Debug, Default)]
pub struct SiteStatus {
    /// The site's name.
    pub name: String,
    /// Index of its plant.
    pub plant: usize,
    /// U*_i = a R_max + b W_max by the costs known now; `None` without a contract, or before any cost is known.
    pub utilization_promised: Option<f64>,
    /// U_i: the rates of the last period times the costs at the levels given, rejections included where they cost the
    /// plant.
    pub utilization: f64,
    /// The share of the last period's arrivals that was inside the contract; 0 without one.
    pub guaranteed_share: f64,
    /// The costs of the site's types, where one of its plants has deadlines to keep.
    pub types: Vec<TypeStatus>,
    /// The types that were found, if the configuration names none. A request has the first whose condition holds, else a
    /// default type.
    pub found_types: Vec<FoundType>,
}

/// A request type that was found by what its requests have in common and by their cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundType {
    /// The type's name among the site's types.
    pub name: String,
    /// The type that its requests would have without it.
    pub within: String,
    /// The features that its requests have in common, as a configuration would write them.
    pub condition: Condition,
}

/// The cost of requests of one type at one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeStatus {
    /// The name of the request type.
    pub name: String,
    /// The name of the level at which the requests were served.
    pub level: String,
    /// Whether the requests announced their cost. Then mean and deviation are the real time of one announced second.
    pub announced: bool,
    /// Requests that the cost was learned from.
    pub requests: u64,
    /// Mean service time (s), without what bodies take.
    pub mean: f64,
    /// Standard deviation of the service time, including the uncertainty of the mean (s).
    pub deviation: f64,
    /// The share of its requests that take no longer than the shortest deadline of the site, in service alone; `None` while
    /// no request of the type had a deadline, and of announced costs.
    pub in_time: Option<f64>,
    /// Additional time for each whole 64 KB of a request's body (s).
    pub block: f64,
}

/// The deadline of a class, and how it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeadlineStatus {
    /// The longest time from arrival to release.
    pub deadline: Duration,
    /// The percentage of admitted requests that is promised to be in time.
    pub in_time: f64,
    /// The percentage chance to be in time from which on a request is admitted now: less than `in_time` where requests of lower
    /// priorities are in the way.
    pub admitted_from: f64,
    /// The time for which a request that arrived now would wait.
    pub wait: Duration,
    /// The number of admitted requests that were released too late, since the engine's start.
    pub missed: u64,
}

impl DeadlineStatus {
    /// How many of `requests` requests may be late.
    pub fn may_be_late(&self, requests: u64) -> f64 {
        (1.0 - self.in_time / 100.0) * requests as f64
    }

    /// Whether `late` of `requests` requests are more than may be late, by more than three standard deviations of a Poisson
    /// count.
    pub fn is_missed(&self, late: u64, requests: u64) -> bool {
        let allowed = self.may_be_late(requests);
        late as f64 > allowed + 3.0 * libm::sqrt(allowed.max(1.0))
    }
}

/// The terms of the delay law at its last update (QM eq. 4): quota = predicted + gain times error + integral, within its range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelayTerms {
    /// Workers that keep the promise by the queueing model.
    pub predicted: f64,
    /// Measured over promised, less 1: of the mean, or of the share that is late.
    pub error: f64,
    /// Workers for each unit of error.
    pub gain: f64,
    /// Workers that the integral part adds.
    pub integral: f64,
}

/// The promise of a class's response times, and how it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResponseStatus {
    /// The quota: workers that are the class's own while it wants them. `None` for a class with a ratio.
    pub quota: Option<f64>,
    /// Mean response time over the window (s).
    pub response: f64,
    /// The share of answers over D_ref, in the window; dropped requests are late.
    pub late: f64,
    /// The share of all requests that failed or were turned away, in the window.
    pub lost: f64,
    /// The promise is not kept.
    pub missed: bool,
    /// The quota is at an end of its range.
    pub at_limit: bool,
    /// The terms of the delay law at its last update. `None` for a class with a ratio, and before the first window is full.
    pub law: Option<DelayTerms>,
    /// The ratio cannot be had at this load.
    pub infeasible: bool,
    /// delta, for a class with a ratio.
    pub ratio: Option<f64>,
    /// The delta reached: the class's mean response time in units of the site's mean normalized response time.
    pub ratio_reached: Option<f64>,
    /// The weight of its normalized response time, for a class with a ratio.
    pub weight: Option<f64>,
}

/// A class: its traffic, its model and its counters.
#[derive(Clone, Debug, Default)]
pub struct ClassStatus {
    /// The name of the site to which the class belongs.
    pub site: String,
    /// The class's name: the operator's, or `default`, or `exempt`.
    pub class: String,
    /// No longer promised; requests from before may still be under way.
    pub removed: bool,
    /// Index of the site's plant.
    pub plant: usize,
    /// Names of the levels 1..=M.
    pub levels: Vec<String>,
    /// m as applied to this class: where several plants serve its levels, the mean level of its clients.
    pub service_level: f64,
    /// The levels of the class by the plant that serves them, the highest first.
    pub parts: Vec<PartStatus>,
    /// m_site: the m that the site's own contract carries; m lies above m_site where there is excess. `None` without a
    /// contract.
    pub site_level: Option<f64>,
    /// R: arrivals per second.
    pub request_rate: f64,
    /// W: delivered body bytes per second.
    pub bandwidth: f64,
    /// The linear model of its content.
    pub model: ModelStatus,
    /// The promise of its response times, and how it is kept.
    pub response: Option<ResponseStatus>,
    /// The deadline of its requests, if one was promised.
    pub deadline: Option<DeadlineStatus>,
    /// Cost of one request at each level 1..=M [utilization seconds]; `None` until it is known.
    pub level_cost_seconds: Vec<Option<f64>>,
    /// Clients that carry more than a tenth of the load and are chosen at random.
    pub heavy_clients: u32,
    /// Counters from the start.
    pub counts: Counts,
    /// Queue delays (arrive to start) of all requests started.
    pub queue_delays: DurationHistogram,
    /// Response times (arrive to release) of all requests released.
    pub response_times: DurationHistogram,
    /// Service times (start to release) of all requests released.
    pub service_times: DurationHistogram,
    /// Responses by the first digit of their status, from 1.
    pub responses: [u64; STATUS_CLASSES],
    /// Queue delay of requests started, mean over the last period.
    pub queue_delay: Duration,
    /// Response time (arrive to release), mean over the last period.
    pub response_time: Duration,
}

/// The levels of a class that one plant serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartStatus {
    /// The name of the plant that serves these levels.
    pub plant: String,
    /// The level below its lowest one.
    pub base: usize,
    /// The highest level that the plant serves for the class.
    pub top: usize,
    /// m at this plant, from `base` to `top`, by which the plant divides the clients that the plants above pass down to it.
    pub service_level: f64,
}

/// The linear model U = a R + b W and how well it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelStatus {
    /// a [s per request]; `None` while no sizes were seen that distinguish it from b.
    pub per_request_seconds: Option<f64>,
    /// b [s per byte]; `None` while no sizes were seen that distinguish it from a.
    pub per_byte_seconds: Option<f64>,
    /// 0 (unknown) .. 1 (exact): one minus the relative standard error of the prediction for the present mix.
    pub confidence: f64,
    /// Whether the last period did not excite the model, so that nothing was learned.
    pub frozen: bool,
}

/// Counters of one class, from the engine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of requests that arrived.
    pub arrivals: u64,
    /// Started, by level. In observe mode by the level that would have been; index 0 is used there alone.
    pub served: [u64; MAX_LEVELS + 1],
    /// Decisions by reason, in the order of [`Reason::ALL`]. In observe mode: the reason that would have been.
    pub reasons: [u64; Reason::ALL.len()],
    /// Departures by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Body bytes that were delivered.
    pub bytes: u64,
    /// Arrivals that ended before a start: rejected, dropped, or left.
    pub unserved: u64,
}

/// The first digits of status codes, 1 to 5.
pub const STATUS_CLASSES: usize = 5;

/// Durations counted from the engine's start, in buckets that double from 1 ms to 65.5 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    /// The number of durations below 1 ms, then from each bound up to the next; the last bucket is open.
    pub buckets: [u64; DurationHistogram::BOUNDS + 1],
    /// The sum of all durations (ns).
    pub sum_ns: u64,
}

impl DurationHistogram {
    /// The number of bounds.
    pub const BOUNDS: usize = 17;

    /// The upper bound of each bucket but the last.
    pub fn bounds() -> impl Iterator<Item = Duration> {
        (0..Self::BOUNDS).map(|octave| Duration::from_millis(1 << octave))
    }

    /// The number of all durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

impl Counts {
    /// Requests turned away, for whatever reason; in observe mode those that would have been.
    pub fn rejected(&self) -> u64 {
        Reason::ALL.iter().filter(|r| r.is_rejection()).map(|r| self.reasons[*r as usize]).sum()
    }

    /// Requests under way: arrived, and neither turned away nor departed.
    pub fn in_flight(&self) -> u64 {
        let ended = self.unserved + self.outcomes.iter().sum::<u64>();
        self.arrivals.saturating_sub(ended)
    }
}

impl PlantStatus {
    /// No longer promised, and its last request is done: nothing to show.
    pub fn is_gone(&self) -> bool {
        self.removed && self.in_service + self.waiting == 0
    }
}

impl ClassStatus {
    /// No longer promised, and its last request is done: nothing to show.
    pub fn is_gone(&self) -> bool {
        self.removed && self.counts.in_flight() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_under_way_until_it_is_turned_away_or_departs() {
        let mut counts = Counts { arrivals: 10, unserved: 3, ..Counts::default() };
        counts.reasons[Reason::Overload as usize] = 2;
        counts.reasons[Reason::WaitTimeout as usize] = 1;
        counts.outcomes = [4, 1, 1];
        assert_eq!((counts.in_flight(), counts.rejected()), (1, 3));
        // Two counters of one snapshot may differ by the requests of some nanoseconds.
        counts.outcomes[0] += 2;
        assert_eq!(counts.in_flight(), 0);
    }

    #[test]
    fn what_is_no_longer_promised_is_shown_until_its_last_request_is_done() {
        let mut plant = PlantStatus { waiting: 1, removed: true, ..PlantStatus::default() };
        let counts = Counts { arrivals: 1, ..Counts::default() };
        let mut class = ClassStatus { counts, removed: true, ..ClassStatus::default() };
        assert!(!plant.is_gone() && !class.is_gone());
        (plant.waiting, class.counts.outcomes[0]) = (0, 1);
        assert!(plant.is_gone() && class.is_gone());
        (plant.removed, class.removed) = (false, false);
        assert!(!plant.is_gone() && !class.is_gone());
    }

    #[test]
    fn buckets_double_from_one_millisecond() {
        let bounds: Vec<u128> = DurationHistogram::bounds().map(|bound| bound.as_millis()).collect();
        assert_eq!(
            (bounds.len(), bounds[0], bounds[1], bounds[16]),
            (DurationHistogram::BOUNDS, 1, 2, 65_536)
        );
    }
}
