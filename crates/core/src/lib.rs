//! The decisions of Plimsoll: promises, telemetry, models, control laws, actuators, scheduling, and the engine that
//! runs them.
//!
//! The crate is pure: it has no clock, socket, thread or randomness of its own. Time and seed are arguments, and input from
//! outside is a reading pushed into [`Engine::tick`]. The gateway drives the crate in real time, the simulator in virtual time,
//! through the same calls ([`request`]).
//!
//! UC, CA, AC, QM and PR are the five papers with these laws; `docs/papers.md` has them in full. Words with one fixed meaning
//! (plant, level, place, share) are in `CONTRIBUTING.md`.
//!
//! The rooms are layers: `time`, `random`, `sync`; `model`; `promises`; `actuator`; `request`; `scheduling`;
//! `admission`; `telemetry`; `control`; `agent`; `engine`. Each uses only those before it, and `.ci/layers` checks
//! that.
//!
//! `#![no_std]` with alloc lets the compiler check that std is named only in `sync/lock.rs`, for its mutex.
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
pub mod scheduling;
mod sync;
pub mod telemetry;
pub mod time;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use engine::processes;
pub use engine::{
    Engine, Lane, LearnedClass, LearnedLevel, LearnedPart, LearnedPlant, LearnedSite, LearnedState, Names,
    Reload,
};
pub use promises::diff::{Changes, Difference};
