//! A request and its response on the connection to a server.
//!
//! In: a request that holds a place at its plant, with the heads that it may be sent under. Out: its response in the
//! client's outbox, the place released, or a refusal in place of a response.
//!
//! [`retry`] carries a request through one exchange or several and has the rule of what is tried again. An exchange is the
//! [`moves`] of bytes on one connection, with a [`request`] half and a [`response`] half, which is read so far ahead of its
//! client ([`read_ahead`]), held to its [`progress`] where it is at a [`standstill`], for nobody if its client has left
//! ([`abandoned`]), at most until the gateway stops ([`stopped`]). [`head`] writes heads for clients, in which [`redirect`]
//! maps places back, and [`trailers`] come last.
//!
//! Not here: which connection that is (`upstream`), and what comes before and after (`request`).

mod abandoned;
pub(crate) mod head;
pub(crate) mod moves;
pub(crate) mod progress;
mod read_ahead;
pub(crate) mod redirect;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod retry;
mod standstill;
mod stopped;
mod trailers;
