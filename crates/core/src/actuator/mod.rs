//! Room: what loops write and requests read.
//!
//! *In*: the allocation at the end of a period. *Out*: one word for each class, the service level m, which each arrival
//! reads, and the capacity of each plant. The share of requests behind a fraction of clients corrects m for clients
//! that differ.

pub(crate) mod capacity;
pub(crate) mod client_share;
pub(crate) mod service_level;
