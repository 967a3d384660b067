//! The gateway: an HTTP/1.1 and HTTP/2 reverse proxy and file server that drives the engine in real time.
//!
//! A request's way is one direction, room by room; each arrow is a call that returns a value:
//!
//! ```text
//! runtime      accept -> place on a thread
//! request      -> head -> classify -> level, admission, place (the engine) -> forward -> answer
//! exchange        -> connection (upstream) -> bytes both ways -> release | files: find -> read -> release
//! accounting   -> depart
//! ```
//!
//! `http1` is the wire format, pure functions over bytes; `http2` brings heads of streams into its form; `transport` has the
//! sockets that carry them, and `client` a client's bytes on them. `worker` is what a thread has, of which there is one for
//! each core, with a lane of the engine; `runtime` is what threads run, and the ticker, which runs the control loops. [`admin`]
//! is the operator's view. A room uses only rooms below it, in the order of `.ci/layers`. Nothing in this crate decides which
//! request is served how: the engine does.
//!
//! Not here: reading a configuration (the crate `plimsoll-config`), signals and the command line.

pub mod access_log;
mod accounting;
pub mod admin;
mod background;
mod client;
mod clock;
mod exchange;
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

pub use files::program::is_program;
pub use gateway::{Before, FaultNews, Gateway};
pub use listen::inherited::{Inherited, ListeningSocket};
pub use runtime::reload::{Reloaded, Reloader};
pub use settings::Settings;
pub use upstream::ejection::ServerNews;
pub use worker::shared::Reloads;
