//! A plant's servers: which connection a request goes on, and what becomes of it there.
//!
//! In: a request that holds a place at its plant, with the heads that it may be sent under. Out: its response in the
//! client's outbox, the place released, or a refusal in place of a response.
//!
//! [`retry`] carries a request through one exchange or several and has the rule of what is tried again; [`exchange`] moves
//! bytes on one connection, with a [`request`] half and a [`response`] half, held to its [`progress`], for nobody if its
//! client has left ([`abandoned`]).
//!
//! [`servers`] gives a request its connection, to another server where one cannot be reached: [`choice`] says to which
//! [`server`], [`roster`] which of them are in use, by the [`trouble`] that requests and [`checks`] met, [`retry_budget`]
//! whether another may be tried, [`server_log`] what the log was told of them. [`pool`] owns the connections of all threads,
//! and [`connect`] begins them. [`load_report`] reads what servers report, and [`loop_mark`] finds requests
//! that an upstream leads back here. [`head`] writes heads for clients, in which
//! [`redirect`] maps places back.

mod abandoned;
pub(crate) mod checks;
mod choice;
pub(crate) mod connect;
pub(crate) mod exchange;
pub(crate) mod head;
pub(crate) mod load_report;
pub(crate) mod loop_mark;
mod new_connections;
pub(crate) mod pool;
pub(crate) mod progress;
mod recent_counts;
pub(crate) mod redirect;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod retry;
mod retry_budget;
pub(crate) mod roster;
mod server;
mod server_log;
pub(crate) mod servers;
mod trouble;
