//! OTLP over HTTP, in which OpenTelemetry's collectors take spans and metrics: JSON, by the field names of its protocol
//! buffers (opentelemetry-proto 1.x). Identifiers are hexadecimal, numbers of 64 bits are texts.
//!
//! Here is what both kinds share: attributes, what they say of their sender, and the client that posts them from a thread of
//! its own.

mod client;

pub(crate) use client::{CollectorClient, Delivery};
use serde::Serialize;
use std::sync::LazyLock;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Attribute {
    key: &'static str,
    value: AttributeValue,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum AttributeValue {
    StringValue(String),
    IntValue(String),
}

impl Attribute {
    pub(crate) fn text(key: &'static str, value: impl Into<String>) -> Self {
        Attribute { key, value: AttributeValue::StringValue(value.into()) }
    }

    pub(crate) fn number(key: &'static str, value: u64) -> Self {
        Attribute { key, value: AttributeValue::IntValue(value.to_string()) }
    }
}

/// What collectors call the gateway where no other name is told.
pub(crate) const SERVICE: &str = "plimsoll";

/// The sender.
#[derive(Debug, Serialize)]
pub(crate) struct ServiceResource {
    attributes: Vec<Attribute>,
}

impl ServiceResource {
    /// The gateway, under the name that the operator gives it. Several of that name, and the process that takes the place of
    /// another, are told apart: their counters are not one.
    pub(crate) fn new(service: &str) -> Self {
        let name = Attribute::text("service.name", service);
        let instance = Attribute::text("service.instance.id", INSTANCE.as_str());
        ServiceResource { attributes: vec![name, instance, Attribute::text("service.version", VERSION)] }
    }
}

/// The host and the number of this process.
pub(crate) static INSTANCE: LazyLock<String> = LazyLock::new(|| {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
});

/// The part of the sender that made it.
#[derive(Debug, Serialize)]
pub(crate) struct Scope {
    name: &'static str,
    version: &'static str,
}

impl Scope {
    pub(crate) const PLIMSOLL: Scope = Scope { name: "plimsoll", version: VERSION };
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
