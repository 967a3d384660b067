//! The gateway: an HTTP/1.1 reverse proxy and file server that drives the engine in real time.
//!
//! ```text
//! acceptor -> connection -> serve -> upstream::exchange -> tunnel
//!  (thread)    (task)        |  \--> local (files)
//!                            +-- lane.classify, arrive, sent, release, depart
//! ticker (own thread) -> engine.tick -> verdicts -> mailboxes -> waiting connections
//! ```
//!
//! Every worker is a thread with a single-threaded runtime, a lane of the engine and its connections; see [`worker`].
//! The wire format is in [`http1`], which is pure. Nothing here decides who is served how: the engine does.
//!
//! Not here: reading a configuration (the crate `plimsoll-config`), signals and the command line.

pub mod admin;
mod answer;
mod buffers;
mod clock;
mod connection;
pub mod files;
mod forward;
mod gateway;
mod held;
#[doc(hidden)]
pub mod http1;
mod inbox;
mod listen;
mod local;
mod mailbox;
mod outbox;
mod pace;
mod reload;
mod serve;
pub mod settings;
mod slot;
mod tables;
mod ticker;
mod tunnel;
mod upstream;
mod worker;

pub use gateway::Gateway;
pub use reload::{Reloaded, Reloader, Reloads};
pub use settings::Settings;
