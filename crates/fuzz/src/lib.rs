//! What must hold of every parser and state machine that meets bytes from outside, as one function of bytes each.
//!
//! A function returns if what it says holds for these bytes, whatever they are, and panics otherwise. It runs in two places:
//! under cargo-fuzz, which looks for bytes that break it (`make fuzz`), and in `make test`, which replays the bytes that were
//! kept in `corpus/` and some damage to them (`tests/corpus.rs`).
//!
//! - [`kept`]: what a gateway has learned, as it is kept over restarts
//! - [`messages`]: heads and bodies of HTTP/1.1, what is written of them, and what comes before: PROXY headers, certificates
//! - [`differential`]: the same messages beside hyper
//! - [`texts`]: configurations, workloads, logs, tokens, paths
//! - [`reports`]: what servers say of their load
//! - [`served`]: files that clients ask for
//! - [`site`]: pages, sheets and images of anybody's site
//! - [`streams`]: frames of HTTP/2, and heads of its streams
//! - [`wire`]: packets, and answers that pass by

pub mod differential;
pub mod kept;
pub mod messages;
pub mod reports;
pub mod served;
pub mod site;
pub mod streams;
pub mod texts;
pub mod wire;

/// A target's name, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets. Each has its corpus in `corpus/`.
pub const TARGETS: &[Target] = &[
    ("access_log", texts::access_log),
    ("adaptation", texts::adaptation),
    ("agent", texts::agent),
    ("answers", wire::answers),
    ("body", messages::body),
    ("client_certificate", messages::client_certificate),
    ("configuration", texts::configuration),
    ("differential", differential::requests),
    ("differential_response", differential::response),
    ("drawing", site::drawing),
    ("files", served::files),
    ("forwarding", messages::forwarding),
    ("frames", streams::frames),
    ("image", site::image),
    ("load_report", reports::load_report),
    ("normal_path", texts::normal_path),
    ("packets", wire::packets),
    ("page", site::page),
    ("proxy_header", messages::proxy_header),
    ("rate_forecast", kept::rate_forecast),
    ("request", messages::request),
    ("response", messages::response),
    ("sheet", site::sheet),
    ("signed", texts::signed),
    ("state", kept::state),
    ("status_page", reports::status_page),
    ("stream", streams::stream),
    ("workload", texts::workload),
];

/// Runs the target of this name.
///
/// # Panics
/// What it says does not hold, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.unwrap_or_else(|| panic!("there is no target {name}")).1(bytes);
}
