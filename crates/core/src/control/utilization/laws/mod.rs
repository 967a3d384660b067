//! The laws of the service level: from the observation of a period to a target.
//!
//! *In*: the [`Observation`] of a period. *Out*: a [`LawTarget`], which only the allocation turns into levels.
//!
//! - `feed_forward`: the default law: solves the demand for m and corrects the result by PI; `carried_load`, `few_connections`:
//!   the conditions under which it rejects no request
//! - `paper`: the PI law of UC 4.4 as printed, for comparison
//!
//! A new law is a file here, its test, its `mod` and its line in [`build`], and a variant of
//! [`UtilizationLaw`](promises::UtilizationLaw) with its name in the configuration (`crates/config/src/gateway/values.rs`,
//! `crates/config/src/gateway/control.rs`) and in the plan that `plimsoll check` prints (`crates/cli/src/output/plan.rs`).

pub(crate) mod carried_load;
pub(crate) mod feed_forward;
mod few_connections;
pub(crate) mod paper;

use super::demand::Demand;
use crate::promises;
use alloc::boxed::Box;
use carried_load::CarryTest;
use feed_forward::FeedForward;
use paper::PaperPi;

/// The observations of a period that a law decides on.
#[derive(Clone, Debug)]
pub(crate) struct Observation<'a> {
    /// U*, the load at which the plant is held.
    pub set_point: f64,
    /// The load beyond which requests are rejected. It exceeds `set_point` if that is lowered because a gateway's places at
    /// this server are taken.
    pub rejects_beyond: f64,
    /// The load up to which no request is rejected; `None` if that is the set point, because the engine does not see the queue
    /// or a promise needs the room above it.
    pub capacity: Option<f64>,
    /// Measured utilization of the period, in [0, 1]; 1 while the response-time override holds, and if [`full_at`] is known.
    ///
    /// [`full_at`]: Observation::full_at
    pub measured: f64,
    /// The load of the requests started and rejected in the period, at the costs of their levels; without backlog, and not
    /// clipped at 1.
    pub served: f64,
    /// Whether the response-time override holds (CA 4.2.1): the plant answers slower than its limit.
    pub overridden: bool,
    /// Whether no rate and no cost stepped in this period, so that `measured` belongs to the present load.
    pub steady: bool,
    /// m as it was in the period.
    pub level: f64,
    /// Whether no class had more than its lowest level.
    pub at_lowest: bool,
    /// Whether each class has the least level that it may be given, so that no class can be degraded further.
    pub at_least: bool,
    /// Offered load as a function of m.
    pub demand: &'a Demand,
    /// The relative standard error of that load at the lowest level that the errors of learned costs cause; 0 where the set
    /// point is held whatever the error, and where workers are searched for.
    pub load_error: f64,
    /// The relative standard error of a period's load at the lowest level, by the number of its arrivals (as if Poisson's); 0
    /// while that load is at most U*.
    pub arrivals_error: f64,
    /// Periods that a request may wait before it is dropped.
    pub wait_periods: f64,
    /// Mean service time of a request, in periods.
    pub service_periods: f64,
    /// The backlog, in periods of work, that waits now and then without an overload; 0 if a class was promised a time.
    pub healthy_backlog: f64,
    /// The work of one request of each connection that sent a request within a second (s of the plant), which is the most that
    /// can wait at once. A request of an unknown connection counts as a connection of its own. Infinite if no connection has
    /// sent several requests.
    pub at_once: f64,
    /// The backlog, in periods of work, that needs no draining because the queue itself rejects requests that would be late;
    /// else 0.
    pub ordinary_backlog: f64,
    /// The requests in service beyond the workers, which wait in the server, in periods of work.
    pub in_server: f64,
    /// How many workers there may be, as a multiple of their assumed number: more than 1 while a found number is not yet
    /// certain. Too low a number would reject the very requests that show that it is too low.
    pub possible_workers: f64,
    /// The backlog that may wait while the plant carries the arriving load at the lowest level, in periods of work.
    pub tolerated_backlog: f64,
    /// Whether most waiting requests have no promise of their own, and the queue itself answers those that wait too long. Then
    /// the backlog is no reason to reject arriving requests.
    pub best_effort_waits: bool,
    /// Whether a rate, or the cost of a class's lowest level, rose by a step that no second sample has confirmed.
    pub unconfirmed: bool,
    /// Whether costs were forgotten in this period and are learned anew.
    pub costs_begin: bool,
    /// Whether requests wait where the engine does not see them: in the listen queue, of unknown length, of a server that
    /// decides itself.
    pub waits_unseen: bool,
    /// If the listen queue of such a server was never empty in the period, the busy time of its workers by its own count, in
    /// [0, 1]. It is the most that the server can count, since no worker was free.
    pub full_at: Option<f64>,
}

/// The target of a law for the next period.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LawTarget {
    /// An offered load, which is shared out among sites and priorities.
    Load(LoadTarget),
    /// One service level m for all classes of the plant. A law that gives it cannot share a plant, so promises that need
    /// several levels are refused under such a law ([`what_divides`](promises::Promises::what_divides)).
    Level(f64),
}

/// The offered load that is to be filled: a plant's, or that of a part of its clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadTarget {
    /// The most that these clients may offer.
    pub load: f64,
    /// The share of the backlog that is to be served within a period, as in [`Demand::offered`].
    pub drain: f64,
    /// The part of the plant that these clients may use, with which their backlog drains.
    pub room: f64,
    /// Whether more waits than the ordinary backlog.
    pub backlog: bool,
    /// Whether the plant is measured well below its set point and no request waits.
    pub calm: bool,
    /// Whether the plant and its queue carry the arriving load at the lowest level, so that no request needs to be rejected.
    pub carried: bool,
    /// The load that the plant carries without rejecting; `None` if the load line is held whatever load arrives.
    pub carries: Option<CarryTest>,
    /// As in [`Observation`].
    pub unconfirmed: bool,
    /// As in [`Observation`].
    pub wait_periods: f64,
}

impl LoadTarget {
    /// The target of a part of these clients that may offer `load`, has the demand `demand` and is served at `m`.
    #[inline(always)]
    pub(crate) fn part(&self, load: f64, demand: &Demand, m: f64) -> Self {
        let backlog = self.backlog && demand.backlog(m) > 0.0;
        LoadTarget { load, room: 1.0 - (self.load - load).max(0.0), backlog, ..*self }
    }
}

#[cfg(test)]
impl LoadTarget {
    /// A target of this load, without a backlog and without any special case.
    pub(crate) const fn plain(load: f64) -> Self {
        LoadTarget {
            load,
            drain: 0.0,
            room: 1.0,
            backlog: false,
            calm: false,
            carried: false,
            carries: None,
            unconfirmed: false,
            wait_periods: 10.0,
        }
    }
}

/// A law of the service level, called once a period.
pub(crate) trait Law: Send {
    /// The target of the next period.
    fn target(&mut self, seen: &Observation<'_>) -> LawTarget;

    /// The integral part, which is added to the set point, and from which another process can go on; a law without an integral
    /// part has 0.
    fn bias(&self) -> f64 {
        0.0
    }

    /// Goes on from the bias that another process found; a law without a bias ignores it.
    fn restore(&mut self, _bias: f64) {}

    /// Lets the law's terms fade over idle periods, in which no request arrived or was in the system and m was M.
    fn idle(&mut self, periods: u32, set_point: f64);
}

/// Builds the law that is promised.
pub(super) fn build(promised: &promises::UtilizationLaw) -> Box<dyn Law> {
    match promised {
        promises::UtilizationLaw::FeedForward => Box::new(FeedForward::default()),
        promises::UtilizationLaw::Paper { gain_margin } => Box::new(PaperPi::new(*gain_margin)),
    }
}
