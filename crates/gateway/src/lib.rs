//! The gateway: an HTTP/1.1 and HTTP/2 reverse proxy and file server that drives the engine in real time.
//!
//! A request's way is one direction, room by room; each arrow is a call that returns a value:
//!
//! ```text
//! listen    accept -> place on a thread
//! request   -> head -> classify -> level, admission, place (the engine) -> forward -> answer
//! upstream     -> connection -> exchange -> release                  | files: find -> read -> release
//! request   -> depart
//! ```
//!
//! `http1` is the wire format, pure functions over bytes; `http2` brings heads of streams into its form; `transport` has the
//! sockets that carry them. `runtime` holds what runs: one worker thread per core, each with a lane of the engine, and the
//! ticker that runs the control loops. [`admin`] is the operator's view. Nothing in
//! this crate decides which request is served how: the engine does.
//!
//! Not here: reading a configuration (the crate `plimsoll-config`), signals and the command line.

pub mod access_log;
pub mod admin;
mod client;
mod clock;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
#[doc(hidden)]
pub mod http1;
#[doc(hidden)]
pub mod http2;
mod listen;
mod otlp;
mod request;
mod runtime;
pub mod settings;
mod sync;
mod traces;
mod transport;
mod upstream;
mod worker;

pub use gateway::{Before, FaultNews, Gateway};
pub use listen::inherited::{Inherited, ListeningSocket};
pub use runtime::reload::{Reloaded, Reloader};
pub use settings::Settings;
pub use upstream::roster::ServerNews;
pub use worker::shared::Reloads;
