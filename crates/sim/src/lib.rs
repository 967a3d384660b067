//! The engine in virtual time: Poisson arrivals, a plant of s workers, and the records of each control period.
//!
//! The simulator drives the gateway's own [`Engine`](plimsoll_core::Engine) through the same calls; nothing that
//! decides lives here. A run is a function of its scenario and its seed, byte for byte.
//!
//! Not here yet: other plants, other arrivals, logs, comparators.

mod plant;
mod run;
pub mod settling;

pub use plant::{Overflow, Plant, ServiceTime};
pub use run::{Fault, FaultKind, Period, Run, Scenario};
