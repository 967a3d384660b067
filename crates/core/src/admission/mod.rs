//! Room: whether a request may come in.
//!
//! *In*: a request's class, rank and expected cost. *Out*: admitted, or refused with the time after which it may be tried
//! again. (A request is rejected for its level in `engine/lane/arrive.rs`, and for a full queue in `engine/lane/place.rs`.)
//!
//! - `contract_token_bucket`: whether a site keeps to its contract; beyond it, its requests lose the guaranteed quality
//! - `deadline`, `headroom`: refuses a request that would miss its deadline, with room left for the costliest ones
//! - `held_workers`: the workers that requests hold for longer than a request with some deadline can wait
//! - `rule`: which rule decides so: unfinished work, or for comparison `synthetic_utilization` (UC 3) or [`aces`] (AC)
//! - `unfinished_work`, `rank_work`, `residual_work`, `expected_wait`, `estimates`: work at a plant, the wait, the cost by type
//! - `slot_key`, `waiting_by_age`: which requests a slot of unfinished work is of, and their work by age
//! - `other_sites_work`: what other sites take before a request, where sites take turns
//! - `lateness`: the work that was late, and the chance of being late that is accepted
//! - `stream_limits`: how many requests may stream at a plant, and how many connections may be upgraded

pub mod aces;
pub(crate) mod contract_token_bucket;
pub(crate) mod deadline;
pub(crate) mod estimates;
mod expected_wait;
pub(crate) mod headroom;
pub(crate) mod held_workers;
pub(crate) mod lateness;
#[cfg(all(test, loom))]
mod model_check;
mod other_sites_work;
pub(crate) mod rank_work;
pub(crate) mod residual_work;
pub(crate) mod rule;
pub(crate) mod slot_key;
pub(crate) mod stream_limits;
pub(crate) mod synthetic_utilization;
pub(crate) mod unfinished_work;
pub(crate) mod waiting_by_age;
