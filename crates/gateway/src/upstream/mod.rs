//! A plant's servers, and which connection a request is sent on.
//!
//! In: a request that holds a place at its plant and needs a connection. Out: a lease of a connection, or a refusal in place of
//! a response. The outcomes of requests come back, and show the health of the servers.
//!
//! [`failover`] gives a request its connection, to another of the [`servers`] where one cannot be reached: [`choice`] says to
//! which [`server`], [`ejection`] which of them are in use, by the [`trouble`] that requests and [`checks`] met,
//! [`retry_budget`] whether another may be tried, [`server_log`] what was logged of them. [`pool`] owns the connections of all
//! threads, and [`connect`] begins them. [`load_report`] reads what servers report, and [`forwarding_loop`] finds requests that
//! an upstream leads back here.
//!
//! Not here: the bytes that are sent and received on a connection (`exchange`).

pub(crate) mod checks;
mod choice;
pub(crate) mod connect;
pub(crate) mod ejection;
pub(crate) mod failover;
pub(crate) mod forwarding_loop;
pub(crate) mod load_report;
mod new_connections;
pub(crate) mod pool;
mod recent_counts;
mod retry_budget;
mod server;
mod server_log;
pub(crate) mod servers;
mod trouble;
