//! Room: what was counted.
//!
//! *In*: counters with one writer each, and readings that shells push in. *Out*: measurements of a period by class and
//! plant, heavy hitters, and the rows of the status. Nothing here moves a service level or a quota.
//!
//! - `counters`, `snapshot`: what each lane counts, and sums of it, whichever threads, processes or gateways counted
//! - `measurement`, `monitor`: what one period showed of a class and of a plant, made from the counters
//! - `departure_window`, `life_table`, `service_by_target`, `histogram`: distributions of response and service times;
//!   `recent_service`: the mean service time of what was released lately
//! - `heavy_hitters`, `heavy_search`: the clients that carry more than a tenth of their class's load
//! - `readings`, `unseen_queue`, `place_load`, `status`: what a shell pushes in, what waits unseen, what a gateway reports of
//!   its places, the engine's figures as plain data

pub(crate) mod counters;
pub(crate) mod departure_window;
pub(crate) mod heavy_hitters;
pub(crate) mod heavy_search;
mod histogram;
pub(crate) mod life_table;
pub(crate) mod measurement;
pub(crate) mod monitor;
pub(crate) mod place_load;
pub(crate) mod readings;
pub(crate) mod recent_service;
pub(crate) mod service_by_target;
pub(crate) mod snapshot;
pub mod status;
pub(crate) mod unseen_queue;

pub use departure_window::{DepartureCounts, DepartureWindow, Seen};
pub use histogram::Histogram;
pub use readings::Readings;
