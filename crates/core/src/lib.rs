//! The decisions of Plimsoll: promises, monitors, models, controllers, actuators, scheduler, engine.
//!
//! Pure: no clock, no socket, no thread, no randomness of its own. Time is an argument, a seed is an argument, and
//! what needs input or output is a reading pushed into [`Engine::tick`]. The gateway drives this in real time, the
//! simulator in virtual time, through the same calls ([`door`]).
//!
//! `#![no_std]` with alloc makes that a fact of the build: std is named in `lock.rs` only, for its mutex.
#![no_std]

extern crate alloc;

pub mod agent;
pub mod door;
pub mod explain;
pub mod histogram;
pub mod plan;
pub mod promises;
pub mod random;
pub mod reason;
pub mod status;
pub mod time;

pub use changes::{Changes, Difference};
pub use engine::Engine;
pub use lane::Lane;
pub use reload::Reload;

mod admission;
mod backlog;
mod budget;
mod census;
mod changes;
mod classify;
pub mod control;
mod crowd;
mod engine;
mod estimates;
mod exchange;
mod gate;
mod hosts;
mod kinds;
mod knob;
mod lane;
mod lock;
mod meter;
pub mod model;
#[cfg(all(test, loom))]
mod model_check;
mod monitor;
mod queue;
mod quota;
mod readings;
mod releases;
mod reload;
mod serving;
mod shared;
mod synthetic;
mod tagged;
