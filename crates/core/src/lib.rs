//! The decisions of Plimsoll: promises, monitors, models, controllers, actuators, scheduler, engine.
//!
//! Pure: no clock, no socket, no thread, no randomness of its own. Time is an argument, a seed is an argument, and
//! what needs input or output is a reading pushed into [`Engine::tick`]. The gateway drives this in real time, the
//! simulator in virtual time, through the same calls ([`request`]).
//!
//! `#![no_std]` with alloc makes that a fact of the build: std is named in `sync/lock.rs` only, for its mutex.
#![no_std]

extern crate alloc;

mod actuator;
pub mod admission;
pub mod agent;
pub mod control;
mod engine;
pub mod model;
pub mod promises;
pub mod random;
pub mod request;
mod scheduling;
mod sync;
pub mod telemetry;
pub mod time;

pub use engine::{Engine, Lane, Reload};
pub use promises::diff::{Changes, Difference};
