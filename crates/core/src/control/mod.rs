//! The level loop: a monitor and models give the [`Demand`], a [`Law`] moves m, the knob acts.
//!
//! | file | holds |
//! |---|---|
//! | `allotment.rs` | who gets how much: contracts, priorities, excess by weight |
//! | `delay.rs` | the delay law: a model's feed-forward and P or PI on the residual, counted in departures |
//! | `deadlines/` | what types of requests cost, and what higher ranks take: all that admission by deadline reads; AC's budget and its prediction |
//! | `demand.rs` | offered load as a function of m |
//! | `feed_forward.rs` | the default law: solve for m, PI trims |
//! | `response/` | the loops of promised delays and ratios, on departures |
//! | `workers.rs` | how many workers a plant has, where that is not told |
//! | `paper.rs` | the PI law of UC 4.4, as printed |
//! | `sharing.rs` | a plant that several sites or priorities share |
//! | `tuning.rs` | gains by gain margin, in s as printed and in z as sampled |
//! | `governed.rs` | a class as the loop of one plant sees it |
//! | `share.rs` | the share of requests behind the fraction of clients |
//! | `utilization.rs` | the loop: assembles what the law sees, writes what it says |
//!
//! A new law is one more file here and one line in `utilization.rs`.

pub(crate) mod allocation;
pub(crate) mod deadline;
pub(crate) mod delay;
pub(crate) mod ratio;
pub(crate) mod rejection_cost;
pub(crate) mod response;
pub(crate) mod utilization;
pub(crate) mod workers;

pub use delay::law::{DelayLaw, Feedback, RECENT, Residual, slope};
pub use ratio::law::{RatioLaw, Reached, Turn};
pub use utilization::demand::Demand;
pub use utilization::feed_forward::{Aim, FeedForward};
pub use utilization::paper::PaperPi;
pub use utilization::tuning;

/// What a law sees at the end of a period.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// U*.
    pub set_point: f64,
    /// Measured utilization of the period, in [0, 1]; 1 when the response-time override holds.
    pub measured: f64,
    /// R times the cost at the levels given in the period, without backlog. Unclipped.
    pub served: f64,
    /// The response-time override holds (CA 4.2.1).
    pub overridden: bool,
    /// No rate and no cost stepped in this period: `measured` belongs to the present load.
    pub steady: bool,
    /// Offered load as a function of m.
    pub demand: &'a Demand,
    /// Periods that a request may wait before it is dropped.
    pub wait_periods: f64,
    /// Mean service time of a request, in periods.
    pub service_periods: f64,
    /// Backlog that is no reason to drain, in periods of work, where the queue itself turns away what would be late; else 0.
    pub ordinary_backlog: f64,
    /// A rate rose by a step in the period's last sample only.
    pub unconfirmed: bool,
}

/// What a law says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// m for the next period.
    pub m: f64,
    /// What PI adds to the set point.
    pub trim: f64,
}

/// Moves m. One call a period; its state is its own.
pub trait Law: Send {
    /// The next m.
    fn next(&mut self, seen: &Observation<'_>) -> Decision;

    /// So many periods went by in which nothing came and nothing was there, with m at M: what fades with time does.
    fn rest(&mut self, periods: u32, set_point: f64);

    /// m is what it is told, not what this law said last: the levels changed, or another law held them so far.
    fn track(&mut self, m: f64);

    /// What the last m was set by, of a law whose plant can be shared out among sites and priorities.
    fn aim(&self) -> Option<Aim> {
        None
    }

    /// Whether it has an aim. By any other law all classes of a plant have one m.
    fn aims(&self) -> bool {
        false
    }
}
