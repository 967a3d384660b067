//! Plimsoll inside a server (UC 6): processes that serve requests share one controller, through memory that all of them map.
//!
//! ```text
//!   plimsoll control FILE                      a process of the server
//!   controller ── ticks, publishes ──┐      ┌── lane ── three calls ── api (C)
//!                                    v      v
//!                             mapping, laid out by layout
//! ```
//!
//! The engine decides, in the server's process as in the gateway; this crate has the shared memory, the ownership of its parts,
//! and the calls.
//!
//! - `layout`: what lies where in the mapping
//! - `mapping`: the mapping as typed references; with `api` and `listen_queue` the only file with unsafe code
//! - `owner`: a process by its number and start time, so that a dead process is not taken for a later one with its number
//! - `lock`: the lock that gives a state only one controller
//! - `slot`: a lane of the mapping, its owner, and the counters of an owner that died
//! - `controller`: the process that ticks, and gives back the places of dead processes
//! - `server`: a process that serves requests
//! - `deaths`: a test of what processes leave that die or are stopped at each instruction
//! - `listen_queue`: how many connections wait for the process
//! - `reasons`: the words of reasons as C reads them
//! - `frozen`: whether a controller is awake, as a process sees it
//! - `place`: the path of a state, and whether another file has that path by now
//! - `report`: the shared state as a process reports it
//! - `view`: a request as the engine reads it
//! - `fault`: what can go wrong, by number
//! - `structures`: the structures that the C functions take and fill
//! - `api`: the C functions

pub mod api;
mod controller;
#[cfg(test)]
mod deaths;
mod fault;
mod frozen;
mod layout;
mod listen_queue;
mod lock;
mod mapping;
mod owner;
mod reasons;
mod report;
mod server;
mod slot;
mod state_file;
pub mod structures;
mod view;

pub use controller::{Controller, Taken};
pub use fault::Fault;
pub use frozen::Frozen;
pub use listen_queue::waiting;
pub use server::{Served, Server};
pub use structures::plimsoll_status_t as Counts;
pub use view::Fields;
