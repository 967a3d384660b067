//! Room: what was learned of plants and requests.
//!
//! *In*: measured rates, bytes and times. *Out*: costs and waits, with their confidence.
//!
//! - `linear`: `U = a R + b W`, learned online (UC 4.3)
//! - `cost`: the cost of a request at one level
//! - `tracker`: the estimate of a rate, which follows noise slowly and a step at once
//! - `delay`: how long requests wait for one of s workers (QM 2.3)
//! - `service_time`: mean and variance of the service time of a type of requests (AC 3.2)
//! - `size_law`: what each block of a request's body adds to its service time (AC eq. 1)

mod cost;
mod delay;
mod linear;
mod service_time;
mod size_law;
mod tracker;

pub(crate) use cost::EVIDENCE;
pub use cost::{CostEstimate, Served};
pub use delay::{Traffic, erlang_c, queue_delay, wait_percentile};
pub use linear::LinearModel;
pub use service_time::{Batch, ServiceTime};
pub use size_law::{SizeLaw, Sized};
pub use tracker::Tracker;
