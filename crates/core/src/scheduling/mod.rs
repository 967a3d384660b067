//! Room: when a request starts.
//!
//! *In*: an admitted request with its rank, and the workers that become free. *Out*: the order in which requests
//! start. The gate counts what is in service and what waits in one word; the queue orders what waits; a quota is the
//! number of workers that a class owns while it wants them.

pub(crate) mod gate;
pub(crate) mod queue;
pub(crate) mod quota;
