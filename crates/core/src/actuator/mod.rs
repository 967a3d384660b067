//! Room: what loops write and requests read.
//!
//! *In*: the allocation at the end of a period. *Out*: one word per class, the service level m, which each arrival
//! reads. The share of requests behind a fraction of clients translates one into the other.

pub(crate) mod capacity;
pub(crate) mod client_share;
pub(crate) mod service_level;
