//! The paper AC's admission: a budget of work for each period and priority, in place of the decision by unfinished work.
//!
//! `formula` says what a period may still admit of a priority, `forecast` predicts what will be requested of it,
//! `budget` holds the words that threads share, and `periods` turns the periods. The simulator's comparator, the
//! paper's own request path, uses the first two as well.

pub(crate) mod budget;
pub(crate) mod forecast;
pub(crate) mod formula;
pub(crate) mod periods;

pub use forecast::{Day, HOURS, RateForecast, RateForecasts, RequestedWork};
pub use formula::{Account, left};
