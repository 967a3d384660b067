//! Room: what was counted.
//!
//! *In*: counters with one writer each, and readings that shells push in. *Out*: measurements of a period by class and
//! plant, heavy hitters, and the rows of the status. Nothing here moves a service level or a quota.
//!
//! - `counters`: what each lane counts
//! - `snapshot`: sums of counters, whichever threads, processes or gateways counted them
//! - `measurement`: what one period showed of a class and of a plant
//! - `monitor`: turns counters into measurements, sample by sample and period by period
//! - `departure_window`: the last departures of a class (QM 2.2)
//! - `life_table`: response times where some clients hang up before they are answered
//! - `service_shares`: service times of a class up to its promised time
//! - `histogram`: durations, with a bounded relative error
//! - `heavy_hitters`, `heavy_search`: the clients that carry more than a tenth of their class's load
//! - `readings`: what a shell pushes in
//! - `unseen_queue`: what waits where no request is seen, by its length
//! - `status`: the figures of the engine as plain data

pub(crate) mod counters;
pub(crate) mod departure_window;
pub(crate) mod heavy_hitters;
pub(crate) mod heavy_search;
mod histogram;
pub(crate) mod life_table;
pub(crate) mod measurement;
pub(crate) mod monitor;
pub(crate) mod readings;
pub(crate) mod service_shares;
pub(crate) mod snapshot;
pub mod status;
pub(crate) mod unseen_queue;

pub use departure_window::{DepartureCounts, DepartureWindow, Seen};
pub use histogram::Histogram;
pub use readings::Readings;
