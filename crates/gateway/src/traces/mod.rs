//! Traces: what distributed tracing learns of requests, reported beside the requests' way.
//!
//! In: a request's `traceparent`, and what the access log knows of the request once it has ended. Out: the `traceparent` that
//! its server gets, and spans for a collector of OpenTelemetry. Without traces both fields pass as the client sent them.
//!
//! - `context`: the request's place in its trace, after W3C Trace Context; whether it is recorded
//! - `spans`: the spans of one request, named and described as OpenTelemetry's conventions have it
//! - `otlp`: the form in which spans are sent, the JSON of OTLP
//! - `exporter`: the queue and the thread that sends: it drops and counts, and never fails or delays a request

pub(crate) mod context;
pub(crate) mod exporter;
mod otlp;
pub(crate) mod spans;

pub use exporter::TraceSettings;
