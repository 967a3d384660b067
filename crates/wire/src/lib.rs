//! HTTP/1 as it is seen passing by: whoever looks on can change nothing in it, and must never be in its way.
//!
//! - `head`: heads of requests and answers, and how long what follows them is
//! - `body`: how much of a body is left
//! - `answers`: the answers of a connection, one after the other
//!
//! No clock, socket or thread is here. What is not understood is `Foreign`, or a body until the connection's end: it is never
//! an error, since the server may well understand it.

mod answers;
mod body;
mod head;

pub use answers::{Answers, Progress};
pub use body::Body;
pub use head::{HEADERS, Parsed, RequestHead, request_head};
pub use httparse::{EMPTY_HEADER, Header};
