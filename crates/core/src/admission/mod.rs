//! Room: whether a request may come in.
//!
//! *In*: a request's class, rank and expected cost. *Out*: admitted, or refused with the time after which it may be tried
//! again. (A request is rejected for its level in `engine/lane/arrive.rs`, and for a full queue in `engine/lane/place.rs`.)
//!
//! - `contract_token_bucket`: whether a site keeps to its contract; beyond it, its requests lose the guaranteed quality
//! - `deadline`: refuses a request that would miss its deadline
//! - `unfinished_work`: the work that waits or is in service at a plant
//! - `residual_work`: what remains of the work in service
//! - `expected_wait`: the wait that follows from the unfinished work
//! - `estimates`: the expected cost of a request, by type and level
//! - `headroom`: what the requests of a rank leave free for the costliest of them
//! - `rule`: which rule decides about deadlines: unfinished work, or for comparison one of the next two
//! - `stream_limits`: how many requests may stream at a plant, and how many connections may be upgraded
//! - `synthetic_utilization`: instantaneous synthetic utilization (UC 3)
//! - [`aces`]: the paper AC's budget of a period
//! - `model_check`: the counts of held workers under every interleaving

pub mod aces;
pub(crate) mod contract_token_bucket;
pub(crate) mod deadline;
pub(crate) mod estimates;
mod expected_wait;
pub(crate) mod headroom;
pub(crate) mod held_workers;
#[cfg(all(test, loom))]
mod model_check;
pub(crate) mod residual_work;
pub(crate) mod rule;
pub(crate) mod stream_limits;
pub(crate) mod synthetic_utilization;
pub(crate) mod unfinished_work;
pub(crate) mod waiting_by_age;
