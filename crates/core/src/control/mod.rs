//! Room: what to do. Five loops, each a measurement, a model, a law and an actuator; a law is one file.
//!
//! *In*: measurements, and what was learned of costs. *Out*: service levels, quotas, weights and limits. `utilization`
//! holds U at the set point by the service level m, `delay` a class's response time by its quota, `ratio` the ratio of
//! two by whose turn is next; `deadline` learns what admission reads, `workers` how many workers a plant has. `cost` is
//! learned for all of them, and `allocation` alone turns a target into levels.
//!
//! A new law of the service level is a file in `utilization`, its test, and a line in `utilization/view.rs`.

pub(crate) mod allocation;
pub(crate) mod cost;
pub(crate) mod deadline;
pub(crate) mod delay;
pub(crate) mod ratio;
pub(crate) mod response;
pub(crate) mod utilization;
pub(crate) mod workers;

pub use delay::law::{DelayLaw, Feedback, RECENT, Residual, slope};
pub use ratio::law::{RatioLaw, Reached, Turn};
pub use utilization::demand::{Demand, LoadParts};
pub use utilization::feed_forward::FeedForward;
pub use utilization::law::{Law, LawTarget, LawTerms, LoadTarget, Observation};
pub use utilization::paper::PaperPi;
pub use utilization::tuning;
