//! Clients on loopback addresses of their own, and what becomes of their requests.

mod closed_loop;
mod connection;
mod open_loop;
mod record;
mod run;
mod tally;

pub use closed_loop::ClosedLoop;
pub use connection::{Paths, Target, client_address};
pub use open_loop::OpenLoop;
pub use record::{Answer, ErrorKind, Outcome, Record};
pub use run::{LoadHandle, Sink};
pub use tally::{Answers, LevelChanges, Slot, Tally};
