//! Room: when a request starts.
//!
//! *In*: an admitted request with its rank, and the workers that become free. *Out*: the order in which requests start.
//! The gate counts requests in service and knows whether any wait, in one word; the queue orders waiting requests by
//! rank; a quota is the number of workers that a class owns while it needs them.

pub(crate) mod gate;
mod line;
#[cfg(all(test, loom))]
mod model_check;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod rank;
mod turns;
