//! Where metrics are pushed.

use crate::otlp;
use std::time::Duration;

/// Where metrics are pushed, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsSettings {
    /// The collector's address for metrics, OTLP over HTTP: `http://127.0.0.1:4318/v1/metrics`.
    pub endpoint: String,
    /// The time between two pushes.
    pub interval: Duration,
    /// What the collector calls the gateway.
    pub service: String,
}

impl MetricsSettings {
    /// The settings for this collector, with the usual interval and name.
    pub fn new(endpoint: String) -> Self {
        MetricsSettings { endpoint, interval: Duration::from_secs(15), service: otlp::SERVICE.to_owned() }
    }
}
