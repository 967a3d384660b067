//! Room: what was counted.
//!
//! *In*: counters with one writer each, and readings that shells push in. *Out*: measurements of a period by class and
//! plant, heavy hitters, and the rows of the status. Nothing here moves a set point.

pub(crate) mod counters;
pub(crate) mod departure_window;
pub(crate) mod heavy_hitters;
pub(crate) mod heavy_search;
mod histogram;
pub(crate) mod measurement;
pub(crate) mod monitor;
pub(crate) mod readings;
pub(crate) mod snapshot;
pub mod status;

pub use histogram::Histogram;
pub use readings::Readings;
