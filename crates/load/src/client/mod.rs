//! Clients on loopback addresses of their own.
//!
//! Input: a target and a load, open (arrivals by a schedule) or closed (each client sends its next request after its answer).
//! Output: a [`Record`] of each request, and the [`Tally`] of all.

mod closed_loop;
mod connection;
mod open_loop;
mod record;
mod run;
mod tally;

pub use closed_loop::ClosedLoop;
pub use connection::Target;
pub use open_loop::OpenLoop;
pub use record::{Answer, ErrorKind, Outcome, Record};
pub use run::{LoadHandle, Sink};
pub use tally::{Answers, LevelChanges, Slot, Tally};
