//! The engine in virtual time: what would happen, before it happens.
//!
//! ```text
//! workload: streams ---> front (the gateway's engine, or a comparator) ---> plants
//!              ^                        |                                     |
//!              +------ clients that leave or come again <---------------------+
//! ```
//!
//! The simulator drives the gateway's own [`Engine`](plimsoll_core::Engine) through the same calls; no decision is made here. A
//! run is a function of its [`Setup`], byte for byte.

mod arrivals;
mod degraded_paths;
mod distribution;
mod fault;
pub mod front;
mod plant;
mod record;
mod request;
mod run;
mod service;
pub mod settling;
pub mod workload;

pub use arrivals::{
    FoundFormat, FoundTimes, LeftOut, LogNotes, LoggedTimes, MOST_WAITING, logged_bytes, logged_times,
    surge_files, views,
};
pub use degraded_paths::{COUNTERS, Heavy};
pub use plant::{Busy, Done, Overflow, Server, Work};
pub use record::{ClassRow, Held, MOST_ROWS, PlantRow, Recorded, Row};
pub use request::Request;
pub use run::{ArrivalPeaks, Error, Event, Progress, Run, Setup, Watch};
