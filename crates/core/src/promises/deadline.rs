//! Deadlines: the request types by which costs are estimated, and what admission prefers and looks at.

use super::Condition;
use alloc::string::String;

/// A type of requests that are alike in what they cost the server.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestType {
    /// Its name in status and metrics.
    pub name: String,
    /// Requests that belong to it.
    pub condition: Condition,
    /// The cost of a request relative to a small static file, until it is measured: AC's quantum.
    pub quantum: f64,
}

/// The types of requests that match none of their site's own types, by the path's extension, with AC's quanta (Table
/// 2).
pub const DEFAULT_TYPES: [(&str, f64); 4] =
    [("static", 1.0), ("dynamic", 10.0), ("audio", 20.0), ("video", 100.0)];

/// What admission by deadline prefers, where it cannot have both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// No worker idles: a request that can just be done in time is admitted.
    #[default]
    Throughput,
    /// Waits are short: the queue is kept to a fifth of the deadline, and a worker may idle now and then for it.
    Delay,
}

/// What admission by deadline looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// The unfinished work. The default.
    #[default]
    Work,
    /// The instantaneous synthetic utilization, at most 0.58 (UC 3). For comparison.
    Synthetic,
    /// AC's budget of work for each period and priority, from predicted rates. For comparison.
    Budget,
}
