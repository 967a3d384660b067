//! What belongs to a deadline: the types that requests are told apart by, and what is preferred.

use super::Condition;
use alloc::string::String;

/// A type of requests: alike in what they cost the server.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestType {
    /// Its name in status and metrics.
    pub name: String,
    /// Who belongs to it.
    pub condition: Condition,
    /// What one costs relative to a small static file, until it is measured: AC's quantum.
    pub quantum: f64,
}

/// What a request is that none of its site's own types takes, by its path's extension, with AC's quanta (Table 2).
pub const DEFAULT_TYPES: [(&str, f64); 4] =
    [("static", 1.0), ("dynamic", 10.0), ("audio", 20.0), ("video", 100.0)];

/// What admission by deadline prefers, where it cannot have both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// To leave no worker idle: who can be done just in time is admitted.
    #[default]
    Throughput,
    /// Short waits: the queue is kept to a fifth of the deadline, and a worker may idle now and then for it.
    Delay,
}

/// What admission by deadline looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// The work that is unfinished. The default.
    #[default]
    Work,
    /// The instantaneous synthetic utilization, at most 0.58 (UC 3). For comparison.
    Synthetic,
    /// AC's budget of a period and priority, by predicted rates. For comparison.
    Budget,
}
