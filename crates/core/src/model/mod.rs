//! Room: what was learned of plants and requests.
//!
//! *In*: measured rates, bytes and times. *Out*: costs and waits, and how well they are known.
//!
//! - `cost_line`: `U = a R + b W`, learned online (UC 4.3)
//! - `level_cost`: the cost of a request at one level
//! - `common_fall`: whether the costs of all classes of a plant have fallen
//! - `tracker`: the estimate of a rate, which follows noise slowly and a step at once
//! - `delay`: how long requests wait for one of s workers (QM 2.3)
//! - `normal`: quantiles of the normal distribution
//! - `service_time`: mean and variance of the service time of a type of requests (AC 3.2)
//! - `service_histogram`: how the service times of a type are distributed
//! - `type_split`: whether two groups of requests cost differently, and which feature distinguishes them
//! - `size_law`: what each block of a request's body adds to its service time (AC eq. 1)

mod common_fall;
mod cost_line;
mod delay;
mod level_cost;
mod normal;
mod service_histogram;
mod service_time;
mod size_law;
mod tracker;
mod type_split;

pub(crate) use common_fall::CommonFall;
pub use cost_line::LinearModel;
pub use delay::Traffic;
pub(crate) use delay::{erlang_c, queue_delay, response_percentile};
pub use level_cost::KnownCost;
pub(crate) use level_cost::{CostEstimate, EVIDENCE, Served};
pub(crate) use normal::normal_quantile;
pub(crate) use service_histogram::{ServiceHistogram, TIME_BINS, time_bin};
pub(crate) use service_time::{Batch, ServiceTime};
pub(crate) use size_law::{SizeLaw, Sized};
pub(crate) use tracker::Tracker;
pub(crate) use type_split::{Alike, CostDifference, Moments, best_split, log_time};
