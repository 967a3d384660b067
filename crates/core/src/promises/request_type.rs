//! Request types: requests of one type are alike in what they cost, so costs are estimated by type (AC 3.2).

use super::Condition;
use alloc::string::String;

/// A type of requests that are alike in what they cost the server.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestType {
    /// The type's name in status and metrics.
    pub name: String,
    /// Requests that belong to it.
    pub condition: Condition,
    /// The cost of a request relative to a small static file, until it is measured: AC's quantum.
    pub quantum: f64,
}

/// The types of requests that match none of their site's own types, with AC's quanta (Table 2).
/// [`DefaultType`](crate::request::DefaultType) determines the type of a request.
pub const DEFAULT_TYPES: [(&str, f64); 4] =
    [("static", 1.0), ("dynamic", 10.0), ("audio", 20.0), ("video", 100.0)];
