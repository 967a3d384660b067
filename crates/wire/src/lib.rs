//! HTTP/1 as an observer sees it, who changes nothing in it and must never delay it.
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
//! - `connection`: which requests are under way in a connection
//! - `traffic`: what the server did
//! - `capture`, with the feature of that name: the frames of a real interface, or of a file, by libpcap
//!
//! Only `capture` uses a clock, a socket or a thread. Bytes that are not understood are `Foreign`, or a body that ends with the
//! connection: they are never an error, since the server may well understand them.

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
