//! Room: whether a request may come in.
//!
//! *In*: a request's class, rank and expected cost. *Out*: admitted, or refused with the time after which it may be
//! tried again. The token bucket tells which requests are inside a contract; the unfinished work, the wait that follows
//! from it, and the estimates of costs tell which requests can meet their deadline. Other admission laws, for
//! comparison: synthetic utilization, and the paper AC's budget ([`aces`]).

pub mod aces;
pub(crate) mod estimates;
pub(crate) mod law;
pub(crate) mod residual_work;
pub(crate) mod synthetic;
pub(crate) mod token_bucket;
pub(crate) mod unfinished_work;
mod wait;
