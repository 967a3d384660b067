//! Models of the plant: what a request costs.

mod cost;
mod linear;
mod tracker;

pub(crate) use cost::EVIDENCE;
pub use cost::{CostEstimate, Served};
pub use linear::LinearModel;
pub use tracker::Tracker;
