//! Spans as OTLP sends them: `opentelemetry/proto/trace/v1/trace.proto`.

use crate::otlp::{self, Attribute, unix_nanoseconds};
use serde::{Serialize, Serializer};
use std::time::SystemTime;

/// A span's kind, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TraceSpan {
    #[serde(serialize_with = "trace_id")]
    pub trace_id: u128,
    #[serde(serialize_with = "span_id")]
    pub span_id: u64,
    #[serde(serialize_with = "parent_id", skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<u64>,
    pub name: String,
    #[serde(serialize_with = "kind")]
    pub kind: SpanKind,
    #[serde(rename = "startTimeUnixNano", serialize_with = "unix_nanoseconds")]
    pub start: SystemTime,
    #[serde(rename = "endTimeUnixNano", serialize_with = "unix_nanoseconds")]
    pub end: SystemTime,
    pub attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SpanStatus>,
}

/// A span's status, by its number.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SpanStatus {
    code: u8,
}

impl SpanStatus {
    pub(super) const ERROR: SpanStatus = SpanStatus { code: 2 };
}

/// The body of an export request with these spans of the service of this name.
pub(super) fn export_request<'a>(service: &str, spans: impl Iterator<Item = &'a TraceSpan>) -> Vec<u8> {
    otlp::export_request(["resourceSpans", "scopeSpans", "spans"], service, spans.collect())
}

fn trace_id<S: Serializer>(id: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:032x}"))
}

fn span_id<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{id:016x}"))
}

fn parent_id<S: Serializer>(id: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    span_id(&id.unwrap_or_default(), serializer)
}

fn kind<S: Serializer>(kind: &SpanKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(*kind as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn names_and_numbers_are_those_of_the_protocol() {
        let at = |nanoseconds| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        let span = TraceSpan {
            trace_id: 0xab,
            span_id: 0xcd,
            parent_span_id: Some(0xef),
            name: "GET".to_owned(),
            kind: SpanKind::Server,
            start: at(1_764_000_000_000_000_001),
            end: at(1_764_000_000_000_000_002),
            attributes: vec![Attribute::number("http.response.status_code", 503)],
            status: Some(SpanStatus::ERROR),
        };
        let root = TraceSpan { parent_span_id: None, status: None, attributes: Vec::new(), ..span.clone() };
        let body = export_request("shop", [&span, &root].into_iter());
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let version = env!("CARGO_PKG_VERSION");
        let of = |text: &str| json!({ "stringValue": text });
        let resource = json!({ "attributes": [
            { "key": "service.name", "value": of("shop") },
            { "key": "service.instance.id", "value": of(&crate::otlp::INSTANCE) },
            { "key": "service.version", "value": of(version) },
        ] });
        let mut first = json!({
            "traceId": "000000000000000000000000000000ab",
            "spanId": "00000000000000cd",
            "parentSpanId": "00000000000000ef",
            "name": "GET",
            "kind": 2,
            "startTimeUnixNano": "1764000000000000001",
            "endTimeUnixNano": "1764000000000000002",
            "attributes": [{ "key": "http.response.status_code", "value": { "intValue": "503" } }],
            "status": { "code": 2 },
        });
        assert_eq!(body["resourceSpans"][0]["resource"], resource);
        let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(spans[0], first);
        let fields = first.as_object_mut().expect("an object");
        fields.retain(|name, _| name != "parentSpanId" && name != "status");
        fields.insert("attributes".to_owned(), json!([]));
        assert_eq!(spans[1], first);
    }
}
