//! Where metrics are pushed.

use super::file::ConfigurationKeys;
use super::traces::collector;
use crate::agent::HttpUrl;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Text, TextField, section};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::MetricsSettings;

section! { "[metrics]"
    /// The metrics of the admin listener are pushed to a collector of OpenTelemetry too, under the same names, for hosts to
    /// whose admin listener nothing may connect. Counters count from the gateway's start, so the next push makes up for one
    /// that the collector did not take.
    MetricsKeys {
        /// Where the collector takes metrics by OTLP over HTTP, such as `"http://127.0.0.1:4318/v1/metrics"`.
        endpoint: HttpUrl, required("write where the collector takes OTLP over HTTP: `endpoint = \"http://127.0.0.1:4318/v1/metrics\"`");
        /// The time between two pushes.
        interval: Duration, default(usual().interval);
        /// What the collector calls the gateway (`service.name`).
        service: Text, default(Text(usual().service));
    }
}

fn usual() -> MetricsSettings {
    MetricsSettings::new(String::new())
}

const LEAST_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn metrics(file: &ConfigurationKeys, findings: &mut Findings) -> Option<MetricsSettings> {
    let keys = &file.metrics.as_ref()?.value.0;
    if keys.interval.value < LEAST_INTERVAL {
        refuse!(findings, OutOfRange at &keys.interval.span,
            "figures do not change so fast",
            help: format!("write at least `\"1s\"`; `\"{}\"` is usual", usual().interval.show()));
    }
    Some(MetricsSettings {
        endpoint: collector(keys.endpoint.as_ref(), "metrics", findings),
        interval: keys.interval.value,
        service: keys.service.value.0.clone(),
    })
}
