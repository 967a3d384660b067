//! HTTP/1 as it is seen passing by: whoever looks on can change nothing in it, and must never be in its way.
//!
//! ```text
//!   a server's own calls ────────────────────────────┐
//!                                                    v
//!   frames ── segment ── flow (in order, once) ── heads, bodies, answers ── traffic (R, W, response time, U)
//! ```
//!
//! - `head`: heads of requests and answers, and how long what follows them is
//! - `body`: how much of a body is left
//! - `answers`: the answers of a connection, one after the other
//! - `segment`: TCP in the frames of an interface
//! - `flow`: a direction of a connection, put in order
//! - `connection`: which requests are under way in it
//! - `traffic`: what a server did
//! - `capture`, with the feature of that name: the frames of a real interface, or of a file, by libpcap
//!
//! No clock, socket or thread is here but in `capture`. What is not understood is `Foreign`, or a body until the connection's
//! end: it is never an error, since the server may well understand it.

mod answers;
mod body;
#[cfg(feature = "capture")]
mod capture;
mod connection;
mod flow;
mod head;
mod segment;
mod traffic;

pub use answers::{Answers, Progress};
pub use body::Body;
#[cfg(feature = "capture")]
pub use capture::{Capture, read_file};
pub use head::{HEADERS, Parsed, RequestHead, request_head};
pub use httparse::{EMPTY_HEADER, Header};
pub use segment::{Link, Segment};
pub use traffic::{Seen, Traffic};
