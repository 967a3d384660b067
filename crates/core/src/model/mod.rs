//! Models of the plant: what a request costs, and how long it waits.

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
