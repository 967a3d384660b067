//! The paper AC's admission: a budget of work for each period and priority, instead of the decision by unfinished work.
//!
//! *In*: the work that each priority requests, and what a period leaves undone. *Out*: whether a request is admitted, or when.
//!
//! - `formula`: the work that a period may still admit of a priority
//! - `forecast`: the work that will be requested of a priority in the next period
//! - `budget`: the accounts of the present period, which threads share
//! - `periods`: the end of one period and the beginning of the next
//!
//! The simulator's comparator, the paper's own request path, uses the first two as well.

pub(crate) mod budget;
pub(crate) mod forecast;
pub(crate) mod formula;
pub(crate) mod periods;

pub use forecast::{Day, HOURS, RateForecast, RateForecasts, RequestedWork};
pub use formula::{Account, left};
