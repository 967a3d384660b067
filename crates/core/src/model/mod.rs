//! Room: what was learned, as values without a clock and without knowledge of classes or plants.
//!
//! *In*: sums of a period. *Out*: estimates. `cost` and `linear` are the cost of a request, by level and as `U = a R + b W`;
//! `service_time` and `size_law` how long a type takes; `delay` how long requests wait; `tracker` follows a rate.

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
