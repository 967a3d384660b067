//! The spans of one request, made from its log entry by OpenTelemetry's conventions for HTTP.
//!
//! ```text
//! GET       |-------------------------------------|   server
//!   queue     |-----|                                 from arrival to start, where it waited
//!   service         |-------------|                   from start to the server's last byte; the server's own span is below it
//!   delivery                      |---------------|   from there to the client's last byte
//! ```
//!
//! The body of a request is read before its arrival, in the time before the queue.

use super::context::TraceContext;
use super::otlp::{SpanKind, SpanStatus, TraceSpan};
use crate::access_log::format::Line;
use crate::otlp::Attribute;
use std::time::SystemTime;

/// The methods that have a name of their own; others are reported under a name for all, since a name is what tools group by.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY"];

/// Query keys whose values are secrets, by OpenTelemetry's list.
const SECRETS: [&str; 4] = ["AWSAccessKeyId", "Signature", "sig", "X-Goog-Signature"];

/// The times of a request's stages; a request that did not start has only the first and the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub came: SystemTime,
    pub arrived: Option<SystemTime>,
    pub started: Option<SystemTime>,
    /// When the server's last byte was read.
    pub released: Option<SystemTime>,
    pub ended: SystemTime,
}

/// The spans of a request, its own first. `is_proxied`: an upstream serves the request, and not a folder.
pub(crate) fn of(
    line: &Line<'_>,
    context: &TraceContext,
    moments: Moments,
    is_proxied: bool,
) -> Vec<TraceSpan> {
    let child = |name: &str, span_id, kind, start: SystemTime, end: SystemTime| TraceSpan {
        trace_id: context.trace,
        span_id,
        parent_span_id: Some(context.span),
        name: name.to_owned(),
        kind,
        start,
        end: end.max(start),
        attributes: Vec::new(),
        status: None,
    };
    let method = line.method.filter(|method| METHODS.contains(method));
    let mut spans = vec![TraceSpan {
        parent_span_id: context.parent,
        attributes: attributes(line, method),
        status: (line.status >= 500).then_some(SpanStatus::ERROR),
        ..child(method.unwrap_or("HTTP"), context.span, SpanKind::Server, moments.came, moments.ended)
    }];
    let [queue, service, delivery] = context.children();
    let Moments { arrived, started, released, ended, .. } = moments;
    if let (Some(arrived), Some(started)) = (arrived, started)
        && started > arrived
    {
        spans.push(child("queue", queue, SpanKind::Internal, arrived, started));
    }
    if let Some(started) = started {
        let kind = if is_proxied { SpanKind::Client } else { SpanKind::Internal };
        let mut span = child("service", service, kind, started, released.unwrap_or(ended));
        span.attributes.extend(line.upstream.map(|name| Attribute::text("plimsoll.upstream", name)));
        spans.push(span);
    }
    if let Some(released) = released {
        spans.push(child("delivery", delivery, SpanKind::Internal, released, ended));
    }
    spans
}

fn attributes(line: &Line<'_>, method: Option<&str>) -> Vec<Attribute> {
    let (path, query) = match line.path.unwrap_or_default().split_once('?') {
        Some((path, query)) => (path, Some(without_secrets(query))),
        None => (line.path.unwrap_or_default(), None),
    };
    let version = line.protocol.trim_start_matches("HTTP/").trim_end_matches("2.0");
    let texts = [
        ("http.request.method", Some(method.unwrap_or("_OTHER"))),
        ("http.request.method_original", line.method.filter(|_| method.is_none())),
        ("url.scheme", Some(line.scheme)),
        ("url.path", Some(path)),
        ("url.query", query.as_deref()),
        ("server.address", line.host),
        ("user_agent.original", line.user_agent),
        ("network.protocol.version", Some(if version.is_empty() { "2" } else { version })),
        ("plimsoll.site", line.site),
        ("plimsoll.class", line.class),
        ("plimsoll.level", line.level),
        ("plimsoll.reason", line.reason),
    ];
    let mut all: Vec<Attribute> =
        texts.into_iter().filter_map(|(key, value)| Some(Attribute::text(key, value?))).collect();
    all.push(Attribute::text("client.address", line.client.to_string()));
    all.push(Attribute::number("http.response.status_code", line.status.into()));
    all.push(Attribute::number("http.response.body.size", line.bytes));
    if line.status >= 500 {
        all.push(Attribute::text("error.type", line.status.to_string()));
    }
    all
}

fn without_secrets(query: &str) -> String {
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if SECRETS.contains(&name) => format!("{name}=REDACTED"),
        _ => pair.to_owned(),
    };
    query.split('&').map(shown).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_a_query_is_no_ones_to_read() {
        assert_eq!(without_secrets("a=1&sig=x=y&Signature=&b"), "a=1&sig=REDACTED&Signature=REDACTED&b");
    }
}
