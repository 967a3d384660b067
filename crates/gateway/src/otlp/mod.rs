//! OTLP over HTTP, by which OpenTelemetry's collectors receive spans and metrics: JSON, by the field names of its protocol
//! buffers (opentelemetry-proto 1.x). Identifiers are hexadecimal, numbers of 64 bits are texts.
//!
//! This room has what both kinds share: attributes, the description of the sender, and the client, which posts from a thread of
//! its own.

mod client;

pub(crate) use client::{CollectorClient, Delivery};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::SystemTime;

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Attribute {
    key: &'static str,
    value: AttributeValue,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize)]
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

/// A time, in nanoseconds since 1970.
pub(crate) fn unix_nanoseconds<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos())
}

/// What collectors call the gateway where no other name is configured.
pub(crate) const SERVICE: &str = "plimsoll";

/// The description of the sender.
#[derive(serde::Serialize)]
struct ServiceResource {
    attributes: Vec<Attribute>,
}

impl ServiceResource {
    /// The gateway, under the name that the operator gives it. Several of that name, and the process that takes the place of
    /// another, are distinguished: their counters are not one.
    fn new(service: &str) -> Self {
        let name = Attribute::text("service.name", service);
        let instance = Attribute::text("service.instance.id", INSTANCE.as_str());
        ServiceResource { attributes: vec![name, instance, Attribute::text("service.version", VERSION)] }
    }
}

/// The host name and process number of this process.
pub(crate) static INSTANCE: LazyLock<String> = LazyLock::new(|| {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
});

/// The part of the sender that made the items.
#[derive(serde::Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

impl Scope {
    const PLIMSOLL: Scope = Scope { name: "plimsoll", version: VERSION };
}

/// The body of an export request with these items, for the service of this name. `names` are the keys of the three lists: of
/// resources, of scopes, and of items.
pub(crate) fn export_request(names: [&'static str; 3], service: &str, items: Vec<impl Serialize>) -> Vec<u8> {
    let [by_resource, by_scope, own] = names;
    let scoped = Fields(("scope", Scope::PLIMSOLL), (own, items));
    let resource = Fields(("resource", ServiceResource::new(service)), (by_scope, [scoped]));
    // Every value here can be written as JSON.
    serde_json::to_vec(&HashMap::from([(by_resource, [resource])])).unwrap_or_default()
}

/// A JSON object of two fields.
struct Fields<A, B>((&'static str, A), (&'static str, B));

impl<A: Serialize, B: Serialize> Serialize for Fields<A, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry(self.0.0, &self.0.1)?;
        fields.serialize_entry(self.1.0, &self.1.1)?;
        fields.end()
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
