//! Traces: which requests are recorded, and where they are sent.

use super::file::ConfigurationKeys;
use crate::agent::HttpUrl;
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{Located, Part, Text, section};
use plimsoll_gateway::settings::TraceSettings;

section! { "[traces]"
    /// The gateway takes part in W3C Trace Context, and reports to a collector of OpenTelemetry how long requests waited,
    /// were served and were delivered. A thread of its own does so: a slow or missing collector delays no request, and lost
    /// requests are counted in `plimsoll_traced_requests_total`. Absent: `traceparent` and `tracestate` pass as they came.
    TraceKeys {
        /// Where the collector takes traces by OTLP over HTTP, such as `"http://127.0.0.1:4318/v1/traces"`.
        endpoint: HttpUrl, required("write where the collector takes OTLP over HTTP: `endpoint = \"http://127.0.0.1:4318/v1/traces\"`");
        /// The part that is recorded of the requests for which their caller has not decided it.
        sample: Part, default(Part(TraceSettings::new(String::new()).ratio));
        /// What the collector calls the gateway (`service.name`).
        service: Text, default(Text(TraceSettings::new(String::new()).service));
    }
}

pub(super) fn traces(file: &ConfigurationKeys, findings: &mut Findings) -> Option<TraceSettings> {
    let keys = &file.traces.as_ref()?.value.0;
    Some(TraceSettings {
        endpoint: collector(keys.endpoint.as_ref(), "traces", findings),
        ratio: keys.sample.value.0,
        service: keys.service.value.0.clone(),
    })
}

/// The URL of a collector.
pub(super) fn collector(url: Option<&Located<HttpUrl>>, what: &str, findings: &mut Findings) -> String {
    let Some(url) = url else { return String::new() };
    let whole = url.value.to_string();
    if url.value.target == "/" {
        refuse!(findings, BadValue at &url.span,
            format!("no collector takes {what} at its root"),
            help: format!("write where it does, most often `\"{}/v1/{what}\"`", quoted(whole.trim_end_matches('/'))));
    }
    whole
}
