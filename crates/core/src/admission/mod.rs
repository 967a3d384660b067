//! Room: whether a request may come in.
//!
//! *In*: a request's class, rank and expected cost. *Out*: admitted, or refused with the time after which it may be
//! tried again. Here are the token bucket of a contract, the unfinished work in front of a deadline, the estimates of
//! what requests cost, and the paper AC's budget with its law and forecast ([`aces`]).

pub mod aces;
pub(crate) mod estimates;
pub(crate) mod law;
pub(crate) mod residual_work;
pub(crate) mod synthetic;
pub(crate) mod token_bucket;
pub(crate) mod unfinished_work;
